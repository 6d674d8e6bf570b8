package sequence

import (
	"math"

	"haul/internal/kernel"
	"haul/internal/kernel/cpu/isa"
	"haul/internal/kernel/cpu/run"
)

// The losses work on a handful of columns a row, in plain Go; all exponentials of a shard are taken
// in one call.

// shifted writes z less its largest element to p.
func shifted(p, z []float32) {
	top := z[0]
	for _, v := range z {
		top = max(top, v)
	}
	for k, v := range z {
		p[k] = v - top
	}
}

// normalised turns e, the exponentials of shifted logits z, into probabilities and returns log Σ
// exp z. The largest of e is 1.
func normalised(e, z []float32) float32 {
	var sum, top float32
	for k, v := range e {
		sum += v
		if v == 1 {
			top = z[k]
		}
	}
	for k := range e {
		e[k] /= sum
	}
	return top + float32(math.Log(float64(sum)))
}

func crossEntropy(b *run.Binder, o *kernel.CrossEntropy) func(*run.Worker) {
	dlogits, logits, labels, weigh, sums := b.Ref(o.DLogits), b.Ref(o.Logits), b.Ref(o.Labels), b.Ref(o.Weigh), b.Ref(o.Sums)
	instances, t, width := o.Logits.Shape[0], o.Logits.Shape[1], o.Logits.Cols()
	heads := len(o.Columns)
	b.Need(instances*t*width, 0)
	return func(w *run.Worker) {
		rows := w.Active * t
		db, zb, lb, wb, sb, p := dlogits.Of(w), logits.Of(w), isa.Ints(labels.Of(w)), weigh.Of(w), sums.Of(w), w.Scratch[:rows*width]
		clear(sb[:instances*3*heads])
		for m := range rows {
			at := m * width
			for _, c := range o.Columns {
				shifted(p[at:][:c], zb[at:][:c])
				at += c
			}
		}
		w.Prims.Exp(p, p)
		for m := range rows {
			at := 0
			for g, c := range o.Columns {
				z, q, s := zb[m*width+at:][:c], p[m*width+at:][:c], sb[(m/t)*3*heads+3*g:][:3]
				var d []float32
				if db != nil {
					d = db[m*width+at:][:c]
				}
				own := float32(1)
				if g == 0 && wb != nil {
					own = wb[m]
				}
				rowCrossEntropy(d, q, z, s, int(lb[m*heads+g]), o.Smoothing, o.Weight, own)
				at += c
			}
		}
		if db != nil {
			clear(db[rows*width:])
		}
	}
}

// rowCrossEntropy is one head of one row: d is empty where no gradient is wanted, p holds the
// exponentials, sums are loss, labels, hits; own is what the row weighs among others.
func rowCrossEntropy(d, p, z, sums []float32, label int, smoothing, weight, own float32) {
	if label < 0 {
		clear(d)
		return
	}
	logSum := normalised(p, z)
	even, best := smoothing/float32(len(z)), 0
	var total float32
	for k, v := range z {
		total += logSum - v
		if v > z[best] {
			best = k
		}
	}
	// -Σ q·log p with q = (1-smoothing)·[k = label] + smoothing/c
	sums[0] += own * ((1-smoothing)*(logSum-z[label]) + even*total)
	sums[1]++
	if best == label {
		sums[2]++
	}
	weight *= own
	for k := range d {
		d[k] = weight * (p[k] - even)
	}
	if len(d) > 0 {
		d[label] = weight * (p[label] - even - (1 - smoothing))
	}
}

func implicitQ(b *run.Binder, o *kernel.ImplicitQ) func(*run.Worker) {
	dvalues, values := b.Ref(o.DValues), b.Ref(o.Values)
	labels, index, first := b.Ref(o.Labels), b.Ref(o.Index), b.Ref(o.First)
	weigh, sums := b.Ref(o.Weigh), b.Ref(o.Sums)
	instances, t, width := o.Values.Shape[0], o.Values.Shape[1], o.Values.Cols()
	heads, fields := o.Labels.Cols(), o.Index.Cols()
	return func(w *run.Worker) {
		db, vb, lb, ib, fb := dvalues.Of(w), values.Of(w), isa.Ints(labels.Of(w)), isa.Ints(index.Of(w)), isa.Ints(first.Of(w))
		wb, sb := weigh.Of(w)[:w.Active*t], sums.Of(w)
		clear(db)
		clear(sb[:instances*kernel.ImplicitSums])
		for b := range w.Active {
			at := b * t
			s := sb[b*kernel.ImplicitSums:][:kernel.ImplicitSums]
			rowImplicitQ(db[at*width:][:t*width], vb[at*width:][:t*width], wb[at:][:t], s, lb[at*heads:][:t*heads], ib[at*fields:][:t*fields], fb[at:][:t], o)
		}
		w.Prims.Exp(wb, wb)
		for m, v := range wb {
			wb[m] = min(v, o.Most)
		}
	}
}

