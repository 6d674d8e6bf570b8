// Package bind is what the families of ops share when they choose kernels: a launch, the sizes of
// the GPU, where tensors are, and the precision.
package bind

import (
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

// Binder turns the ops of one program into launches. The whole batch is one shard.
type Binder struct {
	Chip
	Division
	Addresses
	Precision    Precision
	Seen         map[int]bool // gradient offsets that an earlier op writes
	Again        bool         // one of them has been written twice
	coefficients []string     // the control block's, by place
	Sums         []string     // the metrics', by place
	Reduced      Reduction
	// launches of a kernel that does several ops, by the op in whose place they stand
	Fused map[kernel.Op]func() []Launch
	// for each other one of these ops, the op that has the launches
	Absorbed  map[kernel.Op]kernel.Op
	Layered   bool              // there are joined layers, whose passes may be done in parts of the batch
	Rotations map[[2]int]uint64 // tables of Rotate, by width and positions
}

// GradLanes is how many partial sums each gradient is made of: enough blocks to fill a card, few
// enough to add quickly.
const GradLanes = 8

// Reduction is how the gradient is summed: the binder's, from Reduce on.
type Reduction struct {
	Every int
	// where sums of an update's parts wait for others, by level of the tree; 0: it has one
	Parts uint64
	// the lanes are summed by a kernel of its own, because somebody wants the sum before it is used
	Apart bool
}

// Chip is what launches are sized by.
type Chip struct {
	SMs       int  // multiprocessors of the card
	MaxShared int  // bytes of shared memory a block may ask for
	Memory    int  // bytes of the card's memory; 0: not known
	Hopper    bool // the card has the instructions of sm_90a
}

// Division is how a step is cut, and by whom its gradients are added up.
type Division struct {
	Batch    int    // instances in a step, of this process
	Parts    int    // pieces that the step is cut into, of all processes
	Cuts     int    // the same where their number is fixed, whoever runs them; else 0
	Lanes    int    // gradient partial sums kept apart
	Fixed    bool   // gradients of all processes are gathered and added up by the tree
	Gathered uint64 // where they are then
}

// Addresses is where in the card's memory things are.
type Addresses struct {
	Address  func(t *kernel.Tensor) uint64 // where the tensor's first element is; Grad: in lane 0
	Bf16     func(w *kernel.Tensor) uint64 // where the bf16 copy of a weight is, in precision bf16
	LaneSize int                           // floats between a gradient's lanes
	// device memory private to the op being bound, kept for the program's life
	Scratch     func(bytes int) uint64
	Table       func(data []byte) uint64 // device memory with this in it, kept for the program's life
	Tiled       func(m cu.Matrix) uint64 // device memory with its description to the copy engine
	Weights     uint64                   // flat weights of set 0
	Bf16Weights uint64                   // their bf16 copy; 0 in other precisions
	Moment1     uint64                   // AdamW's moments, where set 0 is trained
	Moment2     uint64
	Grads       uint64 // gradient lanes, lane 0 first
	Control     uint64 // struct Control of src/common/haul.cuh
	State       uint64 // struct State
	Metrics     uint64 // struct Metrics
}

// New knows of the program what no op says.
func New(p *kernel.Program) *Binder {
	return &Binder{Division: Division{Lanes: GradLanes, Batch: p.Batch, Parts: p.Share.Parts() * p.Share.Runs(), Cuts: p.Share.Cuts}, Seen: map[int]bool{}, Rotations: map[[2]int]uint64{}, coefficients: p.Coefficients(), Sums: p.Sums(), Reduced: Reduction{Apart: p.Exchanges()}}
}

// Coefficient is a coefficient's place in the control block; -1 for none.
func (b *Binder) Coefficient(name string) int32 { return I32(slices.Index(b.coefficients, name)) }
