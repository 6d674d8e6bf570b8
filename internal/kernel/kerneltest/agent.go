package kerneltest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"haul/internal/kernel"
	"haul/internal/kernel/reference"
	"haul/internal/model"
	"haul/internal/plan"
	"haul/internal/rng"
)

// agent is a whole training step of the in-context agent.
type agent struct {
	model.ADConfig
	tokens, batch int
	compressed    bool
	smoothing     float32
	// rows are drawn on the device from its copy of the histories; otherwise the host writes them
	drawn bool
}

const agentRoom, agentActions = 5, 5

func (a agent) String() string {
	return fmt.Sprintf("agent D=%d H=%d/%d L=%d F=%d T=%d B=%d compressed=%v dropout=%v rotary=%v", a.Width, a.Heads, a.KVHeads, a.Layers, a.Feed, a.tokens, a.batch, a.compressed, a.Dropout, a.Rotary)
}

// spec draws rows in which sequences end and begin.
func (a agent) spec() kernel.RegionSpec {
	return model.Transitions(kernel.RegionSpec{Streams: 4, Steps: 20 * max(3, a.tokens), Horizon: 3, Tokens: a.tokens, Compressed: a.compressed, Shortest: 2, Longest: 8, Ahead: 2, Seed: 31, Purpose: rng.Regions}, 2)
}

// pupil is a step compiled for one device.
type pupil struct {
	agent
	run          kernel.Runner
	store        kernel.Store
	layout       *kernel.Layout
	in           model.Sequences
	logits, sums *kernel.Tensor
}

// scatter gives weights that are all away from ones and zeros.
func scatter(l *kernel.Layout) []float32 {
	weights := model.Initial(l, 2)
	random := rand.New(rand.NewPCG(3, 4))
	for _, param := range l.Params {
		for e := range param.Len() {
			weights[param.Offset+e] += float32(random.NormFloat64()) * 0.1
		}
	}
	return weights
}

// on records the step for dev.
func (a agent) on(t *testing.T, dev kernel.Device) *pupil {
	t.Helper()
	a.Positions, a.Observed, a.Actions, a.Rewards, a.DropoutKey = a.tokens, model.Sizes(agentRoom, agentRoom), agentActions, 2, 12
	m, err := model.NewAD(a.ADConfig)
	check(t, err)
	p := plan.New("agent", dev, a.batch, a.tokens, m.Layout())
	b := p.B()
	q := &pupil{agent: a, layout: m.Layout()}
	spec := a.spec()
	check(t, spec.Check())
	var history *kernel.Tensor
	if a.drawn {
		q.in = model.Sequences{Index: p.ShardInts("index", b, a.tokens, model.TokenFields(2)), Labels: p.ShardInts("labels", b, a.tokens, 2), First: p.ShardInts("first", b, a.tokens)}
		history = p.Whole("history", spec.Streams*spec.Steps)
		p.Append(&kernel.Regions{Index: q.in.Index, Labels: q.in.Labels, First: q.in.First, Records: history, RegionSpec: spec})
	} else {
		q.in = model.Sequences{Index: p.RowInts("index", b, a.tokens, model.TokenFields(2)), Labels: p.RowInts("labels", b, a.tokens, 2), First: p.RowInts("first", b, a.tokens)}
	}
	logits := m.Encode(p, q.in, true)
	q.logits = p.Rows("kept", logits.Shape...)
	p.Append(&kernel.Dropout{Y: q.logits, X: logits})
	q.sums = p.CrossEntropy("loss", logits, q.in.Labels, m.Columns(), a.smoothing, true)
	p.Backward()
	p.TallyHeads(q.sums, m.Heads()...)
	p.Optimize(&kernel.AdamW{Beta1: beta1, Beta2: beta2, Eps: stepEps, Decay: 0.01, MaxNorm: 1, Warmup: 1, Total: 10, Floor: 0.1}, 1)
	q.store, err = dev.NewStore(m.Layout(), true)
	check(t, err)
	check(t, q.store.WriteWeights(scatter(m.Layout())))
	q.run, err = p.Compile(dev, q.store)
	check(t, err)
	check(t, q.run.SetControl(kernel.Control{LearningRate: stepRate, Temperature: 1}))
	if a.drawn {
		check(t, q.run.WriteBatch(history, histories(&spec, agentRoom, agentActions)))
	}
	return q
}

