package plan

import "haul/internal/kernel"

// PPO records the clipped policy loss of out, [B,A+1] or [B,T,A+1], and seeds its gradient. It sets
// the tensors of spec.
func (p *Plan) PPO(out, sample *kernel.Tensor, spec kernel.PPO) (sums *kernel.Tensor) {
	spec.Out, spec.Sample = out, sample
	spec.Sums = p.Rows("ppo.sums", p.B(), 4*spec.Tokens())
	spec.DOut, _ = p.contribute(out)
	spec.Weight = 1 / float32(p.prog.Total()*spec.Tokens())
	p.op(&spec)
	return spec.Sums
}

// The sums that LearnPPO accumulates over samples.
const (
	PPOPolicy  = "policy_loss"
	PPOValue   = "value_loss" // squared errors
	PPOEntropy = "entropy"
	PPOClipped = "clipped" // samples whose ratio was clipped
)

// ppoEps is the usual epsilon of PPO: with a smaller one, moments near zero cause long steps on
// noise.
const ppoEps = 1e-5

// LearnPPO records a whole step: the loss of out, the backward pass, the optimizer and the sums.
func (p *Plan) LearnPPO(out, sample *kernel.Tensor, spec kernel.PPO, maxNorm float64) {
	sums := p.PPO(out, sample, spec)
	p.Backward()
	p.Optimize(&kernel.AdamW{Beta1: 0.9, Beta2: 0.999, Eps: ppoEps, MaxNorm: float32(maxNorm)}, 1)
	tally, tokens := &kernel.Tally{}, sums.Cols()/4
	for i, name := range []string{PPOPolicy, PPOValue, PPOEntropy, PPOClipped} {
		tally.Sums = append(tally.Sums, kernel.NewSum(name, p.Columns(sums, i*tokens, (i+1)*tokens), nil))
	}
	p.Once(tally)
}

// ImplicitQ records the losses of values [B,T,2A+1] as means over the batch's tokens, times coef,
// and seeds their gradient. It sets the tensors of spec except Labels, Index and First. weigh [B,T]
// holds the weights of the policy's losses.
func (p *Plan) ImplicitQ(name string, values *kernel.Tensor, coef float32, spec kernel.ImplicitQ) (weigh, sums *kernel.Tensor) {
	tokens := values.Shape[1]
	spec.Values, spec.Weigh, spec.Sums = values, p.Shard(name+".weigh", p.B(), tokens), p.Rows(name+".sums", p.B(), kernel.ImplicitSums)
	spec.DValues, _ = p.contribute(values)
	spec.Weight = coef / float32(p.prog.Total()*tokens)
	p.op(&spec)
	return spec.Weigh, spec.Sums
}

// The sums that TallyValues accumulates.
const (
	SumCritic   = "critic.loss" // Σ loss of Q
	SumValue    = "value.loss"  // Σ loss of v
	SumExpected = "value.sum"   // Σ v
	SumPaid     = "value.paid"  // number of tokens in the sums
)

// TallyValues records the accumulation of the sums of ImplicitQ.
func (p *Plan) TallyValues(sums *kernel.Tensor) {
	o := &kernel.Tally{}
	for i, name := range []string{SumCritic, SumValue, SumExpected, SumPaid} {
		o.Sums = append(o.Sums, kernel.NewSum(name, p.Columns(sums, i, i+1), nil))
	}
	p.Once(o)
}
