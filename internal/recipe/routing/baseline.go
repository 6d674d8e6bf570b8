package routing

import (
	"context"

	"haul/internal/comm"
	"haul/internal/config"
	"haul/internal/kernel"
	"haul/internal/policy"
	"haul/internal/rng"
	"haul/internal/stats"
	"haul/internal/vrp"
)

// evalCount is the number of instances in the rollout baseline's evaluation set.
func evalCount(c *config.Config, sets int) int {
	return (c.Baseline.EvalBatches*c.Training.BatchSize + sets - 1) / sets
}

// frozen is the rollout baseline: a past policy, and its greedy costs on the evaluation set. The
// costs are those the policy had when it was frozen, so the set is routed once per epoch, by the
// candidate alone.
type frozen struct {
	store kernel.Store
	evals []*policy.Evaluator // of the policy: a set per end of the range of sizes
	costs []float64           // of all sets in turn; per customer where there are several
}

// count is how many costs there are.
func (f *frozen) count() (n int) {
	for _, e := range f.evals {
		n += e.Options().Count
	}
	return n
}

// route is the policy's costs.
func (f *frozen) route(ctx context.Context) (costs []float64, err error) {
	for _, e := range f.evals {
		out, err := e.Run(ctx)
		if err != nil {
			return nil, err
		}
		if len(f.evals) == 1 {
			return out.Lengths, nil
		}
		for _, length := range out.Lengths {
			costs = append(costs, vrp.CPC(length, e.Options().Source.N))
		}
	}
	return costs, nil
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
	costs, err := f.route(ctx)
	if err != nil {
		return verdict{}, err
	}
	return compare(u, costs, f.costs), nil
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

// evalSet are the options that route the baseline's evaluation set, of which there are so many.
func evalSet(c *config.Config, sets int, w *comm.World) policy.EvalOptions {
	return policy.EvalOptions{Source: policy.SourceOf(c, rng.EvalInstances), Count: evalCount(c, sets), Decode: policy.Greedy, World: w, Parts: c.Training.GradientParts}
}
