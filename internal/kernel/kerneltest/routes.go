package kerneltest

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"haul/internal/kernel"
	"haul/internal/kernel/reference"
	"haul/internal/rng"
)

// fleet is a rollout on random projections: any decoder will do, so long as every device reads the
// same.
type fleet struct {
	shape
	starts      int
	forced      bool
	viewed      bool
	capacity    int32
	temperature float32
	near        float32 // kernel.Decoder's
	pairs       bool    // with scores of pairs
	flat        bool    // pointer keys of zero: every logit ties
	most        int32   // the largest demand; 0: heaviest
	ruled               // the rule set, and by what it is drawn
	// how near to a boundary of the distribution a device may choose the other side; 0: edge
	edge float64
}

const (
	heaviest    = 9
	pairContext = "pair_context"
)

func (f fleet) String() string {
	s := fmt.Sprintf("N=%d H=%d W=%d S=%d forced=%v capacity=%d T=%v near=%v flat=%v", f.nodes, f.heads, f.width, f.starts, f.forced, f.capacity, f.temperature, f.near, f.flat)
	if f.pairs {
		s += " pairs"
	}
	if f.viewed {
		s += " viewed"
	}
	if f.ruled != (ruled{}) {
		s += " " + f.rules().Set.String()
	}
	return s
}

// columns is the width of the projections: what a decoder reads, the pointer's source, and the
// parts of pairs.
func (f fleet) columns() int {
	if f.pairs {
		return 6 * f.heads * f.width
	}
	return 4 * f.heads * f.width
}

// tour is start s's before its first step.
func (f fleet) tour(d *reference.Decoder[float64], s int) *reference.Tour {
	tour := d.Depart()
	if f.viewed {
		tour.View(s + 1)
	}
	return tour
}

func (f fleet) steps() int { return f.rules().Set.MaxSteps(f.nodes - f.rules().Set.Nodes(0)) }

// amplify: a logit is Clip/temperature times a number of order one, behind two softmaxes whose
// scores reach a few units; its absolute error is the relative error of a probability.
func (f fleet) amplify() float64 { return 4 * kernel.Clip / float64(f.temperature) }

func fleets() []fleet {
	var out []fleet
	all := shapes()
	for i, s := range all {
		f := fleet{shape: s, starts: 1 + i%3, capacity: heaviest + int32(i%3)*12, temperature: []float32{1, 2.5, 0.6}[i%3]}
		if i%2 == 1 {
			f.forced, f.starts = true, min(s.nodes-1, 5)
		}
		if s.nodes > 20 {
			f.starts = 2
		}
		out = append(out, f)
		if i%2 == 0 {
			f.near = 0.4
			out = append(out, f)
		} else if s.nodes <= 20 {
			out = append(out, f.view())
		}
		if i%5 == 1 && s.nodes <= 20 || i >= len(all)-4 { // the last are models'
			if f.pairs = true; i%3 == 0 {
				f.near = 0
			}
			out = append(out, f)
		}
	}
	// starts and nodes past 64
	wide := fleet{shape: shape{67, 1, 3}, starts: 66, forced: true, capacity: 90, temperature: 1}
	tied := fleet{shape: shape{9, 2, 4}, starts: 2, capacity: 20, temperature: 1, flat: true}
	paired := wide // as many starts with pairs are manyStarts's, for devices that decode them together
	paired.pairs, paired.starts = true, 9
	return append(append(out, wide, tied, paired, paired.view()), ruledFleets()...)
}

// view is the same with starts that are viewed instead of forced.
func (f fleet) view() fleet {
	f.forced, f.viewed = false, true
	return f
}

// demands are 0 at the depot and 1..most elsewhere.
func (r *recording) demands(most int32) []int32 {
	values := make([]int32, r.prog.Batch*r.nodes)
	for i, v := range r.normals("demand", len(values)) {
		if i%r.nodes != 0 {
			values[i] = 1 + int32(math.Abs(float64(v))*100)%most
		}
	}
	return values
}

// decoder records inputs for f; Proj is wider than what a decoder reads, and Pair are columns of
// it, as a model has them.
func (r *recording) decoder(f fleet) kernel.Decoder {
	d := f.heads * f.width
	rules := f.rules()
	seen := len(rules.Set.Context())
	dec := kernel.Decoder{Instances: kernel.Instances{Rules: rules, PosX: r.places("x", f), PosY: r.places("y", f)},
		Proj: r.in("proj", f.nodes, f.columns()), Graph: r.in("graph", d), Context: r.weight("context", seen*d), Heads: f.heads, Near: f.near}
	dec.Nodes = r.nodeWords(f, max(f.most, heaviest))
	if f.pairs {
		dec.Pair, dec.PairContext = columnsOf(dec.Proj, 4*d, 6*d), r.weight(pairContext, seen*d)
	}
	if f.flat {
		dec.Pointer = r.given("pointer", make([]float32, r.prog.Batch*f.nodes*d), f.nodes, d)
	} else {
		dec.Pointer = r.in("pointer", f.nodes, d)
	}
	return dec
}

