package policy

import (
	"context"
	"fmt"
	"haul/internal/rng"
	"haul/internal/vrp"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// some returns instances like those of the saved policy's training, and a few of other sizes and
// capacities.
func some(t *testing.T, p *Policy) []*vrp.Problem {
	t.Helper()
	src := p.Source(rng.TestInstances)
	var out []*vrp.Problem
	for i, kind := range []struct {
		n, count int
		capacity int32
	}{{src.N, 11, src.Capacity}, {13, 5, 40}, {13, 3, 25}, {1, 1, src.Capacity}} {
		src.N, src.Capacity = kind.n, kind.capacity
		b := vrp.NewBatch(kind.count, src.N, src.Capacity)
		src.Fill(b, uint64(100*i))
		for j := range kind.count {
			out = append(out, b.Problem(j))
			out[len(out)-1].Name = fmt.Sprintf("instance-%d", len(out)-1)
		}
	}
	return out
}

// TestRouteMany: problems of several sizes and capacities get the routes that each gets alone, in
// batches of any size, and more routes are never worse.
func TestRouteMany(t *testing.T) {
	p := loadSaved(t)
	problems := some(t, p)
	for _, name := range []string{"greedy", "pomo", "pomo8"} {
		d, err := ParseDecode(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, batch := range []int{0, 1, 4} {
			routed, err := p.RouteMany(t.Context(), problems, ManyOptions{Decode: d, Batch: batch})
			if err != nil {
				t.Fatal(err)
			}
			for i, prob := range problems {
				want, cost, err := p.Solve(t.Context(), prob, d)
				if diff := cmp.Diff(want, routed[i].Solution); err != nil || diff != "" || cost != routed[i].Cost || cost != prob.Cost(want) {
					t.Errorf("%s in batches of %d, %s: %v, %g alone and %g among others: %s", name, batch, prob.Name, err, cost, routed[i].Cost, diff)
				}
			}
		}
	}
	sampled := map[int][]Routed{}
	for _, batch := range []int{3, 5} {
		var err error
		if sampled[batch], err = p.RouteMany(t.Context(), problems[:11], ManyOptions{Decode: Decode{Samples: 4}, Batch: batch, Seed: 8}); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(sampled[3], sampled[5]); diff != "" {
		t.Errorf("samples depend on the batch: %s", diff)
	}
	greedy, err := p.RouteMany(t.Context(), problems, ManyOptions{Decode: Greedy})
	if err != nil {
		t.Fatal(err)
	}
	better := 0
	// a busy machine makes few samples in a short time: the limit is raised until some are better
	for limit := 200 * time.Millisecond; better == 0 && limit < time.Minute; limit *= 4 {
		longer, err := p.RouteMany(t.Context(), problems, ManyOptions{Decode: Greedy, Time: limit})
		if err != nil {
			t.Fatal(err)
		}
		for i := range greedy {
			if longer[i].Cost > greedy[i].Cost {
				t.Errorf("%s: more time made it worse", problems[i].Name)
			}
			if longer[i].Cost < greedy[i].Cost {
				better++
			}
		}
	}
	if better == 0 {
		t.Error("sampling for longer improved nothing")
	}
}

// TestUnitsDoNotMatter: routes do not depend on a file's units of demand and length.
func TestUnitsDoNotMatter(t *testing.T) {
	p := loadSaved(t)
	src := p.Source(rng.TestInstances)
	src.N = 9
	b := vrp.NewBatch(1, src.N, src.Capacity)
	src.Fill(b, 3)
	plain := b.Problem(0)
	// fills the unit square, so that the frame is the square
	plain.X[1], plain.Y[1], plain.X[2], plain.Y[2] = 0, 0, 1, 1
	other := *plain
	other.Capacity *= 7
	other.X, other.Y, other.Demand = make([]float64, 10), make([]float64, 10), make([]int32, 10)
	for j := range plain.X {
		other.X[j], other.Y[j], other.Demand[j] = 4096*plain.X[j]-512, 4096*plain.Y[j]+1024, 7*plain.Demand[j]
	}
	d := Decode{Starts: true, Symmetries: 8}
	want, cost, err := p.Solve(t.Context(), plain, d)
	if err != nil {
		t.Fatal(err)
	}
	got, scaled, err := p.Solve(t.Context(), &other, d)
	if diff := cmp.Diff(want, got); err != nil || diff != "" || math.Abs(scaled/4096-cost) > 1e-9 {
		t.Errorf("%v, %g and %g: %s", err, cost, scaled, diff)
	}
	// The same locations on the globe, in the far north and on both sides of the date line, where
	// the square is 0.02 degrees of latitude wide.
	globe := *plain
	globe.Metric, globe.X, globe.Y = vrp.GreatCircle, make([]float64, 10), make([]float64, 10)
	for j := range plain.X {
		globe.X[j] = math.Remainder(179.98+0.02*plain.X[j]/math.Cos(60*math.Pi/180), 360)
		globe.Y[j] = 59.99 + 0.02*plain.Y[j]
	}
	got, _, err = p.Solve(t.Context(), &globe, d)
	if legs := plain.Cost(got); err != nil || math.Abs(legs/cost-1) > 1e-3 {
		t.Errorf("%v: routes of %g where those of the same square are %g", err, legs, cost)
	}
	inside := &vrp.Problem{X: []float64{0.1, 0.9}, Y: []float64{0.2, 0.3}}
	corner := &vrp.Problem{X: []float64{0.1, 0.2}, Y: []float64{0.2, 0.25}}
	ours := &vrp.Problem{X: []float64{1e5, 9e5}, Y: []float64{2e5, 3e5}, Comment: "haul seed=1 index=2 scale=1000000"}
	for want, p := range map[[3]float64]*vrp.Problem{{0, 0, 1}: inside, {0.1, 0.2, 0.1}: corner, {0, 0, 1e6}: ours} {
		x, y, side := unitFrame(p, p.X, p.Y)
		if math.Abs(x-want[0])+math.Abs(y-want[1])+math.Abs(side-want[2]) > 1e-12 {
			t.Errorf("the frame of %v is (%g, %g) and %g, want %v", p, x, y, side, want)
		}
	}
}

// TestInterruptedRouteMany stops between two batches.
func TestInterruptedRouteMany(t *testing.T) {
	p := loadSaved(t)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := p.RouteMany(ctx, some(t, p), ManyOptions{Decode: Greedy, Batch: 1, Progress: func(done int) {
		if done == 3 {
			cancel()
		}
	}})
	if err == nil || ctx.Err() == nil {
		t.Error("it went on")
	}
	limited := &vrp.Problem{Name: "short", Capacity: 5, Demand: []int32{0, 2}, X: []float64{0, 1}, Y: []float64{0, 1}, MaxDuration: 3}
	if _, err := p.RouteMany(t.Context(), []*vrp.Problem{limited}, ManyOptions{}); err == nil || !strings.Contains(err.Error(), "duration") {
		t.Error(err)
	}
}

// TestLargeDemandsAreShownSmaller: demands within the range of training are not scaled. Others are
// scaled so that their mean exceeds that of training by the factor `maxMeanExcess`. Routes are
// loaded by true demands.
func TestLargeDemandsAreShownSmaller(t *testing.T) {
	s := shares{mean: 0.1, most: 0.18}
	for _, c := range []struct {
		demand   []int32
		capacity int32
		want     float32
	}{
		{[]int32{0, 1, 9}, 50, 50},                   // as in training
		{[]int32{0, 9, 9}, 50, 50},                   // a high mean, but no larger demand than in training
		{[]int32{0, 1, 1, 1, 1, 12}, 50, 50},         // a larger demand, but a low mean
		{[]int32{0, 10, 10}, 20, 10 / (1.3 * 0.1)},   // half of the capacity each
		{[]int32{0, 20, 10}, 20, 15 / (1.3 * 0.1)},   // larger demands
		{[]int32{0, 300, 10}, 500, 155 / (1.3 * .1)}, // in other units
	} {
		got := s.capacity(&vrp.Problem{Demand: c.demand, Capacity: c.capacity})
		if math.Abs(float64(got-c.want)) > 1e-3*float64(c.want) {
			t.Errorf("demands %v of %d are divided by %g, want %g", c.demand, c.capacity, got, c.want)
		}
	}
	p := loadSaved(t)
	large := &vrp.Problem{Name: "large", Capacity: 10, Demand: []int32{0, 9, 8, 10, 5, 5}, X: []float64{0, 1, 0, 1, 0.5, 0.2}, Y: []float64{0, 0, 1, 1, 0.5, 0.9}}
	sol, _, err := p.Solve(t.Context(), large, Decode{Starts: true, Symmetries: 8})
	if err != nil || len(sol.Routes) < 4 {
		t.Errorf("%v, %v", sol, err)
	}
}

// TestGivenAndDrawnAgree: given problems get the same routes as equal instances that the device
// generates.
func TestGivenAndDrawnAgree(t *testing.T) {
	p := loadSaved(t)
	src := p.Source(rng.TestInstances)
	b := vrp.NewBatch(20, src.N, src.Capacity)
	src.Fill(b, 5)
	var problems []*vrp.Problem
	for i := range b.B {
		problems = append(problems, b.Problem(i))
	}
	d := Decode{Starts: true, Symmetries: 8}
	routed, err := p.RouteMany(t.Context(), problems, ManyOptions{Decode: d})
	if err != nil {
		t.Fatal(err)
	}
	drawn, err := p.Evaluate(t.Context(), EvalOptions{Source: src, First: 5, Count: b.B, Decode: d})
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range routed {
		if math.Abs(r.Cost/drawn.Lengths[i]-1) > 1e-5 {
			t.Errorf("instance %d: %g given, %g drawn", i, r.Cost, drawn.Lengths[i])
		}
	}
}
