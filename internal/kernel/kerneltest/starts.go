package kerneltest

import (
	"slices"
	"testing"

	"haul/internal/kernel"
	"haul/internal/plan"
)

// manyStarts are fleets of a model's own width, of at most so many nodes, with as many starts as it
// trains with: what a device may decode many at a time.
func manyStarts(nodes int) []fleet {
	var out []fleet
	for i, s := range []shape{{11, 4, 32}, {21, 8, 16}, {51, 4, 32}, {101, 8, 16}, {101, 4, 32}, {120, 4, 32}, {33, 2, 64}} {
		f := fleet{shape: s, starts: min(s.nodes-1, 100), forced: i != 1, capacity: 30 + 20*int32(i%2), temperature: []float32{1, 2.5, 0.6}[i%3]}
		if s.nodes == 120 {
			f.starts = 119 // more than a block of the GPU's holds
		}
		out = append(out, f)
		if i != 3 && i != 5 {
			f.near = 0.3
			out = append(out, f)
		}
		if i != 5 {
			if f.pairs = true; i == 1 { // alone in decisions that begin at the depot
				f.near = 0
			}
			out = append(out, f)
			if i < 5 {
				out = append(out, f.view())
			}
		}
	}
	out = append(out,
		// the depot after every customer or two
		fleet{shape: shape{12, 4, 32}, starts: 11, forced: true, capacity: heaviest, temperature: 1},
		fleet{shape: shape{12, 4, 32}, starts: 11, forced: true, capacity: heaviest, temperature: 1, pairs: true},
		fleet{shape: shape{12, 4, 32}, starts: 11, viewed: true, capacity: heaviest, temperature: 1},
		// demands past any table of them
		fleet{shape: shape{17, 8, 16}, starts: 16, forced: true, capacity: 90, temperature: 1, most: 60},
		fleet{shape: shape{9, 4, 32}, starts: 8, forced: true, capacity: 20, temperature: 1, flat: true})
	return slices.DeleteFunc(out, func(f fleet) bool { return f.nodes > nodes })
}

// rows is a batch that the reference is done with soon.
func (f fleet) rows() int {
	if f.nodes > 128 && f.nodes < 200 {
		return 2 // kernels of their own: the second instance's place counts
	}
	return max(1, 3-f.nodes/50)
}

// RunStarts runs rollouts of many starts of at most so many nodes, and the gradients of their
// decisions, alone and twice over, on devices whose matrix products round by unit. Beside the
// suite's bounds, which hold for each element, it holds whole tensors to sixteen roundings of tf32,
// whatever the unit.
func RunStarts(t *testing.T, unit float64, nodes int, open func(t *testing.T) kernel.Device) {
	parts := []part{
		{"rollout", func(t *testing.T, dev kernel.Device) { testStartsRollout(t, dev, manyStarts(nodes)) }},
		{"rollout.grad", func(t *testing.T, dev kernel.Device) { testStartsGrad(t, dev, manyStarts(nodes)) }},
	}
	run(t, parts, func(t *testing.T) kernel.Device { return rounded{Device: open(t), unit: unit} })
}

const wholeError = 16 * 0x1p-11

func testStartsRollout(t *testing.T, dev kernel.Device, fleets []fleet) {
	for _, f := range fleets {
		f.edge = edge + unitOf(dev)*f.amplify()
		for _, choice := range []kernel.Choice{kernel.Sample, kernel.Greedy} {
			c := f.rollout(dev, choice, nil)
			c.batch, c.rounds = f.rows(), true
			r, got := c.run(t, dev, false)
			if !f.valid(t, r, got) {
				continue
			}
			f.checkChoices(t, r, choice, got.ints["actions"], c.state.Instances)
			_, again := c.run(t, dev, false)
			same(t, c.what, got, again)
			replay := f.rollout(dev, kernel.Replay, got.ints["actions"])
			replay.batch, replay.rounds = f.rows(), true
			_, want := replay.run(t, reference64(), false)
			want.ints["actions"] = got.ints["actions"]
			c.compare(t, r, got, want, outcome{}, unitOf(dev))
			inAll(t, c.what, got, want, nil)
			r, got = replay.run(t, dev, false)
			replay.compare(t, r, got, want, outcome{}, unitOf(dev))
		}
	}
}

