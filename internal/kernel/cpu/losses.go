package cpu

import (
	"math"

	"haul/internal/kernel"
)

// The losses work on a handful of columns a row, in plain Go: their cost is that of the exponentials.

// logSumExp returns log Σ exp z and leaves exp(z - that) in p.
func logSumExp(p, z []float32) float32 {
	top := z[0]
	for _, v := range z {
		top = max(top, v)
	}
	var sum float32
	for k, v := range z {
		p[k] = float32(math.Exp(float64(v - top)))
		sum += p[k]
	}
	for k := range p {
		p[k] /= sum
	}
	return top + float32(math.Log(float64(sum)))
}

func (b *binder) crossEntropy(o *kernel.CrossEntropy) func(*worker) {
	dlogits, logits, labels, sums := newRef(b.r, o.DLogits), newRef(b.r, o.Logits), newRef(b.r, o.Labels), newRef(b.r, o.Sums)
	instances, t, width := o.Logits.Shape[0], o.Logits.Shape[1], o.Logits.Cols()
	heads := len(o.Columns)
	b.need(width, 0)
	return func(w *worker) {
		db, zb, lb, sb, p := dlogits.of(w), logits.of(w), ints(labels.of(w)), sums.of(w), w.scratch[:width]
		clear(sb[:instances*3*heads])
		for m := range w.active * t {
			at := 0
			for g, c := range o.Columns {
				z, q, s := zb[m*width+at:][:c], p[:c], sb[(m/t)*3*heads+3*g:][:3]
				var d []float32
				if db != nil {
					d = db[m*width+at:][:c]
				}
				crossEntropy(d, q, z, s, int(lb[m*heads+g]), o.Smoothing, o.Weight)
				at += c
			}
		}
		if db != nil {
			clear(db[w.active*t*width:])
		}
	}
}

// crossEntropy is one head of one row: d is empty where no gradient is wanted, p is scratch, sums are loss, labels, hits.
func crossEntropy(d, p, z, sums []float32, label int, smoothing, weight float32) {
	if label < 0 {
		clear(d)
		return
	}
	logSum := logSumExp(p, z)
	even, best := smoothing/float32(len(z)), 0
	var total float32
	for k, v := range z {
		total += logSum - v
		if v > z[best] {
			best = k
		}
	}
	// -Σ q·log p with q = (1-smoothing)·[k = label] + smoothing/c
	sums[0] += (1-smoothing)*(logSum-z[label]) + even*total
	sums[1]++
	if best == label {
		sums[2]++
	}
	for k := range d {
		d[k] = weight * (p[k] - even)
	}
	if len(d) > 0 {
		d[label] = weight * (p[label] - even - (1 - smoothing))
	}
}

func (b *binder) ppo(o *kernel.PPO) func(*worker) {
	dout, out, sample, sums := newRef(b.r, o.DOut), newRef(b.r, o.Out), newRef(b.r, o.Sample), newRef(b.r, o.Sums)
	width := o.Out.Cols()
	b.need(width, 0)
	return func(w *worker) {
		db, ob, xb, sb, p := dout.of(w), out.of(w), sample.of(w), sums.of(w), w.scratch[:width]
		for m := range w.active {
			ppo(db[m*width:][:width], ob[m*width:][:width], xb[m*4:][:4], sb[m*4:][:4], p[:width-1], o)
		}
		clear(db[w.active*width:])
		clear(sb[w.active*4:])
	}
}

// ppo is one row; p is scratch.
func ppo(d, out, sample, sums, p []float32, o *kernel.PPO) {
	actions := len(p)
	action, adv := int(sample[0]), sample[2]
	logSum := logSumExp(p, out[:actions])
	var entropy float32
	for k, v := range p {
		entropy -= v * (out[k] - logSum)
	}
	ratio := float32(math.Exp(float64(out[action] - logSum - sample[1])))
	low, high := 1-o.Clip, 1+o.Clip
	free, held := ratio*adv, min(max(ratio, low), high)*adv
	var slope float32 // of the policy loss by log π(action); none where the clipped side is the smaller
	if free <= held {
		slope = -free
	}
	for k, v := range p {
		d[k] = o.Weight * (o.EntropyCoef*v*(out[k]-logSum+entropy) - slope*v)
	}
	d[action] += o.Weight * slope
	miss := out[actions] - sample[3]
	d[actions] = o.Weight * 2 * o.ValueCoef * miss
	sums[0], sums[1], sums[2], sums[3] = -min(free, held), miss*miss, entropy, 0
	if ratio < low || ratio > high {
		sums[3] = 1
	}
}
