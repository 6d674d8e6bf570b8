package vrp

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// The exact optimum of small problems with optional constraints: the best route of every set of
// customers for every vehicle type, then the best choice of sets. What a reader could break: a
// path through a set is dropped only if another path through the same set, with the same end, is
// no worse in every number that the rest of the route can depend on (way.beats). This is the
// reference for searches and shares nothing with them. Constraints that labels cannot describe
// (reloads, breaks, several windows, prices of lateness, LIFO) are tried route by route and
// priced by Evaluate.

// The most customers that it takes: by labels, and one by one.
const (
	MaxPartsN  = 12
	maxTriedN  = 7
	noSolution = math.MaxFloat64
)

// ErrNoRoutes says that a problem has no valid solution.
var ErrNoRoutes = errors.New("there are no routes that keep every rule")

// OptimalPartsTakes says in one line what keeps OptimalParts from a problem; nil if nothing does.
func OptimalPartsTakes(p *Problem) error {
	_, err := newPartsSolver(context.Background(), p)
	return err
}

func newPartsSolver(ctx context.Context, p *Problem) (*partsSolver, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	if p.Objective == ShortestRoute {
		return nil, errors.New("the exact method minimises costs or vehicles, not the longest route")
	}
	most := MaxPartsN
	x := &partsSolver{ctx: ctx, n: p.N(), first: p.DepotCount()}
	if x.n <= most {
		x.evaluator = newEvaluator(p)
	}
	for i := 0; x.n <= most && i < len(x.types); i++ {
		if !x.labelled(&x.types[i]) {
			most = maxTriedN
		}
	}
	if x.n > most {
		return nil, fmt.Errorf("the exact method takes %d customers of such a problem at most, and it has %d", most, x.n)
	}
	return x, nil
}

// OptimalParts returns an optimal solution of a problem with any optional parts but the objective
// ShortestRoute, and its cost. It fails where there is none, or where the problem is too large.
func OptimalParts(ctx context.Context, p *Problem) (Solution, float64, error) {
	x, err := newPartsSolver(ctx, p)
	if err != nil {
		return Solution{}, 0, err
	}
	for i := range x.types {
		if x.labelled(&x.types[i]) {
			x.label(i)
		} else {
			x.try(i)
		}
		if ctx.Err() != nil {
			return Solution{}, 0, ctx.Err()
		}
	}
	return x.choose()
}

// partsSolver holds the best route of every set by vehicle type.
type partsSolver struct {
	*evaluator
	ctx      context.Context
	n, first int         // customers, and the first one's place
	cost     [][]float64 // by type, then by set; noSolution: none
	route    [][][]int32
}

// labelled tells whether routes of a type can be told by labels.
func (x *partsSolver) labelled(t *VehicleType) bool {
	p := x.p
	several := slices.ContainsFunc(p.Windows, func(w []Window) bool { return len(w) > 1 })
	return t.Reloads == nil && t.Breaks == nil && !several && p.Late == nil && !p.LIFO && x.dims == 1
}

// way is what is known of a way through a set to its last customer: how far it is, when it can end,
// how long it takes, how late it can begin, and how full the vehicle was.
type partsWay struct {
	dist, dur, early, late float64 // early and late: of its beginning
	full                   int64
	before                 *partsWay
	last                   int8
}

func (a *partsWay) beats(b *partsWay) bool {
	return a.dist <= b.dist && a.dur <= b.dur && a.early+a.dur <= b.early+b.dur && a.late >= b.late && a.full <= b.full
}

// then appends a visit to a way: driving, a window and a service. ok is false where it is late.
func (a partsWay) then(distance, duration, service float64, w Window) (partsWay, bool) {
	a.dist += distance
	a.dur += duration
	arrive := a.early + a.dur // at the soonest
	if arrive > w.To+slackOf(w.To) {
		return a, false
	}
	if latest := a.late + a.dur; latest < w.From { // waits however late it begins
		a.early = a.late
		a.dur += w.From - latest
	} else {
		a.early = max(a.early, w.From-a.dur)
		a.late = max(a.early, min(a.late, w.To-a.dur))
	}
	a.dur += service
	return a, true
}

// span is the window of a visit, or all time.
func (v *visit) span() Window {
	if len(v.windows) == 0 {
		return Window{0, math.Inf(1)}
	}
	return v.windows[0]
}

// label finds the best route of every set for a type that labels can tell.
func (x *partsSolver) label(kind int) {
	t := &x.types[kind]
	sets := 1 << x.n
	x.cost, x.route = append(x.cost, slices.Repeat([]float64{noSolution}, sets)), append(x.route, make([][]int32, sets))
	ways := make([][]*partsWay, sets)
	capacity := int64(math.MaxInt64)
	if len(t.Capacity) > 0 {
		capacity = int64(t.Capacity[0])
	}
	var initial int64
	if len(t.InitialLoad) > 0 {
		initial = int64(t.InitialLoad[0])
	}
	for set := 0; set < sets && x.ctx.Err() == nil; set++ {
		if t.MaxStops > 0 && bits.OnesCount(uint(set)) > t.MaxStops {
			continue
		}
		starts := ways[set]
		if set == 0 {
			starts = []*partsWay{nil}
		}
		for c := range x.n {
			v := int32(x.first + c)
			if set&(1<<c) != 0 || !x.may(t, v) || !x.mayFollow(set, v) {
				continue
			}
			for _, w := range starts {
				if n, ok := x.extend(t, w, set, v, initial, capacity); ok {
					keep(&ways[set|1<<c], n)
				}
			}
		}
		if set > 0 && x.closed(set) {
			x.finish(kind, set, ways[set])
		}
		ways[set] = nil
	}
}