// ints are the rows from global index `first` on: index, labels, first of each token.
func (a agent) ints(first uint64) [3][]int32 {
	spec := a.spec()
	history := histories(&spec, agentRoom, agentActions)
	n := a.tokens
	out := [3][]int32{make([]int32, a.batch*n*model.TokenFields(2)), make([]int32, a.batch*n*2), make([]int32, a.batch*n)}
	for b := range a.batch {
		reference.Row(&spec, out[0][b*n*model.TokenFields(2):][:n*model.TokenFields(2)], out[1][b*n*2:][:2*n], out[2][b*n:][:n], history, first+uint64(b))
	}
	return out
}

// tensors are what ints fills.
func (q *pupil) tensors() []*kernel.Tensor {
	return []*kernel.Tensor{q.in.Index, q.in.Labels, q.in.First}
}

func (q *pupil) write(t *testing.T, rows [3][]int32) {
	t.Helper()
	for i, tensor := range q.tensors() {
		check(t, q.run.WriteBatch(tensor, rows[i]))
	}
}

func (q *pupil) weights(t *testing.T) []float32 {
	t.Helper()
	out := make([]float32, q.layout.Len)
	check(t, q.store.ReadWeights(out))
	return out
}

func (q *pupil) gradient(t *testing.T) []float32 {
	t.Helper()
	out := make([]float32, q.layout.Len)
	check(t, q.run.ReadGrad(out))
	return out
}

// readLogits returns [batch·tokens, columns].
func (q *pupil) readLogits(t *testing.T) []float64 {
	t.Helper()
	return readBatch(t, q.run, q.logits, q.batch*q.tokens*q.logits.Cols())
}

// agents are steps of several shapes. A device that takes a batch whole may join a layer's ops, in
// blocks of rows: the last of them is more than one block and no whole number of them.
func agents(dev kernel.Device) []agent {
	out := []agent{
		{ADConfig: model.ADConfig{Width: 16, Heads: 2, Layers: 2, Feed: 24}, tokens: 13, compressed: true, batch: batchFor(dev, 13)},
		{ADConfig: model.ADConfig{Width: 32, Heads: 2, Layers: 1, Feed: 64, Dropout: 0.1, AttentionDropout: 0.2}, tokens: 37, compressed: true, smoothing: 0.1, batch: few(dev, 37)},
		{ADConfig: model.ADConfig{Width: 64, Heads: 2, Layers: 2, Feed: 128, Dropout: 0.3}, tokens: 21, smoothing: 0.05, batch: few(dev, 21)},
		{ADConfig: model.ADConfig{Width: 128, Heads: 8, Layers: 2, Feed: 512, Dropout: 0.1, AttentionDropout: 0.1}, tokens: 41, compressed: true, batch: 3, drawn: true},
		{ADConfig: model.ADConfig{Width: 128, Heads: 4, Layers: 2, Feed: 64, Dropout: 0.1, AttentionDropout: 0.1, Rotary: true}, tokens: 29, compressed: true, batch: few(dev, 29)},
		{ADConfig: model.ADConfig{Width: 64, Heads: 4, KVHeads: 2, Layers: 2, Feed: 64, Dropout: 0.1, AttentionDropout: 0.1}, tokens: 23, compressed: true, batch: few(dev, 23)},
		{ADConfig: model.ADConfig{Width: 48, Heads: 6, KVHeads: 1, Layers: 1, Feed: 64, Rotary: true}, tokens: 17, compressed: true, batch: few(dev, 17)},
	}
	if dev.ShardSize(41) == kernel.WholeBatch {
		out = append(out, agent{ADConfig: model.ADConfig{Width: 128, Heads: 8, Layers: 3, Feed: 512}, tokens: 41, compressed: true, batch: 7, drawn: true},
			agent{ADConfig: model.ADConfig{Width: 128, Heads: 8, KVHeads: 2, Layers: 2, Feed: 512, Dropout: 0.1, AttentionDropout: 0.1}, tokens: 41, compressed: true, batch: 7, drawn: true},
			agent{ADConfig: model.ADConfig{Width: 512, Heads: 8, Layers: 1, Feed: 64}, tokens: 13, compressed: true, batch: 3}) // sums of 1,536 terms
	}
	return out
}

