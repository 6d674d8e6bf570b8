package routing

import (
	"haul/internal/kernel"
	"haul/internal/kernel/cpu/isa"
	"haul/internal/kernel/cpu/run"
	"haul/internal/kernel/host"
	"haul/internal/rng"
)

func generate(b *run.Binder, o *kernel.Generate) func(*run.Worker) {
	posX, posY, nodes, feature := b.Ref(o.PosX), b.Ref(o.PosY), b.Ref(o.Nodes), b.Ref(o.Feature)
	instances, n := o.PosX.Shape[0], o.PosX.Shape[1]
	if o.Set.Problem() != nil {
		return generateFile(b, o)
	}
	span, wide := uint32(o.DemandMax-o.DemandMin+1), len(o.Set.Columns())
	return func(w *run.Worker) {
		xs, ys, ds, fs := posX.Of(w), posY.Of(w), isa.Ints(nodes.Of(w)), feature.Of(w)
		for i := range instances {
			row := w.First + uint64(w.Row+i)
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
				ds[(i*n+j)*wide] = o.DemandMin + int32(rng.Below(u[2], span))
			}
			mine := ds[i*n*wide:][:n*wide]
			mine[0] = 0
			if o.CapacityMax > 0 {
				u, span := rng.At(o.Seed, index, 0, o.Purpose), uint32(o.CapacityMax-o.CapacityMin)+1
				q := int64(o.CapacityMin) + int64(min(rng.Below(u[2], span), rng.Below(u[3], span)))
				for j := 0; j < len(mine); j += wide {
					mine[j] = int32(int64(mine[j]) * kernel.LoadUnit / q)
				}
			}
			if o.Set != kernel.CVRP { // which has nothing else
				x, y := xs[i*n:][:n], ys[i*n:][:n]
				host.Draw(o.Set, mine, x, y, &o.Drawing, index)
			}
		}
		features(fs, xs, ys, ds, n, o.Rules)
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
