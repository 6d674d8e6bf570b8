package recurrent

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"haul/internal/kernel"
	"haul/internal/run/runtest"
)

// TestStepIsRecordedFromTheSettings: each setting of the loss and the optimizer reaches the
// recorded ops, none of them the default.
func TestStepIsRecordedFromTheSettings(t *testing.T) {
	dev := runtest.Watch(openCPU(t, 1))
	s := Settings{Steps: 20, Envs: 9, Rollout: 7, Hidden: 5, Rate: 0.004, Entropy: 0.03, Parts: 2, Passes: 1, Discount: 0.9, Lambda: 0.8, Clip: 0.15, Value: 0.4, MaxNorm: 0.7}
	r := newRooms(room(t, 3, 9), s.Envs, 1)
	l, err := newLearner(dev, &s, r.senses(), r)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	p := l.net.program
	loss := runtest.Op[*kernel.PPO](t, p.PerShard)
	if loss.Clip != 0.15 || loss.ValueCoef != 0.4 || loss.EntropyCoef != 0.03 || loss.Weight != 1/float32(4*7) || loss.Tokens() != 7 {
		t.Errorf("the loss is %+v", loss)
	}
	want := &kernel.AdamW{Beta1: 0.9, Beta2: 0.999, Eps: 1e-5, MaxNorm: 0.7}
	if diff := cmp.Diff(want, runtest.Op[*kernel.AdamW](t, p.Once), cmpopts.IgnoreFields(kernel.AdamW{}, "Layout")); diff != "" {
		t.Error(diff)
	}
	if got := dev.Controls[p.Name]; len(got) != 1 || got[0].LearningRate != 0.004 {
		t.Errorf("the control block is %+v", got)
	}
	units := runtest.Op[*kernel.GRU](t, p.PerShard)
	if _, tokens, d := units.Dims(); tokens != 7 || d != 5 || units.Carry || p.Batch != 4 {
		t.Errorf("units %+v of %d environments", units, p.Batch)
	}
}