// nothing is what the exponential of is 0.
var nothing = float32(math.Inf(-1))

// rowImplicitQ is one row of tokens; d is clear. It leaves in weigh what the exponential is taken
// of.
func rowImplicitQ(d, values, weigh, sums []float32, labels, index, first []int32, o *kernel.ImplicitQ) {
	t, actions := len(first), o.Actions()
	width, heads, fields := 2*actions+1, len(labels)/len(first), len(index)/len(first)
	for m := range t {
		a := int(labels[m*heads])
		if a < 0 || m+1 == t || first[m+1] != first[m] || index[(m+1)*fields+o.Type] != kernel.TypeRecord {
			weigh[m] = nothing
			continue
		}
		row, own := values[m*width:][:width], d[m*width:][:width]
		q1, q2, v := row[a], row[actions+a], row[2*actions]
		u, side := min(q1, q2)-v, o.Expectile
		if u < 0 {
			side = 1 - o.Expectile
		}
		y := o.Gains[index[(m+1)*fields+o.Gain]] + o.Discount*values[(m+2)*width-1]
		sums[0] += ((q1-y)*(q1-y) + (q2-y)*(q2-y)) / 2
		sums[1] += side * u * u
		sums[2] += v
		sums[3]++
		own[a], own[actions+a] = o.Weight*(q1-y), o.Weight*(q2-y)
		own[2*actions] = -2 * o.Weight * side * u
		weigh[m] = min(o.Slope*u, 80) // past fp32's range all weigh Most
	}
}

func ppo(b *run.Binder, o *kernel.PPO) func(*run.Worker) {
	dout, out, sample, sums := b.Ref(o.DOut), b.Ref(o.Out), b.Ref(o.Sample), b.Ref(o.Sums)
	rows, width, tokens := o.Out.Rows(), o.Out.Cols(), o.Tokens()
	actions := width - 1
	b.Need(rows*(actions+2), 0)
	return func(w *run.Worker) {
		db, ob, xb, sb, active := dout.Of(w), out.Of(w), sample.Of(w), sums.Of(w), w.Active*tokens
		p, logs, ratios := w.Scratch[:active*actions], w.Scratch[rows*actions:][:active], w.Scratch[rows*(actions+1):][:active]
		for m := range active {
			shifted(p[m*actions:][:actions], ob[m*width:][:actions])
		}
		w.Prims.Exp(p, p)
		for m := range active {
			z, then := ob[m*width:][:actions], xb[m*4:][:2]
			logs[m] = normalised(p[m*actions:][:actions], z)
			ratios[m] = min(z[int(then[0])]-logs[m]-then[1], 88)
		}
		w.Prims.Exp(ratios, ratios)
		for m := range active {
			var own [4]float32
			rowPPO(db[m*width:][:width], ob[m*width:][:width], xb[m*4:][:4], own[:], p[m*actions:][:actions], logs[m], ratios[m], o)
			at := m/tokens*4*tokens + m%tokens
			for i, v := range own {
				sb[at+i*tokens] = v
			}
		}
		clear(db[active*width:])
		clear(sb[active*4:])
	}
}

// rowPPO is one row with probabilities p, the logarithm of their sum before they were normalised,
// and the ratio of the action's to what it was.
func rowPPO(d, out, sample, sums, p []float32, logSum, ratio float32, o *kernel.PPO) {
	actions := len(p)
	action, adv := int(sample[0]), sample[2]
	var entropy float32
	for k, v := range p {
		entropy -= v * (out[k] - logSum)
	}
	low, high := 1-o.Clip, 1+o.Clip
	free, held := ratio*adv, min(max(ratio, low), high)*adv
	// of the policy loss by log π(action); none where the clipped side is the smaller
	var slope float32
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
