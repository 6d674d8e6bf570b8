// Package plan records a training step as a kernel.Program: tensors, fused ops, the ops of the
// backward pass, and the place of each tensor in memory. Recipes and internal/policy record with
// it; a device compiles the program and replays it.
//
// Ops are recorded in execution order. Both ends of a residual connection may share a gradient
// buffer: the backward pass records every reader of the later gradient before any writer of the
// earlier one.
package plan

import (
	"fmt"

	"haul/internal/kernel"
)

// Plan is a program that is being recorded. Its methods panic if shapes do not match.
type Plan struct {
	prog       *kernel.Program
	tape       []func()
	grads      map[*kernel.Tensor]*kernel.Tensor
	ready      map[*kernel.Tensor]bool           // gradients that have been written
	gelu       map[*kernel.Tensor]*kernel.Tensor // by result of a GELU: the GELU's input
	made       map[*kernel.Tensor]bool           // results of ops that have a gradient
	peer       kernel.Peer
	wholeBatch bool // the device runs the whole batch as one shard
	shardSize  int  // instances of a shard, unless the batch has fewer
	gradParts  int  // parts of a step over all ranks; 0: one per rank
	groupSize  int  // consecutive instances that stay in one shard
	// layout of weight sets 1 and up if it differs from that of set 0
	frozen *kernel.Layout
	unread map[*kernel.Tensor]*kernel.Tensor // by frozen weight: where its gradient is discarded
	apart  bool                              // see Apart
	w, dw  map[weightKey]*kernel.Tensor
}

type weightKey struct{ set, param int }

// New starts a recording for steps of `batch` instances of `nodes` nodes on dev.
func New(name string, dev kernel.Device, batch, nodes int, layout *kernel.Layout) *Plan {
	size := dev.ShardSize(nodes)
	shard := min(max(1, size), batch)
	return &Plan{
		wholeBatch: size == kernel.WholeBatch, shardSize: max(1, size), groupSize: 1,
		prog:  &kernel.Program{Name: name, Batch: batch, Shard: shard, Layout: layout, Sets: 1},
		grads: map[*kernel.Tensor]*kernel.Tensor{}, ready: map[*kernel.Tensor]bool{}, gelu: map[*kernel.Tensor]*kernel.Tensor{}, made: map[*kernel.Tensor]bool{},
		w: map[weightKey]*kernel.Tensor{}, dw: map[weightKey]*kernel.Tensor{}, unread: map[*kernel.Tensor]*kernel.Tensor{},
	}
}

// B returns the number of instances in a shard, which is the leading dimension of all shard
// tensors.
func (p *Plan) B() int { return p.prog.Shard }

// Batch returns the number of instances in a step, or in this rank's part of it.
func (p *Plan) Batch() int { return p.prog.Batch }

// Program returns the recorded program, with its tensors placed in memory.
func (p *Plan) Program() *kernel.Program {
	place(p.prog)
	return p.prog
}

// Compile places the tensors in memory and compiles the program on the device.
func (p *Plan) Compile(dev kernel.Device, sets ...kernel.Store) (kernel.Runner, error) {
	if len(sets) < p.prog.Sets {
		return nil, fmt.Errorf("compile %s: %d weight sets given, %d needed", p.prog.Name, len(sets), p.prog.Sets)
	}
	return dev.Compile(p.Program(), sets)
}

func (p *Plan) newTensor(name string, ty kernel.Type, sp kernel.Space, shape []int) *kernel.Tensor {
	t := &kernel.Tensor{Name: name, Type: ty, Space: sp, Shape: shape, Stride: shape[len(shape)-1], ID: len(p.prog.Tensors)}
	p.prog.Tensors = append(p.prog.Tensors, t)
	return t
}

// Shard returns a float tensor that exists while a shard runs.
func (p *Plan) Shard(name string, shape ...int) *kernel.Tensor {
	return p.newTensor(name, kernel.F32, kernel.Shard, shape)
}

// ShardInts returns an integer tensor that exists while a shard runs.
func (p *Plan) ShardInts(name string, shape ...int) *kernel.Tensor {
	return p.newTensor(name, kernel.I32, kernel.Shard, shape)
}

// Rows returns a float tensor with a row for every instance of the batch, which is kept after the
// step.
func (p *Plan) Rows(name string, shape ...int) *kernel.Tensor {
	return p.newTensor(name, kernel.F32, kernel.Batch, shape)
}

// RowInts is Rows for integers.
func (p *Plan) RowInts(name string, shape ...int) *kernel.Tensor {
	return p.newTensor(name, kernel.I32, kernel.Batch, shape)
}

// Whole returns an integer tensor that the host writes before the first step and all shards read.
func (p *Plan) Whole(name string, n int) *kernel.Tensor {
	return p.newTensor(name, kernel.I32, kernel.Data, []int{n})
}

// Compact permits devices that compute in bf16 to store t and its gradient in bf16. It returns t.
func Compact(t *kernel.Tensor) *kernel.Tensor {
	t.Compact = true
	return t
}