// apart is the distance of two tensors as a share of want's length.
func apart(got, want []float64) float64 {
	var d, n float64
	for i, w := range want {
		d += (got[i] - w) * (got[i] - w)
		n += w * w
	}
	return math.Sqrt(d / max(n, math.SmallestNonzeroFloat64))
}

// allowed is how far a whole tensor may be off, as a share of its length. On the way to it, and
// back, a value is rounded in each of the 6 products, 2 norms and 1 attention of every layer, and
// the squares of independent roundings add. Each is eight deviations of a sum in fp32, as
// everywhere; and where a device rounds operands, two of its units: a rounding deviates by 1/√3 of
// one.
func (a agent) allowed(dev kernel.Device) float64 {
	roundings := 2 * 9 * float64(a.Layers)
	return (8*epsilon*math.Sqrt(float64(a.Feed+a.tokens)) + 2*unitOf(dev)) * math.Sqrt(roundings)
}

func testAgent(t *testing.T, dev kernel.Device) {
	for i, a := range agents(dev) {
		if !tries(dev, i) {
			continue
		}
		got, want := a.on(t, dev), a.on(t, reference64())
		for i := range 3 {
			what := fmt.Sprintf("%v, step %d:", a, i)
			if !a.drawn {
				rows := a.ints(uint64(i * a.batch))
				got.write(t, rows)
				want.write(t, rows)
			}
			check(t, got.run.Run())
			check(t, want.run.Run())
			a.compareStep(t, what, got, want, a.allowed(dev))
			if t.Failed() {
				break
			}
		}
		check(t, got.run.Close())
	}
}

// compareStep holds logits, losses, every gradient by name and what the optimizer made of them.
func (a agent) compareStep(t *testing.T, what string, got, want *pupil, share float64) {
	t.Helper()
	near := func(name string, g, w []float64, share float64) {
		t.Helper()
		if d := apart(g, w); !(d <= share) {
			t.Errorf("%s %s: off by %.2g of its length, bound %.2g", what, name, d, share)
		}
	}
	near("logits", got.readLogits(t), want.readLogits(t), share)
	n := a.batch * got.sums.Cols()
	losses := func(q *pupil) (out []float64) {
		for i, v := range readBatch(t, q.run, q.sums, n) {
			if i%3 == 0 {
				out = append(out, v)
			}
		}
		return out
	}
	near("losses", losses(got), losses(want), share)
	g, w := got.gradient(t), want.gradient(t)
	gw, ww := got.weights(t), want.weights(t)
	for _, p := range got.layout.Params {
		part := func(flat []float32) []float64 { return widen(flat[p.Offset:][:p.Len()]) }
		near("gradient of "+p.Name, part(g), part(w), share)
		// Of the gradient's error Adam passes on at most rate·10/eps, three steps of it.
		moved, size := part(ww), span(part(w))*math.Sqrt(float64(p.Len()))
		off := 3 * stepRate * (10/stepEps*share*size + epsilon/(1-beta2))
		compare(t, what+" weights "+p.Name, part(gw), moved, func(i int) float64 { return off + bound(3, math.Abs(moved[i])) })
	}
	a.compareTally(t, what, got, want, share)
}

