package cuda

import "haul/internal/kernel"

// The blocks of device memory that host and kernels share. They mirror src/haul.cuh byte for
// byte: a field added here must be added there at the same place, which the tests compare.

type control struct {
	learningRate, temperature, entropy, _ float32
}

type state struct {
	step, instances     uint64
	beta1T, beta2T, ema float64
	emaSteps, part      uint64
}

type headSums struct {
	loss         float64
	labels, hits int64
}

type metrics struct {
	steps, trajectory                      int64
	cost, logCost, baseCost, loss, entropy float64
	actions                                int64
	gradNorm                               float64
	heads                                  [2]headSums
	badStep                                int64  // what follows outlives a read of the sums
	badFirst                               uint64 // first instance of the bad step
}

func packControl(c kernel.Control) control {
	return control{learningRate: c.LearningRate, temperature: c.Temperature, entropy: c.Entropy}
}

func packState(s kernel.State) state {
	return state{s.Step, s.Instances, s.Beta1T, s.Beta2T, s.EMA, s.EMASteps, s.Part}
}

func (s *state) unpack() kernel.State {
	return kernel.State{Step: s.step, Instances: s.instances, Beta1T: s.beta1T, Beta2T: s.beta2T, EMA: s.ema, EMASteps: s.emaSteps, Part: s.part}
}

func (m *metrics) unpack() kernel.Metrics {
	out := kernel.Metrics{Steps: m.steps, Trajectory: m.trajectory, Cost: m.cost, LogCost: m.logCost, BaseCost: m.baseCost, Loss: m.loss,
		Entropy: m.entropy, Actions: m.actions, GradNorm: m.gradNorm, BadStep: m.badStep}
	for i, h := range m.heads {
		out.Heads[i] = kernel.HeadSums{Loss: h.loss, Labels: h.labels, Hits: h.hits}
	}
	return out
}
