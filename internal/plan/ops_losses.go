package plan

import "haul/internal/kernel"

// PPO records the clipped policy loss of out [B,A+1]; reversing the tape starts here. The spec's
// tensors are filled in.
func (p *Plan) PPO(out, sample *kernel.Tensor, spec kernel.PPO) (sums *kernel.Tensor) {
	spec.Out, spec.Sample, spec.Sums = out, sample, p.Rows("ppo.sums", p.B(), 4)
	spec.DOut, _ = p.contribute(out)
	spec.Weight = 1 / float32(p.prog.Total())
	p.op(&spec)
	return spec.Sums
}
