package cuda

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"haul/internal/cu"
	"haul/internal/kernel"
)

const (
	adamwThreads = 256 // threads of src/once/adamw.cu
	adamwPlan    = 20  // bytes of its struct Plan
	muonThreads  = 512 // threads of src/once/muon.cu
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

// inGraph is the peer of an exchange that stands in the graph; nil where the host is needed.
func inGraph(o *kernel.Exchange) GraphPeer {
	if p, ok := o.Peer.(GraphPeer); ok && p.InGraph() {
		return p
	}
	return nil
}

// reduction is how the gradient is summed: the binder's, from Reduce on.
type reduction struct {
	every int
	// where sums of an update's parts wait for others, by level of the tree; 0: it has one
	parts uint64
	// the lanes are summed by a kernel of its own, because somebody wants the sum before it is used
	apart bool
}

func (b *binder) adamwBlocks() int {
	return max(1, min(ceil(ceil(b.laneSize, 4), adamwThreads), 4*b.sms))
}

// reduce has a launch only where something stands between it and adamw, which otherwise sums the
// lanes on its way.
func (b *binder) reduce(o *kernel.Reduce) ([]launch, error) {
	b.reduced.every = o.Every
	if o.Every > 1 {
		b.reduced.parts = b.scratch(4 * b.laneSize * bits.Len(uint(o.Every-1)))
	}
	if !b.reduced.apart {
		return nil, nil
	}
	return []launch{{module: "adamw", kernel: "reduce", grid: dim3{b.adamwBlocks(), 1, 1}, block: dim3{adamwThreads, 1, 1},
		args: []any{b.grads, b.state, i32(b.lanes), i32(b.laneSize), b.reduced.parts, uint32(o.Every)}}}, nil
}

// maxFixed is how many processes' gradients reduce_ranks adds up by the tree.
const maxFixed = 16

// exchange has no launches where the peer sums, in the graph or on the host. Where a step's parts
// are fixed, gradients are gathered and added up here.
func (b *binder) exchange(o *kernel.Exchange) ([]launch, error) {
	s := o.Peer.Share()
	if b.fixed = b.cuts > 0 && inGraph(o) != nil; !b.fixed {
		return nil, nil
	}
	if s.Parts() > maxFixed {
		return nil, fmt.Errorf("%s: fixed parts are for %d GPUs at most, here are %d", o.Kind(), maxFixed, s.Parts())
	}
	b.gathered = b.scratch(4 * b.laneSize * s.Parts())
	return []launch{{module: "adamw", kernel: "reduce_ranks", grid: dim3{b.adamwBlocks(), 1, 1}, block: dim3{adamwThreads, 1, 1},
		args: []any{b.grads, b.gathered, i32(s.Parts()), i32(b.laneSize)}}}, nil
}

// adamw takes the norm and decides in one launch, and updates in a second, beside which the step's
// closing advance may run. Muon's blocks have a third, beside the second, which has the rest.
func (b *binder) adamw(o *kernel.AdamW) ([]launch, error) {
	length := b.laneSize
	blocks := b.adamwBlocks()
	squares, turn, plan := b.scratch(8*blocks), b.scratch(4), b.scratch(adamwPlan)
	lanes, parts := b.lanes, b.reduced.parts
	if b.reduced.apart {
		lanes, parts = 1, 0
	}
	block := dim3{adamwThreads, 1, 1}
	out := []launch{
		{module: "adamw", kernel: "adamw_sum", grid: dim3{blocks, 1, 1}, block: block,
			args: []any{b.grads, squares, turn, plan, b.state, b.metrics, b.control, i32(lanes), i32(length), o.Beta1, o.Beta2, o.MaxNorm,
				i32(o.Warmup), i32(o.Total), o.Floor, parts, uint32(b.reduced.every)}}}
	var pieces uint64
	if o.Side > 0 {
		muon, err := b.muon(o, plan)
		if err != nil {
			return nil, err
		}
		out = append(out, muon...)
		pieces, length = b.rest(o)
	}
	if length > 0 {
		out = append(out, launch{module: "adamw", kernel: "adamw_update", grid: dim3{max(1, ceil(ceil(length, 4), adamwThreads)), 1, 1}, block: block, aside: true,
			args: []any{b.weights, b.bf16Weights, b.moment1, b.moment2, b.grads, plan, pieces, i32(length), float32(o.Beta1), float32(o.Beta2), o.Eps, o.Decay}})
	}
	return out, nil
}

// muon has a thread block for every block of weights; none where a layout has no such matrix.
func (b *binder) muon(o *kernel.AdamW, plan uint64) ([]launch, error) {
	blocks := o.Blocks()
	if len(blocks) == 0 {
		return nil, nil
	}
	if o.Side > kernel.MuonMost || muonShared > b.maxShared {
		return nil, fmt.Errorf("%s: Muon's blocks of %d by %d weights are not for this card, which has %d bytes of shared memory for a block of threads: use AdamW", o.Kind(), o.Side, o.Side, b.maxShared)
	}
	var table []byte
	for _, w := range blocks {
		table = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(table, uint32(w.Offset)), uint32(w.Stride))
	}
	return []launch{{module: "muon", kernel: "muon", grid: dim3{len(blocks), 1, 1}, block: dim3{muonThreads, 1, 1}, shared: muonShared, aside: true,
		args: []any{b.weights, b.bf16Weights, b.moment1, b.grads, plan, b.table(table), i32(o.Side), int32(kernel.MuonRounds), float32(kernel.MuonMomentum),
			float32(kernel.MuonA), float32(kernel.MuonB), float32(kernel.MuonC), float32(o.MuonStep()), o.Decay, float32(kernel.MuonEps)}}}, nil
}

// rest is the table of sixteens of weights that are in no block of Muon's, and how many weights
// that is; a null table and all of them without blocks.
func (b *binder) rest(o *kernel.AdamW) (pieces uint64, length int) {
	runs := o.Rest()
	if len(runs) == 1 && runs[0] == [2]int{0, b.laneSize} {
		return 0, b.laneSize
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
	return b.table(table), length
}
