package routing

import (
	"math"

	"haul/internal/kernel"
	"haul/internal/kernel/cpu/isa"
	"haul/internal/kernel/cpu/run"
	"haul/internal/rules"
	"haul/internal/rules/walk"
)

// The rules of a problem file: each worker has a machine, which holds one instance and the routes
// under way.

// generateFile is generate where the rules are a problem file's.
func generateFile(b *run.Binder, o *kernel.Generate) func(*run.Worker) {
	posX, posY, nodes, feature := b.Ref(o.PosX), b.Ref(o.PosY), b.Ref(o.Nodes), b.Ref(o.Feature)
	instances, n := o.PosX.Shape[0], o.PosX.Shape[1]
	p, size, seen := o.Set.Problem(), o.Set.Words(n), n*len(o.Set.Features())
	wide, all := len(p.Node), machines(b, o.Set, n, 0)
	d := &rules.Drawing{Seed: o.Seed, Purpose: o.Purpose, Grid: o.Grid, Symmetries: o.Symmetries}
	return func(w *run.Worker) {
		m, xs, ys, fs := all[w.ID], posX.Of(w), posY.Of(w), feature.Of(w)
		packed := isa.Unsigned(isa.Ints(nodes.Of(w)))
		for i := range instances {
			words := packed[i*size:][:size]
			m.Draw(d, w.First+uint64(w.Row+i), words)
			m.Features(words, fs[i*seen:][:seen])
			if p.X < 0 {
				clear(xs[i*n:][:n])
				clear(ys[i*n:][:n])
				continue
			}
			for j := range n {
				xs[i*n+j], ys[i*n+j] = math.Float32frombits(words[j*wide+p.X]), math.Float32frombits(words[j*wide+p.Y])
			}
		}
	}
}

// instance returns instance i, which the worker's machine takes up where the rules are a file's.
func (d *decoder) instance(w *run.Worker, i int) instance {
	nodes := isa.Ints(d.nodes.Of(w))
	if d.machines == nil {
		return newInstance(nodes, i, d.n, d.rules)
	}
	m, words := d.machines[w.ID], d.rules.Set.Words(d.n)
	m.Open(isa.Unsigned(nodes)[i*words:][:words])
	return instance{machine: m}
}

// machines returns a machine for each worker where the rules are a problem file's, else nil.
func machines(b *run.Binder, set kernel.RuleSet, nodes, routes int) []*walk.Machine {
	p := set.Problem()
	if p == nil {
		return nil
	}
	out := make([]*walk.Machine, b.Runner.Device.Workers)
	for i := range out {
		out[i] = walk.New(p, nodes-p.File.Depots, routes)
	}
	return out
}

// strand ends the route of a vehicle that may go nowhere and returns what the route costs.
func (v *vehicle) strand(in instance) float32 {
	in.machine.Strand(v.file)
	return v.file.Cost
}

// begin returns the first action of a start that is to begin at a customer: that one, or the next
// that the rules allow; -1 if they allow no node.
func (v *vehicle) begin(customer int, mask []uint64, in instance) int32 {
	if in.machine == nil {
		return int32(customer)
	}
	n, other := v.allow(mask, in)
	if n == 0 {
		return -1
	}
	all := in.machine.Customers()
	for k := range all {
		if j := (customer-1+k)%all + 1; mask[j>>6]>>(j&63)&1 != 0 {
			return int32(j)
		}
	}
	return other // a depot
}
