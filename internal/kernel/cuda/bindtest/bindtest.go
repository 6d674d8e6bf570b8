// Package bindtest makes binders and ops on made-up addresses for the tests of the families.
package bindtest

import (
	"haul/internal/kernel"
	"haul/internal/kernel/cuda/bind"
)

// New is a binder for a card like an H200, with tensors at addresses of their own.
func New(batch int, precision bind.Precision) *bind.Binder {
	next, addresses := uint64(1<<20), map[*kernel.Tensor]uint64{}
	take := func(bytes int) uint64 {
		at := next
		next += uint64(bytes+255) &^ 255
		return at
	}
	b := &bind.Binder{Precision: precision, Chip: bind.Chip{SMs: 132, MaxShared: 227 << 10}, Division: bind.Division{Lanes: 16, Batch: batch}, Addresses: bind.Addresses{LaneSize: 1 << 20, Scratch: take}, Seen: map[int]bool{}}
	b.Address = func(t *kernel.Tensor) uint64 {
		if _, ok := addresses[t]; !ok {
			addresses[t] = take(4 * t.Len())
		}
		return addresses[t]
	}
	return b
}

func Tensor(dims ...int) *kernel.Tensor {
	return &kernel.Tensor{Shape: dims, Stride: dims[len(dims)-1]}
}

func decoderOf(batch, n, heads, hd int) kernel.Decoder {
	d := heads * hd
	return kernel.Decoder{Proj: Tensor(batch, n, 3*d), Pointer: Tensor(batch, n, d), Graph: Tensor(batch, d), Context: Tensor(d), Heads: heads,
		Instances: kernel.Instances{Rules: kernel.Rules{Capacity: 30}, PosX: Tensor(batch, n), PosY: Tensor(batch, n), Nodes: Tensor(batch, n)}}
}

func Rollout(batch, n, heads, hd, starts int) *kernel.Rollout {
	return &kernel.Rollout{Decoder: decoderOf(batch, n, heads, hd), Actions: Tensor(batch, starts, 2*(n-1)), Steps: Tensor(batch, starts),
		Length: Tensor(batch, starts), LogProb: Tensor(batch, starts), Entropy: Tensor(batch, starts), Forced: starts > 1}
}

func RolloutGrad(o *kernel.Rollout) *kernel.RolloutGrad {
	batch, starts := o.Actions.Shape[0], o.Actions.Shape[1]
	return &kernel.RolloutGrad{Decoder: o.Decoder, DProj: Tensor(o.Proj.Shape...), DPointer: Tensor(o.Pointer.Shape...), DGraph: Tensor(o.Graph.Shape...),
		DContext: Tensor(o.Context.Shape...), Actions: o.Actions, Steps: o.Steps, Adv: Tensor(batch, starts), Weight: 1, Forced: o.Forced}
}

// BF16 binds to made-up addresses, one tensor's far from another's.
func BF16() *bind.Binder {
	const far = 1 << 40
	return &bind.Binder{Precision: bind.BF16, Chip: bind.Chip{SMs: 132, MaxShared: 227 << 10}, Division: bind.Division{Lanes: 8}, Seen: map[int]bool{},
		Addresses: bind.Addresses{LaneSize: 1 << 20,
			Address: func(t *kernel.Tensor) uint64 { return uint64(t.ID+1) * far },
			Bf16:    func(w *kernel.Tensor) uint64 { return uint64(w.ID+1)*far + far/4 },
			Scratch: func(int) uint64 { return far / 2 }}}
}
