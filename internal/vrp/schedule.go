package vrp

import (
	"math"
	"slices"
	"sort"
)

// The times of a route's vehicle. What a reader could break: this is the validator's own clock
// and shares nothing with any solver. A route starts such that its duration is the shortest
// possible, and among such times as early as possible. If a stop cannot be reached in time, the
// clock is set back to the window's end and the difference is counted as time warp, as in PyVRP:
// one late stop is one violation, not one for every stop after it.

// slackOf forgives the rounding of sums of float64 at a limit.
func slackOf(limit float64) float64 { return 1e-9 * (1 + math.Abs(limit)) }

// visit is one thing that a vehicle does: it leaves a depot, serves a customer, reloads, rests or
// comes home.
type visit struct {
	place   int32
	rest    int     // index of the break, -1: none
	travel  float64 // time from the visit before
	service float64
	windows []Window // when it may begin; none: any time
	soft    bool     // may begin after the last window, at a price
	ready   float64  // begins no sooner: what the trip carries is released

	arrival, begin, warp, late float64
	from, to                   float64 // the window that it begins in
}

func (v *visit) end() float64 { return v.begin + v.service }

// within cuts windows to those parts that lie in [lo, hi]. ok is false where nothing is left; the
// windows then are the point of time nearest to both.
func within(windows []Window, lo, hi float64) (cut []Window, ok bool) {
	if len(windows) == 0 {
		windows = []Window{{math.Inf(-1), math.Inf(1)}}
	}
	for _, w := range windows {
		if c := (Window{max(w.From, lo), min(w.To, hi)}); c.From <= c.To+slackOf(c.To) {
			c.To = max(c.To, c.From)
			cut = append(cut, c)
		}
	}
	if cut != nil {
		return cut, true
	}
	at := max(lo, windows[0].From)
	return []Window{{at, at}}, false
}

// sequence lists a route's visits without its breaks; travel is from the visit before. never tells
// of places whose windows and the shift have no time in common.
func (p *Problem) sequence(t *VehicleType, route []int32) (list []visit, never []int32) {
	service := func(v int32, before int32) float64 {
		var s float64
		if p.Service != nil {
			s = p.Service[v]
		}
		if p.Setup != nil && p.Setup[v] > 0 && (before < 0 || !p.samePlace(int(before), int(v))) {
			s += p.Setup[v]
		}
		return s
	}
	windows := func(v int32) []Window {
		if p.Windows == nil {
			return nil
		}
		return p.Windows[v]
	}
	last := int32(-1)
	add := func(v int32, lo, hi float64) *visit {
		x := visit{place: v, rest: -1, service: service(v, last), windows: windows(v)}
		if last >= 0 {
			x.travel = p.DurationOf(t.Profile, int(last), int(v))
		}
		if lo > math.Inf(-1) || hi < math.Inf(1) {
			var ok bool
			if x.windows, ok = within(x.windows, lo, hi); !ok {
				never = append(never, v)
			}
		}
		x.soft = p.Late != nil && p.Late[v] > 0
		last = v
		list = append(list, x)
		return &list[len(list)-1]
	}
	none := math.Inf(-1)
	released := func(from int) float64 { // of the trip whose customers begin there
		r := 0.0
		for _, v := range route[from:] {
			if int(v) < p.DepotCount() {
				break
			}
			if p.Release != nil {
				r = max(r, p.Release[v])
			}
		}
		return r
	}
	first, latest := t.Shift.From, min(t.LatestStart, t.Shift.To)
	if t.Start != None {
		add(int32(t.Start), first, latest).ready = released(0)
	}
	for i, v := range route {
		lo, hi, ready := none, math.Inf(1), 0.0
		if int(v) < p.DepotCount() {
			ready = released(i + 1)
		}
		if i == 0 && t.Start == None {
			lo, hi, ready = first, latest, released(0)
		}
		add(v, lo, hi).ready = ready
	}
	if t.End != None {
		x := add(int32(t.End), t.Shift.From, t.Shift.To)
		x.service = 0
	} else if n := len(list); n > 0 && !math.IsInf(t.Shift.To, 1) {
		x := &list[n-1] // done by the end of the shift
		var ok bool
		if x.windows, ok = within(x.windows, none, t.Shift.To-x.service); !ok {
			never = append(never, x.place)
		}
	}
	return list, never
}

