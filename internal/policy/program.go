package policy

import (
	"haul/internal/kernel"
	"haul/internal/model"
	"haul/internal/plan"
	"haul/internal/rng"
	"haul/internal/run"
)

// Training, evaluation and given problems record their programs with the functions of this file, so
// that a policy gets the same inputs in inference as in training.

// FromEveryCustomer makes each start of an instance begin at a different customer, or choose its
// first action as if the vehicle were at that customer.
func FromEveryCustomer(spec *plan.RolloutSpec, m *model.Network) {
	spec.Forced, spec.Viewed = !m.Views(), m.Views()
}

// recordRoutes records the decoding of an encoded policy. The host can read the actions.
func recordRoutes(p *plan.Plan, m *model.Network, dec kernel.Decoder, d Decode, n int, seed uint64) *plan.Routes {
	spec := plan.RolloutSpec{Choice: kernel.Greedy, Starts: d.starts(n), MaxStep: m.Rules().MaxSteps(n), Seed: sampleSeed(seed), Keep: true}
	switch {
	case d.Drawn:
		FromEveryCustomer(&spec, m)
	case d.Starts: // views have one most likely route for all starts: greedy starts are forced
		spec.Forced = true
	}
	if d.Draws() {
		spec.Choice = kernel.Sample
	}
	return p.Rollout("routes", dec, spec, rng.Actions)
}

func evalControl(temperature float64) kernel.Control {
	if temperature <= 0 {
		temperature = 1
	}
	return kernel.Control{Temperature: float32(temperature)}
}

// sampleSeed separates the samples of evaluation from those of training, which use the same
// purpose.
func sampleSeed(seed uint64) uint64 { return seed ^ 0x9E3779B97F4A7C15 }

// routeBytes returns the host memory of routes that are read from a device: actions and lengths.
func routeBytes(rows, starts, steps int) int64 {
	return run.Product(4, int64(rows), int64(starts), int64(steps+1))
}

// Limits of a batch in evaluation: bytes of recorded actions, bytes of tables of pairs of nodes,
// and rows (enough of them to keep a device busy).
const (
	evalActionBytes = 64 << 20
	evalTableBytes  = 1 << 30
	evalRows        = 1024
)

// evalBatch returns how many instances of n customers are decoded at a time. A GPU has a table of
// all pairs of nodes for each.
func evalBatch(n int, set kernel.RuleSet, d Decode) int {
	nodes := set.Nodes(n)
	return max(1, min(evalRows, evalActionBytes/(4*d.starts(n)*set.MaxSteps(n)), evalTableBytes/(4*nodes*kernel.Pad(nodes)))/d.symmetries())
}
