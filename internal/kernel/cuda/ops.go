package cuda

import (
	"fmt"
	"slices"

	"haul/internal/kernel"
	"haul/internal/kernel/cuda/attention"
	"haul/internal/kernel/cuda/bind"
	"haul/internal/kernel/cuda/dense"
	"haul/internal/kernel/cuda/fuse"
	"haul/internal/kernel/cuda/optimizer"
	"haul/internal/kernel/cuda/routing"
	"haul/internal/kernel/cuda/sequence"
)

// launchesOfAll binds ops in their order. Where a gradient has several writers, followers wait for
// all of what an op launches: a later writer adds to what an earlier one leaves.
func launchesOfAll(b *bind.Binder, ops []kernel.Op) ([][]bind.Launch, error) {
	out := make([][]bind.Launch, len(ops))
	b.Layered = slices.ContainsFunc(ops, func(op kernel.Op) bool { _, ok := op.(*fuse.LayerTail); return ok })
	for i, op := range ops {
		var err error
		if out[i], err = launchesOf(b, op); err != nil {
			return nil, err
		}
	}
	if b.Again {
		for _, ls := range out {
			for i := range ls {
				ls[i].Aside = false
			}
		}
	}
	return out, nil
}

// families are those of ops. A family's function reports false for an op of another.
var families = []func(*bind.Binder, kernel.Op) (launches []bind.Launch, known bool, err error){
	dense.Bind, attention.Bind, routing.Bind, sequence.Bind, optimizer.Bind,
}

// launchesOf returns the launches of one op, which run in order.
func launchesOf(b *bind.Binder, op kernel.Op) ([]bind.Launch, error) {
	if b.Absorbed[op] != nil {
		return nil, nil
	}
	if launches := b.Fused[op]; launches != nil {
		return launches(), nil
	}
	if o, ok := op.(fuse.Joined); ok {
		return o.Bind(b)
	}
	for _, family := range families {
		if ls, known, err := family(b, op); known {
			return ls, err
		}
	}
	if b.AnyCompact(op) {
		return nil, fmt.Errorf("the GPU has no op %s over tensors in bf16", op.Kind())
	}
	return nil, fmt.Errorf("the GPU has no op %s", op.Kind())
}
