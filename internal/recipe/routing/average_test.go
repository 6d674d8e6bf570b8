package routing

import (
	"strings"
	"testing"

	"haul/internal/kernel"
	"haul/internal/policy"
	"haul/internal/rng"
	"haul/internal/run"
	"haul/internal/run/runtest"
	"haul/internal/safetensors"
	"haul/internal/stats"
	"haul/internal/vrp"
)

// shelf is a store of one weight.
type shelf struct {
	kernel.Store
	w float32
}

func (s *shelf) ReadWeights(dst []float32) error  { dst[0] = s.w; return nil }
func (s *shelf) WriteWeights(src []float32) error { s.w = src[0]; return nil }

// TestAverageByHand: the plain mean of the epochs first, then the moving one; the initial weight
// has no part in it, and an epoch can be taken back.
func TestAverageByHand(t *testing.T) {
	mean, policy := &shelf{w: 100}, &shelf{}
	a := &average{store: mean, decay: 0.75, mean: make([]float32, 1), weights: make([]float32, 1)}
	for i, want := range []float32{8, 6, 4, 4, 5} { // 8, (8+4)/2, (8+4+0)/3, 3/4·4+1/4·4, 3/4·4+1/4·8
		policy.w = []float32{8, 4, 0, 4, 8}[i]
		before := mean.w
		undo, err := a.advance(policy, i)
		if err != nil || mean.w != want {
			t.Fatalf("after %d epochs the mean is %v, %v; want %v", i+1, mean.w, err, want)
		}
		if err := undo(); err != nil || mean.w != before {
			t.Fatalf("taken back, the mean is %v, %v; want %v", mean.w, err, before)
		}
		if _, err := a.advance(policy, i); err != nil || mean.w != want {
			t.Fatalf("made again, the mean is %v, %v; want %v", mean.w, err, want)
		}
	}
}

// TestTheBestHoldsTheAverage: what validation judged is what is kept, under the names of the
// weights, and the run's own weights differ.
func TestTheBestHoldsTheAverage(t *testing.T) {
	c := tiny(t, "baseline.type=pomo", "training_advanced.average_decay=0.6", "training.num_epochs=3", "training.validation_frequency=3")
	o := options(c, openCPU(t, 2))
	o.Dir = runtest.OpenDir(t, runtest.Folder(t), false)
	kept := &runtest.Heard{}
	o.Listener = kept
	if err := run.Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	best, err := safetensors.Load(o.Dir.Best())
	if err != nil {
		t.Fatal(err)
	}
	last, err := safetensors.Load(o.Dir.Last())
	if err != nil {
		t.Fatal(err)
	}
	rows := epochsOf(kept)
	if !rows[len(rows)-1].Best {
		t.Fatal("the last epoch, the one that is judged, is not the best")
	}
	differ := false
	for _, x := range best.Tensors {
		if strings.HasPrefix(x.Name, "adam_") || strings.HasPrefix(x.Name, prefixAverage) {
			t.Errorf("the best holds %s", x.Name)
			continue
		}
		mean, ok := last.Tensor(prefixAverage + x.Name)
		own, _ := last.Tensor(x.Name)
		if !ok || string(mean.Data) != string(x.Data) {
			t.Errorf("%s of the best is not the mean", x.Name)
		}
		differ = differ || string(own.Data) != string(x.Data)
	}
	if !differ {
		t.Error("the mean is the weights themselves")
	}
	p, err := policy.Load(o.Device, o.Dir.Best())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	e, err := p.Evaluate(t.Context(), policy.EvalOptions{Source: policy.SourceOf(c, rng.ValidInstances), Count: c.Training.ValidationInstances, Decode: policy.Greedy})
	if err != nil {
		t.Fatal(err)
	}
	mean, _ := stats.MeanSE(e.Lengths)
	if got, want := *rows[len(rows)-1].ValCPC, vrp.CPC(mean, c.Problem.NumCustomers); got != want {
		t.Errorf("validation says %v, the best checkpoint has %v", got, want)
	}
}