func testStartsGrad(t *testing.T, dev kernel.Device, fleets []fleet) {
	for _, f := range fleets {
		// a loss is a mean over thousands of routes; starts of one length weigh nothing
		for _, weight := range []float32{1, 1e-6, 0} {
			if weight != 1 && f.nodes > 60 {
				continue
			}
			c := f.grad(t, dev, f.rows(), weight)
			r, got := c.run(t, dev, false)
			_, again := c.run(t, dev, false)
			same(t, c.what, got, again)
			_, want := c.run(t, reference64(), false)
			c.compare(t, r, got, want, outcome{}, unitOf(dev))
			for _, of := range []outcome{got, want} {
				f.split(of)
			}
			inAll(t, c.what, got, want, func() outcome {
				coarser := c
				coarser.halved = true
				_, moved := coarser.run(t, reference64(), false)
				f.split(moved)
				return moved
			})
		}
	}
}

// grad is a trial of f's gradient on routes that the reference draws, with every weight in the loss
// times `weight`.
func (f fleet) grad(t *testing.T, dev kernel.Device, batch int, weight float32) trial {
	t.Helper()
	c := f.rollout(dev, kernel.Sample, nil)
	if batch > 0 {
		c.batch = batch
	}
	_, routes := c.run(t, reference64(), false)
	d := f.heads * f.width
	c.rounds = true
	c.control.Coefficients = bonus(0.5)
	c.record = func(r *recording) {
		dec := r.decoder(f)
		k := f.starts*f.steps() + d
		dproj := r.out("dproj", k, f.nodes, f.columns())
		var dpair, dpairContext *kernel.Tensor
		if f.pairs {
			dpair, dpairContext = columnsOf(dproj, 4*d, 6*d), r.grad(dec.PairContext, k*r.prog.Batch)
		}
		adv := r.normals("adv", r.prog.Batch*f.starts)
		for i := range adv {
			adv[i] *= weight
		}
		r.do(&kernel.RolloutGrad{Decoder: dec, DProj: dproj, DPointer: r.out("dpointer", k, f.nodes, d),
			DGraph: r.out("dgraph", k*f.nodes, d), DContext: r.grad(dec.Context, k*r.prog.Batch), DPair: dpair, DPairContext: dpairContext,
			Actions: r.givenInts("actions", routes.ints["actions"], f.starts, f.steps()),
			Steps:   r.givenInts("steps", routes.ints["steps"], f.starts),
			Adv:     r.given("adv", adv, f.starts), Weight: 0.25 * weight, Bonus: plan.EntropyBonus, Forced: f.forced, Viewed: f.viewed})
	}
	return c
}

// split leaves of the projections' gradient what the op writes, each part a tensor.
func (f fleet) split(of outcome) {
	d, all := f.heads*f.width, of.floats["dproj"]
	of.floats["dproj"] = columns(all, 0, 3*d, f.columns())
	if f.pairs {
		of.floats["dpair.query"], of.floats["dpair.key"] = columns(all, 4*d, 5*d, f.columns()), columns(all, 5*d, 6*d, f.columns())
	}
}

// columns are columns [from, to) of rows of so many values.
func columns(values []float64, from, to, stride int) []float64 {
	var out []float64
	for i := 0; i < len(values); i += stride {
		out = append(out, values[i+from:i+to]...)
	}
	return out
}

// same: a device that repeats itself gives the same bits.
func same(t *testing.T, what string, got, again outcome) {
	t.Helper()
	for name, values := range got.floats {
		if !slices.Equal(values, again.floats[name]) {
			t.Errorf("%s %s: two runs differ", what, name)
		}
	}
	for name, values := range got.ints {
		if !slices.Equal(values, again.ints[name]) {
			t.Errorf("%s %s: two runs differ", what, name)
		}
	}
}

// inAll: the error of a tensor is small beside the tensor: sixteen roundings of tf32, or three
// times what it moves by where the numbers that go in are rounded. Gradients through sharp choices
// move by eight roundings for that alone.
func inAll(t *testing.T, what string, got, want outcome, coarser func() outcome) {
	t.Helper()
	largest := 0.0
	for name, values := range want.floats {
		ratio, most := apart(got.floats[name], values), float64(wholeError)
		largest = max(largest, ratio)
		if ratio > most && coarser != nil {
			most = max(most, 3*apart(coarser().floats[name], values))
		}
		if !(ratio <= most) {
			t.Errorf("%s %s: error %.2g of the whole, bound %.2g", what, name, ratio, most)
		}
	}
	t.Logf("%s: error at most %.2g of the whole", what, largest)
}

