package vrp

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// threeDepots has depots at 0, 10 and 20 on a line, and customers at 1, 9, 11, 19 and 12.
func threeDepots() *Problem {
	p := &Problem{Metric: Exact, Depots: 3, X: []float64{0, 10, 20, 1, 9, 11, 19, 12}, Y: make([]float64, 8), Demand: []int32{0, 0, 0, 1, 1, 1, 1, 1}}
	for d := range 3 {
		t := NewVehicleType(2)
		t.Start, t.End = d, d
		p.Fleet = append(p.Fleet, t)
	}
	return p
}

// TestVisitsOfSeveralDepots by hand: customers are 1 to 5, the second and third depots 6 and 7.
func TestVisitsOfSeveralDepots(t *testing.T) {
	p := threeDepots()
	for _, c := range []struct {
		name   string
		visits []int32
		routes [][]int32
		types  []int32
		cost   float64
	}{
		{"the first from the nearest", []int32{0, 4, 0, 1, 6, 2, 3, 0, 5, 0, 0}, [][]int32{{6}, {3}, {4, 5}, {7}}, []int32{2, 0, 1, 0}, 2 + 2 + 4 + 24},
		{"the first from a depot of choice", []int32{0, 7, 3, 4, 7, 5, 2, 6, 1, 0}, [][]int32{{5, 6}, {7, 4}, {3}}, []int32{2, 2, 1}, 18 + 22 + 18},
		{"the first from the first", []int32{0, 0, 4, 3, 0}, [][]int32{{6, 5}}, []int32{0}, 38},
		{"several choices in a row: the last", []int32{0, 6, 7, 0, 1, 2, 0}, [][]int32{{3, 4}}, []int32{0}, 18},
	} {
		// The leading 0 of a tour is no choice, the one behind it is.
		s := p.FromVisits(c.visits)
		if !slices.EqualFunc(s.Routes, c.routes, slices.Equal) || !slices.Equal(s.Types, c.types) || p.Cost(s) != c.cost {
			t.Errorf("%s: routes %v of types %v cost %v, want %v, %v, %v", c.name, s.Routes, s.Types, p.Cost(s), c.routes, c.types, c.cost)
		}
		if again := p.FromVisits(p.Visits(s)); !slices.EqualFunc(again.Routes, s.Routes, slices.Equal) || !slices.Equal(again.Types, s.Types) {
			t.Errorf("%s: %v becomes %v and then %v", c.name, s, p.Visits(s), again)
		}
	}
	if s := (Solution{Routes: [][]int32{{1, 2}, {3}}}); !slices.Equal((&Problem{Demand: make([]int32, 4)}).Visits(s), []int32{0, 1, 2, 0, 3, 0}) {
		t.Error("one depot's visits are no tour")
	}
}

// TestVariantsOfSeveralDepots: vehicles that return to their own depot and are alike are a variant;
// what differs from depot to depot is named.
func TestVariantsOfSeveralDepots(t *testing.T) {
	for says, change := range map[string]func(*Problem){
		"": func(*Problem) {},
		"its vehicles differ from depot to depot":                     func(p *Problem) { p.Fleet[2].MaxDistance = 9 },
		"no vehicle leaves from depot 2":                              func(p *Problem) { p.Fleet = p.Fleet[:2] },
		"its vehicles are not one type per depot":                     func(p *Problem) { p.Fleet[1].End = 0 },
		"its depots differ in their times":                            func(p *Problem) { p.Service = []float64{0, 1, 0, 0, 0, 0, 0, 0} },
		"it has 4 depots, and no policy here has learned more than 3": func(p *Problem) { p.Depots = 4 },
	} {
		p := threeDepots()
		change(p)
		a, err := p.Variant()
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) || err == nil && a.String() != "mdcvrp" {
			t.Errorf("%q: %s, %v", says, a, err)
		}
	}
	p := threeDepots()
	p.Fleet[1].End = None
	if _, err := p.Variant(); err == nil {
		t.Error("one of three types is open, and it is a variant")
	}
	p.Fleet[0].End, p.Fleet[2].End = None, None
	slices.Reverse(p.Fleet)
	if a, err := p.Variant(); err != nil || a != SeveralDepots|OpenRoutes {
		t.Errorf("all are open: %s, %v", a, err)
	}
}

// TestDrawnDepots checks that each instance is of the variant it was drawn as, and that a vehicle
// from the nearest depot can serve each customer alone.
func TestDrawnDepots(t *testing.T) {
	mix, err := ParseMix("all, mdall")
	if err != nil || mix.Names()[24] != "mdcvrp" || len(mix.Names()) != 48 {
		t.Fatalf("%v, %v", mix.Names(), err)
	}
	src := Source{Seed: 7, Distribution: Uniform, N: 9, Capacity: 20, DemandMin: 1, DemandMax: 9, Mix: mix}
	b := NewBatch(400, src.N, src.Capacity)
	src.Fill(b, 3)
	seen := map[Attributes]int{}
	alone := []int32{0}
	for c := range src.N {
		alone = append(alone, int32(c+1), 0)
	}
	for i := range b.B {
		a := b.Varied.Attributes[i]
		seen[a]++
		p := b.Problem(i)
		if err := p.Check(); err != nil {
			t.Fatalf("%s: %v", a, err)
		}
		if got, err := p.Variant(); err != nil || got != a || p.N() != src.N {
			t.Fatalf("%s with %d customers is taken for %s, %v", a, p.N(), got, err)
		}
		// From the nearest: each customer's own visits, as the first vehicle's.
		var s Solution
		for c := 1; c <= src.N; c++ {
			one := p.FromVisits([]int32{0, int32(c), 0})
			s.Routes, s.Types = append(s.Routes, one.Routes...), append(s.Types, one.Types...)
		}
		lenient(p)
		if err := Validate(p, s); err != nil {
			t.Fatalf("%s, instance %d: %v", a, i, err)
		}
		if a&SeveralDepots == 0 {
			if err := b.Validate(i, alone); err != nil {
				t.Fatalf("%s: %v", a, err)
			}
			if want := RouteCost(b.X[i*b.Nodes():], b.Y[i*b.Nodes():], alone); a&OpenRoutes == 0 && math.Abs(float64(b.Cost(i, alone)-want)) > 1e-4 {
				t.Errorf("%s costs %v, its legs %v", a, b.Cost(i, alone), want)
			}
		}
		if err := b.Validate(i, []int32{0, 1, 12, 0}); err == nil {
			t.Fatalf("%s: node 12 of 12 is taken", a)
		}
	}
	if len(seen) != 48 {
		t.Errorf("%d of 48 variants were drawn", len(seen))
	}
}