// rollout is a trial of f under a choice; with Replay and Extend the actions are given.
func (f fleet) rollout(dev kernel.Device, choice kernel.Choice, actions []int32) trial {
	return trial{what: "rollout " + f.String(), nodes: f.nodes, batch: few(dev, f.nodes), amplify: f.amplify(),
		control: kernel.Control{Temperature: f.temperature}, state: kernel.State{Instances: 1<<33 + 5},
		record: func(r *recording) {
			o := &kernel.Rollout{Decoder: r.decoder(f), Steps: r.outInts("steps", f.starts), Length: r.out("length", f.steps(), f.starts),
				LogProb: r.out("logprob", f.steps()+f.heads*f.width, f.starts), Entropy: r.out("entropy", f.steps()+f.heads*f.width, f.starts),
				Choice: choice, Forced: f.forced, Viewed: f.viewed, Seed: 77, Purpose: rng.Actions}
			switch choice {
			case kernel.Replay:
				o.Actions = r.givenInts("actions", actions, f.starts, f.steps())
			case kernel.Extend:
				o.Actions = r.givenInts("actions", actions, f.starts, f.steps())
				r.outputs = append(r.outputs, output{o.Actions, 0})
			default:
				o.Actions = r.outInts("actions", f.starts, f.steps())
			}
			r.do(o)
		}}
}

// testRollout lets the device choose, checks every choice, and compares the numbers on its own
// routes.
func testRollout(t *testing.T, dev kernel.Device) {
	for i, f := range fleets() {
		if !tries(dev, i) {
			continue
		}
		for _, choice := range []kernel.Choice{kernel.Sample, kernel.Greedy} {
			c := f.rollout(dev, choice, nil)
			r, got := c.run(t, dev, false)
			actions := got.ints["actions"]
			if !f.valid(t, r, got) {
				continue
			}
			f.checkChoices(t, r, choice, actions, c.state.Instances)
			replay := f.rollout(dev, kernel.Replay, actions)
			_, want := replay.run(t, reference64(), false)
			want.ints["actions"] = actions
			c.compare(t, r, got, want, outcome{}, 0)
			r, got = replay.run(t, dev, false)
			replay.compare(t, r, got, want, outcome{}, 0)
		}
	}
}

// testExtend takes the ends off sampled routes, each at another place: the beginnings must stay,
// and what follows must be the policy's most likely nodes.
func testExtend(t *testing.T, dev kernel.Device) {
	for i, f := range fleets() {
		if !tries(dev, i) {
			continue
		}
		sampled := f.rollout(dev, kernel.Sample, nil)
		_, whole := sampled.run(t, dev, false)
		actions, cuts := slices.Clone(whole.ints["actions"]), slices.Clone(whole.ints["steps"])
		for row, steps := range cuts {
			cuts[row] = int32((5*row + 1) % (int(steps) + 1))
			for k := int(cuts[row]); k < f.steps(); k++ {
				actions[row*f.steps()+k] = -1
			}
		}
		if f.forced {
			for row := range cuts {
				actions[row*f.steps()] = int32(row%f.starts + 1)
			}
		}
		c := f.rollout(dev, kernel.Extend, actions)
		r, got := c.run(t, dev, false)
		if !f.valid(t, r, got) {
			continue
		}
		ends := r.key("ends", f, got.ints["actions"], cuts)
		_, approved := approvals.Load(ends)
		for row, cut := range cuts {
			made := got.ints["actions"][row*f.steps():][:f.steps()]
			if given := actions[row*f.steps():][:cut]; !slices.Equal(made[:cut], given) {
				t.Errorf("%s: row %d begins %v, it was given %v", c.what, row, made[:cut], given)
			}
			if !approved {
				f.checkEnd(t, r, row, made, int(cut))
			}
		}
		if !t.Failed() {
			approvals.Store(ends, true)
		}
		_, want := c.run(t, reference64(), false)
		if slices.Equal(got.ints["actions"], want.ints["actions"]) { // a near tie may go either way
			c.compare(t, r, got, want, outcome{}, 0)
		}
	}
}

// checkEnd asks the reference about every action of a row from the cut on.
func (f fleet) checkEnd(t *testing.T, r *recording, row int, actions []int32, cut int) {
	t.Helper()
	d := f.decoderOf(r, row/f.starts)
	tour := f.tour(d, row%f.starts)
	for step := 0; !tour.Done(); step++ {
		if step >= cut && (step > 0 || !f.forced) {
			says := d.Decide(tour)
			if at := slices.Index(says.Allowed, int(actions[step])); !defensible(says, kernel.Greedy, at, 0, f.flat, max(edge, f.edge)) {
				t.Errorf("%s: row %d step %d: took node %d of %v with probabilities %v", r.what, row, step, actions[step], says.Allowed, says.Prob)
				return
			}
		}
		tour.Visit(int(actions[step]))
	}
}

func value[T any](r *recording, name string) []T {
	for _, in := range r.inputs {
		if in.t.Name == name {
			return in.values.([]T)
		}
	}
	panic("kerneltest: no input " + name)
}