// keep adds a way to those of its set, unless one with the same end beats it.
func keep(list *[]*partsWay, n *partsWay) {
	for _, o := range *list {
		if o.last == n.last && o.beats(n) {
			return
		}
	}
	*list = append(slices.DeleteFunc(*list, func(o *partsWay) bool { return o.last == n.last && n.beats(o) }), n)
}

// may tells whether a type may serve a customer at all.
func (x *partsSolver) may(t *VehicleType, v int32) bool {
	if t.Allowed != nil && !slices.Contains(t.Allowed, v) {
		return false
	}
	return x.p.Needs == nil || !slices.ContainsFunc(x.p.Needs[v], func(k int32) bool { return !slices.Contains(t.Skills, k) })
}

// mayFollow checks the rules of order: backhauls, and deliveries of shipments.
func (x *partsSolver) mayFollow(set int, v int32) bool {
	if x.ship != nil && x.ship[v] < 0 && set&(1<<(int(x.p.Shipments[-x.ship[v]-1].Pickup)-x.first)) == 0 {
		return false
	}
	if x.p.Backhauls == Mixed {
		return true
	}
	if x.p.Backhauls == LinehaulFirst && set == 0 && x.p.picksUp(int(v)) {
		return false
	}
	if x.p.delivers(int(v)) {
		for c := range x.n {
			if set&(1<<c) != 0 && x.p.picksUp(x.first+c) {
				return false
			}
		}
	}
	return true
}

// closed tells whether every shipment of a set is whole.
func (x *partsSolver) closed(set int) bool {
	for _, s := range x.p.Shipments {
		if set>>(int(s.Pickup)-x.first)&1 != set>>(int(s.Delivery)-x.first)&1 {
			return false
		}
	}
	return true
}

// aboard is the load behind a set: pickups, and shipments that are not delivered yet.
func (x *partsSolver) aboard(set int) (load int64) {
	for c := range x.n {
		if set&(1<<c) != 0 && x.p.Pickup != nil {
			load += int64(x.p.Pickup[x.first+c])
		}
	}
	for _, s := range x.p.Shipments {
		if set>>(int(s.Pickup)-x.first)&1 == 1 && set>>(int(s.Delivery)-x.first)&1 == 0 && len(s.Amount) > 0 {
			load += int64(s.Amount[0])
		}
	}
	return load
}

// extend adds a customer to a way, nil being that of a vehicle which has not left.
func (x *partsSolver) extend(t *VehicleType, w *partsWay, set int, v int32, initial, capacity int64) (*partsWay, bool) {
	p := x.p
	var route []int32
	var n partsWay
	if w == nil {
		n = partsWay{late: math.Inf(1), full: initial}
	} else {
		n = *w
		route = []int32{int32(x.first) + int32(w.last)}
	}
	// The visits as the clock has them: the last two tell times of the step, the first of the start.
	list, never := p.sequence(t, append(route, v))
	at := len(list) - 1
	if t.End != None {
		at--
	}
	if len(never) > 0 && w == nil {
		return nil, false
	}
	ok := true
	if w == nil && t.Start != None {
		s := list[0].span()
		n.early, n.late, n.dur = max(s.From, 0), s.To, list[0].service
	} else if w == nil {
		s := list[0].span()
		n.early, n.late = max(s.From, 0), s.To
	}
	if p.Release != nil && p.Release[v] > n.early {
		if n.early = p.Release[v]; n.early > n.late+slackOf(n.late) {
			return nil, false
		}
		n.late = max(n.late, n.early)
	}
	if w == nil && t.Start == None {
		n.dur += list[0].service
	} else {
		from := int(list[at-1].place)
		window := list[at].span()
		if t.End == None && at == len(list)-1 { // the shift's end holds for the last alone: checked by finish
			window = Window{0, math.Inf(1)}
			if p.Windows != nil && len(p.Windows[v]) > 0 {
				window = p.Windows[v][0]
			}
		}
		n, ok = n.then(p.DistanceOf(t.Profile, from, int(v)), list[at].travel, list[at].service, window)
	}
	n.full = max(n.full+int64(p.Demand[v]), initial+x.aboard(set|1<<(int(v)-x.first)))
	n.before, n.last = w, int8(int(v)-x.first)
	ok = ok && n.full <= capacity && n.dist <= t.MaxDistance+slackOf(t.MaxDistance) && n.dur <= t.MaxDuration+slackOf(t.MaxDuration)
	return &n, ok
}