// samePlace tells whether two places are one: equal coordinates, or the same number.
func (p *Problem) samePlace(a, b int) bool {
	return a == b || p.X != nil && p.X[a] == p.X[b] && p.Y[a] == p.Y[b]
}

// clock sets the times of visits, in turn, for a route that begins no sooner than start, and
// returns the time warp.
func clock(list []visit, start float64) (warp float64) {
	at := start
	for i := range list {
		v := &list[i]
		if i > 0 {
			at = list[i-1].end() + v.travel
		}
		at = max(at, v.ready)
		v.arrival, v.begin, v.warp, v.late, v.from, v.to = at, at, 0, 0, math.Inf(-1), math.Inf(1)
		if len(v.windows) == 0 {
			continue
		}
		close := v.windows[len(v.windows)-1]
		v.from, v.to = close.From, close.To
		if at <= close.To+slackOf(close.To) {
			w := v.windows[firstOpen(v.windows, at)]
			v.begin, v.from, v.to = min(max(at, w.From), max(w.To, w.From)), w.From, w.To
		} else if v.soft {
			v.late, v.to = at-close.To, at
		} else {
			v.begin, v.warp = close.To, at-close.To
		}
		warp += v.warp
	}
	return warp
}

// firstOpen is the index of the first window that has not closed by a moment at which the last one
// is open.
func firstOpen(windows []Window, at float64) int {
	return sort.Search(len(windows)-1, func(i int) bool { return at <= windows[i].To+slackOf(windows[i].To) })
}

// earliest is when a route can begin at the soonest.
func earliest(list []visit) float64 {
	if len(list[0].windows) == 0 {
		return 0
	}
	return max(0, list[0].windows[0].From)
}

// begin sets the times of the visits so that the route's duration is the shortest there is: the
// windows that are met from the earliest start on, then those behind them, each time as late as
// leaves its end where it is. It returns the duration, time warp included but for that of leaving
// too late: such a route begins when it is ready.
func begin(list []visit) (duration, warp float64) {
	start := earliest(list)
	warp = clock(list, start)
	for i := range list { // lateness is the least there is from here on
		if v := &list[i]; v.late > 0 {
			v.windows = append(slices.Clone(v.windows), Window{v.begin, v.begin})
		}
	}
	length := func() float64 { return list[len(list)-1].end() - list[0].begin }
	best, bestLength := 0.0, math.Inf(1)
	step := 4 * slackOf(farthest(list)) // a smaller one stays within what a window forgives, for ever
	for {
		at := latest(list, list[len(list)-1].begin)
		clock(list, at)
		if l := length(); l < bestLength-slackOf(bestLength) || math.IsInf(bestLength, 1) {
			best, bestLength = at, l
		}
		end := latest(list, list[len(list)-1].to)
		next := end + step
		if warp > 0 || math.IsInf(end, 1) || !several(list) {
			break
		}
		if w := list[0].windows; len(w) > 0 && next > w[len(w)-1].To {
			break
		}
		if clock(list, next) > 0 || anyLate(list) {
			break
		}
	}
	clock(list, best)
	return length() + warp - list[0].warp, warp
}

// farthest is the latest of all windows that close.
func farthest(list []visit) (at float64) {
	for _, v := range list {
		for _, w := range v.windows {
			if at = max(at, w.From); !math.IsInf(w.To, 1) {
				at = max(at, w.To)
			}
		}
	}
	return at
}

// several tells whether a visit has windows to choose from.
func several(list []visit) bool {
	return slices.ContainsFunc(list, func(v visit) bool { return len(v.windows) > 1 })
}

func anyLate(list []visit) bool {
	return slices.ContainsFunc(list, func(v visit) bool { return v.late > 0 })
}

// latest is the latest start from which the last visit begins by end, each visit in the window that
// it is in, and none with more time warp.
func latest(list []visit, end float64) float64 {
	at := end
	for i := len(list) - 1; i >= 0; i-- {
		v := &list[i]
		at = min(at, v.to)
		if i == 0 {
			break
		}
		if v.warp > 0 {
			at = v.arrival // which v.ready may have moved
		}
		at -= v.travel + list[i-1].service
		// Rounding must not move what waits for nobody.
		if !math.IsInf(at, 1) && math.Abs(at-list[i-1].begin) <= slackOf(at) {
			at = list[i-1].begin
		}
	}
	return max(at, list[0].begin)
}
