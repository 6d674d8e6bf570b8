package cuda

import "haul/internal/kernel"

// perNode is one thread per node.
func perNode(name string, nodes int, args ...any) []launch {
	return []launch{{module: "generate", kernel: name, grid: dim3{ceil(nodes, 128), 1, 1}, block: dim3{128, 1, 1}, args: args}}
}

func (b *binder) generate(o *kernel.Generate) ([]launch, error) {
	return perNode("generate", o.PosX.Len(), b.addr(o.PosX), b.addr(o.PosY), b.addr(o.Demand), b.addr(o.Feature), b.state, o.Seed,
		uint32(o.Purpose), uint32(o.Grid), uint32(o.DemandMin), uint32(o.DemandMax-o.DemandMin+1), o.Capacity,
		uint32(o.CapacityMin), capacities(o), i32(o.Symmetries), i32(o.PosX.Len()), i32(o.PosX.Shape[1])), nil
}

// capacities is how many an instance's may be drawn from; 0: all have one.
func capacities(o *kernel.Generate) uint32 {
	if o.CapacityMax == 0 {
		return 0
	}
	return uint32(o.CapacityMax-o.CapacityMin) + 1
}

func (b *binder) feature(o *kernel.Feature) ([]launch, error) {
	return perNode("feature", o.PosX.Len(), b.addr(o.Feature), b.addr(o.PosX), b.addr(o.PosY), b.addr(o.Demand), o.Capacity,
		i32(o.PosX.Len()), i32(o.PosX.Shape[1])), nil
}
