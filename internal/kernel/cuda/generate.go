package cuda

import "haul/internal/kernel"

// ruled names the module of a kernel that takes the rules' columns or context: each rule set has
// its own (scripts/ptx).
func ruled(module string, set kernel.RuleSet) string {
	if set == kernel.CVRP {
		return module
	}
	return module + "_" + set.String()
}

func (b *binder) generate(o *kernel.Generate) ([]launch, error) {
	nodes := o.PosX.Len()
	ls := []launch{{module: ruled("generate", o.Set), kernel: "generate", grid: dim3{ceil(nodes, 128), 1, 1}, block: dim3{128, 1, 1},
		args: []any{b.addr(o.PosX), b.addr(o.PosY), b.addr(o.Nodes), b.addr(o.Feature), b.state, o.Seed, uint32(o.Purpose), uint32(o.Grid),
			uint32(o.DemandMin), uint32(o.DemandMax - o.DemandMin + 1), o.Capacity, uint32(o.CapacityMin), capacities(o), i32(o.Symmetries),
			i32(nodes), i32(o.PosX.Shape[1]), o.Range}}}
	if o.Set == kernel.VRP || o.Set == kernel.MDVRP {
		ls[0].args = append(ls[0].args, o.Mix)
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
