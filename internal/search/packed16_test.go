package search

import (
	"context"
	"slices"
	"testing"

	"haul/internal/search/model"
	"haul/internal/vrp"
	"haul/internal/vrp/testset"
)

// densely lets routes be dense, whatever the processor.
func densely(t *testing.T) {
	was := denseOn
	denseOn = true
	t.Cleanup(func() { denseOn = was })
}

// The quick versions find the position that plain Go finds, at the same cost: over random lists
// with many equal costs, numbers up to the largest, bars, penalties, and customers without amounts,
// in
// 16 and in 32 bits.
func TestDenseBestIsTheSameEverywhere(t *testing.T) {
	if !denseQuick {
		t.Skip("this processor has one version")
	}
	s := model.NewStream(7, 8)
	found := 0
	for round := range 20_000 {
		wide := 1 << (1 + s.IntN(13)) // few values: many positions cost the same
		unit := 1 << s.IntN(16)       // in 32 bits
		if s.IntN(3) == 0 {
			unit = 1<<15 + 4
		}
		quick := denseBestQuick
		var longIn, longOut [densePlaces]int32
		pick := func(lo, hi int) int16 { return int16(lo + s.IntN(hi-lo)) }
		var in, out [densePlaces]int16
		var d dense
		base, routes := 1+s.IntN(densePlaces), 1+s.IntN(denseRoutes)
		a := &denseAsk{in: &in[0], out: &out[0], lists: &d, plain: int64(base) &^ (denseLanes - 1), end: int64(denseWhole(base + routes)),
			most: int32(s.IntN(2*wide) - wide/2), get: denseNone, give: denseNone, mixed: int32(s.IntN(2)), limited: int32(s.IntN(2))}
		if base > 64 {
			a.wide = 1
		}
		if s.IntN(4) == 0 {
			a.most = denseCost
		}
		toll := s.Float() * float64(int(1)<<s.IntN(14))
		if round%2 == 1 {
			quick, a.far, a.longIn, a.longOut = denseLongQuick, 1, &longIn[0], &longOut[0]
			a.most, toll = int32(min(int(a.most)*unit, longCost)), toll*float64(unit)
			routes = 1 + s.IntN(longRoutes)
			a.end = int64(denseWhole(base + routes))
		}
		a.charge(float32(toll))
		bars, amounts := s.IntN(2), 1<<(1+s.IntN(13))
		for v := range in {
			in[v], out[v] = pick(0, wide), pick(0, wide)
			if bars > 0 && s.IntN(4) == 0 {
				in[v] = denseBar
			}
			if bars > 0 && s.IntN(4) == 0 {
				out[v] = denseBar
			}
		}
		scale := func(x, bar int16, long int32) int32 {
			if x == bar {
				return long
			}
			return int32(min(int(x)*unit, model.Largest32))
		}
		for v := range in {
			longIn[v], longOut[v] = scale(in[v], denseBar, longBar), scale(out[v], denseBar, longBar)
		}
		for p := range d.leg {
			d.to[p], d.leg[p], d.route[p], d.at[p] = pick(0, base), pick(0, wide), pick(0, routes), int16(p)
			if p >= base {
				d.at[p] = pick(0, base)
			}
			if s.IntN(6) == 0 {
				d.leg[p], d.route[p] = denseAbsent, pick(-1, denseRoutes)
			}
			d.long[p] = scale(d.leg[p], denseAbsent, absentLeg)
			d.pre[p], d.suf[p] = pick(0, amounts), pick(0, amounts)
		}
		for r := range d.gets {
			d.gets[r], d.gives[r] = pick(-6, 9), pick(-6, 9)
			if a.mixed > 0 {
				d.gets[r] = pick(0, amounts)
			}
			d.extra[r], d.spare[r] = pick(0, 1+s.IntN(longTolls<<(1-a.far))), pick(-wide, wide)
			switch x := s.IntN(4); {
			case x == 0 || a.limited == 0:
				d.spare[r] = denseBar
			case x == 1:
				d.spare[r] = -denseBar
			}
			if d.slack[r] = scale(d.spare[r], denseBar, model.MaxTime32); d.spare[r] == -denseBar {
				d.slack[r] = -model.MaxTime32
			}
		}
		if s.IntN(3) > 0 {
			a.get = int32(1 + s.IntN(amounts))
		}
		if s.IntN(3) == 0 {
			a.give = int32(1 + s.IntN(amounts))
		}
		cost, at := denseBestGo(a)
		if at >= 0 {
			found++
		}
		if c, p := quick(a); p != at || p >= 0 && c != cost {
			t.Fatalf("round %d: position %d at %d, plain Go %d at %d", round, p, c, at, cost)
		}
	}
	if found < 5_000 {
		t.Errorf("%d rounds have a position", found)
	}
}