func (a agent) compareTally(t *testing.T, what string, got, want *pupil, share float64) {
	t.Helper()
	g, err := got.run.TakeMetrics()
	check(t, err)
	w, err := want.run.TakeMetrics()
	check(t, err)
	for _, head := range []string{model.HeadAction, model.HeadType} {
		a, b := plan.HeadOf(g, head), plan.HeadOf(w, head)
		// A hit is decided by logits that may lie within their error of each other: about that share of
		// the labels, and three deviations.
		ties := share * float64(b.Labels)
		if a.Labels != b.Labels || math.Abs(float64(a.Hits-b.Hits)) > ties+3*math.Sqrt(ties) || math.Abs(a.Loss-b.Loss) > share*b.Loss {
			t.Errorf("%s head %s: %+v, want %+v", what, head, a, b)
		}
	}
	if math.Abs(g.GradNorm-w.GradNorm) > share*w.GradNorm || g.Steps != w.Steps || g.BadStep != w.BadStep {
		t.Errorf("%s metrics %+v, want %+v", what, g, w)
	}
	gs, err := got.run.State()
	check(t, err)
	ws, err := want.run.State()
	check(t, err)
	if !reflect.DeepEqual(gs, ws) {
		t.Errorf("%s state %+v, want %+v", what, gs, ws)
	}
}

// testAgentCausality changes one token of every row and expects all outputs before it, and of other
// sequences, to keep their bits.
func testAgentCausality(t *testing.T, dev kernel.Device) {
	for i, a := range agents(dev)[:3] {
		if !tries(dev, i) {
			continue
		}
		q := a.on(t, dev)
		rows := a.ints(0)
		logits := func() []float64 {
			q.write(t, rows)
			check(t, q.store.WriteWeights(scatter(q.layout)))
			check(t, q.run.SetState(kernel.State{}))
			check(t, q.run.Run())
			return q.readLogits(t)
		}
		before, index := logits(), slices.Clone(rows[0])
		for token := 0; token < a.tokens; token += 1 + a.tokens/12 {
			for b := range a.batch {
				fields := rows[0][(b*a.tokens+token)*model.TokenFields(2):]
				fields[0] = (fields[0]+2)%(agentRoom+1) - 1
				fields[2+model.AfterReward] = (fields[2+model.AfterReward]+2)%3 - 1
			}
			sees := func(m int) bool {
				return m%a.tokens >= token && rows[2][m] == rows[2][m-m%a.tokens+token]
			}
			unmoved(t, fmt.Sprintf("%v, token %d changed", a, token), before, logits(), q.logits.Cols(), sees)
			copy(rows[0], index)
		}
		check(t, q.run.Close())
	}
}