// sizedFleets are fleets with the fewest nodes of each size that devices have kernels for, of every
// rule set, with one start and with several: of a model's own width, and of others.
func sizedFleets(exact bool) []fleet {
	var out []fleet
	add := func(f fleet, shapes ...shape) {
		for _, s := range shapes {
			f.shape, f.capacity, f.temperature = s, 60, 1
			out = append(out, f)
		}
	}
	sets := []ruled{{}, {mix: everyKind()}, {mix: everyDepots(), depots: true}, {limit: 3}, {single: true}}
	if exact {
		add(fleet{starts: 2, forced: true}, shape{11, 2, 16}, shape{20, 2, 16}, shape{40, 2, 16}, shape{60, 2, 16}, shape{110, 2, 16})
		for _, by := range sets {
			add(fleet{starts: 2, ruled: by}, shape{12, 2, 4})
		}
		add(fleet{starts: 16, forced: true}, shape{17, 2, 16})
		return out
	}
	held := []shape{{11, 4, 32}, {20, 8, 16}, {40, 4, 32}, {60, 8, 16}, {110, 4, 32}}
	add(fleet{starts: 1}, append(held, shape{110, 8, 16}, shape{130, 8, 16})...)
	add(fleet{starts: 8, forced: true}, append(held, shape{129, 8, 16})...)
	add(fleet{starts: 16, forced: true}, shape{17, 2, 16})
	for _, by := range sets[:3] {
		add(fleet{starts: 8, forced: true, pairs: true, ruled: by}, held...)
	}
	add(fleet{starts: 8, forced: true, pairs: true}, shape{129, 4, 32})
	for _, by := range sets {
		add(fleet{starts: 1, pairs: true, ruled: by}, shape{17, 4, 32}, shape{140, 8, 16})
		add(fleet{starts: 8, forced: true, ruled: by}, shape{140, 4, 32})
	}
	return out
}

// RunSizes decodes sizedFleets once and differentiates their decisions once, and runs attention at
// the sizes that devices have kernels for. All are compared with the reference. On devices that
// round by 0 it runs what their precision has kernels of its own for.
func RunSizes(t *testing.T, unit float64, open func(t *testing.T) kernel.Device) {
	fleets := sizedFleets(unit == 0)
	attention := []shape{{20, 8, 16}, {40, 4, 32}, {97, 2, 16}, {113, 1, 32}, {129, 2, 16}, {140, 2, 16}, {140, 2, 8}}
	if unit == 0 {
		attention = append(attention, shape{1500, 1, 8}) // more than shared memory holds
	}
	run(t, []part{
		{"attention", func(t *testing.T, dev kernel.Device) { attentionOf(t, dev, attention) }},
		{"rollout", func(t *testing.T, dev kernel.Device) {
			for _, f := range fleets {
				f.edge = edge + unitOf(dev)*f.amplify()
				c := f.rollout(dev, kernel.Sample, nil)
				c.batch, c.rounds = 2, true
				r, got := c.run(t, dev, false)
				if !f.valid(t, r, got) {
					continue
				}
				f.checkChoices(t, r, kernel.Sample, got.ints["actions"], c.state.Instances)
				replay := f.rollout(dev, kernel.Replay, got.ints["actions"])
				replay.batch, replay.rounds = 2, true
				_, want := replay.run(t, reference64(), false)
				want.ints["actions"] = got.ints["actions"]
				c.compare(t, r, got, want, outcome{}, unitOf(dev))
			}
		}},
		{"rollout.grad", func(t *testing.T, dev kernel.Device) {
			for _, f := range fleets {
				c := f.grad(t, dev, 2, 1)
				r, got := c.run(t, dev, false)
				_, want := c.run(t, reference64(), false)
				c.compare(t, r, got, want, outcome{}, unitOf(dev))
			}
		}},
	}, func(t *testing.T) kernel.Device { return rounded{Device: open(t), unit: unit} })
}
