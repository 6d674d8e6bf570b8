package search

// Segments: what a sequence of visits needs from its vehicle, and how two adjacent sequences
// join in constant time. What a reader could break: joining is associative, so that a route can
// be evaluated from any cut, and a segment that cannot be driven in time is never kept.

// tseg is a run's time: how long it takes at least, the earliest and latest moment at which it
// begins so that it takes no longer than that, and the latest release among its customers.
type tseg struct{ dur, early, late, release int64 }

// join is a, a drive of t, then b; false where b is reached too late.
func (a tseg) join(b tseg, t int64) (tseg, bool) {
	reach := a.dur + t
	if a.early+reach > b.late {
		return tseg{}, false
	}
	wait := max(b.early-reach-a.late, 0)
	return tseg{dur: reach + b.dur + wait, early: max(b.early-reach, a.early) - wait, late: min(b.late-reach, a.late), release: max(a.release, b.release)}, true
}

// fits is whether join would succeed.
func (a tseg) fits(b tseg, t int64) bool { return a.early+a.dur+t <= b.late }

// trip closes a run that begins and ends at depots: its vehicle leaves when all of it is released.
func (a tseg) trip() (tseg, bool) {
	if a.release > a.late {
		return tseg{}, false
	}
	return tseg{dur: a.dur, early: max(a.early, a.release), late: a.late}, true
}

// lseg is a run's load in one dimension: what is on board for its customers when it begins, what it
// adds until it ends, and the most that is on board between.
type lseg struct{ del, pick, peak int32 }

func single(del, pick int32) lseg { return lseg{del, pick, max(del, pick)} }

func (a lseg) join(b lseg) lseg {
	return lseg{a.del + b.del, a.pick + b.pick, max(a.peak+b.del, a.pick+b.peak)}
}
