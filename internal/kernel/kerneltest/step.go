package kerneltest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"haul/internal/kernel"
	"haul/internal/model"
	"haul/internal/plan"
	"haul/internal/rng"
)

// step is a whole training step of the graph transformer.
type step struct {
	model.GTConfig
	nodes, batch int
	mode         kernel.BaselineMode
	starts       int
	forced       bool
	viewed       bool
	by           plan.Comparison
	side         int                 // of Muon's blocks
	flips        func(k int) float64 // of the device on trial
}

// bound is the suite's bound, with what operands at a tie of the device's rounding may add.
func (s step) bound(k int, size float64) float64 { return bound(k, size) + s.flips(k)*size }

func (s step) String() string {
	return fmt.Sprintf("step D=%d N=%d B=%d baseline=%d S=%d forced=%v viewed=%v dropout=%v by=%v", s.Width, s.nodes, s.batch, s.mode, s.starts, s.forced, s.viewed, s.Dropout, s.by)
}

// trainer is a step compiled for one device.
type trainer struct {
	run    kernel.Runner
	store  kernel.Store
	layout *kernel.Layout
	routes *plan.Routes
	adv    *kernel.Tensor
}

const (
	stepRate = 1e-3
	// of Adam: large, so that a small gradient's rounding is not blown up to a whole step
	stepEps     = 1e-2
	temperature = 1.5
)

// on records the step for dev. A step that replays reads its actions from a Batch tensor.
func (s step) on(t *testing.T, dev kernel.Device, choice kernel.Choice) *trainer {
	t.Helper()
	m, err := model.NewGT(s.GTConfig)
	check(t, err)
	p := plan.New("step", dev, s.batch, s.nodes, m.Layout())
	p.SetGroupSize(s.by.Group)
	b := p.B()
	in := p.Drawn(kernel.Rules{Capacity: 15}, s.nodes, kernel.Drawing{Seed: 6, Purpose: rng.TrainInstances, Grid: 100, DemandMin: 1, DemandMax: 9, Symmetries: max(1, s.by.Group)})
	var base *kernel.Tensor
	if s.mode == kernel.Given {
		frozen := m.Encode(p, 1, in, false)
		base = p.Rollout("frozen", frozen, plan.RolloutSpec{Choice: kernel.Greedy, Starts: 1, MaxStep: 2 * s.nodes}, rng.Actions).Length
	}
	spec := plan.RolloutSpec{Choice: choice, Starts: s.starts, Forced: s.forced, Viewed: s.viewed, MaxStep: 2 * s.nodes, Seed: 8, Keep: true}
	if choice == kernel.Replay {
		spec.Actions = p.RowInts("replayed", b, s.starts, 2*s.nodes)
	}
	tr := &trainer{layout: m.Layout()}
	tr.routes = p.Rollout("policy", m.Encode(p, 0, in, true), spec, rng.Actions)
	tr.adv, base = p.Advantage(tr.routes, s.mode, base, 0.8, s.by)
	p.PolicyGradient(tr.routes, tr.adv)
	p.Backward()
	r := tr.routes
	p.TallyRoutes(r, tr.adv, base)
	p.Optimize(&kernel.AdamW{Beta1: beta1, Beta2: beta2, Eps: stepEps, Decay: 0.01, MaxNorm: 0.5, Warmup: 2, Side: s.side}, 1)
	tr.store, err = dev.NewStore(m.Layout(), true)
	check(t, err)
	weights := model.Initial(m.Layout(), 2)
	random := rand.New(rand.NewPCG(3, 4))
	for i, param := range m.Layout().Params {
		for e := range param.Len() {
			weights[param.Offset+e] += float32(random.NormFloat64()) * 0.05 * float32(1+i%2)
		}
	}
	check(t, tr.store.WriteWeights(weights))
	frozen, err := dev.NewStore(m.Layout(), false)
	check(t, err)
	check(t, frozen.CopyWeights(tr.store))
	tr.run, err = p.Compile(dev, tr.store, frozen)
	check(t, err)
	check(t, tr.run.SetControl(kernel.Control{LearningRate: stepRate, Temperature: temperature, Coefficients: bonus(0.05)}))
	return tr
}

// bonus is the control block with a coefficient of the entropy.
func bonus(v float32) map[string]float32 { return map[string]float32{plan.EntropyBonus: v} }

func (s step) trajectories() int { return s.batch * s.starts }

// read returns a [B,S] result.
func (s step) read(t *testing.T, tr *trainer, tensor *kernel.Tensor) []float64 {
	t.Helper()
	return readBatch(t, tr.run, tensor, s.trajectories())
}

