package routing

import (
	"math"
	"slices"

	"haul/internal/kernel"
	"haul/internal/kernel/cpu/isa"
	"haul/internal/kernel/cpu/run"
)

func advantage(b *run.Binder, o *kernel.Advantage) func(*run.Worker) {
	adv, length, base := b.Ref(o.Adv), b.Ref(o.Length), b.Ref(o.Base)
	logProb := length // read with Preference alone
	if o.By == kernel.Preference {
		logProb = b.Ref(o.LogProb)
	}
	instances, starts := o.Adv.Shape[0], o.Adv.Shape[1]
	var mean, count *float64
	if o.Mode == kernel.Running {
		mean, count = &b.Runner.Scalar[o.Mean.Offset], &b.Runner.Scalar[o.Count.Offset]
	}
	return func(w *run.Worker) {
		ab, lb, bb, pb := adv.Of(w), length.Of(w), base.Of(w), logProb.Of(w)
		for i := range instances {
			a, l := ab[i*starts:][:starts], lb[i*starts:][:starts]
			if i >= w.Active {
				clear(a)
				continue
			}
			starting := o.Mode == kernel.Running && *count == 0
			switch {
			case o.Mode == kernel.SharedMean || starting:
				var sum float32
				for _, v := range l {
					sum += v
				}
				bb[i] = sum / float32(starts)
			case o.Mode == kernel.Running:
				bb[i] = float32(*mean)
			}
			switch {
			case starting:
				clear(a)
			case o.By == kernel.Preference:
				if i%o.Rows() == 0 {
					all := o.Rows() * starts
					prefer(ab[i*starts:][:all], lb[i*starts:][:all], pb[i*starts:][:all], starts, o)
				}
			case o.By == kernel.Standard:
				differ(a, l, bb[i], o.Weight/(deviation(l, bb[i])+kernel.SpreadFloor))
			default:
				differ(a, l, bb[i], o.Weight)
			}
		}
	}
}

// differ: adv = (length - base)·weight.
func differ(adv, length []float32, base, weight float32) {
	for s, v := range length {
		adv[s] = (v - base) * weight
	}
}

// deviation is the root of the mean square of length - base.
func deviation(length []float32, base float32) float32 {
	var sum float32
	for _, v := range length {
		sum += (v - base) * (v - base)
	}
	return float32(math.Sqrt(float64(sum / float32(len(length)))))
}

// prefer: kernel.Preference of a group. A pair's σ serves both of its routes.
func prefer(adv, length, logProb []float32, starts int, o *kernel.Advantage) {
	clear(adv)
	weight := o.Weight * o.Alpha / float32(len(adv)) // of a pair without a leader
	group := leaders(length, o)
	for from := 0; from < len(adv); from += starts {
		row := leaders(length[from:][:starts], o)
		if len(adv) == starts {
			row.more = 0 // the group is the row
		}
		for i := from; i < from+starts; i++ {
			for j := range i {
				long, short := i, j
				if length[i] < length[j] {
					long, short = j, i
				}
				if length[long]-length[short] <= kernel.Tie*abs(length[long]) {
					continue
				}
				v := weight * isa.Sigmoid(o.Alpha*(logProb[long]-logProb[short]))
				w := float32(1)
				if group.leads(length[short]) {
					w += group.more
				}
				if j >= from && row.leads(length[short]) {
					w += row.more
				}
				adv[long] += v * w
				adv[short] -= v * w
			}
		}
	}
}

// leading is the shortest of some lengths, and by how much pairs with a route of that length weigh
// more.
type leading struct{ best, more float32 }

func (l leading) leads(length float32) bool { return length-l.best <= kernel.Tie*abs(length) }

func leaders(length []float32, o *kernel.Advantage) leading {
	l := leading{slices.Min(length), o.Leader}
	if !o.Alone && o.Margin == 0 {
		return l
	}
	count, next := 0, float32(math.MaxFloat32)
	for _, v := range length {
		if l.leads(v) {
			count++
		} else {
			next = min(next, v)
		}
	}
	switch {
	case o.Alone && count > 1:
		l.more = 0
	case o.Margin > 0:
		l.more *= min(kernel.MostMargins, (next-l.best)/(o.Margin*abs(l.best)))
	}
	return l
}

// abs is the size of a cost, which a problem file may have below 0.
func abs(x float32) float32 { return math.Float32frombits(math.Float32bits(x) &^ (1 << 31)) }
