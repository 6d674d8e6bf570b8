package model

import (
	"math"

	"haul/internal/vrp"
)

// Units of lengths and of times: whole numbers that keep as many digits of the problem as 32 and 64
// bits hold.

// How many units lengths and points in time may be: tables of lengths have 32 bits, points 64, and
// all of a route's lengths stay far below endless. Of lengths of which some are so long that
// nobody means to go them (99999999), the others keep commonLength, and those are as long as
// LongestLength.
const (
	mostLength    = 1 << 28
	mostPoint     = 1 << 44
	commonLength  = 1 << 22
	LongestLength = 1 << 29
	barredPast    = 18 // powers of two between such lengths and all others
)

// values yields numbers.
type values func(yield func(float64))

// numbers is what unitOf knows of numbers, by their power of two.
type numbers struct {
	count   [2048]int
	largest [2048]float64
	fails   [2048][4]bool // in which of units they are not whole
	most    float64       // the largest of all, infinite ones left out
}

// units are those in which whole numbers stay whole.
var units = [4]float64{1, 10, 100, 1000}

func (n *numbers) read(list values) {
	list(func(x float64) { n.add(x, 1) })
}

// add reads a number that there is so many times.
func (n *numbers) add(x float64, times int) {
	if x = math.Abs(x); math.IsInf(x, 0) || x == 0 {
		return
	}
	e := math.Float64bits(x) >> 52
	n.count[e] += times
	n.largest[e], n.most = max(n.largest[e], x), max(n.most, x)
	if x == math.Trunc(x) {
		return // whole in all units
	}
	fails := &n.fails[e]
	for i, u := range units {
		if !fails[i] && math.Abs(x*u-math.Round(x*u)) > 1e-6 {
			fails[i] = true
		}
	}
}

// upTo is the largest of the numbers whose power is at most e, and the units in which not all of
// these are whole.
func (n *numbers) upTo(e int) (largest float64, fails [4]bool) {
	for k := range e + 1 {
		if n.count[k] > 0 {
			largest = n.largest[k]
			for i := range fails {
				fails[i] = fails[i] || n.fails[k][i]
			}
		}
	}
	return largest, fails
}

// common is the power of the numbers that are not barred: those behind a wide gap that are at most
// half of all are.
func (n *numbers) common() int {
	all, above, last := 0, 0, len(n.count)-1
	for _, k := range n.count {
		all += k
	}
	for e, upper := last, -1; e >= 0; e-- {
		if n.count[e] == 0 {
			continue
		}
		if upper >= 0 && upper-e > barredPast && 2*above <= all {
			return e
		}
		above, upper = above+n.count[e], e
	}
	return last
}

// unitOf is the least of 1, 10, 100 and 1000 in which all lengths (of) and points are whole
// numbers, or a power of two that keeps the largest within mostLength. Points go beyond it, up to
// mostPoint, where values are whole, or where they are a thousand times the longest length and
// more, which would be rounded away. Lengths that nobody means to go do not count where limits, of
// lengths or of points, are below them. whole tells that lengths are whole.
func unitOf(of *numbers, points, limits values) (unit float64, whole bool) {
	var at, most numbers
	at.read(points)
	most.read(limits)
	last := len(of.count) - 1
	length, broken := of.upTo(last)
	point, early := at.upTo(last)
	power := func(x float64) float64 {
		_, exp := math.Frexp(x)
		return math.Ldexp(1, exp-1)
	}
	for _, far := range []float64{mostLength, mostPoint} {
		for i, u := range units {
			if !broken[i] && !early[i] && length*u <= mostLength && point*u <= far {
				return u, true
			}
		}
	}
	if e := of.common(); e < last {
		usual, broken := of.upTo(e)
		limit, _ := most.upTo(last)
		limit = max(limit, point)
		for i, u := range units {
			if !broken[i] && !early[i] && usual*u <= commonLength && limit*u <= mostLength {
				return u, true
			}
		}
		if u := power(min(commonLength/usual, mostLength/limit)); usual*u >= 1<<10 {
			return u, false
		}
	}
	switch {
	case length == 0 && point == 0:
		return 1, true
	case length > 0 && point > 1000*length:
		return power(min(mostLength/length, mostPoint/point)), false
	}
	return power(mostLength / max(length, point)), false
}