func testStep(t *testing.T, dev kernel.Device) {
	small := model.GTConfig{Width: 12, Heads: 3, Layers: 2, FeedMul: 2, DropoutKey: 21}
	dropped := small
	dropped.Dropout = 0.2
	batch := batchFor(dev, 7)
	for i, s := range []step{
		{GTConfig: small, nodes: 7, batch: batch, mode: kernel.SharedMean, starts: 6, forced: true},
		{GTConfig: dropped, nodes: 7, batch: batch, mode: kernel.SharedMean, starts: 3},
		{GTConfig: small, nodes: 7, batch: batch, mode: kernel.SharedMean, starts: 6, forced: true, by: plan.Comparison{By: kernel.Standard}},
		{GTConfig: small, nodes: 7, batch: batch, mode: kernel.SharedMean, starts: 6, forced: true, by: plan.Comparison{By: kernel.Preference, Alpha: 0.5}},
		{GTConfig: small, nodes: 7, batch: batchOf(dev, 7, 8), mode: kernel.SharedMean, starts: 6, forced: true,
			by: plan.Comparison{By: kernel.Preference, Alpha: 0.5, Leader: 3, Alone: true, Group: 8}},
		{GTConfig: small, nodes: 7, batch: batch, mode: kernel.SharedMean, starts: 6, viewed: true, by: plan.Comparison{By: kernel.Preference, Alpha: 0.5}},
		{GTConfig: dropped, nodes: 7, batch: batch, mode: kernel.Given, starts: 1},
		{GTConfig: small, nodes: 7, batch: batch, mode: kernel.Given, starts: 2, forced: true},
		{GTConfig: small, nodes: 7, batch: batch, mode: kernel.Running, starts: 1},
		{GTConfig: model.GTConfig{Width: 128, Heads: 4, Layers: 3, FeedMul: 2}, nodes: 11, batch: 4, mode: kernel.SharedMean, starts: 10, forced: true},
	} {
		if tries(dev, i) {
			s.compare(t, dev)
		}
	}
}

// compare lets the reference sample, replays its routes on dev, and compares three steps; one on a
// device that rounds operands, since weights that differ a little round to different sides more
// often than the bound allows for.
func (s step) compare(t *testing.T, dev kernel.Device) {
	t.Helper()
	s.flips = func(k int) float64 { return flips(dev, k) }
	want, got := s.on(t, referenceFor(dev), kernel.Sample), s.on(t, dev, kernel.Replay)
	defer got.run.Close()
	actions := make([]int32, s.trajectories()*2*s.nodes)
	steps := 3
	if flips(dev, 1) > 0 {
		steps = 1
	}
	for i := range steps {
		what := fmt.Sprintf("%v, step %d:", s, i)
		check(t, want.run.Run())
		check(t, want.run.ReadBatch(want.routes.Actions, actions))
		check(t, got.run.WriteBatch(got.routes.Actions, actions))
		check(t, got.run.Run())
		s.compareResults(t, what, got, want)
		s.compareGradients(t, what, got, want)
		s.compareMetrics(t, what, got, want)
		if t.Failed() {
			return
		}
	}
}

// amplification of the whole network: each layer passes on the relative error of the one before,
// and the logits multiply by Clip/temperature.
func (s step) amplification() float64 { return float64(2*s.Layers+2) * kernel.Clip / temperature }

func (s step) compareResults(t *testing.T, what string, got, want *trainer) {
	t.Helper()
	k := s.Width + 2*s.nodes
	for _, c := range []struct {
		name      string
		got, want *kernel.Tensor
		amplify   float64
	}{
		{"length", got.routes.Length, want.routes.Length, 1},
		{"logprob", got.routes.LogProb, want.routes.LogProb, s.amplification()},
		{"entropy", got.routes.Entropy, want.routes.Entropy, s.amplification()},
		{"advantage", got.adv, want.adv, 1},
	} {
		w := s.read(t, want, c.want)
		compare(t, what+" "+c.name, s.read(t, got, c.got), w, func(int) float64 { return s.bound(k, largest(w)*c.amplify) })
	}
}