// finish brings the ways of a set home and keeps the cheapest, as Evaluate prices it.
func (x *partsSolver) finish(kind, set int, ways []*partsWay) {
	for _, w := range ways {
		var route []int32
		for a := w; a != nil; a = a.before {
			route = append(route, int32(x.first)+int32(a.last))
		}
		slices.Reverse(route)
		x.offer(kind, set, route)
	}
}

// offer prices a route and keeps it where it is valid and the cheapest of its set.
func (x *partsSolver) offer(kind, set int, route []int32) {
	plan := x.plan(route, kind)
	if plan.Cost >= x.cost[kind][set] {
		return
	}
	r := &report{evaluator: x.evaluator}
	r.route(0, route, kind, make([]int, len(x.p.Demand)))
	if len(r.list) == 0 {
		x.cost[kind][set], x.route[kind][set] = plan.Cost, slices.Clone(route)
	}
}

// try finds the best route of every set by trying all, reloads included.
func (x *partsSolver) try(kind int) {
	sets := 1 << x.n
	x.cost, x.route = append(x.cost, slices.Repeat([]float64{noSolution}, sets)), append(x.route, make([][]int32, sets))
	t := &x.types[kind]
	var grow func(route []int32, set, reloads int)
	grow = func(route []int32, set, reloads int) {
		if x.ctx.Err() != nil {
			return
		}
		if set != 0 && x.closed(set) {
			x.offer(kind, set, route)
		}
		for c := range x.n {
			v := int32(x.first + c)
			if set&(1<<c) == 0 && x.may(t, v) {
				grow(append(slices.Clip(route), v), set|1<<c, reloads)
				for _, d := range t.Reloads {
					if set != 0 && (t.MaxReloads == 0 || reloads < t.MaxReloads) {
						grow(append(slices.Clip(route), int32(d), v), set|1<<c, reloads+1)
					}
				}
			}
		}
	}
	grow(nil, 0, 0)
}

// choose finds the cheapest choice of routes: one layer per vehicle, or one for any number.
func (x *partsSolver) choose() (Solution, float64, error) {
	sets := 1 << x.n
	best := slices.Repeat([]float64{noSolution}, sets)
	best[0] = 0
	type pick struct {
		kind  int
		taken []int32 // by set: the route's own set, 0: none
	}
	var layers []pick
	perRoute := 0.0
	if x.p.Objective == FewestVehicles {
		perRoute = 1e9
	}
	layer := func(kind int, any bool) {
		next, taken := slices.Clone(best), make([]int32, sets)
		from := best
		if any {
			from = next // further routes of the same type
		}
		for set := 1; set < sets; set++ {
			for sub := set; sub > 0; sub = (sub - 1) & set {
				c := x.cost[kind][sub]
				if c == noSolution || from[set^sub] == noSolution {
					continue
				}
				if total := from[set^sub] + c + perRoute; total < next[set] {
					next[set], taken[set] = total, int32(sub)
				}
			}
		}
		best = next
		layers = append(layers, pick{kind, taken})
	}
	for kind, t := range x.types {
		if t.Count == 0 || t.Count >= x.n {
			layer(kind, true)
			continue
		}
		for range t.Count {
			layer(kind, false)
		}
	}
	at, cost := -1, noSolution
	for set := range sets {
		if best[set] == noSolution {
			continue
		}
		if lost, ok := x.leaves(set); ok && best[set]+lost < cost {
			at, cost = set, best[set]+lost
		}
	}
	if at < 0 {
		return Solution{}, 0, ErrNoRoutes
	}
	var s Solution
	for i := len(layers) - 1; i >= 0; i-- {
		any := x.types[layers[i].kind].Count == 0 || x.types[layers[i].kind].Count >= x.n
		for layers[i].taken[at] != 0 {
			sub := int(layers[i].taken[at])
			s.Routes, s.Types = append(s.Routes, x.route[layers[i].kind][sub]), append(s.Types, int32(layers[i].kind))
			at ^= sub
			if !any {
				break
			}
		}
	}
	e, err := x.evaluate(s)
	if err != nil {
		return Solution{}, 0, err
	}
	return s, e.Cost, nil
}

// leaves checks who is left out by a set, and what their prizes are.
func (x *partsSolver) leaves(set int) (lost float64, ok bool) {
	p := x.p
	grouped := map[int32]bool{}
	for _, g := range p.Groups {
		visited := 0
		for _, v := range g.Members {
			grouped[v] = true
			visited += set >> (int(v) - x.first) & 1
		}
		if visited > 1 || g.Required && visited == 0 {
			return 0, false
		}
	}
	for c := range x.n {
		v := x.first + c
		if set&(1<<c) != 0 {
			continue
		}
		if !grouped[int32(v)] && (p.Optional == nil || !p.Optional[v]) {
			return 0, false
		}
		if p.Prize != nil {
			lost += p.Prize[v]
		}
	}
	return lost, x.closed(set)
}
