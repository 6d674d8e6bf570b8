package search

import (
	"math"
	"slices"
	"testing"

	"haul/internal/search/model"
	"haul/internal/vrp"
)

// vast is a chain that knows no table of distances.
func vast(t *testing.T, p *vrp.Problem) *candidate {
	t.Helper()
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	c := newCandidate(compileNear(t.Context(), p), model.NewStream(1, 1))
	c.Traits.Scan, c.Traits.Distance = model.ScanNearRoutes, model.Computed
	return c
}

// TestIsVast: a table has all distances of as many places as TableGeneral.
func TestIsVast(t *testing.T) {
	for _, n := range []int{model.TableGeneral - 1, model.TableGeneral, model.TableGeneral + 1} {
		m := &model.Compiled{P: &vrp.Problem{}, Nodes: n}
		m.Types = []model.VehicleType{{Distances: m.NewGrid(false, func(i, j int) int32 { return 1 })}}
		if got := m.Types[0].Distances.Cell == nil; got != (n > model.TableGeneral) {
			t.Errorf("%d places: %v", n, got)
		}
	}
}

// TestVastLooksNear: the work of an insertion does not grow with the number of routes, and it
// mostly finds what a look at every position finds.
func TestVastLooksNear(t *testing.T) {
	p := windows(900)
	p.Capacity = 12 // routes of two or three
	c := vast(t, p)
	c.set(c.joinRuns(t.Context()), nil, nil)
	if len(c.absent) > 0 || len(c.routes) < 300 {
		t.Fatalf("%d are left out of %d routes", len(c.absent), len(c.routes))
	}
	c.typicalLeg()
	moves, asked := c.moves, c.asked
	for range 300 {
		c.iterate(c.Leg / 50)
	}
	if each := float64(c.moves-moves) / float64(c.asked-asked); each > float64(4*c.reach) {
		t.Errorf("an insertion into %d routes looks at %.0f positions", len(c.routes), each)
	}
	same := 0
	const looks = 300
	for range looks {
		c.begin()
		v := int32(c.Depots + c.IntN(c.Nodes-c.Depots))
		c.mark(v)
		c.compactAll()
		c.untilSkip = math.MaxInt // none is overlooked
		near, all := none(), none()
		c.asked++
		c.scanNearRoutes(v, &near)
		c.asked++
		c.scan(v, &all)
		if near.cost < all.cost-1e-9 {
			t.Fatalf("customer %d costs %g at %d of route %d, and %g is least", v, near.cost, near.at, near.route, all.cost)
		}
		if near.cost < all.cost+1e-9 {
			same++
		}
		c.undo()
	}
	if same < looks*3/4 {
		t.Errorf("%d of %d customers were put where they cost least", same, looks)
	}
}

// TestVastLooksFar: a customer whom no route near takes goes where there is room, however far away.
func TestVastLooksFar(t *testing.T) {
	const size = 10
	const n = 60 * size
	for _, timed := range []bool{true, false} {
		p := &vrp.Problem{Metric: vrp.Exact, Demand: make([]int32, n+1), X: make([]float64, n+1), Y: make([]float64, n+1)}
		k := vrp.NewVehicleType(size)
		k.Count = n / size
		p.Fleet = []vrp.VehicleType{k}
		var routes [][]int32
		for v := 1; v <= n; v++ {
			p.X[v], p.Demand[v] = float64(v), 1
			if timed {
				p.Windows = append(p.Windows, []vrp.Window{{From: float64(v), To: float64(2 * n)}})
			}
			if v%size == 1 {
				routes = append(routes, nil)
			}
			if v > 1 { // who stays out is beside the first route, and the last one has room
				routes[(v-2)/size] = append(routes[(v-2)/size], int32(v))
			}
		}
		if timed {
			p.Windows = append([][]vrp.Window{nil}, p.Windows...)
		}
		c := vast(t, p)
		lost := func() {
			if !c.set(routes, make([]int32, len(routes)), nil) || !slices.Equal(c.absent, []int32{1}) {
				t.Fatal(c.absent)
			}
		}
		lost()
		for i := 0; len(c.absent) > 0; i++ { // a position is overlooked now and then
			if i == 5 {
				t.Fatalf("timed %v: customer 1 finds no place", timed)
			}
			c.build(t.Context())
		}
		lost()
		for i := 0; len(c.absent) > 0; i++ {
			if i == 200 {
				t.Fatalf("timed %v: customer 1 finds no place in %d iterations", timed, i)
			}
			c.iterate(1e-9)
		}
	}
}

// TestVastFindsTheBest: what an insertion passes over costs no less, near and far, on a map and
// where the ways there and back differ.
func TestVastFindsTheBest(t *testing.T) {
	p := windows(700)
	n := len(p.Demand)
	q := *p
	q.Metric, q.Weights = vrp.Explicit, make([]float64, n*n)
	for i := range q.Weights {
		q.Weights[i] = p.Dist(i/n, i%n) + float64((701*i)%907)
	}
	for i, p := range []*vrp.Problem{p, &q} {
		c := vast(t, p)
		c.set(c.joinRuns(t.Context()), nil, nil)
		c.typicalLeg()
		for range 1000 {
			c.iterate(c.Leg / 50)
			c.begin()
			v := int32(c.Depots + c.IntN(c.Nodes-c.Depots))
			if c.links[v].route < 0 {
				continue
			}
			c.mark(v)
			c.compactAll()
			c.untilSkip = math.MaxInt // none is overlooked
			got, want := none(), none()
			c.asked++
			c.scanNearRoutes(v, &got)
			c.asked++
			g := c.Types[0].Distances
			for _, w := range c.NearOf(v)[:c.reach] {
				l := &c.links[w]
				if l.route < 0 {
					continue
				}
				s := &c.states[c.routes[l.route]]
				for _, at := range []int{int(l.pos), int(l.pos) + 1, 1, len(s.stops) - 1} {
					prev, next := s.stops[at-1].node, s.stops[at].node
					c.try(l.route, v, at, prev, next, g.At(prev, v)+g.At(v, next)-s.stops[at].leg, &want)
				}
			}
			if got.cost != want.cost {
				t.Fatalf("problem %d: customer %d costs %g, want %g", i, v, got.cost, want.cost)
			}
			far, all := none(), none()
			c.asked++
			c.scanFarRoutes(v, &far)
			c.asked++
			if c.scan(v, &all); far.cost != all.cost {
				t.Fatalf("problem %d: far away customer %d costs %g, want %g", i, v, far.cost, all.cost)
			}
			c.undo()
		}
	}
}

// TestVastSows: the first insertions look at the ends of all routes, those behind them only at the
// ends of routes near by.
func TestVastSows(t *testing.T) {
	p := windows(900)
	p.Capacity = 12 // routes of two or three
	c := vast(t, p)
	c.set(c.joinRuns(t.Context()), nil, nil)
	for _, x := range []struct {
		built bool
		sown  int
		all   bool
	}{{true, 0, true}, {true, len(c.Tasks)/ownRoutesUntil - 1, true}, {true, len(c.Tasks)/ownRoutesUntil + 1, false}, {false, 0, false}} {
		c.begin()
		c.mark(7)
		c.compactAll()
		if c.stage, c.servedSoFar = annealing, x.sown; x.built {
			c.stage = building
		}
		best, moves := none(), c.moves
		c.asked++
		c.scanNearRoutes(7, &best)
		if looks := int(c.moves - moves); looks >= 2*len(c.routes) != x.all {
			t.Errorf("built %v, %d sown: %d positions beside %d routes", x.built, x.sown, looks, len(c.routes))
		}
		c.undo()
	}
}
