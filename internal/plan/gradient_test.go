package plan_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"haul/internal/kernel"
	"haul/internal/kernel/reference"
	"haul/internal/model"
	"haul/internal/plan"
	"haul/internal/rng"
)

// gtTape is a training step of the graph transformer on replayed actions with a given baseline: the
// loss is a smooth function of the weights.
type gtTape struct {
	forward, both *reference.Runner[float64] // the loss only; the loss and its gradient
	store         *reference.Store[float64]
	layout        *kernel.Layout
}

const (
	gtBatch, gtNodes = 5, 6
	gtEntropy        = 0.7
)

// begins is the type of a start: forced, viewed or neither.
type begins string

const (
	free   begins = "free"
	forced begins = "forced"
	viewed begins = "viewed"
)

func newGTTape(t *testing.T, dropout float32, starts int, begin begins, pairs bool) *gtTape {
	t.Helper()
	dev := reference.New[float64](2)
	m, err := model.NewGT(model.GTConfig{Width: 6, Heads: 2, Layers: 2, FeedMul: 2, Pairs: pairs, Dropout: dropout, DropoutKey: 5})
	if err != nil {
		t.Fatal(err)
	}
	store, _ := dev.NewStore(m.Layout(), true)
	if err := store.WriteWeights(scattered(m.Layout())); err != nil {
		t.Fatal(err)
	}
	actions := drawActions(t, dev, m, store, starts, begin, dropout > 0)
	record := func(gradient bool) *reference.Runner[float64] {
		p := plan.New("gradient", dev, gtBatch, gtNodes, m.Layout())
		dec := m.Encode(p, 0, generate(p), true)
		replay := p.RowInts("replayed", p.B(), starts, 2*gtNodes)
		r := p.Rollout("policy", dec, plan.RolloutSpec{Choice: kernel.Replay, Starts: starts, Forced: begin == forced, Viewed: begin == viewed, Actions: replay}, rng.Actions)
		adv, base := p.Advantage(r, kernel.Given, p.Rows("given", p.B(), 1), 0, plan.Comparison{})
		if gradient {
			p.PolicyGradient(r, adv)
			p.Backward()
		}
		p.TallyRoutes(r, adv, base)
		run := compile(t, p, dev, store)
		if err := run.WriteBatch(replay, actions); err != nil {
			t.Fatal(err)
		}
		if err := run.WriteBatch(base, []float32{2, 1.5, 2.5, 1, 3}); err != nil {
			t.Fatal(err)
		}
		return run
	}
	return &gtTape{record(false), record(true), store.(*reference.Store[float64]), m.Layout()}
}

// scattered moves every parameter away from the symmetric initial values one and zero.
func scattered(l *kernel.Layout) []float32 {
	w := model.Initial(l, 3)
	r := rand.New(rand.NewPCG(1, 2))
	for _, p := range l.Params {
		for i := range p.Len() {
			w[p.Offset+i] += float32(r.NormFloat64()) * 0.3
		}
	}
	return w
}

func generate(p *plan.Plan) model.Instances {
	return p.Drawn(kernel.Rules{Capacity: 12}, gtNodes, kernel.Drawing{Seed: 9, Purpose: rng.TrainInstances, DemandMin: 1, DemandMax: 9, Symmetries: 1})
}

func compile(t *testing.T, p *plan.Plan, dev kernel.Device, store kernel.Store) *reference.Runner[float64] {
	t.Helper()
	run, err := p.Compile(dev, store)
	if err != nil {
		t.Fatal(err)
	}
	control := kernel.Control{Temperature: 1.3, Coefficients: map[string]float32{}}
	for _, name := range p.Program().Coefficients() {
		control.Coefficients[name] = gtEntropy
	}
	if err := run.SetControl(control); err != nil {
		t.Fatal(err)
	}
	return run.(*reference.Runner[float64])
}

func drawActions(t *testing.T, dev kernel.Device, m *model.Network, store kernel.Store, starts int, begin begins, dropout bool) []int32 {
	t.Helper()
	p := plan.New("draw", dev, gtBatch, gtNodes, m.Layout())
	dec := m.Encode(p, 0, generate(p), dropout)
	r := p.Rollout("policy", dec, plan.RolloutSpec{Choice: kernel.Sample, Starts: starts, Forced: begin == forced, Viewed: begin == viewed, MaxStep: 2 * gtNodes,
		Keep: true, Seed: 4}, rng.Actions)
	run := compile(t, p, dev, store)
	step(t, run)
	actions := make([]int32, gtBatch*starts*2*gtNodes)
	if err := run.ReadBatch(r.Actions, actions); err != nil {
		t.Fatal(err)
	}
	return actions
}

// step runs once; the instances are the same in every call.
func step(t *testing.T, run kernel.Runner) {
	t.Helper()
	if err := run.SetState(kernel.State{Instances: 8}); err != nil {
		t.Fatal(err)
	}
	if err := run.Run(); err != nil {
		t.Fatal(err)
	}
}

func (g *gtTape) loss(t *testing.T) float64 {
	t.Helper()
	step(t, g.forward)
	m, _ := g.forward.TakeMetrics()
	return m.Sum(plan.SumLoss)
}

// A central difference with step h has an error of h²·f‴/6, plus the rounding of the loss,
// 2⁻⁵³·|f|/h. After a dropout f‴ reaches 6e3 for a loss of order one: with h = 3e-6 the first is
// 1e-8 and the second below 1e-10.
const (
	difference = 3e-6
	allowed    = 1e-8
)

func TestGradientOfGT(t *testing.T) {
	for _, c := range []struct {
		dropout float32
		starts  int
		begin   begins
		pairs   bool
		every   int // stride between the weights that are tested; 5 does not divide a row or head
	}{{0, 1, free, false, 1}, {0, 3, forced, false, 5}, {0.25, 2, free, false, 5}, {0, 2, forced, true, 1}, {0, 3, viewed, false, 5}, {0, 2, viewed, true, 5}} {
		t.Run(fmt.Sprintf("dropout=%v/starts=%d/%s/pairs=%v", c.dropout, c.starts, c.begin, c.pairs), func(t *testing.T) {
			g := newGTTape(t, c.dropout, c.starts, c.begin, c.pairs)
			step(t, g.both)
			differ(t, g.layout, g.store.Weights(), g.both.Grad(), c.every, func() float64 { return g.loss(t) })
		})
	}
}

// differ compares a gradient with central differences of the loss, for each parameter.
func differ(t *testing.T, l *kernel.Layout, w, got []float64, every int, loss func() float64) {
	t.Helper()
	for _, p := range l.Params {
		worst, size := 0.0, 0.0
		for i := p.Offset; i < p.Offset+p.Len(); i += every {
			was := w[i]
			w[i] = was + difference
			up := loss()
			w[i] = was - difference
			down := loss()
			w[i] = was
			want := (up - down) / (2 * difference)
			worst = max(worst, math.Abs(got[i]-want))
			size = max(size, math.Abs(want))
		}
		if size == 0 {
			t.Errorf("%s: the loss does not depend on it", p.Name)
		}
		if worst > allowed*(1+size) {
			t.Errorf("%s: gradient is off by %.2g, its largest element is %.2g", p.Name, worst, size)
		}
	}
}
