package routing

import (
	"haul/internal/kernel"
	"haul/internal/kernel/cuda/bind"
)

// Ruled names the module of a kernel that takes the rules' columns or context: each rule set has
// its own (scripts/ptx).
func Ruled(module string, set kernel.RuleSet) string {
	if set == kernel.CVRP {
		return module
	}
	return module + "_" + set.String()
}

func generate(b *bind.Binder, o *kernel.Generate) ([]bind.Launch, error) {
	nodes := o.PosX.Len()
	ls := []bind.Launch{{Module: Ruled("generate", o.Set), Kernel: "generate", Grid: bind.Dim3{bind.Ceil(nodes, 128), 1, 1}, Block: bind.Dim3{128, 1, 1},
		Args: []any{b.Addr(o.PosX), b.Addr(o.PosY), b.Addr(o.Nodes), b.Addr(o.Feature), b.State, o.Seed, uint32(o.Purpose), uint32(o.Grid),
			uint32(o.DemandMin), uint32(o.DemandMax - o.DemandMin + 1), o.Capacity, uint32(o.CapacityMin), capacities(o), bind.I32(o.Symmetries),
			bind.I32(nodes), bind.I32(o.PosX.Shape[1]), o.Range}}}
	if o.Set == kernel.VRP || o.Set == kernel.MDVRP {
		ls[0].Args = append(ls[0].Args, o.Mix)
	}
	return ls, nil
}

// capacities is how many an instance's may be drawn from; 0: all have one.
func capacities(o *kernel.Generate) uint32 {
	if o.CapacityMax == 0 {
		return 0
	}
	return uint32(o.CapacityMax-o.CapacityMin) + 1
}