// A detour that 16 bits do not hold with its penalty is found all the same.
func TestDenseBestBeyondSixteenBits(t *testing.T) {
	densely(t)
	for _, long := range []bool{false, true} {
		var in, out [densePlaces]int16
		var longIn, longOut [densePlaces]int32
		f := &flat{dense: new(dense), width: widthOf(long)}
		f.dense.clear()
		in[5], out[7], longIn[5], longOut[7] = denseMost, denseMost, model.Largest32, model.Largest32
		a := &f.denseAsk
		*a = denseAsk{in: &in[0], out: &out[0], longIn: &longIn[0], longOut: &longOut[0], lists: f.dense, end: denseLanes, most: model.MaxTime32, get: 3, give: denseNone}
		a.charge(1e6)
		d := f.dense
		d.to[5], d.extra[0] = 7, 9
		f.setLeg(5, 1)
		want := int32(2*denseMost - 1 + 3_000_000)
		if long {
			a.far, want = 1, 2*model.Largest32-1+3_000_000
		}
		if cost, at := f.denseBest(); at != 5 || cost != want {
			t.Errorf("position %d at %d, want %d", at, cost, want)
		}
		a.most = want
		if _, at := f.denseBest(); at >= 0 {
			t.Errorf("position %d, which is not below what it may cost", at)
		}
	}
}

// Amounts past what 16 bits hold with room to spare, windows, and many routes leave routes flat;
// distances past that take 32 bits.
func TestDenseLeavesTheRest(t *testing.T) {
	densely(t)
	far := func(length float64) func(p *vrp.Problem) {
		return func(p *vrp.Problem) {
			all, n := uphill(p), len(p.Demand)
			all.Duration = nil
			all.Distance[3*n+4], all.Distance[4*n+3] = length, length
			p.Profiles = []vrp.Profile{all}
		}
	}
	load := func(amount int32, scale float64) func(p *vrp.Problem) {
		return func(p *vrp.Problem) {
			for i := range p.X {
				p.X[i], p.Y[i] = scale*p.X[i], scale*p.Y[i]
			}
			for i := p.DepotCount(); i < len(p.Demand); i++ {
				p.Demand[i], p.Pickup[i] = amount, amount
			}
		}
	}
	grow := func(places int) func(p *vrp.Problem) {
		return func(p *vrp.Problem) {
			for len(p.Demand) < places {
				p.X, p.Y, p.Demand = append(p.X, p.X[5]), append(p.Y, p.Y[5]), append(p.Demand, 1)
			}
		}
	}
	for name, row := range map[string]struct {
		set         string
		dense, long bool
		ask         func(p *vrp.Problem)
	}{
		"nothing":          {"mdovrp", true, false, func(p *vrp.Problem) {}},
		"the most places":  {"mdovrp", true, false, grow(densePlaces - 1)},
		"one place more":   {"mdovrp", false, false, grow(densePlaces)},
		"windows":          {"ovrptw", false, false, func(p *vrp.Problem) {}},
		"the farthest":     {"mdovrp", true, false, far(denseMost / 1000.)},
		"one more":         {"mdovrp", true, true, far((denseMost + 1) / 1000.)},
		"the most loaded":  {"vrpmb", true, false, load(31, 1)},
		"one more each":    {"vrpmb", false, false, load(32, 1)},
		"and far":          {"vrpmb", true, true, load(15, 10)},
		"one more and far": {"vrpmb", false, true, load(16, 10)},
	} {
		set, err := testset.RouteFinder(row.set, 50)
		if err != nil {
			t.Fatal(err)
		}
		set.Round()
		p := set.Problems[0]
		row.ask(p)
		m := compileNear(context.Background(), p)
		if f := newCandidate(m, model.NewStream(3, 1)).flat; f == nil || f.width == widthLists == row.dense || row.dense && f.width == width32 != row.long {
			t.Errorf("%s: dense routes: %v, want %v", name, f != nil && f.width != widthLists, row.dense)
		}
	}
	set, err := testset.RouteFinder("mdovrp", 50)
	if err != nil {
		t.Fatal(err)
	}
	set.Round()
	f := flatten(t, set.Problems[0]).flat
	set, err = testset.RouteFinder("mdovrp", 50)
	if err != nil {
		t.Fatal(err)
	}
	g := flatten(t, set.Problems[0]).flat
	for _, routes := range []int{denseRoutes, longRoutes, denseRoutes + flatLanes, denseRoutes, longRoutes} {
		if f.allot(routes); (f.dense != nil) != (routes <= denseRoutes) {
			t.Errorf("%d routes: dense ones: %v", routes, f.dense != nil)
		}
		if g.allot(routes); (g.dense != nil) != (routes <= longRoutes) {
			t.Errorf("%d routes, 32 bits: dense ones: %v", routes, g.dense != nil)
		}
	}
}

