package vrp

import "math"

// Breaks of a vehicle. What a reader could break: a break is taken at a stop, before or after
// its service, in the order of the type's list, where the route then ends earliest. Its window
// never gives way: a break without a place is reported as not taken.

// slot is where a break is taken: after the service of a visit, or before it.
type slot struct {
	visit  int
	before bool
}

// rests puts the breaks of a type between the visits. carried is the load behind each visit. taken
// is how many of the breaks found a place.
func rests(list []visit, breaks []Break, carried [][]int64) (with []visit, taken int) {
	if len(breaks) == 0 || len(list) < 2 {
		return list, 0
	}
	slots := soonest(list, breaks, carried)
	taken = len(slots)
	next := 0
	rest := func(place int32, travel float64) visit {
		b := breaks[next]
		v := visit{place: place, rest: next, travel: travel, service: b.Duration, windows: b.Windows}
		next++
		return v
	}
	for i, v := range list {
		for next < taken && slots[next] == (slot{i, true}) {
			with = append(with, rest(v.place, v.travel))
			v.travel = 0
		}
		with = append(with, v)
		for next < taken && slots[next] == (slot{i, false}) {
			with = append(with, rest(v.place, 0))
		}
	}
	return with, taken
}

// way is the soonest way to be somewhere with some breaks taken.
type way struct {
	warp, at float64
	slots    []slot
	ok       bool
}

func (w way) before(o way) bool {
	return w.ok && (!o.ok || w.warp < o.warp-slackOf(o.warp) || w.warp <= o.warp+slackOf(o.warp) && w.at < o.at)
}

// soonest finds the slots of as many breaks as can be taken, by the end of the route: the soonest
// way to each visit for each number of breaks taken.
func soonest(list []visit, breaks []Break, carried [][]int64) []slot {
	ways := make([]way, len(breaks)+1)
	ways[0] = way{at: max(earliest(list), list[0].ready), ok: true}
	ways[0].at = list[0].service + max(ways[0].at, 0)
	take := func(where slot, load []int64) {
		for b, brk := range breaks {
			if w, ok := resting(ways[b], brk, load); ok {
				w.slots = append(append([]slot(nil), w.slots...), where)
				if w.before(ways[b+1]) {
					ways[b+1] = w
				}
			}
		}
	}
	for i := 1; i < len(list); i++ {
		take(slot{i - 1, false}, carried[i-1])
		for b := range ways {
			ways[b].at += list[i].travel
		}
		take(slot{i, true}, carried[i-1])
		for b := range ways {
			one := []visit{list[i]}
			ways[b].warp += clock(one, ways[b].at)
			ways[b].at = one[0].end()
		}
	}
	for b := len(breaks); b >= 0; b-- {
		if ways[b].ok {
			return ways[b].slots
		}
	}
	return nil
}

// resting is a way with one more break at its end.
func resting(w way, b Break, load []int64) (way, bool) {
	if !w.ok {
		return w, false
	}
	for d, most := range b.MaxLoad {
		if load[d] > int64(most) {
			return w, false
		}
	}
	at := math.Inf(1)
	for _, x := range b.Windows {
		if w.at <= x.To+slackOf(x.To) {
			at = max(w.at, x.From)
			break
		}
	}
	if len(b.Windows) == 0 {
		at = w.at
	}
	w.at = at + b.Duration
	return w, !math.IsInf(at, 1)
}