// valid lets the validator check every route and its length.
func (f fleet) valid(t *testing.T, r *recording, got outcome) bool {
	t.Helper()
	actions, steps, b := got.ints["actions"], got.ints["steps"], f.batch(r)
	stride := f.steps() + 1
	for s := range f.starts {
		tours := make([]int32, b.B*stride)
		for i := range b.B {
			row := i*f.starts + s
			tour := tours[i*stride:][:stride]
			copy(tour[1:], actions[row*f.steps():][:f.steps()])
			end := int(steps[row]) + 1
			if err := b.Validate(i, tour[:end]); err != nil {
				t.Errorf("%s: instance %d start %d: %v", r.what, i, s, err)
				return false
			}
			if slices.Max(tour[end-1:]) > 0 {
				t.Errorf("%s: instance %d start %d: actions after the end are not zero", r.what, i, s)
				return false
			}
			if f.forced && tour[1] != int32(s+1) {
				t.Errorf("%s: instance %d start %d begins at %d", r.what, i, s, tour[1])
				return false
			}
		}
		costs := make([]float32, b.B)
		b.Costs(costs, tours, stride)
		for i := range costs {
			if f.mix != 0 {
				costs[i] = b.Cost(i, tours[i*stride:][:stride])
			}
		}
		for i, cost := range costs {
			length := got.floats["length"][i*f.starts+s]
			if math.Abs(length-float64(cost)) > bound(f.steps(), length) {
				t.Errorf("%s: instance %d start %d: length %v, cvrp says %v", r.what, i, s, length, cost)
				return false
			}
		}
	}
	return true
}

// edge is how near to a boundary of the distribution a device in fp32 may choose the other side.
const edge = 1e-5

// checkChoices walks every route and asks the reference what it would have done at each step.
func (f fleet) checkChoices(t *testing.T, r *recording, choice kernel.Choice, actions []int32, first uint64) {
	t.Helper()
	key := r.key("choices", f, choice, actions, first)
	if _, ok := approvals.Load(key); ok {
		return
	}
	for i := range r.prog.Batch {
		d := f.decoderOf(r, i)
		for s := range f.starts {
			row := actions[(i*f.starts+s)*f.steps():][:f.steps()]
			tour := f.tour(d, s)
			for step, action := range row {
				if tour.Done() {
					break
				}
				if step > 0 || !f.forced {
					says := d.Decide(tour)
					at := slices.Index(says.Allowed, int(action))
					u := float64(reference.Uniform(77, first+uint64(i), s, step, rng.Actions))
					if !defensible(says, choice, at, u, f.flat, max(edge, f.edge)) {
						t.Errorf("%s: instance %d start %d step %d: took node %d of %v with probabilities %v, uniform %v", r.what, i, s, step, action, says.Allowed, says.Prob, u)
						return
					}
				}
				tour.Visit(int(action))
			}
		}
	}
	approvals.Store(key, true)
}

// defensible: the choice is the reference's, or the reference is within an edge of it.
func defensible(says reference.Decision[float64], choice kernel.Choice, at int, u float64, flat bool, edge float64) bool {
	if choice == kernel.Greedy {
		return flat && at == 0 || !flat && says.Prob[at] >= slices.Max(says.Prob)-edge
	}
	before := 0.0
	for _, p := range says.Prob[:at] {
		before += p
	}
	return before-edge <= u && u < before+says.Prob[at]+edge
}

// decoderOf is instance i's inputs as the reference reads them.
func (f fleet) decoderOf(r *recording, i int) *reference.Decoder[float64] {
	d, rules := f.heads*f.width, f.rules()
	seen, words := len(rules.Set.Context()), f.nodes*len(rules.Set.Columns())
	part := func(name string, n int) []float64 { return widen(value[float32](r, name)[i*n:][:n]) }
	proj := reference.Matrix[float64]{Data: part("proj", f.nodes*f.columns()), Rows: f.nodes, Cols: f.columns(), Stride: f.columns()}
	out := &reference.Decoder[float64]{
		Proj:    proj,
		Pointer: reference.Matrix[float64]{Data: part("pointer", f.nodes*d), Rows: f.nodes, Cols: d, Stride: d},
		Graph:   part("graph", d), Context: widen(r.weights[:seen*d]), PosX: part("x", f.nodes), PosY: part("y", f.nodes),
		Rules: rules, Nodes: value[int32](r, "nodes")[i*words:][:words], Heads: f.heads,
		Near: float64(f.near), Temperature: float64(f.temperature)}
	if f.pairs {
		out.Pair = reference.Matrix[float64]{Data: proj.Data[4*d:], Rows: f.nodes, Cols: 2 * d, Stride: proj.Stride}
		at := slices.IndexFunc(r.prog.Layout.Params, func(p kernel.Param) bool { return p.Name == pairContext })
		out.PairContext = widen(r.weights[r.prog.Layout.Params[at].Offset:][:seen*d])
	}
	return out
}

func testRolloutGrad(t *testing.T, dev kernel.Device) {
	for i, f := range fleets() {
		if !tries(dev, i) {
			continue
		}
		f.grad(t, dev, 0, 1).try(t, dev)
	}
}