// Dense routes are searched draw by draw as flat ones, with the same routes, prices and draws.
func TestDenseSearchesAsFlatDoes(t *testing.T) {
	densely(t)
	for _, name := range []string{"vrpb", "mdvrpbl", "vrpmbl", "mdvrpmb", "mdovrp", "mdcvrp", "ovrpmb", "ovrpb", "vrpl"} {
		for i := range 6 {
			turn := i % 3
			set, err := testset.RouteFinder(name, 50)
			if err != nil {
				t.Fatal(err)
			}
			if i < 3 {
				set.Round()
			}
			p := set.Problems[turn]
			for i := p.DepotCount(); turn == 1 && p.Pickup != nil && i < len(p.Demand); i += 7 {
				p.Demand[i], p.Pickup[i] = 3, 4
			}
			for i := range p.Fleet {
				if turn == 2 {
					p.Fleet[i].MaxStops = 8
				}
			}
			denseOn = true
			a := flatten(t, p)
			denseOn = false
			b := flatten(t, p)
			for step := range 100 {
				for _, c := range []*candidate{a, b} {
					c.scheduleOverload(10)
					for range 10 {
						c.step(c.Leg * []float64{3, 1, 0.3, 0.1}[step%4])
					}
				}
				if a.cost != b.cost || a.overload != b.overload || a.State != b.State || a.untilSkip != b.untilSkip || !slices.Equal(a.used, b.used) {
					t.Fatalf("%s: after %d iterations dense routes cost %g with %d too much, flat ones %g with %d", name, 10*(step+1), a.cost, a.overload, b.cost, b.overload)
				}
				f, g := a.flat, b.flat
				if f.routes != g.routes {
					t.Fatalf("%s: %d dense routes, and %d", name, f.routes, g.routes)
				}
				for r := range int32(f.routes) {
					if !slices.Equal(f.stops(r), g.stops(r)) {
						t.Fatalf("%s: after %d iterations dense route %d is %v, and %v", name, 10*(step+1), r, f.stops(r), g.stops(r))
					}
				}
			}
			if a.flat.dense == nil || b.flat.dense != nil || (a.flat.width == width32) != (i >= 3) {
				t.Fatalf("%s: routes are not dense, or both are", name)
			}
		}
	}
}

// widthOf is the width of dense routes with short or long distances.
func widthOf(long bool) width {
	if long {
		return width32
	}
	return width16
}
