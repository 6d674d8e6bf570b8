package kerneltest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"haul/internal/kernel"
)

// classify records classifiers over n tokens. Logits are multiples of a half, so that classes tie
// often and the lowest must win; about a third of the tokens have no label.
func classify(r *recording, n int, columns []int, smoothing float32, learn bool) *kernel.CrossEntropy {
	width := 0
	for _, c := range columns {
		width += c
	}
	logits := r.normals("logits", r.prog.Batch*n*width)
	for i, v := range logits {
		logits[i] = float32(math.Round(2*float64(v)) / 2)
	}
	random := rand.New(rand.NewPCG(uint64(n), uint64(width)))
	labels := make([]int32, r.prog.Batch*n*len(columns))
	for i := range labels {
		labels[i] = int32(random.IntN(columns[i%len(columns)]))
		if random.IntN(3) == 0 {
			labels[i] = -1
		}
	}
	o := &kernel.CrossEntropy{Logits: r.given("logits", logits, n, width), Labels: r.givenInts("labels", labels, n, len(columns)),
		Sums: r.out("sums", n+width, 3*len(columns)), Columns: columns, Smoothing: smoothing, Weight: 0.3}
	if learn {
		o.DLogits = r.out("dlogits", width, n, width)
	}
	r.do(o)
	return o
}

func testCrossEntropy(t *testing.T, dev kernel.Device) {
	heads := [][]int{{2}, {5, 3}, {1, 4}, {33, 3}, {9}, {17, 70}}
	for n := 1; n <= 40; n++ {
		if !tries(dev, n) {
			continue
		}
		columns, smoothing := heads[n%len(heads)], []float32{0, 0.1}[n%2]
		// A loss is a score and a log-sum apart, both of a few units.
		c := trial{nodes: n, amplify: 4}
		for _, learn := range []bool{true, false} {
			c.what, c.record = fmt.Sprintf("crossentropy T=%d C=%v smoothing=%v learn=%v", n, columns, smoothing, learn), func(r *recording) {
				classify(r, n, columns, smoothing, learn)
			}
			c.try(t, dev)
		}
	}
}

// paidTokens are rows of n tokens for ImplicitQ: sequences of one to seven tokens end to end, about
// a sixth of them markers, about a fifth of the records without an action. An index has a reward, a
// type and a field that nothing reads.
func paidTokens(n, batch, actions, rewards int) (labels, index, first []int32) {
	random := rand.New(rand.NewPCG(uint64(n), uint64(actions)))
	for range batch {
		begin, left := 0, 0
		for t := range n {
			if left--; left < 0 {
				begin, left = t, random.IntN(7)
			}
			action, kind, reward := int32(random.IntN(actions)), int32(kernel.TypeRecord), int32(random.IntN(rewards))
			switch random.IntN(6) {
			case 0:
				action, kind, reward = -1, kernel.TypeStart+int32(random.IntN(2)), -1
			case 1:
				action = -1
			}
			labels, index, first = append(labels, action, kind), append(index, reward, 7, kind), append(first, int32(begin))
		}
	}
	return labels, index, first
}

// testImplicitQ also lets a cross-entropy be weighed by what the values leave.
func testImplicitQ(t *testing.T, dev kernel.Device) {
	for n := 1; n <= 24; n++ {
		actions, gains := 1+n%6, []float32{-0.5, 0, 1}
		// A weight is an exponential of three times the distance of values of a few units.
		c := trial{what: fmt.Sprintf("implicitq T=%d A=%d", n, actions), nodes: n, amplify: 16}
		c.record = func(r *recording) {
			labels, index, first := paidTokens(n, r.prog.Batch, actions, len(gains))
			values := r.normals("values", r.prog.Batch*n*(2*actions+1))
			if n%3 == 0 { // so much better than expected that the exponential is past fp32
				values[0], values[actions], values[2*actions] = 60, 60, 0
			}
			given := r.givenInts("labels", labels, n, 2)
			o := &kernel.ImplicitQ{DValues: r.out("dvalues", 4, n, 2*actions+1), Values: r.given("values", values, n, 2*actions+1), Labels: given,
				Index: r.givenInts("index", index, n, 3), First: r.givenInts("first", first, n), Weigh: r.out("weigh", 4, n),
				Sums: r.out("sums", 4*n, kernel.ImplicitSums), Gain: 0, Type: 2, Gains: gains, Discount: 0.8, Expectile: 0.85, Slope: 3, Most: 20, Weight: 0.25}
			r.do(o)
			r.do(&kernel.CrossEntropy{DLogits: r.out("dlogits", actions, n, actions+3), Logits: r.in("logits", n, actions+3), Labels: given, Weigh: o.Weigh,
				Sums: r.out("loss", n+actions, 6), Columns: []int{actions, 3}, Smoothing: 0.1, Weight: 0.3})
		}
		c.try(t, dev)
	}
}