// compareGradients holds every parameter's gradient, by name, to the scale of its own largest
// element, but no finer than a hundredth of the largest of all: what cancels to less carries the
// rounding of what it cancelled.
func (s step) compareGradients(t *testing.T, what string, got, want *trainer) {
	t.Helper()
	g, w := make([]float32, got.layout.Len), make([]float32, got.layout.Len)
	check(t, got.run.ReadGrad(g))
	check(t, want.run.ReadGrad(w))
	top := span(widen(w))
	gw, ww := make([]float32, len(g)), make([]float32, len(g))
	check(t, got.store.ReadWeights(gw))
	check(t, want.store.ReadWeights(ww))
	for _, p := range got.layout.Params {
		part := func(flat []float32) []float64 { return widen(flat[p.Offset:][:p.Len()]) }
		size := max(span(part(w)), top/100)
		off := s.bound(s.trajectories()*s.nodes, size*s.amplification())
		compare(t, what+" gradient of "+p.Name, part(g), part(w), func(int) float64 { return off })
		// A weight moves by rate·m̂/(√v̂+eps), so an error of the gradient moves it by at most
		// rate·10/eps times as much.
		moved := part(ww)
		compare(t, what+" weights "+p.Name, part(gw), moved, func(i int) float64 {
			return 3*(stepRate*10/stepEps*off+stepRate*epsilon/(1-beta2)) + bound(3, math.Abs(moved[i]))
		})
	}
}

func span(values []float64) float64 {
	m := 0.0
	for _, v := range values {
		m = max(m, math.Abs(v))
	}
	return m
}

func (s step) compareMetrics(t *testing.T, what string, got, want *trainer) {
	t.Helper()
	g, err := got.run.TakeMetrics()
	check(t, err)
	w, err := want.run.TakeMetrics()
	check(t, err)
	n := float64(s.trajectories())
	near := func(name string, got, want, size float64) {
		t.Helper()
		compare(t, what+" "+name, []float64{got}, []float64{want}, func(int) float64 { return s.bound(s.Width+2*s.nodes, size*s.amplification()) })
	}
	for name, size := range map[string]float64{plan.SumCost: n, plan.SumLogCost: n, plan.SumBaseline: n, plan.SumEntropy: n, plan.SumLoss: 1} {
		near(name, g.Sum(name), w.Sum(name), size)
	}
	near("gradient norm", g.GradNorm, w.GradNorm, 1)
	if g.Steps != w.Steps || g.Steps != 1 || g.Sum(kernel.SumRows) != n || g.Sum(kernel.SumDecodes) != w.Sum(kernel.SumDecodes) || w.Sum(kernel.SumDecodes) == 0 || g.BadStep != w.BadStep {
		t.Errorf("%s metrics %+v, want %+v", what, g, w)
	}
	gs, err := got.run.State()
	check(t, err)
	ws, err := want.run.State()
	check(t, err)
	if s.mode == kernel.Running {
		near("running baseline", gs.Scalars[plan.MeanCost], ws.Scalars[plan.MeanCost], 1)
		gs.Scalars[plan.MeanCost] = ws.Scalars[plan.MeanCost]
	}
	if !reflect.DeepEqual(gs, ws) {
		t.Errorf("%s state %+v, want %+v", what, gs, ws)
	}
}

// testBadStep puts a weight out of range and expects the step to be refused, named and kept
// refused.
func testBadStep(t *testing.T, dev kernel.Device) {
	s := step{GTConfig: model.GTConfig{Width: 8, Heads: 2, Layers: 2, FeedMul: 2}, nodes: 6, batch: batchFor(dev, 6), mode: kernel.SharedMean, starts: 2, forced: true}
	tr := s.on(t, dev, kernel.Sample)
	defer tr.run.Close()
	check(t, tr.run.Run())
	if bad, err := tr.run.FirstBad(); err != nil || bad != "" {
		t.Errorf("a good step: FirstBad says %q, %v", bad, err)
	}
	weights := make([]float32, tr.layout.Len)
	check(t, tr.store.ReadWeights(weights))
	for _, p := range tr.layout.Params {
		if p.Name == "layers.1.gate.weight" {
			weights[p.Offset] = float32(math.NaN())
		}
	}
	check(t, tr.store.WriteWeights(weights))
	before, err := tr.run.State()
	check(t, err)
	for range 2 {
		check(t, tr.run.Run())
	}
	const want = "linear, result layers.1.gate"
	if bad, err := tr.run.FirstBad(); err != nil || bad != want {
		t.Errorf("FirstBad says %q, %v; want %q", bad, err, want)
	}
	for range 2 {
		if m, err := tr.run.TakeMetrics(); err != nil || m.BadStep != int64(before.Step)+1 {
			t.Errorf("bad step %d, %v; want %d, also after it was read", m.BadStep, err, before.Step+1)
		}
	}
	after, err := tr.run.State()
	check(t, err)
	if after.Step != before.Step || after.Beta1T != before.Beta1T || after.Instances != before.Instances+2*uint64(s.batch) {
		t.Errorf("state %+v after two refused steps from %+v", after, before)
	}
	kept := make([]float32, len(weights))
	check(t, tr.store.ReadWeights(kept))
	for i, w := range weights {
		if math.Float32bits(kept[i]) != math.Float32bits(w) {
			t.Fatalf("weight %d moved from %v to %v in a refused step", i, w, kept[i])
		}
	}
}
