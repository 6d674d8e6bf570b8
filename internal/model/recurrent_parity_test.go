package model_test

import (
	"math"
	"testing"

	"haul/internal/kernel"
	"haul/internal/kernel/cpu"
	"haul/internal/kernel/reference"
	"haul/internal/model"
	"haul/internal/plan"
)

// TestRecurrentParity: logits, values, final units, the loss and all gradients equal those of the
// same network with PyTorch's nn.GRU, on the reference and on a CPU.
func TestRecurrentParity(t *testing.T) {
	f := loadFixture(t, "recurrent_parity.safetensors")
	size := func(key string) int { return int(f.number(key)) }
	batch, steps := size("batch"), size("steps")
	m := model.NewRecurrent(size("inputs"), size("rows"), size("embed"), 0, size("hidden"), size("actions"))
	fast, err := cpu.Open(cpu.Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer fast.Close()
	for _, dev := range []kernel.Device{reference.New[float64](2), fast} {
		near := func(what string, got, want []float32) {
			t.Helper()
			if len(got) != len(want) || len(got) == 0 {
				t.Fatalf("%s: %s has %d numbers, PyTorch %d", dev.Name(), what, len(got), len(want))
			}
			for i, v := range want {
				if !(math.Abs(float64(got[i]-v)) <= 2e-6*(1+math.Abs(float64(v)))) {
					t.Fatalf("%s: %s[%d] is %v, PyTorch has %v", dev.Name(), what, i, got[i], v)
				}
			}
		}
		store, err := dev.NewStore(m.Layout(), true)
		if err != nil {
			t.Fatal(err)
		}
		if err := store.WriteWeights(f.weights("weights.", m.Layout())); err != nil {
			t.Fatal(err)
		}
		p := plan.New("parity", dev, batch, 1, m.Layout())
		index, units := p.RowInts("index", p.B(), steps*size("inputs"), 1), p.Rows("units", p.B(), m.Hidden)
		sample := p.Rows("sample", p.B(), steps, 4)
		out := plan.Keep(m.Record(p, index, nil, units, true))
		spec := kernel.PPO{Clip: float32(f.number("clip")), ValueCoef: float32(f.number("value")), EntropyCoef: float32(f.number("entropy"))}
		sums := p.PPO(out, sample, spec)
		p.Backward()
		p.Optimize(&kernel.AdamW{Beta1: 0.9, Beta2: 0.999, Eps: 1e-8}, 1)
		run, err := p.Compile(dev, store)
		if err != nil {
			t.Fatal(err)
		}
		for tensor, values := range map[*kernel.Tensor]any{index: f.ints("index"), units: f.floats("units"), sample: f.floats("sample")} {
			if err := run.WriteBatch(tensor, values); err != nil {
				t.Fatal(err)
			}
		}
		if err := run.Run(); err != nil {
			t.Fatal(err)
		}
		for name, tensor := range map[string]*kernel.Tensor{"out": out, "last": units} {
			want := f.floats(name)
			got := make([]float32, len(want))
			if err := run.ReadBatch(tensor, got); err != nil {
				t.Fatal(err)
			}
			near(name, got, want)
		}
		got := make([]float32, 4*batch*steps)
		if err := run.ReadBatch(sums, got); err != nil {
			t.Fatal(err)
		}
		loss := 0.0
		for i, v := range got {
			loss += float64(v) / float64(batch*steps) * []float64{1, float64(spec.ValueCoef), -float64(spec.EntropyCoef), 0}[i/steps%4]
		}
		if math.Abs(loss-f.number("loss")) > 1e-6 {
			t.Errorf("%s: a loss of %v, PyTorch has %v", dev.Name(), loss, f.number("loss"))
		}
		grad := make([]float32, m.Layout().Len)
		if err := run.ReadGrad(grad); err != nil {
			t.Fatal(err)
		}
		for _, q := range m.Layout().Params {
			near("the gradient of "+q.Name, grad[q.Offset:][:q.Len()], f.floats("grad."+q.Name))
		}
	}
}
