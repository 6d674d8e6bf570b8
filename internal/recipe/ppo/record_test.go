package ppo

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"haul/internal/config"
	"haul/internal/kernel"
	"haul/internal/run/runtest"
)

// TestStepIsRecordedFromTheSettings: each setting of the loss and the optimizer reaches the
// recorded ops, none of them the default.
func TestStepIsRecordedFromTheSettings(t *testing.T) {
	dev := runtest.Watch(openCPU(t, 1))
	l, err := newLearner(dev, smallData(t, "clip_range=0.15", "vf_coef=0.4", "ent_coef=0.03", "max_grad_norm=0.7", "source_lr=0.004", "batch_size=50"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	loss := runtest.Op[*kernel.PPO](t, l.program.PerShard)
	if loss.Clip != 0.15 || loss.ValueCoef != 0.4 || loss.EntropyCoef != 0.03 || loss.Weight != 1/float32(50) {
		t.Errorf("the loss is %+v", loss)
	}
	want := &kernel.AdamW{Beta1: 0.9, Beta2: 0.999, Eps: 1e-5, MaxNorm: 0.7}
	if diff := cmp.Diff(want, runtest.Op[*kernel.AdamW](t, l.program.Once), cmpopts.IgnoreFields(kernel.AdamW{}, "Layout")); diff != "" {
		t.Error(diff)
	}
	if got := dev.Controls["ppo"]; len(got) != 1 || got[0].LearningRate != 0.004 {
		t.Errorf("the control block is %+v", got)
	}
	if l.program.Batch != 50 {
		t.Errorf("minibatches of %d", l.program.Batch)
	}
}

// TestRewardUnit: being paid at every step for ever is worth 1 under discounts that look no further
// than an episode; beyond, one episode of rewards is.
func TestRewardUnit(t *testing.T) {
	for _, c := range []struct{ gamma, want float64 }{{0.5, 0.5}, {0.8, 0.2}, {0.9, 0.1}, {0.99, 0.1}} {
		if got := rewardUnit(&config.PPO{Gamma: c.gamma, Horizon: 10}); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("a reward counts %v at discount %v, want %v", got, c.gamma, c.want)
		}
	}
}
