package reference

import (
	"slices"

	"haul/internal/kernel"
)

// CrossEntropy is kernel.CrossEntropy for one instance: dlogits (or none) and logits [T,C], labels
// [T·G], weigh [T] or none, sums [3G].
func CrossEntropy[F Float](dlogits, logits Matrix[F], labels []int32, weigh, sums []F, o *kernel.CrossEntropy) {
	clear(sums)
	for m := range logits.Rows {
		at := 0
		for g, c := range o.Columns {
			z, label := logits.Row(m)[at:][:c], int(labels[m*len(o.Columns)+g])
			w := F(1)
			if g == 0 && weigh != nil {
				w = weigh[m]
			}
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
					sums[3*g] -= w * target(k) * (v - sum)
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
						dlogits.Row(m)[at+k] = F(o.Weight) * w * (p[k] - target(k))
					}
				}
			}
			at += c
		}
	}
}

// PPO is kernel.PPO for one instance: dout and out [T,A+1], sample [T,4], sums [4T].
func PPO[F Float](dout, out, sample Matrix[F], sums []F, o *kernel.PPO) {
	for t := range out.Rows {
		var own [4]F
		ppo(dout.Row(t), out.Row(t), sample.Row(t), own[:], o)
		for i, v := range own {
			sums[i*out.Rows+t] = v
		}
	}
}

// ppo is one row: out [A+1], sample and sums [4]. The policy loss has a slope where its unclipped
// side is the smaller; the entropy's is -p·(log p + entropy).
func ppo[F Float](dout, out, sample, sums []F, o *kernel.PPO) {
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

// ImplicitQ is kernel.ImplicitQ for one instance: dvalues and values [T,2A+1], labels [T·G], index
// [T·F], first and weigh [T], sums [4].
func ImplicitQ[F Float](dvalues, values Matrix[F], labels, index, first []int32, weigh, sums []F, o *kernel.ImplicitQ) {
	clear(sums)
	tokens, actions := values.Rows, (values.Cols-1)/2
	heads, fields := len(labels)/tokens, len(index)/tokens
	for m := range tokens {
		row, d, a := values.Row(m), dvalues.Row(m), int(labels[m*heads])
		clear(d)
		weigh[m] = 0
		if a < 0 || m+1 == tokens || first[m+1] != first[m] {
			continue
		}
		next := index[(m+1)*fields:][:fields]
		if next[o.Type] != kernel.TypeRecord {
			continue
		}
		q1, q2, v := row[a], row[actions+a], row[2*actions]
		u := min(q1, q2) - v
		side := F(o.Expectile)
		if u < 0 {
			side = 1 - F(o.Expectile)
		}
		y := F(o.Gains[next[o.Gain]]) + F(o.Discount)*values.Row(m + 1)[2*actions]
		sums[0] += ((q1-y)*(q1-y) + (q2-y)*(q2-y)) / 2
		sums[1] += side * u * u
		sums[2] += v
		sums[3]++
		d[a], d[actions+a] = F(o.Weight)*(q1-y), F(o.Weight)*(q2-y)
		d[2*actions] = -2 * F(o.Weight) * side * u
		weigh[m] = min(exp(min(F(o.Slope)*u, 80)), F(o.Most))
	}
}
