package optimizer

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"haul/internal/cu"
	"haul/internal/kernel"
	"haul/internal/kernel/cuda/bind"
)

const (
	AdamwThreads = 256 // threads of src/adamw.cu
	adamwPlan    = 20  // bytes of its struct Plan
	muonThreads  = 512 // threads of src/muon.cu
	muonShared   = 2 * 2 * kernel.MuonMost * kernel.MuonMost
)

// GraphPeer is a kernel.Peer that stands in a step's graph, where the host is not: between two of
// its kernels it has nodes of its own. Any other Peer gets the gradient in page-locked memory of
// the host, between two graphs.
type GraphPeer interface {
	kernel.Peer
	// InGraph tells whether it can.
	InGraph() bool
	// Record adds nodes that run after those in wait and replace the n floats at grads, and returns
	// those that what follows waits for. It may use the stream, on which nothing is queued.
	Record(g *cu.Graph, s cu.Stream, grads uint64, n int, wait []cu.Node) ([]cu.Node, error)
	// RecordGather likewise leaves every process's n floats at `all`, one after another by rank.
	RecordGather(g *cu.Graph, s cu.Stream, all, own uint64, n int, wait []cu.Node) ([]cu.Node, error)
}

// InGraph is the peer of an exchange that stands in the graph; nil where the host is needed.
func InGraph(o *kernel.Exchange) GraphPeer {
	if p, ok := o.Peer.(GraphPeer); ok && p.InGraph() {
		return p
	}
	return nil
}

func adamwBlocks(b *bind.Binder) int {
	return max(1, min(bind.Ceil(bind.Ceil(b.LaneSize, 4), AdamwThreads), 4*b.SMs))
}

// reduce has a launch only where something stands between it and adamw, which otherwise sums the
// lanes on its way.
func reduce(b *bind.Binder, o *kernel.Reduce) ([]bind.Launch, error) {
	b.Reduced.Every = o.Every
	if o.Every > 1 {
		b.Reduced.Parts = b.Scratch(4 * b.LaneSize * bits.Len(uint(o.Every-1)))
	}
	if !b.Reduced.Apart {
		return nil, nil
	}
	return []bind.Launch{{Module: "adamw", Kernel: "reduce", Grid: bind.Dim3{adamwBlocks(b), 1, 1}, Block: bind.Dim3{AdamwThreads, 1, 1},
		Args: []any{b.Grads, b.State, bind.I32(b.Lanes), bind.I32(b.LaneSize), b.Reduced.Parts, uint32(o.Every)}}}, nil
}

// maxFixed is how many processes' gradients reduce_ranks adds up by the tree.
const maxFixed = 16

// exchange has no launches where the peer sums, in the graph or on the host. Where a step's parts
// are fixed, gradients are gathered and added up here.
func exchange(b *bind.Binder, o *kernel.Exchange) ([]bind.Launch, error) {
	s := o.Peer.Share()
	if b.Fixed = b.Cuts > 0 && InGraph(o) != nil; !b.Fixed {
		return nil, nil
	}
	if s.Parts() > maxFixed {
		return nil, fmt.Errorf("%s: fixed parts are for %d GPUs at most, here are %d", o.Kind(), maxFixed, s.Parts())
	}
	b.Gathered = b.Scratch(4 * b.LaneSize * s.Parts())
	return []bind.Launch{{Module: "adamw", Kernel: "reduce_ranks", Grid: bind.Dim3{adamwBlocks(b), 1, 1}, Block: bind.Dim3{AdamwThreads, 1, 1},
		Args: []any{b.Grads, b.Gathered, bind.I32(s.Parts()), bind.I32(b.LaneSize)}}}, nil
}

// adamw takes the norm and decides in one launch, and updates in a second, beside which the step's
// closing advance may run. Muon's blocks have a third, beside the second, which has the rest.
func adamw(b *bind.Binder, o *kernel.AdamW) ([]bind.Launch, error) {
	length := b.LaneSize
	blocks := adamwBlocks(b)
	squares, turn, plan := b.Scratch(8*blocks), b.Scratch(4), b.Scratch(adamwPlan)
	lanes, parts := b.Lanes, b.Reduced.Parts
	if b.Reduced.Apart {
		lanes, parts = 1, 0
	}
	block := bind.Dim3{AdamwThreads, 1, 1}
	out := []bind.Launch{
		{Module: "adamw", Kernel: "adamw_sum", Grid: bind.Dim3{blocks, 1, 1}, Block: block,
			Args: []any{b.Grads, squares, turn, plan, b.State, b.Metrics, b.Control, bind.I32(lanes), bind.I32(length), o.Beta1, o.Beta2, o.MaxNorm,
				bind.I32(o.Warmup), bind.I32(o.Total), o.Floor, parts, uint32(b.Reduced.Every)}}}
	var pieces uint64
	if o.Side > 0 {
		muon, err := muon(b, o, plan)
		if err != nil {
			return nil, err
		}
		out = append(out, muon...)
		pieces, length = rest(b, o)
	}
	if length > 0 {
		out = append(out, bind.Launch{Module: "adamw", Kernel: "adamw_update", Grid: bind.Dim3{max(1, bind.Ceil(bind.Ceil(length, 4), AdamwThreads)), 1, 1}, Block: block, Aside: true,
			Args: []any{b.Weights, b.Bf16Weights, b.Moment1, b.Moment2, b.Grads, plan, pieces, bind.I32(length), float32(o.Beta1), float32(o.Beta2), o.Eps, o.Decay}})
	}
	return out, nil
}

// muon has a thread block for every block of weights; none where a layout has no such matrix.
func muon(b *bind.Binder, o *kernel.AdamW, plan uint64) ([]bind.Launch, error) {
	blocks := o.Blocks()
	if len(blocks) == 0 {
		return nil, nil
	}
	if o.Side > kernel.MuonMost || muonShared > b.MaxShared {
		return nil, fmt.Errorf("%s: Muon's blocks of %d by %d weights are not for this card, which has %d bytes of shared memory for a block of threads: use AdamW", o.Kind(), o.Side, o.Side, b.MaxShared)
	}
	var table []byte
	for _, w := range blocks {
		table = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(table, uint32(w.Offset)), uint32(w.Stride))
	}
	return []bind.Launch{{Module: "muon", Kernel: "muon", Grid: bind.Dim3{len(blocks), 1, 1}, Block: bind.Dim3{muonThreads, 1, 1}, Shared: muonShared, Aside: true,
		Args: []any{b.Weights, b.Bf16Weights, b.Moment1, b.Grads, plan, b.Table(table), bind.I32(o.Side), int32(kernel.MuonRounds), float32(kernel.MuonMomentum),
			float32(kernel.MuonA), float32(kernel.MuonB), float32(kernel.MuonC), float32(o.MuonStep()), o.Decay, float32(kernel.MuonEps)}}}, nil
}

// rest is the table of sixteens of weights that are in no block of Muon's, and how many weights
// that is; a null table and all of them without blocks.
func rest(b *bind.Binder, o *kernel.AdamW) (pieces uint64, length int) {
	runs := o.Rest()
	if len(runs) == 1 && runs[0] == [2]int{0, b.LaneSize} {
		return 0, b.LaneSize
	}
	var table []byte
	for _, run := range runs {
		for at := run[0]; at < run[1]; at += 16 {
			table = binary.LittleEndian.AppendUint32(table, uint32(at/16))
			length += 16
		}
	}
	if length == 0 {
		return 0, 0
	}
	return b.Table(table), length
}