// Keep gives t a row for every instance of the batch, so that the host can read it after the step.
// It returns t.
func Keep(t *kernel.Tensor) *kernel.Tensor {
	t.Root().Space = kernel.Batch
	return t
}

// Columns returns a view of columns [from, to) of t.
func (p *Plan) Columns(t *kernel.Tensor, from, to int) *kernel.Tensor {
	shape := append([]int(nil), t.Shape...)
	shape[len(shape)-1] = to - from
	return &kernel.Tensor{Name: fmt.Sprintf("%s[%d:%d]", t.Name, from, to), Type: t.Type, Space: t.Space,
		Shape: shape, Offset: from, Stride: t.Stride, Parent: t, ID: t.ID}
}

// Weight returns parameter `param` of weight set `set`.
func (p *Plan) Weight(set, param int) *kernel.Tensor {
	p.prog.Sets = max(p.prog.Sets, set+1)
	return p.param(p.w, kernel.Weight, set, param)
}

// Frozen sets a separate layout for weight sets 1 and up: the program then learns other parameters
// in set 0 than those of the network. It must be called before an op is recorded.
func (p *Plan) Frozen(l *kernel.Layout) { p.frozen = l }

// Apart makes every instance learn as if it were alone in its batch: its weight does not depend on
// the number of instances. It must be called before an op is recorded.
func (p *Plan) Apart() { p.apart = true }

// total returns the number of instances by which a weight in the loss is divided.
func (p *Plan) total() int {
	if p.apart {
		return 1
	}
	return p.prog.Total()
}

// Unread makes ops that must compute the gradient of a frozen weight write it to an additional
// parameter of set 0, which is not read. It changes the layout: stores must be created after the
// recording.
func (p *Plan) Unread(w *kernel.Tensor) {
	if w == nil || p.unread[w] != nil {
		return
	}
	i := p.prog.Layout.Add("unread."+w.Name, kernel.InitZero, 1, w.Shape...)
	p.unread[w] = p.param(p.dw, kernel.Grad, 0, i)
}

// gradWeight returns the gradient tensor of a weight, or nil for a frozen weight.
func (p *Plan) gradWeight(w *kernel.Tensor) *kernel.Tensor {
	if g := p.unread[w]; g != nil {
		return g
	}
	if w == nil || w.Set != 0 {
		return nil
	}
	for k, t := range p.w {
		if t == w {
			return p.param(p.dw, kernel.Grad, 0, k.param)
		}
	}
	panic("plan: gradient of a tensor that is no weight: " + w.Name)
}

func (p *Plan) param(m map[weightKey]*kernel.Tensor, sp kernel.Space, set, param int) *kernel.Tensor {
	k := weightKey{set, param}
	if t, ok := m[k]; ok {
		return t
	}
	layout := p.prog.Layout
	if set > 0 && p.frozen != nil {
		layout = p.frozen
	}
	pr := layout.Params[param]
	t := p.newTensor(pr.Name, kernel.F32, sp, pr.Shape)
	t.Set, t.Offset = set, pr.Offset
	m[k] = t
	return t
}

// op records an op whose results have a gradient.
func (p *Plan) op(o kernel.Op) {
	p.prog.PerShard = append(p.prog.PerShard, o)
	o.Args(func(t *kernel.Tensor, a kernel.Access) {
		if a == kernel.Write {
			p.made[t.Root()] = true
		}
	})
}

// reverse adds an op's backward function to the tape.
func (p *Plan) reverse(f func()) { p.tape = append(p.tape, f) }

// Append records an op without a gradient: the backward pass ends at its results.
func (p *Plan) Append(o kernel.Op) { p.prog.PerShard = append(p.prog.PerShard, o) }

// Once records an op that runs once per step, after all shards.
func (p *Plan) Once(o kernel.Op) { p.prog.Once = append(p.prog.Once, o) }

// SetGroupSize keeps groups of `rows` consecutive instances in one shard and one part of a step.
// The batch must be a multiple of rows. It must be called before SplitStep, Distribute and the
// first op.
func (p *Plan) SetGroupSize(rows int) {
	p.groupSize = max(1, rows)
	if p.prog.Batch%p.groupSize != 0 {
		panic(fmt.Sprintf("plan: groups of %d in a batch of %d", p.groupSize, p.prog.Batch))
	}
	if p.wholeBatch {
		return
	}
	p.shardSize = max(1, (p.shardSize+p.groupSize/2)/p.groupSize) * p.groupSize
	p.prog.Shard = min(p.shardSize, p.prog.Batch)
}

