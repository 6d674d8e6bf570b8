package policy

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"haul/internal/rng"
	"haul/internal/vrp"
)

// TestBeamSearch: the search is never worse than its starts and better on some instances. Its
// result does not depend on the batch. A beam that holds all hypotheses of a small problem finds
// the optimum.
func TestBeamSearch(t *testing.T) {
	p := loadSaved(t)
	problems := some(t, p)
	costs := map[string][]Routed{}
	for _, name := range []string{"pomo", "sgbs:1,2", "sgbs:4,4", "pomo8", "sgbs8:2,3"} {
		d, err := ParseDecode(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, batch := range []int{0, 1, 4} {
			routed, err := p.RouteMany(t.Context(), problems, ManyOptions{Decode: d, Batch: batch})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if batch == 0 {
				costs[name] = routed
			}
			if diff := cmp.Diff(costs[name], routed); diff != "" {
				t.Errorf("%s in batches of %d: %s", name, batch, diff)
			}
		}
	}
	for _, pair := range [][2]string{{"pomo", "sgbs:1,2"}, {"pomo", "sgbs:4,4"}, {"pomo8", "sgbs8:2,3"}} {
		better := 0
		for i, prob := range problems {
			before, after := costs[pair[0]][i].Cost, costs[pair[1]][i].Cost
			if after > before {
				t.Errorf("%s: %s costs %g, %s %g", prob.Name, pair[0], before, pair[1], after)
			}
			if after < before {
				better++
			}
			if err := vrp.Validate(prob, costs[pair[1]][i].Solution); err != nil {
				t.Errorf("%s by %s: %v", prob.Name, pair[1], err)
			}
		}
		if better == 0 {
			t.Errorf("%s improved nothing over %s", pair[1], pair[0])
		}
	}

	small := p.Source(rng.TestInstances)
	small.N = 4
	b := vrp.NewBatch(12, small.N, small.Capacity)
	small.Fill(b, 0)
	var few []*vrp.Problem
	for i := range b.B {
		few = append(few, b.Problem(i))
	}
	best, _, err := vrp.OptimalSolutions(t.Context(), few, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	routed, err := p.RouteMany(t.Context(), few, ManyOptions{Decode: Decode{Starts: true, Beam: 64, Expand: 5}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range few {
		if math.Abs(routed[i].Cost/best[i]-1) > 1e-6 {
			t.Errorf("instance %d of four customers costs %g, the optimum is %g", i, routed[i].Cost, best[i])
		}
	}
}

// TestBeamSearchElsewhere: the search works on generated instances, with a rounding metric, and if
// it is interrupted.
func TestBeamSearchElsewhere(t *testing.T) {
	p := loadSaved(t)
	d, err := ParseDecode("sgbs")
	if err != nil {
		t.Fatal(err)
	}
	src := p.Source(rng.TestInstances)
	e, err := p.Evaluate(t.Context(), EvalOptions{Source: src, First: 3, Count: 7, Decode: d, Validate: true, KeepTours: true})
	if err != nil {
		t.Fatal(err)
	}
	plain, err := p.Evaluate(t.Context(), EvalOptions{Source: src, First: 3, Count: 7, Decode: Decode{Starts: true}, Validate: true})
	if err != nil {
		t.Fatal(err)
	}
	for i := range e.Lengths {
		if e.Lengths[i] > plain.Lengths[i]*(1+1e-6) || e.Tours[i][0] != 0 {
			t.Errorf("instance %d: %g, by starts alone %g", i, e.Lengths[i], plain.Lengths[i])
		}
	}
	prob := some(t, p)[12]
	prob.Metric = vrp.Rounded
	for j := range prob.X {
		prob.X[j], prob.Y[j] = 100*prob.X[j], 100*prob.Y[j]
	}
	_, before, err := p.Solve(t.Context(), prob, Decode{Starts: true, Symmetries: 8})
	if err != nil {
		t.Fatal(err)
	}
	d.Symmetries = 8
	sol, cost, err := p.Solve(t.Context(), prob, d)
	if err != nil || cost != prob.Cost(sol) || cost > before || cost != math.Trunc(cost) {
		t.Errorf("%v: %g after %g", err, cost, before)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := p.Solve(ctx, prob, d); err == nil {
		t.Error("it went on")
	}
}

// TestBeamDecidesAsTheDevice: along greedy routes the host's most likely node, which extends the
// beam, is the device's choice. Completion from the first action gives the same routes. Both hold
// with and without distances and pairs in the scores.
func TestBeamDecidesAsTheDevice(t *testing.T) {
	for _, c := range []struct{ distance, pairs, views string }{{"0", "false", "false"}, {"0.8", "false", "false"}, {"0", "true", "false"}, {"0.8", "true", "false"},
		{"0.8", "true", "true"}} {
		path, _ := saved(t, "baseline.type=pomo", "model.pointer_distance="+c.distance, "model.pointer_pairs="+c.pairs, "model.start_views="+c.views)
		p, err := Load(openCPU(t, 2), path)
		if err != nil {
			t.Fatal(err)
		}
		src := p.Source(rng.TestInstances)
		s, err := p.prepare(src.N, src.Capacity, 1, Decode{Starts: true, Symmetries: 8, Beam: 2, Expand: 2}, 1)
		if err != nil {
			t.Fatal(err)
		}
		b := vrp.NewBatch(1, src.N, src.Capacity)
		src.Fill(b, 0)
		problems, out := []*vrp.Problem{b.Problem(0)}, make([]Routed, 1)
		if err := errors.Join(s.load(problems), s.decode(t.Context(), problems, out, 0), s.beam.take(s.batch)); err != nil {
			t.Fatal(err)
		}
		asked, steps := 0, s.steps
		for row := range s.sym {
			d := s.beam.decoder(s.batch, row)
			for start := range s.starts {
				tour, actions := d.Depart(), s.actions[(row*s.starts+start)*steps:][:steps]
				tour.Visit(int(actions[0])) // a forced or a viewed first action
				for at := 1; at < steps && !tour.Done(); at++ {
					says := d.Decide(tour)
					best, went := 0, 0
					for i, node := range says.Allowed {
						if says.LogProb[i] > says.LogProb[best] {
							best = i
						}
						if node == int(actions[at]) {
							went = i
						}
					}
					if gap := says.LogProb[best] - says.LogProb[went]; gap > 1e-3 {
						t.Fatalf("%+v, row %d, start %d, step %d: the host goes to %d, the device went to %d, less likely by %g", c, row, start, at,
							says.Allowed[best], actions[at], gap)
					}
					asked++
					tour.Visit(int(actions[at]))
				}
			}
		}
		if asked < s.sym*s.starts {
			t.Errorf("%d decisions were compared", asked)
		}
		for at := range s.beam.actions {
			s.beam.actions[at] = -1
		}
		for slot := range s.sym * s.beam.slots {
			s.beam.actions[slot*steps] = s.actions[slot/s.beam.slots*s.starts*steps]
		}
		if err := errors.Join(s.beam.runner.WriteBatch(s.beam.routes.Actions, s.beam.actions), s.beam.runner.Run(),
			s.beam.runner.ReadBatch(s.beam.routes.Actions, s.beam.actions)); err != nil {
			t.Fatal(err)
		}
		for slot := range s.sym * s.beam.slots {
			if diff := cmp.Diff(s.actions[slot/s.beam.slots*s.starts*steps:][:steps], s.beam.actions[slot*steps:][:steps]); diff != "" {
				t.Fatalf("%+v: a start completed from its first action: %s", c, diff)
			}
		}
		if err := errors.Join(s.Close(), p.Close()); err != nil {
			t.Error(err)
		}
	}
}

// TestBeamKeepsOneOfEachState: of hypotheses in the same state (served customers, position, load)
// only the shortest stays, which makes room for hypotheses in other states.
func TestBeamKeepsOneOfEachState(t *testing.T) {
	p := loadSaved(t)
	src := p.Source(rng.TestInstances)
	src.N = 4
	s, err := p.prepare(src.N, src.Capacity, 1, Decode{Starts: true, Symmetries: 1, Beam: 2, Expand: 2}, 1)
	if err != nil {
		t.Fatal(err)
	}
	b := vrp.NewBatch(1, src.N, src.Capacity)
	src.Fill(b, 0)
	if err := s.load([]*vrp.Problem{b.Problem(0)}); err != nil {
		t.Fatal(err)
	}
	tour := func(actions ...int32) []int32 { return append(actions, make([]int32, s.steps-len(actions))...) }
	first, turned, other := tour(1, 2, 0, 3, 4, 0), tour(2, 1, 0, 3, 4, 0), tour(1, 3, 0, 2, 4, 0)
	for _, c := range []struct {
		settled int
		want    [][]int32
	}{
		{1, [][]int32{first, turned}}, // different last customers
		{2, [][]int32{first, turned}},
		{3, [][]int32{first, other}}, // back at the depot after the same two customers
		{4, [][]int32{first, other}},
		{s.steps, [][]int32{first}}, // all are complete
	} {
		kept := s.beam.keep(s.batch, 0, []hypothesis{{other, 9, -1}, {first, 7, -1}, {turned, 8, -1}}, c.settled)
		var got [][]int32
		for _, h := range kept {
			got = append(got, h.tour)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("after %d actions: %s", c.settled, diff)
		}
	}
}
