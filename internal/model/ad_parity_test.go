package model_test

import (
	"testing"

	"haul/internal/kernel"
	"haul/internal/model"
	"haul/internal/plan"
)

// taught is a training step of the agent on the fixture's rows.
type taught struct {
	layout       *kernel.Layout
	run          kernel.Runner
	logits, sums *kernel.Tensor
	batch        int
}

func teach(t *testing.T, dev kernel.Device, f fixture, rotary bool) *taught {
	t.Helper()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	number := func(key string) int { return int(f.number(key)) }
	batch, tokens := number("batch"), number("tokens")
	kv := 0
	if f.Metadata["kv"] != "" {
		kv = number("kv")
	}
	m, err := model.NewAD(model.ADConfig{Width: number("width"), Heads: number("heads"), KVHeads: kv, Layers: number("layers"), Feed: number("feed"),
		Positions: tokens, Rotary: rotary,
		Observed: []model.Vocabulary{{Name: "x", Size: number("size")}, {Name: "y", Size: number("size")}}, Actions: number("actions"), Rewards: 2})
	check(err)
	p := plan.New("parity", dev, batch, tokens, m.Layout())
	b := p.B()
	in := model.Sequences{Index: p.RowInts("index", b, tokens, model.TokenFields(2)), Labels: p.RowInts("labels", b, tokens, 2), First: p.RowInts("first", b, tokens)}
	logits := m.Encode(p, in, true)
	r := &taught{layout: m.Layout(), batch: batch, logits: p.Rows("kept", logits.Shape...)}
	p.Append(&kernel.Dropout{Y: r.logits, X: logits})
	r.sums = p.CrossEntropy("loss", logits, in.Labels, m.Columns(), float32(f.number("smoothing")), true)
	p.Backward()
	p.TallyHeads(r.sums, m.Heads()...)
	p.Optimize(&kernel.AdamW{Beta1: f.number("beta1"), Beta2: f.number("beta2"), Eps: float32(f.number("eps")), Decay: float32(f.number("decay")),
		MaxNorm: float32(f.number("clip")), Warmup: number("warmup"), Total: number("total"), Floor: float32(f.number("floor"))}, 1)
	store, err := dev.NewStore(m.Layout(), true)
	check(err)
	check(store.WriteWeights(f.weights(plain, m.Layout())))
	r.run, err = p.Compile(dev, store)
	check(err)
	check(r.run.SetControl(kernel.Control{LearningRate: float32(f.number("rate")), Temperature: 1}))
	for tensor, name := range map[*kernel.Tensor]string{in.Index: "index", in.Labels: "labels", in.First: "first"} {
		check(r.run.WriteBatch(tensor, f.ints(name)))
	}
	return r
}

func (r *taught) read(t *testing.T, x *kernel.Tensor) []float32 {
	t.Helper()
	out := make([]float32, x.Len()/x.Shape[0]*r.batch)
	if err := r.run.ReadBatch(x, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// Tolerances, as fractions of a tensor's largest value. Logits pass two layers like the graph
// transformer's results; a gradient passes them twice, without decisions. An update passes on a
// gradient's error as a fraction of the step. Ten updates change the loss by a third, each with an
// error of this size. The exact device still rounds rate, decay and eps to float32.
const (
	toleranceADGradient   = 2 * toleranceResult
	toleranceTrained      = 10 * toleranceResult
	toleranceTrainedExact = 1e-6
)

// The agent's logits, losses and all gradients by name, then ten AdamW steps with warm-up, cosine
// and clipping, on every instruction set.
func TestADParityWithPyTorch(t *testing.T) {
	t.Run("learned", func(t *testing.T) { adParity(t, "ad_parity.safetensors", false) })
	t.Run("rotary", func(t *testing.T) { adParity(t, "ad_rotary_parity.safetensors", true) })
	t.Run("grouped", func(t *testing.T) { adParity(t, "ad_grouped_parity.safetensors", true) })
}

func adParity(t *testing.T, file string, rotary bool) {
	f := loadFixture(t, file)
	for name, open := range parityDevices() {
		t.Run(name, func(t *testing.T) {
			dev, err := open()
			if err != nil {
				t.Fatal(err)
			}
			defer dev.Close()
			result, gradient, trained := toleranceResult, toleranceADGradient, toleranceTrained
			if name == exactDevice {
				result, gradient, trained = toleranceExact, toleranceExact, toleranceTrainedExact
			}
			r := teach(t, dev, f, rotary)
			defer r.run.Close()
			var losses, norms []float32
			for i := range f.floats("train.loss") {
				if err := r.run.Run(); err != nil {
					t.Fatal(err)
				}
				if i == 0 {
					r.compareFirst(t, f, result, gradient)
				}
				m, err := r.run.TakeMetrics()
				if err != nil {
					t.Fatal(err)
				}
				losses = append(losses, float32((plan.HeadOf(m, model.HeadAction).Loss+plan.HeadOf(m, model.HeadType).Loss)/(f.number("batch")*f.number("tokens"))))
				norms = append(norms, float32(m.GradNorm))
			}
			if d := apart(losses, f.floats("train.loss")); !(d <= trained) {
				t.Errorf("losses of ten steps: %v, want %v: apart by %.2g, %.2g allowed", losses, f.floats("train.loss"), d, trained)
			}
			if d := apart(norms, f.floats("train.norm")); !(d <= 10*trained) {
				t.Errorf("gradient norms of ten steps: %v, want %v: apart by %.2g, %.2g allowed", norms, f.floats("train.norm"), d, 10*trained)
			}
		})
	}
}

func (r *taught) compareFirst(t *testing.T, f fixture, result, gradient float64) {
	t.Helper()
	if d := apart(r.read(t, r.logits), f.floats("logits")); !(d <= result) {
		t.Errorf("logits: apart by %.2g of the largest, %.2g allowed", d, result)
	}
	var losses []float32
	for i, v := range r.read(t, r.sums) {
		if i%3 == 0 {
			losses = append(losses, v)
		}
	}
	if d := apart(losses, f.floats("sums")); !(d <= result) {
		t.Errorf("losses: apart by %.2g of the largest, %.2g allowed", d, result)
	}
	flat := make([]float32, r.layout.Len)
	if err := r.run.ReadGrad(flat); err != nil {
		t.Fatal(err)
	}
	for _, q := range r.layout.Params {
		if d := apart(flat[q.Offset:][:q.Len()], f.floats("grad."+q.Name)); !(d <= gradient) {
			t.Errorf("gradient of %s: apart by %.2g of the largest, %.2g allowed", q.Name, d, gradient)
		}
	}
}
