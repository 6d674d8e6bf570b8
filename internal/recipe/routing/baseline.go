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

// evalCount returns the number of instances in each of the rollout baseline's evaluation sets.
func evalCount(c *config.Config, sets int) int {
	return (c.Baseline.EvalBatches*c.Training.BatchSize + sets - 1) / sets
}

// frozen is the rollout baseline: a past policy and its greedy costs on the evaluation sets. The
// costs are measured once, when the policy is frozen, so each epoch routes the sets with the
// candidate only.
type frozen struct {
	store kernel.Store
	evals []*policy.Evaluator // one per end of the range of sizes
	costs []float64           // of all sets in order; per customer if there are several sets
}

// count returns the number of costs.
func (f *frozen) count() (n int) {
	for _, e := range f.evals {
		n += e.Options().Count
	}
	return n
}

// route returns the policy's costs on the evaluation sets.
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

// verdict is the outcome of comparing a candidate with the frozen policy.
type verdict struct {
	replace bool
	p       *float64 // nil without a significance test
	costs   []float64
}

// due reports whether a candidate is tested after the given number of finished epochs.
func due(u *config.BaselineUpdate, epochs int) bool {
	return u.Enabled && epochs >= u.WarmupEpochs && epochs%u.Frequency == 0
}

// challenge routes the evaluation sets with the current policy and compares the costs. It changes
// no state.
func (f *frozen) challenge(ctx context.Context, u *config.BaselineUpdate) (verdict, error) {
	costs, err := f.route(ctx)
	if err != nil {
		return verdict{}, err
	}
	return compare(u, costs, f.costs), nil
}

// compare decides that the candidate replaces the incumbent if its mean cost is lower and, if the
// settings ask for a test, significantly lower.
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

// adopt freezes the policy with its costs on the evaluation sets.
func (f *frozen) adopt(policy kernel.Store, costs []float64) error {
	if err := f.store.CopyWeights(policy); err != nil {
		return err
	}
	f.costs = costs
	return nil
}

// evalSet returns the options that route one of `sets` evaluation sets.
func evalSet(c *config.Config, sets int, w *comm.World) policy.EvalOptions {
	return policy.EvalOptions{Source: policy.SourceOf(c, rng.EvalInstances), Count: evalCount(c, sets), Decode: policy.Greedy, World: w, Parts: c.Training.GradientParts}
}
