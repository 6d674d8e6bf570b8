package policy

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"haul/internal/kernel"
	"haul/internal/kernel/reference"
	"haul/internal/plan"
	"haul/internal/rng"
	"haul/internal/vrp"
)

// drawnFor returns generated instances of n customers, with the attributes of a policy's training.
func drawnFor(p *Policy, n, count int) (out []*vrp.Problem) {
	src := p.Source(rng.TestInstances)
	src.N = n
	b := vrp.NewBatch(count, n, src.Capacity)
	src.Fill(b, 0)
	for i := range count {
		out = append(out, b.Problem(i))
		out[i].Name = fmt.Sprintf("instance-%d", i)
	}
	return out
}

func parsed(t *testing.T, name string) Decode {
	t.Helper()
	d, err := ParseDecode(name)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func meanCost(routed []Routed) (sum float64) {
	for _, r := range routed {
		sum += r.Cost / float64(len(routed))
	}
	return sum
}

// TestActiveSearch: the search begins with the routes of pomo8:1, never ends with worse ones, and
// beats as many samples of the unchanged policy. The policy is untrained, so the test raises the
// learning rate.
func TestActiveSearch(t *testing.T) {
	const rounds = 24
	p := loadSaved(t, "model.pointer_distance=0.3")
	problems := drawnFor(p, 20, 10)
	found, first := make([]Routed, len(problems)), make([]Routed, len(problems))
	eas, sampler := prepared(t, p, problems, fmt.Sprintf("eas8:%d", rounds)), prepared(t, p, problems, "pomo8:1")
	if err := eas.active.runner.SetControl(kernel.Control{Temperature: 1, LearningRate: 0.03}); err != nil {
		t.Fatal(err)
	}
	if err := eas.improve(t.Context(), problems, found, 0); err != nil {
		t.Fatal(err)
	}
	if err := sampler.improve(t.Context(), problems, first, 0); err != nil {
		t.Fatal(err)
	}
	sampled := slices.Clone(first)
	for k := uint64(1); k <= rounds; k++ {
		if err := sampler.improve(t.Context(), problems, sampled, k<<40); err != nil {
			t.Fatal(err)
		}
	}
	for i, prob := range problems {
		if found[i].Cost > first[i].Cost {
			t.Errorf("%s: %g, and the first routes %g", prob.Name, found[i].Cost, first[i].Cost)
		}
		if err := vrp.Validate(prob, found[i].Solution); err != nil || found[i].Cost != prob.Cost(found[i].Solution) {
			t.Errorf("%s: %v, cost %g", prob.Name, err, found[i].Cost)
		}
		for row := i * eas.sym; row < (i+1)*eas.sym; row++ {
			if taught := tourCost(prob, eas.active.best[row*eas.steps:][:eas.steps]); math.Abs(taught-found[i].Cost) > 1e-9 {
				t.Errorf("%s: the best routes cost %g, row %d is taught ones of %g", prob.Name, found[i].Cost, row, taught)
			}
		}
	}
	if learned, alone := meanCost(found), meanCost(sampled); !(learned < 0.995*alone) {
		t.Errorf("mean cost %g, and %g by as many routes of a policy that learns nothing", learned, alone)
	}
}

// prepared returns a program with the problems loaded.
func prepared(t *testing.T, p *Policy, problems []*vrp.Problem, decode string) *Stepper {
	t.Helper()
	s, err := p.prepare(problems[0].N(), problems[0].Load(), len(problems), parsed(t, decode), 3)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if err := s.load(problems); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestActiveRepeats: a problem's embeddings and routes do not depend on the batch, the number of
// workers or earlier problems of the program. They depend on the seed.
func TestActiveRepeats(t *testing.T) {
	path, _ := saved(t)
	one, err := Load(openCPU(t, 1), path)
	if err != nil {
		t.Fatal(err)
	}
	two, err := Load(openCPU(t, 2), path)
	if err != nil {
		t.Fatal(err)
	}
	problems, d := drawnFor(one, 15, 3), parsed(t, "eas8:3")
	const rows = 8 // rows per problem
	begun, want := learned(t, one, problems, 1, 0, nil)
	if slices.Equal(begun, want) {
		t.Error("the embeddings have not moved")
	}
	for name, again := range map[string]func() (begun, ended []float32){
		"two workers":     func() (_, _ []float32) { return learned(t, two, problems, 1, 0, nil) },
		"alone":           func() (_, _ []float32) { return learned(t, one, problems[1:2], 0, rows, nil) },
		"after another's": func() (_, _ []float32) { return learned(t, one, problems[1:2], 0, rows, problems[2:]) },
	} {
		if _, got := again(); !slices.Equal(want, got) {
			t.Errorf("%s: other embeddings", name)
		}
	}
	var routed [2][]Routed
	for i, seed := range []uint64{3, 4} {
		if routed[i], err = one.RouteMany(t.Context(), problems, ManyOptions{Decode: d, Seed: seed}); err != nil {
			t.Fatal(err)
		}
	}
	if cmp.Equal(routed[0], routed[1]) {
		t.Error("another seed has the same routes")
	}
	for _, o := range []ManyOptions{{Decode: d, Seed: 3, Batch: 1}, {Decode: d, Seed: 3, Batch: 2}} {
		again, err := two.RouteMany(t.Context(), problems, o)
		if diff := cmp.Diff(routed[0], again); err != nil || diff != "" {
			t.Errorf("batches of %d: %v: %s", o.Batch, err, diff)
		}
	}
}

// learned returns the embeddings of problem i before and after an active search whose samples begin
// with row `first`. The program routes the others before.
func learned(t *testing.T, p *Policy, problems []*vrp.Problem, i int, first uint64, others []*vrp.Problem) (begun, ended []float32) {
	t.Helper()
	s := prepared(t, p, problems, "eas8:3")
	for _, some := range [][]*vrp.Problem{others, problems} {
		if some == nil {
			continue
		}
		if err := s.load(some); err != nil {
			t.Fatal(err)
		}
		if err := s.improve(t.Context(), some, make([]Routed, len(some)), first); err != nil {
			t.Fatal(err)
		}
	}
	flat := make([]float32, s.active.layout.Len)
	if err := s.active.store.ReadWeights(flat); err != nil {
		t.Fatal(err)
	}
	each := len(s.active.embeddings) / len(problems)
	return s.active.embeddings[i*each:][:each], flat[i*each:][:each]
}

// countdown is a context that ends after a number of calls of Err or Done.
type countdown struct {
	context.Context
	left int
}

func (c *countdown) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestActiveLeavesThePolicy: an active search changes no weight of the policy.
func TestActiveLeavesThePolicy(t *testing.T) {
	p := loadSaved(t)
	before, after := make([]float32, p.model.Layout().Len), make([]float32, p.model.Layout().Len)
	if err := p.store.ReadWeights(before); err != nil {
		t.Fatal(err)
	}
	if _, err := p.RouteMany(t.Context(), drawnFor(p, 7, 3), ManyOptions{Decode: parsed(t, "eas:4")}); err != nil {
		t.Fatal(err)
	}
	if err := p.store.ReadWeights(after); err != nil || !slices.Equal(before, after) {
		t.Errorf("weights have moved, %v", err)
	}
}

// TestActiveEnds: a search ends after its iterations, at a time limit that has passed, or with its
// context, and returns the best routes so far. Problems that were not begun have no routes.
func TestActiveEnds(t *testing.T) {
	p := loadSaved(t)
	prob := drawnFor(p, 12, 1)[0]
	_, first, err := p.Solve(t.Context(), prob, parsed(t, "pomo:1"))
	if err != nil {
		t.Fatal(err)
	}
	if _, cost, err := p.SolveWithin(t.Context(), prob, parsed(t, "eas:9"), 1, nil); err != nil || cost != first {
		t.Errorf("without time %g, %v; the first routes cost %g", cost, err, first)
	}
	_, three, err := p.Solve(t.Context(), prob, parsed(t, "eas:3"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"eas", "eas:9"} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		calls := 0
		_, cost, err := p.SolveWithin(ctx, prob, parsed(t, name), 0, func(share float64) {
			if calls++; calls == 3 {
				cancel()
			}
			if total := map[string]float64{"eas": activeIterations, "eas:9": 9}[name]; math.Abs(share-float64(calls)/total) > 1e-9 {
				t.Errorf("%s: %g is done after %d iterations", name, share, calls)
			}
		})
		if err != nil || cost != three || calls != 3 {
			t.Errorf("%s, interrupted after %d iterations: %g, %v; three cost %g", name, calls, cost, err, three)
		}
	}

	// If the search ends after the first routes, between iterations or inside one, they are
	// returned.
	kept := false
	for left := range 20 {
		_, cost, err := p.Solve(&countdown{t.Context(), left}, prob, parsed(t, "eas:9"))
		if kept && (err != nil || cost > first) {
			t.Errorf("asked %d times: %g, %v", left, cost, err)
		}
		kept = kept || err == nil
	}
	if !kept {
		t.Error("nothing was ever kept")
	}

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if routed, err := p.RouteMany(ctx, drawnFor(p, 12, 4), ManyOptions{Decode: parsed(t, "eas:2"), Batch: 4, Progress: func(done int) { cancel() }}); err == nil || len(routed) != 4 || routed[3].Solution.Routes == nil {
		t.Errorf("interrupted in the last batch: %v, %v", routed, err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	routed, err := p.RouteMany(ctx, drawnFor(p, 12, 5), ManyOptions{Decode: parsed(t, "eas:2"), Batch: 2, Progress: func(done int) {
		if done == 3 { // half of the second batch
			cancel()
		}
	}})
	if err == nil || len(routed) != 5 {
		t.Fatalf("interrupted: %d problems, %v", len(routed), err)
	}
	for i, r := range routed {
		if (r.Solution.Routes != nil) != (i < 4) {
			t.Errorf("problem %d: %v", i, r)
		}
	}
	if routed, err := p.RouteMany(t.Context(), drawnFor(p, 12, 5), ManyOptions{Decode: parsed(t, "eas"), Batch: 2, Time: 1}); err != nil || routed[4].Solution.Routes == nil {
		t.Errorf("by time: %v, %v", routed, err)
	}
}

// TestActiveKinds: active search works with every network, start and rule set, and routes are
// valid.
func TestActiveKinds(t *testing.T) {
	for _, sets := range [][]string{{"model.pointer_pairs=true"}, {"model.start_views=true", "baseline.type=pomo"}, {"problem.single_tour=true"},
		{"problem.max_route_length=3"}, {"problem.attributes=all"}, {"problem.attributes=all, mdall", "problem.distribution=uniform"}} {
		p := loadSaved(t, sets...)
		src := p.Source(rng.TestInstances)
		plain, err := p.Evaluate(t.Context(), EvalOptions{Source: src, Count: 6, Decode: parsed(t, "pomo:1"), Validate: true})
		if err != nil {
			t.Fatalf("%v: %v", sets, err)
		}
		found, err := p.Evaluate(t.Context(), EvalOptions{Source: src, Count: 6, Decode: parsed(t, "eas:8"), Validate: true})
		if err != nil {
			t.Fatalf("%v: %v", sets, err)
		}
		shorter := 0
		for i := range plain.Lengths {
			if found.Lengths[i] > plain.Lengths[i]*(1+1e-6) {
				t.Errorf("%v, instance %d: %g, and the first routes %g", sets, i, found.Lengths[i], plain.Lengths[i])
			}
			if found.Lengths[i] < plain.Lengths[i]*(1-1e-6) {
				shorter++
			}
		}
		if shorter == 0 {
			t.Errorf("%v: no instance has gained", sets)
		}
	}
}

// TestActiveGradient: the gradient of the embeddings is the sum of the gradient that training would
// pass to the encoder for the same routes, and that of the best route's log-probability. The
// reference computes both in float64.
func TestActiveGradient(t *testing.T) {
	for _, sets := range [][]string{nil, {"model.pointer_pairs=true", "model.pointer_distance=0.3"}, {"model.start_views=true", "baseline.type=pomo"}} {
		p := loadSaved(t, sets...)
		problems := drawnFor(p, 9, 3)
		d := parsed(t, "eas8:1")
		s, err := p.prepare(9, problems[0].Load(), len(problems), d, 1)
		if err != nil {
			t.Fatal(err)
		}
		out := make([]Routed, len(problems))
		if err := s.load(problems); err != nil {
			t.Fatal(err)
		}
		if err := s.improve(t.Context(), problems, out, 0); err != nil {
			t.Fatal(err)
		}
		a, rows := s.active, len(problems)*s.sym
		got := make([]float32, a.layout.Len)
		// The iteration read the best of the first routes; take has replaced them since.
		taught := make([]int32, len(a.best))
		if err := a.runner.ReadBatch(a.incumbent, taught); err != nil {
			t.Fatal(err)
		}
		if err := a.runner.ReadGrad(got); err != nil {
			t.Fatal(err)
		}
		if err := a.runner.ReadBatch(a.routes.Actions, a.actions); err != nil {
			t.Fatal(err)
		}
		got = got[a.layout.Params[a.table].Offset:][:len(a.embeddings)]
		drawn := trainingGradient(t, p, s, a.actions, s.starts, nil)
		weight := make([]float32, rows)
		for i := range weight {
			weight[i] = -activeIncumbent
		}
		best := trainingGradient(t, p, s, taught, 1, weight)
		var most, off, part float64
		for i := range got {
			// training divides by the number of instances
			want := float64(rows)*float64(drawn[i]) + float64(best[i])
			most, off = max(most, math.Abs(want)), max(off, math.Abs(want-float64(got[i])))
			part = max(part, math.Abs(float64(best[i])))
		}
		if !(off < 1e-4*most) || !(part > 1e-3*most) {
			t.Errorf("%v: gradients of up to %g, %g of them of the best routes, differ by %g", sets, most, part, off)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// trainingGradient returns the gradient that a training step passes to the encoder for these
// routes, with their mean as the baseline or with the given weights.
func trainingGradient(t *testing.T, p *Policy, s *Stepper, actions []int32, starts int, weight []float32) []float32 {
	t.Helper()
	dev := reference.New[float64](2)
	rows, nodes := s.size*s.sym, s.count
	pl := plan.New("train", dev, rows, nodes, p.model.Layout())
	in := pl.Given(kernel.Rules{Set: p.model.Rules(), Capacity: s.capacity}, nodes)
	h := p.model.Embed(pl, 0, in, false)
	spec := plan.RolloutSpec{Choice: kernel.Replay, Starts: starts, MaxStep: s.steps, Actions: pl.RowInts("actions", pl.B(), starts, s.steps)}
	if weight == nil {
		FromEveryCustomer(&spec, p.model)
	}
	routes := pl.Rollout("routes", p.model.Project(pl, 0, h, in), spec, rng.Actions)
	adv := pl.Rows("weight", pl.B(), 1)
	if weight == nil {
		adv, _ = pl.Advantage(routes, kernel.SharedMean, nil, 0, plan.Comparison{})
	}
	pl.PolicyGradient(routes, adv)
	pl.Backward()
	grad := plan.Keep(pl.Grad(h))
	store, err := dev.NewStore(p.model.Layout(), true)
	if err != nil {
		t.Fatal(err)
	}
	flat := make([]float32, p.model.Layout().Len)
	if err := p.store.ReadWeights(flat); err != nil {
		t.Fatal(err)
	}
	if err := store.WriteWeights(flat); err != nil {
		t.Fatal(err)
	}
	r, err := pl.Compile(dev, store)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []struct {
		to   *kernel.Tensor
		from any
	}{{in.PosX, s.x}, {in.PosY, s.y}, {in.Nodes, s.nodes}, {in.Feature, s.feature}, {spec.Actions, actions}} {
		if err := r.WriteBatch(w.to, w.from); err != nil {
			t.Fatal(err)
		}
	}
	if weight != nil {
		if err := r.WriteBatch(adv, weight); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Run(); err != nil {
		t.Fatal(err)
	}
	out := make([]float32, rows*nodes*p.model.Width())
	if err := r.ReadBatch(grad, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestActiveJudgesByTheProblem: where a problem has a metric of its own, routes are taken by its
// cost, even if the device's lengths tell of none that is shorter.
func TestActiveJudgesByTheProblem(t *testing.T) {
	p := loadSaved(t)
	problems := drawnFor(p, 12, 2)
	problems[1].Metric = vrp.Thousandths
	eas, found := prepared(t, p, problems, "eas:1"), make([]Routed, len(problems))
	if err := eas.improve(t.Context(), problems, found, 0); err != nil {
		t.Fatal(err)
	}
	worse := []Routed{{Cost: math.Inf(1)}, {Cost: math.Inf(1)}}
	for i, prob := range problems { // routes that anything improves
		for v := 1; v <= prob.N(); v++ {
			worse[i].Solution.Routes = append(worse[i].Solution.Routes, []int32{int32(v)})
		}
	}
	if err := eas.active.take(eas.batch, problems, worse, make([]float32, len(problems)), false); err != nil {
		t.Fatal(err)
	}
	if !math.IsInf(worse[0].Cost, 1) {
		t.Errorf("routes that are no shorter are taken: %g", worse[0].Cost)
	}
	if math.IsInf(worse[1].Cost, 1) {
		t.Error("routes by another metric than the device's are passed over")
	}
}
