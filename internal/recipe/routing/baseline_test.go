package routing

import (
	"math"
	"slices"
	"strings"
	"testing"

	"haul/internal/config"
	"haul/internal/plan"
	"haul/internal/policy"
	"haul/internal/run"
	"haul/internal/run/runtest"
	"haul/internal/stats"
)

// lesson is a run that has something to learn: ten customers, and enough steps to be seen to learn.
func lesson(t testing.TB, sets ...string) *config.Config {
	t.Helper()
	return tiny(t, append([]string{"problem.num_customers=10", "training.batch_size=32", "training.num_batches_per_epoch=25", "training.num_epochs=4", "training.validation_instances=200",
		"training.learning_rate=0.005", "training_advanced.warmup_steps=5", "model.hidden_dim=16", "baseline.eval_batches=3"}, sets...)...)
}

// TestEveryBaselineLearns: with each baseline, routes get shorter on instances that were not
// trained on.
func TestEveryBaselineLearns(t *testing.T) {
	for _, c := range []struct {
		name string
		sets []string
	}{
		{"rollout", []string{"baseline.type=rollout"}},
		{"pomo", []string{"baseline.type=pomo"}},
		{"ema", []string{"baseline.type=ema"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := lesson(t, c.sets...)
			e, ck := whole(t, cfg, openCPU(t, 2))
			rows := epochsOf(e)
			first, last := rows[0], rows[len(rows)-1]
			untrained := startCPC(t, cfg)
			if !(last.TrainCPC < 0.96*first.TrainCPC) || !(*last.ValCPC < 0.93*untrained) || !(last.Entropy < first.Entropy) {
				t.Errorf("validation from %.4f to %.4f, samples from %.4f to %.4f, entropy from %.3f to %.3f", untrained, *last.ValCPC, first.TrainCPC, last.TrainCPC, first.Entropy, last.Entropy)
			}
			for i, r := range rows {
				if d := r.BaselineCPC / r.TrainCPC; d < 0.7 || d > 1.3 {
					t.Errorf("epoch %d: the baseline is at %.4f, samples at %.4f", i+1, r.BaselineCPC, r.TrainCPC)
				}
			}
			if cfg.Baseline.Type == config.BaselineEMA {
				s := ck.Progress.Device.Scalars
				if s[plan.MeanBatches] != 100 || s[plan.MeanCost] < 9*last.TrainCPC || s[plan.MeanCost] > 11*last.TrainCPC {
					t.Errorf("the running mean is %v after 100 steps whose routes cost %.4f per customer", s, last.TrainCPC)
				}
			}
			if cfg.Baseline.Type == config.BaselinePOMO && math.Abs(last.BaselineCPC/last.TrainCPC-1) > 1e-6 {
				t.Errorf("the mean of an instance's starts adds up to %v, its routes to %v", last.BaselineCPC, last.TrainCPC)
			}
		})
	}
}

// startCPC returns the cost per customer on the validation set with the initial weights.
func startCPC(t *testing.T, c *config.Config) float64 {
	t.Helper()
	s := &run.Setup{Settings: c, Device: openCPU(t, 2), Dir: runtest.OpenDir(t, runtest.Folder(t), false), Progress: &run.Progress{}, Note: func(string) {}}
	tr, err := newTrainer(s)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	if err := tr.policy.WriteWeights(tr.Initial()); err != nil {
		t.Fatal(err)
	}
	sum := 0.
	for _, v := range tr.val {
		e, err := v.eval.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		cpc, _ := meanCPC(v.cfg, e.Lengths)
		sum += cpc
	}
	return sum / float64(len(tr.val))
}

// baselineOf are the frozen policy's tensors and the policy's own, in one order, and the frozen
// costs.
func baselineOf(s *runtest.State) (frozen, policy []string, costs string) {
	var names []string
	for name := range s.Tensors {
		if rest, ok := strings.CutPrefix(name, prefixBaseline); ok {
			names = append(names, rest)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		frozen, policy = append(frozen, s.Tensors[prefixBaseline+name]), append(policy, s.Tensors[name])
	}
	return frozen, policy, s.Tensors[nameCosts]
}

// TestTheBaselineIsReplacedByThePolicy: if the candidate wins the test, the frozen policy gets its
// weights and costs. Without a test it stays the initial policy while the trained policy changes.
func TestTheBaselineIsReplacedByThePolicy(t *testing.T) {
	at := func(sets ...string) (*Epoch, *runtest.State) {
		e, ck := whole(t, lesson(t, append([]string{"training.num_epochs=1", "baseline.update.frequency=1", "baseline.update.warmup_epochs=0"}, sets...)...), openCPU(t, 2))
		return epochsOf(e)[0], ck
	}
	row, kept := at("baseline.update.enabled=false")
	initial, moved, first := baselineOf(kept)
	if row.BaselineUpdated || row.PValue != nil || slices.Equal(initial, moved) {
		t.Errorf("updates are off: replaced %v, the policy stands still %v", row.BaselineUpdated, slices.Equal(initial, moved))
	}
	row, won := at("baseline.update.enabled=true", "baseline.update.p_value=0.05")
	frozen, policy, costs := baselineOf(won)
	if !row.BaselineUpdated || row.PValue == nil || *row.PValue >= 0.05 {
		t.Fatalf("25 steps of learning did not win the test: replaced %v, p %v", row.BaselineUpdated, row.PValue)
	}
	if !slices.Equal(policy, moved) {
		t.Error("the baseline's update has changed the policy")
	}
	if !slices.Equal(frozen, policy) {
		t.Error("the baseline was replaced, but its weights are not the policy's")
	}
	if costs == first || costs == "" {
		t.Error("the baseline was replaced, but its costs are still the initial policy's")
	}
	row, _ = at("baseline.update.enabled=true", "baseline.update.warmup_epochs=2")
	if row.BaselineUpdated {
		t.Error("replaced during warm-up")
	}
}

// TestFrozenCostsAreGreedyCosts: what a candidate is compared with are the frozen policy's own
// greedy costs on the evaluation set.
func TestFrozenCostsAreGreedyCosts(t *testing.T) {
	c := lesson(t, "training.num_epochs=1")
	o := options(c, openCPU(t, 2))
	o.Dir = runtest.OpenDir(t, runtest.Folder(t), false)
	e := &runtest.Heard{}
	o.Listener = e
	if err := run.Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if !epochsOf(e)[0].BaselineUpdated {
		t.Fatal("the epoch did not win its test; the case needs one that does")
	}
	ck, err := run.Load(o.Dir.Last(), "")
	if err != nil {
		t.Fatal(err)
	}
	kept, err := ck.Float64s(nameCosts)
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Load(o.Device, o.Dir.Last())
	if err != nil {
		t.Fatal(err)
	}
	again, err := p.Evaluate(t.Context(), evalSet(c, 1, nil))
	if err != nil {
		t.Fatal(err)
	}
	if len(kept) != 96 || !slices.Equal(kept, again.Lengths) {
		t.Errorf("%d costs are kept, the last policy's greedy routes cost otherwise", len(kept))
	}
	a, _ := stats.MeanSE(kept)
	if cpc := a / 10; cpc < 0.2 || cpc > 1 {
		t.Errorf("frozen costs of %.4f per customer", cpc)
	}
}
