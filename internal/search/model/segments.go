package model

// Segments: what a sequence of visits needs from its vehicle, and how two adjacent sequences join
// in constant time. Joining is associative, so that a route can be evaluated from any cut, and a
// segment that cannot be driven in time is never kept.

// TimeSegment is a run's time: how long it takes at least, the earliest and latest moment at which
// it begins so that it takes no longer than that, and the latest release among its customers.
type TimeSegment struct{ Dur, Early, Late, Release int64 }

// Join is a, a drive of t, then b; false where b is reached too late.
func (a TimeSegment) Join(b TimeSegment, t int64) (TimeSegment, bool) {
	reach := a.Dur + t
	if a.Early+reach > b.Late {
		return TimeSegment{}, false
	}
	wait := max(b.Early-reach-a.Late, 0)
	return TimeSegment{Dur: reach + b.Dur + wait, Early: max(b.Early-reach, a.Early) - wait, Late: min(b.Late-reach, a.Late), Release: max(a.Release, b.Release)}, true
}

// Fits reports whether join would succeed.
func (a TimeSegment) Fits(b TimeSegment, t int64) bool { return a.Early+a.Dur+t <= b.Late }

// Trip closes a run that begins and ends at depots: its vehicle leaves when all of it is released.
func (a TimeSegment) Trip() (TimeSegment, bool) {
	if a.Release > a.Late {
		return TimeSegment{}, false
	}
	return TimeSegment{Dur: a.Dur, Early: max(a.Early, a.Release), Late: a.Late}, true
}

// LoadSegment is a run's load in one dimension: what is on board for its customers when it begins,
// what it adds until it ends, and the most that is on board between.
type LoadSegment struct{ Del, Pick, Peak int32 }

func single(del, pick int32) LoadSegment { return LoadSegment{del, pick, max(del, pick)} }

func (a LoadSegment) Join(b LoadSegment) LoadSegment {
	return LoadSegment{a.Del + b.Del, a.Pick + b.Pick, max(a.Peak+b.Del, a.Pick+b.Peak)}
}

// MaxTime32 is later than any time in 32 bits.
const MaxTime32 = 1 << 30

// TimeWindow is when a customer may be served, and for how long.
type TimeWindow struct{ Early, Late, Service int32 }
