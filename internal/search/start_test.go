package search

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"haul/internal/search/construct"
	"haul/internal/search/model"
	"haul/internal/vrp"
)

// scattered is a problem of n customers anywhere in a square.
func scattered(n int, capacity int32) *vrp.Problem {
	r := rand.New(rand.NewPCG(7, uint64(n)))
	p := &vrp.Problem{Capacity: capacity, Metric: vrp.Rounded}
	for v := range n + 1 {
		p.X, p.Y = append(p.X, math.Floor(1e5*r.Float64())), append(p.Y, math.Floor(1e5*r.Float64()))
		p.Demand = append(p.Demand, int32(min(v, 1)*(1+r.IntN(9))))
	}
	return p
}

// However short the time, there are routes, and none is left to chance: a time that is over before
// anything began gives those along the curve. More time never gives worse ones.
func TestAnyTimeHasRoutes(t *testing.T) {
	p := scattered(4000, 60)
	last := p.Cost(construct.AlongCurve(p))
	for _, limit := range []time.Duration{1, time.Millisecond, 200 * time.Millisecond} {
		r, err := Solve(t.Context(), p, Options{Time: limit, Workers: 2})
		if err != nil {
			t.Fatal(err)
		}
		if err := vrp.Validate(p, r.Solution); err != nil || r.Cost > last {
			t.Errorf("after %v: %.0f, with less %.0f: %v", limit, r.Cost, last, err)
		}
	}
}

// A clock of its own: the start ends where its time does, with the routes that are there.
func TestTheStartEndsInTime(t *testing.T) {
	p := scattered(3000, 60)
	late := &driver{search: search{p: p, o: Options{Time: time.Hour, Workers: 1}, begun: time.Now().Add(-2 * time.Hour)}}
	if err := late.prepare(t.Context()); err != nil || late.near.K != 0 {
		t.Fatalf("lists of %d when the time was over: %v", late.near.K, err)
	}
	early := &driver{search: search{p: p, o: Options{Time: time.Hour, Workers: 1}, begun: time.Now()}}
	if err := early.prepare(t.Context()); err != nil || early.near.K != model.Nearest {
		t.Fatalf("lists of %d with an hour to go: %v", early.near.K, err)
	}
	late.near = early.near // joining and descending stop at once
	if s := late.first(t.Context()); vrp.Validate(p, s) != nil || p.Cost(s) > p.Cost(construct.AlongCurve(p)) {
		t.Errorf("routes of %.0f, along the curve %.0f: %v", p.Cost(s), p.Cost(construct.AlongCurve(p)), vrp.Validate(p, s))
	}
	late.begin(t.Context())
	late.anneal(t.Context())
	if r, err := late.result(t.Context()); err != nil || r.Iterations != 0 {
		t.Errorf("%v, %v", r, err)
	}
}

// A part that cannot be made before the end is not begun.
func TestPartsThatTakeTooLong(t *testing.T) {
	p := scattered(1200, 600)
	d := &driver{search: search{p: p, o: Options{Time: time.Hour, Workers: 1}, begun: time.Now()}}
	if err := d.prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := d.begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.begun = time.Now().Add(-time.Hour + 30*time.Second)
	// 30 seconds are left, and a part takes over a minute
	d.slowest.Store(int64(time.Minute) / 300 / 300)
	if d.parts() < 2 || d.roundOfParts(t.Context(), endTemperature, 0, 1) || d.iterations != 0 {
		t.Errorf("%d parts, %d iterations", d.parts(), d.iterations)
	}
	if got := d.price(d.present); got != d.bestCost {
		t.Errorf("routes of %d became routes of %d", d.bestCost, got)
	}
}

// Few and long routes of more customers than a table is made for: the search of 4,000 on one
// vehicle ended in a trace.
func TestManyCustomersOnOneRoute(t *testing.T) {
	p := scattered(model.TableNodes+10, math.MaxInt32)
	r, err := Solve(t.Context(), p, Options{Iterations: 2000})
	if err != nil || len(r.Solution.Routes) != 1 || r.Iterations < 1900 {
		t.Fatalf("%+v, %v", r, err)
	}
	d := &driver{search: search{p: p, o: Options{Iterations: 1}, begun: time.Now()}, present: [][]int32{make([]int32, model.RegionMost-1)}}
	if !d.makes(d.present) || d.makes([][]int32{make([]int32, model.RegionMost)}) {
		t.Errorf("regions of %d nodes and one more", model.RegionMost)
	}
}

// A problem of several parts is annealed once where it has few iterations for each customer, and
// reheated where it has many; one that is annealed whole is always reheated.
func TestFewIterationsAnnealOnce(t *testing.T) {
	for _, c := range []struct{ customers, iterations, want int }{
		{model.PartMost, onceEach*model.PartMost - 1, 4}, {model.PartMost + 1, onceEach*(model.PartMost+1) - 1, 1}, {model.PartMost + 1, onceEach * (model.PartMost + 1), 4},
	} {
		d := &driver{search: search{p: &vrp.Problem{Demand: make([]int32, c.customers+1)}, o: Options{Iterations: c.iterations}}}
		if got := d.cycles(); len(got) != c.want || got[len(got)-1].until != 1 || got[0].hot != startTemperature {
			t.Errorf("%d customers, %d iterations: %v", c.customers, c.iterations, got)
		}
	}
	timed := &driver{search: search{p: &vrp.Problem{Demand: make([]int32, model.PartMost+2)}, o: Options{Time: time.Second}, speed: 1000}}
	if got := timed.cycles(); len(got) != 1 {
		t.Errorf("a thousand iterations in the time: %v", got)
	}
}
