package routing

import (
	"fmt"

	"haul/internal/config"
	"haul/internal/kernel"
	"haul/internal/model"
	"haul/internal/plan"
	"haul/internal/policy"
	"haul/internal/rng"
)

// recordStep records a training step: draw instances, route them, subtract the baseline, compute
// the gradient, update the weights. With a peer it records this rank's part of the step.
func recordStep(dev kernel.Device, m *model.Network, c *config.Config, peer kernel.Peer) (*plan.Plan, error) {
	src := policy.SourceOf(c, rng.TrainInstances)
	p := plan.New("train", dev, c.Training.BatchSize, m.Rules().Nodes(src.N), m.Layout())
	p.SetGroupSize(c.Baseline.Symmetries)
	if err := p.SplitStep(c.Training.GradientParts, peer); err != nil {
		return nil, fmt.Errorf("%s: %w", keyBatch, err)
	}
	in := policy.RecordInstances(p, src, c.Baseline.Symmetries, c.Problem.CapacityRange)
	spec := plan.RolloutSpec{Starts: c.Starts(), MaxStep: m.Rules().MaxSteps(src.N), Seed: src.Seed}
	if c.Baseline.Type == config.BaselinePOMO {
		policy.FromEveryCustomer(&spec, m)
	}

	// The frozen policy runs first, so that its activations are freed before the policy's are
	// allocated, which the gradient needs.
	mode, given := kernel.SharedMean, (*kernel.Tensor)(nil)
	switch c.Baseline.Type {
	case config.BaselineRollout:
		frozen := plan.RolloutSpec{Choice: kernel.Greedy, Starts: 1, MaxStep: spec.MaxStep, Seed: src.Seed}
		mode, given = kernel.Given, p.Rollout("baseline", m.Encode(p, 1, in, false), frozen, rng.Actions).Length
	case config.BaselineEMA:
		mode = kernel.Running
	}
	routes := p.Rollout("policy", m.Encode(p, 0, in, true), spec, rng.Actions)
	adv, base := p.Advantage(routes, mode, given, c.Baseline.EMADecay, comparison(c))
	p.PolicyGradient(routes, adv)
	p.Backward()

	a := &c.Advanced
	p.Optimize(&kernel.AdamW{Side: muonSide(c), Beta1: a.AdamBeta1, Beta2: a.AdamBeta2, Eps: float32(a.AdamEps),
		Decay: float32(a.WeightDecay), MaxNorm: float32(a.GradientClipNorm), Warmup: a.WarmupSteps}, 1)
	p.TallyRoutes(routes, adv, base)
	return p, nil
}

// muonSide returns the side of Muon's square blocks, or 0 for AdamW. The settings' rules refuse
// widths whose blocks would be too small.
func muonSide(c *config.Config) int {
	if c.Advanced.Optimizer != config.OptimizerMuon {
		return 0
	}
	return kernel.MuonSide(c.Model.HiddenDim)
}

// comparison returns the settings that compare the routes of an instance with one another.
func comparison(c *config.Config) plan.Comparison {
	switch c.Baseline.Advantage {
	case config.AdvantageStandard:
		return plan.Comparison{By: kernel.Standard}
	case config.AdvantagePreference:
		return plan.Comparison{By: kernel.Preference, Alpha: c.Baseline.PreferenceAlpha, Leader: c.Baseline.LeaderWeight,
			Alone: c.Baseline.LeaderAlone, Margin: c.Baseline.LeaderMargin, Group: c.Baseline.Symmetries}
	}
	return plan.Comparison{}
}

// stepFLOPs returns the floating-point operations of training on the instances with the given total
// of decode steps, by formula: the forward pass, twice as much for the gradient, and the forward
// pass of the frozen policy, whose routes are assumed to be as long as the sampled ones.
func stepFLOPs(m *model.Network, c *config.Config, instances, actions int64) int64 {
	n := m.Rules().Nodes(c.Problem.NumCustomers())
	flops := 3 * (instances*m.EncodeFLOPs(n) + actions*m.DecodeFLOPs(n))
	if c.Baseline.Type == config.BaselineRollout {
		flops += instances*m.EncodeFLOPs(n) + actions*m.DecodeFLOPs(n)
	}
	return flops
}