func UpUnits(x, unit float64) int64 {
	y := x * unit
	if y >= float64(Endless) {
		return Endless
	}
	if r := math.Round(y); math.Abs(y-r) <= 1e-6 {
		return int64(r)
	}
	return int64(math.Ceil(y))
}

func downUnits(x, unit float64) int64 {
	y := x * unit
	if y >= float64(Endless) {
		return Endless
	}
	if r := math.Round(y); math.Abs(y-r) <= 1e-6 {
		return int64(r)
	}
	return int64(math.Floor(y))
}

// sampled calls f for all pairs of places, or for some where there are many. Where the way back is
// as long, each is named once and stands for two.
func (m *Compiled) sampled(f func(i, j, times int)) {
	n := m.Nodes
	switch {
	case n > TableGeneral:
		for i := range n {
			for k := range 32 {
				if j := (i*7 + k*k + 1) % n; j != i {
					f(i, j, 1)
				}
			}
		}
	case m.BothWays():
		for i := range n {
			for j := range i {
				f(i, j, 2)
			}
		}
	default:
		for i := range n {
			for j := range n {
				if i != j {
					f(i, j, 1)
				}
			}
		}
	}
}

// BothWays reports whether coordinates tell all ways, so that the way back is as long.
func (m *Compiled) BothWays() bool { return m.P.Profiles == nil && m.P.Metric != vrp.Explicit }

// units chooses what a unit of distance and of time is.
func (m *Compiled) units() {
	p := m.P
	profiles := max(1, len(p.Profiles))
	ways := &numbers{}
	for k := range profiles {
		m.sampled(func(i, j, times int) { ways.add(min(p.DistanceOf(k, i, j), 1e12), times) })
	}
	m.DistUnit, _ = unitOf(ways, func(func(float64)) {}, func(yield func(float64)) {
		for _, t := range p.Types() {
			yield(t.MaxDistance)
		}
	})
	if p.Profiles != nil || p.Speed != 0 && p.Speed != 1 {
		ways = &numbers{}
		for k := range profiles {
			m.sampled(func(i, j, times int) { ways.add(min(p.DurationOf(k, i, j), 1e12), times) })
		}
	}
	m.TimeUnit, m.wholeTimes = m.timeUnits(ways)
}

// timeUnits chooses what a unit of time is; lengths has the durations of all ways. Lengths of time
// stand in tables of 32 bits, and points in time do not: where these count from far away, as
// seconds since 1970 do, or where an end is a number that stands for none (9999999999), durations
// keep their digits. An end that no route can reach is no end.
func (m *Compiled) timeUnits(lengths *numbers) (unit float64, whole bool) {
	p, types := m.P, m.P.Types()
	for _, list := range [][]float64{p.Service, p.Setup} {
		for _, x := range list {
			lengths.add(x, 1)
		}
	}
	for _, t := range types {
		for _, b := range t.Breaks {
			lengths.add(b.Duration, 1)
		}
	}
	all := lengths.most * float64(4*m.Nodes+4) // what all of them take together at most
	starts, last := []float64{}, 0.0
	starts = append(starts, p.Release...)
	for _, ws := range p.Windows {
		for _, w := range ws {
			starts = append(starts, w.From)
		}
	}
	for _, t := range types {
		starts = append(starts, t.Shift.From)
		for _, b := range t.Breaks {
			for _, w := range b.Windows {
				starts = append(starts, w.From)
			}
		}
	}
	for _, x := range starts {
		last = max(last, x)
	}
	horizon := 2 * (last + all)
	points := func(yield func(float64)) {
		for _, x := range starts {
			yield(x)
		}
		end := func(x float64) {
			if x <= horizon {
				yield(x)
			}
		}
		for _, ws := range p.Windows {
			for _, w := range ws {
				end(w.To)
			}
		}
		for _, t := range types {
			end(t.Shift.To)
			end(t.LatestStart)
			end(t.MaxDuration)
		}
	}
	return unitOf(lengths, points, points)
}
