// Package cuda runs Haul's ops on NVIDIA GPUs through the driver alone: kernels are PTX made
// from the .cu files in src/ (a folder per family of ops), embedded, and a whole step is one graph.
//
// What a reader could break: a graph's nodes may run at the same time unless the tensors that
// their ops name (kernel.Op.Args) say otherwise, so an op that touches memory it does not
// name is a race. Sums that end in a weight's gradient are made in lanes and added in lane order:
// no atomics on floats, so that two runs give the same bits.
package cuda

import (
	"fmt"
	"slices"

	"haul/internal/cu"
	"haul/internal/kernel"
)

// Precision is what matrix products multiply in; sums are always fp32.
type Precision string

// The precisions.
const (
	FP32 Precision = "fp32" // fused multiply-adds, for exact comparison
	TF32 Precision = "tf32" // tensor cores, 10-bit mantissa
	BF16 Precision = "bf16" // tensor cores, 7-bit mantissa; what is not Compact stays fp32 in memory
)

// binder turns the ops of one program into launches. The whole batch is one shard.
type binder struct {
	chip
	cut
	room
	precision    Precision
	seen         map[int]bool // gradient offsets that an earlier op writes
	again        bool         // one of them has been written twice
	coefficients []string     // the control block's, by place
	sums         []string     // the metrics', by place
	reduced      reduction
	joins        joins
	layered      bool              // there are joined layers, whose passes may be done in parts of the batch
	rotations    map[[2]int]uint64 // tables of Rotate, by width and positions
}

// chip is what launches are sized by.
type chip struct {
	sms       int  // multiprocessors of the card
	maxShared int  // bytes of shared memory a block may ask for
	memory    int  // bytes of the card's memory; 0: not known
	hopper    bool // the card has the instructions of sm_90a
}

// cut is how a step is cut, and by whom its gradients are added up.
type cut struct {
	batch    int    // instances in a step, of this process
	parts    int    // pieces that the step is cut into, of all processes
	cuts     int    // the same where their number is fixed, whoever runs them; else 0
	lanes    int    // gradient partial sums kept apart
	fixed    bool   // gradients of all processes are gathered and added up by the tree
	gathered uint64 // where they are then
}

// room is where in the card's memory things are.
type room struct {
	address  func(t *kernel.Tensor) uint64 // where the tensor's first element is; Grad: in lane 0
	bf16     func(w *kernel.Tensor) uint64 // where the bf16 copy of a weight is, in precision bf16
	laneSize int                           // floats between a gradient's lanes
	// device memory private to the op being bound, kept for the program's life
	scratch     func(bytes int) uint64
	table       func(data []byte) uint64 // device memory with this in it, kept for the program's life
	tiled       func(m cu.Matrix) uint64 // device memory with its description to the copy engine
	weights     uint64                   // flat weights of set 0
	bf16Weights uint64                   // their bf16 copy; 0 in other precisions
	moment1     uint64                   // AdamW's moments, where set 0 is trained
	moment2     uint64
	grads       uint64 // gradient lanes, lane 0 first
	control     uint64 // struct Control of src/common/haul.cuh
	state       uint64 // struct State
	metrics     uint64 // struct Metrics
}

// newBinder knows of the program what no op says.
func newBinder(p *kernel.Program) *binder {
	return &binder{cut: cut{lanes: gradLanes, batch: p.Batch, parts: p.Share.Parts() * p.Share.Runs(), cuts: p.Share.Cuts}, seen: map[int]bool{}, rotations: map[[2]int]uint64{}, coefficients: p.Coefficients(), sums: p.Sums(), reduced: reduction{apart: p.Exchanges()}}
}

// coefficient is a coefficient's place in the control block; -1 for none.
func (b *binder) coefficient(name string) int32 { return i32(slices.Index(b.coefficients, name)) }

// bindAll binds ops in their order. Where a gradient has several writers, followers wait for all of
// what an op launches: a later writer adds to what an earlier one leaves.
func (b *binder) bindAll(ops []kernel.Op) ([][]launch, error) {
	out := make([][]launch, len(ops))
	b.layered = slices.ContainsFunc(ops, func(op kernel.Op) bool { _, ok := op.(*layerTail); return ok })
	for i, op := range ops {
		var err error
		if out[i], err = b.bind(op); err != nil {
			return nil, err
		}
	}
	if b.again {
		for _, ls := range out {
			for i := range ls {
				ls[i].aside = false
			}
		}
	}
	return out, nil
}

// bind returns the launches of one op; they run in order.
func (b *binder) bind(op kernel.Op) ([]launch, error) {
	if b.joins.done[op] {
		return nil, nil
	}
	if o, ok := op.(joined); ok {
		return o.bind(b)
	}
	if b.anyCompact(op) {
		return b.bindBF16(op)
	}
	switch o := op.(type) {
	case *kernel.Linear:
		return b.linear(o)
	case *kernel.LinearGradX:
		return b.linearGradX(o)
	case *kernel.LinearGradW:
		return b.linearGradW(o)
	case *kernel.Norm:
		return b.norm(o)
	case *kernel.NormGrad:
		return b.normGrad(o)
	case *kernel.GLU:
		return b.glu(o)
	case *kernel.GLUGrad:
		return b.gluGrad(o)
	case *kernel.Dropout:
		return b.dropout(o)
	case *kernel.MeanNodes:
		return b.meanNodes(o)
	case *kernel.MeanNodesGrad:
		return b.meanNodesGrad(o)
	case *kernel.Attention:
		return b.attention(o)
	case *kernel.AttentionGrad:
		return b.attentionGrad(o)
	case *kernel.GraphAttention:
		return b.graphAttention(o)
	case *kernel.GraphAttentionGrad:
		return b.graphAttentionGrad(o)
	case *kernel.Generate:
		return b.generate(o)
	case *kernel.Embed:
		return b.embed(o)
	case *kernel.EmbedGrad:
		return b.embedGrad(o)
	case *kernel.Rotate:
		return b.rotate(o)
	case *kernel.Spread:
		return b.spread(o)
	case *kernel.SpreadGrad:
		return b.spreadGrad(o)
	case *kernel.CausalAttention:
		return b.causal(o)
	case *kernel.CausalAttentionGrad:
		return b.causalGrad(o)
	case *kernel.CacheAttention:
		return b.cached(o)
	case *kernel.CrossEntropy:
		return b.crossEntropy(o)
	case *kernel.GRU:
		return b.gru(o)
	case *kernel.GRUGrad:
		return b.gruGrad(o)
	case *kernel.PPO:
		return b.ppo(o)
	case *kernel.Regions:
		return b.regions(o)
	case *kernel.Rollout:
		return b.rollout(o)
	case *kernel.RolloutGrad:
		return b.rolloutGrad(o)
	case *kernel.Advantage:
		return b.advantage(o)
	case *kernel.AdamW:
		return b.adamw(o)
	case *kernel.Reduce:
		return b.reduce(o)
	case *kernel.Exchange:
		return b.exchange(o)
	case *kernel.Tally:
		return b.tally(o)
	case *kernel.RunningMean:
		return b.runningMean(o)
	}
	return nil, fmt.Errorf("the GPU has no op %s", op.Kind())
}
