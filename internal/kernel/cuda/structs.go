package cuda

import "haul/internal/kernel"

// The blocks of device memory that host and kernels share. They mirror src/common/haul.cuh byte for
// byte: a field added here must be added there at the same place, which the tests compare.

type control struct {
	learningRate, temperature float32
	coefficients              [kernel.MaxCoefficients]float32
}

type state struct {
	step, instances uint64
	beta1T, beta2T  float64
	part            uint64
	scalars         [kernel.MaxScalars]float64
}

type metrics struct {
	gradNorm float64
	sums     [kernel.MaxSums]float64
	badStep  int64  // what follows outlives a read of the sums
	badFirst uint64 // first instance of the bad step
}

func packControl(c kernel.Control, coefficients []float32) control {
	out := control{learningRate: c.LearningRate, temperature: c.Temperature}
	copy(out.coefficients[:], coefficients)
	return out
}

func packState(s kernel.State, scalars []float64) state {
	out := state{step: s.Step, instances: s.Instances, beta1T: s.Beta1T, beta2T: s.Beta2T, part: s.Part}
	copy(out.scalars[:], scalars)
	return out
}

func (s *state) unpack(names []string) kernel.State {
	return kernel.State{Step: s.step, Instances: s.instances, Beta1T: s.beta1T, Beta2T: s.beta2T, Part: s.part, Scalars: kernel.Named(names, s.scalars[:len(names)])}
}

func (m *metrics) unpack(names []string, steps int64) kernel.Metrics {
	return kernel.Metrics{Steps: steps, GradNorm: m.gradNorm, BadStep: m.badStep, Sums: kernel.NewSums(names, m.sums[:])}
}
