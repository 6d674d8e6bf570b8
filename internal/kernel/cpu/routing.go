package cpu

import (
	"math"
	"slices"

	"haul/internal/kernel"
	"haul/internal/rng"
)

func (b *binder) generate(o *kernel.Generate) func(*worker) {
	posX, posY, demand, feature := newRef(b.r, o.PosX), newRef(b.r, o.PosY), newRef(b.r, o.Demand), newRef(b.r, o.Feature)
	instances, n := o.PosX.Shape[0], o.PosX.Shape[1]
	span := uint32(o.DemandMax - o.DemandMin + 1)
	return func(w *worker) {
		xs, ys, ds, fs := posX.of(w), posY.of(w), ints(demand.of(w)), feature.of(w)
		for i := range instances {
			row := w.first + uint64(w.row+i)
			index, symmetry := row, uint64(0)
			if o.Symmetries > 1 {
				index, symmetry = row/uint64(o.Symmetries), row%uint64(o.Symmetries)
			}
			for j := range n {
				u := rng.At(o.Seed, index, uint32(j), o.Purpose)
				var x, y float32
				if o.Grid > 0 {
					x = float32(rng.Below(u[0], uint32(o.Grid)+1)) / float32(o.Grid)
					y = float32(rng.Below(u[1], uint32(o.Grid)+1)) / float32(o.Grid)
				} else {
					x, y = rng.Float(u[0]), rng.Float(u[1])
				}
				xs[i*n+j], ys[i*n+j] = reflect(x, y, symmetry)
				ds[i*n+j] = o.DemandMin + int32(rng.Below(u[2], span))
			}
			ds[i*n] = 0
			if o.CapacityMax > 0 {
				u, span := rng.At(o.Seed, index, 0, o.Purpose), uint32(o.CapacityMax-o.CapacityMin)+1
				q := int64(o.CapacityMin) + int64(min(rng.Below(u[2], span), rng.Below(u[3], span)))
				for j, d := range ds[i*n:][:n] {
					ds[i*n+j] = int32(int64(d) * kernel.LoadUnit / q)
				}
			}
		}
		fillFeatures(fs, xs, ys, ds, n, o.Capacity)
	}
}

// reflect applies one of the eight symmetries of the unit square.
func reflect(x, y float32, k uint64) (float32, float32) {
	if k&1 != 0 {
		x = 1 - x
	}
	if k&2 != 0 {
		y = 1 - y
	}
	if k&4 != 0 {
		x, y = y, x
	}
	return x, y
}

func (b *binder) feature(o *kernel.Feature) func(*worker) {
	posX, posY, demand, feature := newRef(b.r, o.PosX), newRef(b.r, o.PosY), newRef(b.r, o.Demand), newRef(b.r, o.Feature)
	n := o.PosX.Shape[1]
	return func(w *worker) {
		fillFeatures(feature.of(w), posX.of(w), posY.of(w), ints(demand.of(w)), n, o.Capacity)
	}
}

// fillFeatures: x, y, demand/capacity, depot flag of every node.
func fillFeatures(f, x, y []float32, demand []int32, n int, capacity int32) {
	for i := range x {
		depot := float32(0)
		if i%n == 0 {
			depot = 1
		}
		row := f[i*4:][:4]
		row[0], row[1], row[2], row[3] = x[i], y[i], float32(demand[i])/float32(capacity), depot
	}
}

func (b *binder) advantage(o *kernel.Advantage) func(*worker) {
	adv, length, base := newRef(b.r, o.Adv), newRef(b.r, o.Length), newRef(b.r, o.Base)
	logProb := length // read with Preference alone
	if o.By == kernel.Preference {
		logProb = newRef(b.r, o.LogProb)
	}
	instances, starts := o.Adv.Shape[0], o.Adv.Shape[1]
	var mean, count *float64
	if o.Mode == kernel.Running {
		mean, count = &b.r.scalar[o.Mean.Offset], &b.r.scalar[o.Count.Offset]
	}
	return func(w *worker) {
		ab, lb, bb, pb := adv.of(w), length.of(w), base.of(w), logProb.of(w)
		for i := range instances {
			a, l := ab[i*starts:][:starts], lb[i*starts:][:starts]
			if i >= w.active {
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
				if length[long]-length[short] <= kernel.Tie*length[long] {
					continue
				}
				v := weight * sigmoid(o.Alpha*(logProb[long]-logProb[short]))
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

func (l leading) leads(length float32) bool { return length-l.best <= kernel.Tie*length }

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
		l.more *= min(kernel.MostMargins, (next-l.best)/(o.Margin*l.best))
	}
	return l
}
