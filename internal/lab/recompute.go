package lab

import (
	"context"
	"errors"
	"fmt"
	"math"

	"haul/internal/kernel"
	"haul/internal/model"
	"haul/internal/plan"
	"haul/internal/rng"
)

// Sizes of the stack that is trained with and without recomputation: gated feed-forward layers of
// tiny_1's width. It has more layers than tiny_1, because recomputation is meant for deep models.
const (
	stackLayers = 8
	stackWidth  = 128
	stackBatch  = 128
	stackNodes  = 11
	stackRounds = 41
)

// stack is a deep model without a head: the gradient of its output is set to the features.
type stack struct {
	layout kernel.Layout
	embed  int
	layers []stackLayer
}

type stackLayer struct{ normG, normB, gateW, gateB, downW, downB int }

func newStack() *stack {
	s := &stack{}
	add, d := s.layout.Add, stackWidth
	s.embed = add("embed", kernel.InitUniform, 4, d, 4)
	for i := range stackLayers {
		n := func(name string) string { return fmt.Sprintf("layers.%d.%s", i, name) }
		s.layers = append(s.layers, stackLayer{
			add(n("norm.weight"), kernel.InitOne, d, d), add(n("norm.bias"), kernel.InitZero, d, d),
			add(n("gate.weight"), kernel.InitUniform, d, 4*d, d), add(n("gate.bias"), kernel.InitUniform, d, 4*d),
			add(n("down.weight"), kernel.InitUniform, 2*d, d, 2*d), add(n("down.bias"), kernel.InitUniform, 2*d, d)})
	}
	return s
}

// layer records x + down(glu(gate(norm(x)))).
func (s *stack) layer(p *plan.Plan, i int, x *kernel.Tensor) *kernel.Tensor {
	w := func(param int) *kernel.Tensor { return p.Weight(0, param) }
	l := s.layers[i]
	h := p.Norm("norm", x, w(l.normG), w(l.normB))
	u := p.GLU("glu", p.Linear("gate", h, w(l.gateW), w(l.gateB), nil))
	return p.Linear("down", u, w(l.downW), w(l.downB), x)
}

// record records a step. Without recompute every layer's activations are stored until its gradient
// is computed. With recompute only the inputs of layers are stored, and the backward pass first
// repeats the forward pass of each layer.
func (s *stack) record(dev kernel.Device, recompute bool) *plan.Plan {
	p := plan.New("stack", dev, stackBatch, stackNodes, &s.layout)
	feature := p.Drawn(kernel.Rules{Capacity: 30}, stackNodes, kernel.Drawing{Seed: 42, Purpose: rng.TrainInstances, DemandMin: 1, DemandMax: 9, Symmetries: 1}).Feature
	embed := func(name string) *kernel.Tensor { return p.Linear(name, feature, p.Weight(0, s.embed), nil, nil) }
	if !recompute {
		x := embed("embed")
		for i := range s.layers {
			x = s.layer(p, i, x)
		}
		p.SeedGrad(x, embed("seed"))
		p.Backward()
		return s.learn(p)
	}
	inputs := []*kernel.Tensor{embed("embed")}
	for i := range len(s.layers) - 1 {
		inputs = append(inputs, s.layer(p, i, inputs[i]))
	}
	grad := embed("seed")
	p.Backward() // no tensor has a gradient yet: this only clears the tape
	for i := len(s.layers) - 1; i >= 0; i-- {
		p.SeedGrad(s.layer(p, i, inputs[i]), grad)
		p.Backward()
		grad = p.Grad(inputs[i])
	}
	p.SeedGrad(embed("embed.again"), grad)
	p.Backward()
	return s.learn(p)
}

func (s *stack) learn(p *plan.Plan) *plan.Plan {
	p.Optimize(&kernel.AdamW{Beta1: 0.9, Beta2: 0.999, Eps: 1e-8}, 1)
	return p
}

// stackRun is a compiled step of the stack that has run once.
type stackRun struct {
	runner kernel.Runner
	store  kernel.Store
	bytes  int64     // activations of the whole batch
	grad   []float32 // gradient of the first step
}

func (r *stackRun) close() error { return errors.Join(r.runner.Close(), r.store.Close()) }

func (s *stack) compile(dev kernel.Device, recompute bool) (*stackRun, error) {
	store, err := dev.NewStore(&s.layout, true)
	if err != nil {
		return nil, err
	}
	if err := store.WriteWeights(model.Initial(&s.layout, 42)); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	p := s.record(dev, recompute)
	prog := p.Program()
	out := &stackRun{store: store, bytes: 4 * int64(prog.ShardLen) * int64(prog.Shards()), grad: make([]float32, s.layout.Len)}
	if out.runner, err = p.Compile(dev, store); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	if err = out.runner.Run(); err == nil {
		err = out.runner.ReadGrad(out.grad)
	}
	if err != nil {
		return nil, errors.Join(err, out.close())
	}
	return out, nil
}

// sameGradient compares two gradients of the same loss. Ops and values are the same; only sums may
// have another order.
func sameGradient(a, b []float32) error {
	top := 0.0
	for _, v := range a {
		top = math.Max(top, math.Abs(float64(v)))
	}
	for i := range a {
		if d := math.Abs(float64(a[i] - b[i])); !(d <= 1e-6*top) {
			return fmt.Errorf("gradient %d is %v with stored activations and %v with recomputed ones", i, a[i], b[i])
		}
	}
	return nil
}

func recompute(ctx context.Context, e *env, r *Result) error {
	r.note("%d layers of width %d, %d instances of %d nodes, forward, backward and update; recomputing keeps each layer's input alone", stackLayers, stackWidth, stackBatch, stackNodes)
	return e.everywhere(ctx, "", func(dev kernel.Device, name string) error { return r.recomputeOn(ctx, dev, name) })
}

func (r *Result) recomputeOn(ctx context.Context, dev kernel.Device, name string) (err error) {
	s := newStack()
	stored, err := s.compile(dev, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stored.close()) }()
	again, err := s.compile(dev, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, again.close()) }()
	if err := sameGradient(stored.grad, again.grad); err != nil {
		return err
	}
	t, err := race(ctx, stackRounds, replay(stored.runner), replay(again.runner))
	if err != nil {
		return err
	}
	r.row("s", t[0], "%s, a step with stored activations", name)
	r.row("s", t[1], "%s, a step with recomputed activations", name)
	r.row("MB", float64(stored.bytes)/1e6, "%s, activations of the batch, stored", name)
	r.row("MB", float64(again.bytes)/1e6, "%s, activations of the batch, recomputed", name)
	r.finds(direction("003", "gradient checkpointing saves memory ("+name+")"), float64(stored.bytes)/float64(again.bytes))
	r.finds(direction("003", "gradient checkpointing helps to reach the target in seconds ("+name+")"), t[0]/t[1])
	return nil
}
