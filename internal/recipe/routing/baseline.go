package routing

import (
	"context"

	"haul/internal/comm"
	"haul/internal/config"
	"haul/internal/kernel"
	"haul/internal/policy"
	"haul/internal/rng"
	"haul/internal/stats"
)

// evalCount is the size of the rollout baseline's evaluation set.
func evalCount(c *config.Config) int { return c.Baseline.EvalBatches * c.Training.BatchSize }

// frozen is the rollout baseline: a past policy, and its greedy costs on the evaluation set. The
// costs are those the policy had when it was frozen, so the set is routed once per epoch, by the
// candidate alone.
type frozen struct {
	store kernel.Store
	eval  *policy.Evaluator // of the policy
	costs []float64
}

// verdict is the outcome of a test.
type verdict struct {
	replace bool
	p       *float64 // nil without a significance test
	costs   []float64
}

// due says whether the candidate is tested after that many finished epochs.
func due(u *config.BaselineUpdate, epochs int) bool {
	return u.Enabled && epochs >= u.WarmupEpochs && epochs%u.Frequency == 0
}

// challenge routes the evaluation set with the policy and compares. It changes nothing.
func (f *frozen) challenge(ctx context.Context, u *config.BaselineUpdate) (verdict, error) {
	e, err := f.eval.Run(ctx)
	if err != nil {
		return verdict{}, err
	}
	return compare(u, e.Lengths, f.costs), nil
}

// compare is the rule: a lower mean, and a significant one where that is asked for.
func compare(u *config.BaselineUpdate, candidate, incumbent []float64) verdict {
	v := verdict{costs: candidate}
	mean, _ := stats.MeanSE(candidate)
	best, _ := stats.MeanSE(incumbent)
	v.replace = mean < best
	if u.SignificanceTest {
		p := stats.PairedTest(candidate, incumbent)
		v.p = &p
		v.replace = v.replace && p < u.PValue
	}
	return v
}

// adopt freezes the policy with the costs it has just shown.
func (f *frozen) adopt(policy kernel.Store, costs []float64) error {
	if err := f.store.CopyWeights(policy); err != nil {
		return err
	}
	f.costs = costs
	return nil
}

// evalSet are the options that route the baseline's evaluation set.
func evalSet(c *config.Config, w *comm.World) policy.EvalOptions {
	return policy.EvalOptions{Source: policy.SourceOf(c, rng.EvalInstances), Count: evalCount(c), Decode: policy.Greedy, World: w, Parts: c.Training.GradientParts}
}