// PartitionBatch reduces the batch to this rank's part of every step. Losses are still divided by
// the number of instances of the whole step. It must be called before an op is recorded.
func (p *Plan) PartitionBatch(s kernel.Share) error {
	n, unit, full := s.Parts(), p.prog.Shard, p.shardSize
	if p.wholeBatch {
		unit, full = p.groupSize, p.groupSize
	}
	if s.Cuts = p.gradParts; s.Cuts > 0 {
		if !kernel.Blocks(s.Cuts, n) {
			return fmt.Errorf("%d ranks cannot share the %d parts of a gradient: use a power of two that divides them", n, s.Cuts)
		}
		n = s.Cuts
	}
	if p.prog.Batch%(n*unit) != 0 {
		in, fewer := "shards", "ranks"
		if p.wholeBatch {
			in = "groups"
		}
		if s.Cuts > 0 {
			fewer = "parts"
		}
		return p.uneven(n, unit, in, n*full, fewer)
	}
	p.prog.Share, p.prog.Batch = s, p.prog.Batch/n
	if p.wholeBatch {
		p.prog.Shard = p.prog.Batch
	}
	return nil
}

// uneven returns an error if the batch cannot be divided into n equal parts of whole units, called
// name.
func (p *Plan) uneven(n, unit int, name string, multiple int, fewer string) error {
	in, advice := "", fmt.Sprintf("use a multiple of %d, or fewer %s", multiple, fewer)
	if unit > 1 {
		in = fmt.Sprintf(" in %s of %d", name, unit)
	}
	// a device with shards sums in lanes, whose number is a power of two: no batch size would help
	if !p.wholeBatch && fewer == "ranks" && n&(n-1) != 0 {
		advice = "use a number of ranks that is a power of two"
	}
	return fmt.Errorf("a batch of %d%s does not cut into %d equal parts: %s", p.prog.Batch, in, n, advice)
}

// SplitStep divides a step into equal parts and sums their gradients. A device processes one part
// at a time. A device that runs its batch as one shard sums parts in the order of a tree, so that
// the weights do not depend on the number of ranks. On other devices parts do not change the order
// of sums (kernel.Program.Turns). peer connects the ranks; nil: a single process. It must be called
// before an op is recorded.
func (p *Plan) SplitStep(parts int, peer kernel.Peer) error {
	switch {
	case parts <= 1:
	case p.wholeBatch:
		p.gradParts = parts
	case p.prog.Batch%(parts*p.groupSize) != 0:
		return p.uneven(parts, p.groupSize, "groups", parts*p.groupSize, "parts")
	default:
		p.prog.Turns = parts
	}
	switch {
	case peer != nil:
		return p.Distribute(peer)
	case p.gradParts > 0:
		return p.PartitionBatch(kernel.Share{})
	}
	return nil
}

// Distribute partitions steps over the ranks of peer, which sums the gradient before Optimize uses
// it. It must be called before an op is recorded.
func (p *Plan) Distribute(peer kernel.Peer) error {
	p.peer = peer
	return p.PartitionBatch(peer.Share())
}

// Optimize records the update by o. The gradient is summed over `every` steps if that is above 1,
// and over ranks after Distribute, then clipped and applied.
func (p *Plan) Optimize(o *kernel.AdamW, every int) {
	o.Layout = p.prog.Layout
	p.Once(&kernel.Reduce{Layout: o.Layout, Every: every * p.prog.Share.Runs()})
	if p.peer != nil {
		p.Once(&kernel.Exchange{Layout: o.Layout, Peer: p.peer})
	}
	p.Once(o)
}

// Scalar returns a number that keeps its value from step to step.
func (p *Plan) Scalar(name string) *kernel.Tensor {
	t := p.newTensor(name, kernel.F64, kernel.Scalar, []int{1})
	t.Offset = len(p.prog.Scalars()) - 1
	return t
}

// Backward records the backward ops of all recorded ops that have a gradient, in reverse order.
func (p *Plan) Backward() {
	for i := len(p.tape) - 1; i >= 0; i-- {
		p.tape[i]()
	}
	p.tape = nil
}

// Grad returns the gradient buffer of t. It creates the buffer at the first call.
func (p *Plan) Grad(t *kernel.Tensor) *kernel.Tensor {
	if t.Parent != nil { // a view has the same view of the gradient
		whole, v := p.Grad(t.Parent), *t
		v.Name, v.Type, v.Space, v.Parent, v.ID = "d."+t.Name, whole.Type, whole.Space, whole, whole.ID
		return &v
	}
	g, ok := p.grads[t]
	if !ok {
		g = p.Shard("d."+t.Name, t.Shape...)
		g.Compact = t.Compact
		p.grads[t] = g
	}
	return g
}

// contribute returns t's gradient, and whether a writer must add to its value.
func (p *Plan) contribute(t *kernel.Tensor) (g *kernel.Tensor, accumulate bool) {
	g = p.Grad(t)
	accumulate = p.ready[t]
	p.ready[t] = true
	return g, accumulate
}

// SeedGrad declares that g holds the gradient of t, from which the backward pass continues.
func (p *Plan) SeedGrad(t, g *kernel.Tensor) {
	p.grads[t] = g
	p.ready[t] = true
}

// share makes the input of a residual connection use the output's gradient buffer.
func (p *Plan) share(residual, y *kernel.Tensor) {
	if residual == nil {
		return
	}
	if p.ready[residual] {
		panic("plan: residual input " + residual.Name + " has a gradient before its connection is reversed")
	}
	p.grads[residual], p.ready[residual] = p.Grad(y), true
}
