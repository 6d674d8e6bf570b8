package reference

import (
	"slices"

	"haul/internal/kernel"
)

// CrossEntropy is kernel.CrossEntropy for one instance: dlogits (or none) and logits [T,C], labels
// [T·G], sums [3G].
func CrossEntropy[F Float](dlogits, logits Matrix[F], labels []int32, sums []F, o *kernel.CrossEntropy) {
	clear(sums)
	for m := range logits.Rows {
		at := 0
		for g, c := range o.Columns {
			z, label := logits.Row(m)[at:][:c], int(labels[m*len(o.Columns)+g])
			target := func(k int) F {
				q := F(o.Smoothing) / F(c)
				if k == label {
					q += 1 - F(o.Smoothing)
				}
				return q
			}
			if label >= 0 {
				sum := logSumExp(z)
				for k, v := range z {
					sums[3*g] -= target(k) * (v - sum)
				}
				sums[3*g+1]++
				if slices.Index(z, slices.Max(z)) == label {
					sums[3*g+2]++
				}
			}
			if dlogits.Data != nil {
				p := slices.Clone(z)
				softmax(p)
				for k := range p {
					dlogits.Row(m)[at+k] = 0
					if label >= 0 {
						dlogits.Row(m)[at+k] = F(o.Weight) * (p[k] - target(k))
					}
				}
			}
			at += c
		}
	}
}

// PPO is kernel.PPO for one instance: out [A+1], sample and sums [4]. The policy loss has a slope
// where its unclipped side is the smaller; the entropy's is -p·(log p + entropy).
func PPO[F Float](dout, out, sample, sums []F, o *kernel.PPO) {
	actions := len(out) - 1
	action, then, adv, ret := int(sample[0]), sample[1], sample[2], sample[3]
	sum := logSumExp(out[:actions])
	logp := func(k int) F { return out[k] - sum }
	var entropy F
	for k := range actions {
		entropy -= exp(logp(k)) * logp(k)
	}
	// past fp32's range a factor of 0 would make it no number
	ratio, lo, hi := exp(min(logp(action)-then, 88)), 1-F(o.Clip), 1+F(o.Clip)
	free, held := ratio*adv, min(max(ratio, lo), hi)*adv
	var slope F // of the policy loss by log π(action)
	if free <= held {
		slope = -free
	}
	for k := range actions {
		p := exp(logp(k))
		d := -slope * p
		if k == action {
			d += slope
		}
		dout[k] = F(o.Weight) * (d + F(o.EntropyCoef)*p*(logp(k)+entropy))
	}
	miss := out[actions] - ret
	dout[actions] = F(o.Weight) * 2 * F(o.ValueCoef) * miss
	sums[0], sums[1], sums[2], sums[3] = -min(free, held), miss*miss, entropy, 0
	if ratio < lo || ratio > hi {
		sums[3] = 1
	}
}