// testTallyHeads adds up two steps of one and of two classifiers, by columns of what the loss
// leaves.
func testTallyHeads(t *testing.T, dev kernel.Device) {
	for _, columns := range [][]int{{4}, {5, 3}} {
		const n = 6
		what := fmt.Sprintf("tally of heads C=%v", columns)
		c := trial{what: what, nodes: n, batch: batchFor(dev, n)}
		c.record = func(r *recording) {
			o := classify(r, n, columns, 0.1, true)
			tally := &kernel.Tally{}
			for i := range o.Sums.Cols() {
				tally.Sums = append(tally.Sums, kernel.NewSum(fmt.Sprint(i), columnsOf(o.Sums, i, i+1), nil))
			}
			r.prog.Once = append(r.prog.Once, tally)
		}
		tally := func(dev kernel.Device) kernel.Metrics {
			run := c.on(dev, false).start(t, dev)
			defer run.Close()
			check(t, run.Run())
			check(t, run.Run())
			m, err := run.TakeMetrics()
			check(t, err)
			return m
		}
		got, want := tally(dev), tally(reference64())
		if len(got.Sums.Names()) != 3*len(columns) {
			t.Errorf("%s: sums %v", what, got.Sums)
		}
		for g := range columns {
			at := func(m kernel.Metrics, i int) float64 { return m.Sum(fmt.Sprint(3*g + i)) }
			loss := at(want, 0)
			if at(want, 1) == 0 || at(got, 1) != at(want, 1) || at(got, 2) != at(want, 2) || math.Abs(at(got, 0)-loss) > bound(n, 4*loss) {
				t.Errorf("%s: head %d: %v, want %v", what, g, got.Sums, want.Sums)
			}
		}
		if got.Steps != want.Steps {
			t.Errorf("%s: %d steps, want %d", what, got.Steps, want.Steps)
		}
	}
}

// ratios lie on both sides of a clip at 1±0.2, none near it: a device may round across.
var ratios = []float64{0.4, 0.75, 0.85, 0.95, 1, 1.1, 1.15, 1.3, 2}

func testPPO(t *testing.T, dev kernel.Device) {
	for actions := 1; actions <= 20; actions++ {
		if !tries(dev, actions) {
			continue
		}
		// Some instances have several rows. The ratio is an exponential of two scores of a few units.
		tokens, of, four := 1, []int{actions + 1}, []int{4}
		if actions%4 != 1 {
			tokens = actions
			of, four = []int{tokens, actions + 1}, []int{tokens, 4}
		}
		c := trial{what: fmt.Sprintf("ppo T=%d A=%d", tokens, actions), nodes: tokens, batch: 2*len(ratios) + 1, amplify: 8}
		c.record = func(r *recording) {
			rows := r.prog.Batch * tokens
			out := r.normals("out", rows*(actions+1))
			sample := r.normals("sample", rows*4)
			for b := range rows {
				row, s := out[b*(actions+1):][:actions], sample[4*b:][:4]
				action, sum := b%actions, 0.0
				for _, z := range row {
					sum += math.Exp(float64(z))
				}
				s[0], s[1] = float32(action), float32(float64(row[action])-math.Log(sum)-math.Log(ratios[b%len(ratios)]))
				// with an odd number of ratios, each meets both signs
				s[2] = float32(math.Copysign(float64(s[2]), float64(b%2)-0.5))
			}
			// An action that was next to impossible and is likely: its ratio is past float32, and its
			// advantage of 0 times that must be 0.
			last := sample[4*(rows-1):]
			last[1], last[2] = last[1]-200, 0
			r.do(&kernel.PPO{DOut: r.out("dout", actions, of...), Out: r.given("out", out, of...), Sample: r.given("sample", sample, four...),
				Sums: r.out("sums", actions, 4*tokens), Clip: 0.2, ValueCoef: 0.5, EntropyCoef: 0.02, Weight: 0.25})
		}
		c.try(t, dev)
	}
}