// testAgentCached walks an agent through a row token by token, with the past in caches, and expects
// the logits of the whole row.
func testAgentCached(t *testing.T, dev kernel.Device) {
	tried := append([]agent{{ADConfig: model.ADConfig{Width: 32, Heads: 8, KVHeads: 2, Layers: 2, Feed: 24, Rotary: true}, tokens: 21, batch: few(dev, 21)}}, agents(dev)[:3]...)
	tried = append(tried, agent{ADConfig: model.ADConfig{Width: 24, Heads: 2, Layers: 2, Feed: 24, Rotary: true}, tokens: 19, batch: few(dev, 19)},
		agent{ADConfig: model.ADConfig{Width: 64, Heads: 4, KVHeads: 1, Layers: 1, Feed: 64}, tokens: 18, batch: few(dev, 18)})
	for i, a := range tried {
		if !tries(dev, i) {
			continue
		}
		a.Dropout, a.AttentionDropout, a.compressed = 0, 0, false // one sequence a row
		whole := a.on(t, reference64())
		rows := a.ints(0)
		whole.write(t, rows)
		check(t, whole.run.Run())
		all, columns := whole.readLogits(t), whole.logits.Cols()

		m, err := model.NewAD(whole.ADConfig)
		check(t, err)
		p := plan.New("walk", dev, a.batch, 1, m.Layout())
		index, at := p.RowInts("index", p.B(), 1, model.TokenFields(2)), p.RowInts("at", p.B(), 1)
		logits := m.Step(p, index, at, nil, a.tokens)
		kept := p.Rows("kept", logits.Shape...)
		p.Append(&kernel.Dropout{Y: kept, X: logits})
		store, err := dev.NewStore(m.Layout(), false)
		check(t, err)
		check(t, store.WriteWeights(scatter(m.Layout())))
		run, err := p.Compile(dev, store)
		check(t, err)
		walked := make([][]float64, a.tokens)
		for i := range a.tokens {
			token, where, want := make([]int32, a.batch*model.TokenFields(2)), make([]int32, a.batch), make([]float64, a.batch*columns)
			for b := range a.batch {
				where[b] = int32(i)
				copy(token[b*model.TokenFields(2):][:model.TokenFields(2)], rows[0][(b*a.tokens+i)*model.TokenFields(2):])
				copy(want[b*columns:][:columns], all[(b*a.tokens+i)*columns:])
			}
			check(t, run.WriteBatch(index, token))
			check(t, run.WriteBatch(at, where))
			check(t, run.Run())
			walked[i] = readBatch(t, run, kept, a.batch*columns)
			if d := apart(walked[i], want); !(d <= a.allowed(dev)) {
				t.Errorf("%v, cached token %d: logits off by %.2g of their length, bound %.2g", a, i, d, a.allowed(dev))
			}
		}
		check(t, run.Close())
		if dev.ShardSize(1) == kernel.WholeBatch {
			walkShared(t, dev, m, store, a, rows[0], walked)
		}
	}
}

// walkShared reads one sequence with all rows of the batch, as many tokens at a time, and expects
// the bits of a walk token by token, in whichever row a token stood.
func walkShared(t *testing.T, dev kernel.Device, m *model.AD, store kernel.Store, a agent, tokens []int32, walked [][]float64) {
	p := plan.New("share", dev, a.batch, 1, m.Layout())
	index, at, of := p.RowInts("index", p.B(), 1, model.TokenFields(2)), p.RowInts("at", p.B(), 1), p.RowInts("of", p.B(), 1)
	logits := m.Step(p, index, at, of, a.tokens)
	logits.Space = kernel.Batch
	run, err := p.Compile(dev, store)
	check(t, err)
	asker := run.(kernel.Asker)
	ask, err := asker.NewAsk([]*kernel.Tensor{index, at, of}, logits)
	check(t, err)
	n, columns := model.TokenFields(2), logits.Cols()
	for _, b := range []int{0, a.batch - 1} {
		check(t, asker.Asking(ask, func(step func() error) error {
			for i := 0; i < a.tokens; i += a.batch {
				for r := range a.batch {
					row := (b + r) % a.batch
					if i+r >= a.tokens { // a context that nobody reads
						ask.In[1][row], ask.In[2][row] = 0, int32(row)
						continue
					}
					ask.In[1][row], ask.In[2][row] = int32(i+r), int32(b)
					copy(ask.In[0][row*n:][:n], tokens[(b*a.tokens+i+r)*n:])
				}
				if err := step(); err != nil {
					return err
				}
				for r := range min(a.batch, a.tokens-i) {
					row := (b + r) % a.batch
					for c, want := range walked[i+r][b*columns:][:columns] {
						if got := float64(ask.Out[row*columns+c]); got != want {
							t.Errorf("%v, token %d of sequence %d in row %d: logit %d is %v, by itself it is %v", a, i+r, b, row, c, got, want)
							return nil
						}
					}
				}
			}
			return nil
		}))
	}
	check(t, run.Close())
}
