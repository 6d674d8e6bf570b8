package routing

import (
	"strings"
	"testing"

	"haul/internal/policy"
	"haul/internal/rng"
	"haul/internal/run"
	"haul/internal/run/runtest"
	"haul/internal/safetensors"
	"haul/internal/stats"
	"haul/internal/vrp"
)

// TestTheBestHoldsTheAverage: the best checkpoint stores the averaged weights that were validated,
// under the names of the weights. They differ from the run's weights.
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
		if strings.HasPrefix(x.Name, "adam_") || strings.HasPrefix(x.Name, run.PrefixAverage) {
			t.Errorf("the best holds %s", x.Name)
			continue
		}
		mean, ok := last.Tensor(run.PrefixAverage + x.Name)
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
	if got, want := *rows[len(rows)-1].ValCPC, vrp.CPC(mean, c.Problem.NumCustomers()); got != want {
		t.Errorf("validation says %v, the best checkpoint has %v", got, want)
	}
}
