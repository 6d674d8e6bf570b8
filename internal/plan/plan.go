// Package plan records a training step once, as data: tensors, fused ops, the gradients that
// reverse them, and where everything lies in memory. A device compiles the recording and replays
// it.
//
// What a reader could break: ops are recorded in execution order, and a gradient's buffer may be
// shared by the two ends of a residual connection. That is sound only because reversing the tape
// emits every reader of the later gradient before any writer of the earlier one.
package plan

import (
	"fmt"

	"haul/internal/kernel"
)

// Plan is a recording in progress. Errors in shapes are a caller's bug and panic.
type Plan struct {
	prog  *kernel.Program
	tape  []func()
	grads map[*kernel.Tensor]*kernel.Tensor
	ready map[*kernel.Tensor]bool           // gradients that hold something already
	gelu  map[*kernel.Tensor]*kernel.Tensor // results of a GELU: what it was applied to
	made  map[*kernel.Tensor]bool           // results of ops that have a gradient
	peer  kernel.Peer
	whole bool // the device takes the whole batch as one shard
	full  int  // instances of a shard where a batch has as many
	cuts  int  // parts of a step, whoever runs them; 0: as many as processes
	rows  int  // instances in turn that a shard does not part
	// layout of weight sets 1 and up where it is not that of set 0
	frozen *kernel.Layout
	unread map[*kernel.Tensor]*kernel.Tensor // frozen weights: where their gradient goes
	apart  bool                              // instances learn for themselves
	w, dw  map[weightKey]*kernel.Tensor
}

type weightKey struct{ set, param int }

// New starts a recording for steps of `batch` instances of `nodes` nodes on dev.
func New(name string, dev kernel.Device, batch, nodes int, layout *kernel.Layout) *Plan {
	size := dev.ShardSize(nodes)
	shard := min(max(1, size), batch)
	return &Plan{
		whole: size == kernel.WholeBatch, full: max(1, size), rows: 1,
		prog:  &kernel.Program{Name: name, Batch: batch, Shard: shard, Layout: layout, Sets: 1},
		grads: map[*kernel.Tensor]*kernel.Tensor{}, ready: map[*kernel.Tensor]bool{}, gelu: map[*kernel.Tensor]*kernel.Tensor{}, made: map[*kernel.Tensor]bool{},
		w: map[weightKey]*kernel.Tensor{}, dw: map[weightKey]*kernel.Tensor{}, unread: map[*kernel.Tensor]*kernel.Tensor{},
	}
}

// B is the number of instances in a shard: the leading dimension of everything recorded.
func (p *Plan) B() int { return p.prog.Shard }

// Batch is the number of instances in a step, or in this process's share of it.
func (p *Plan) Batch() int { return p.prog.Batch }

// Program returns the recording, with its memory placed.
func (p *Plan) Program() *kernel.Program {
	place(p.prog)
	return p.prog
}

// Compile places memory and hands the recording to the device.
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

// Shard makes a float tensor that lives while a shard runs.
func (p *Plan) Shard(name string, shape ...int) *kernel.Tensor {
	return p.newTensor(name, kernel.F32, kernel.Shard, shape)
}

// ShardInts makes an integer tensor that lives while a shard runs.
func (p *Plan) ShardInts(name string, shape ...int) *kernel.Tensor {
	return p.newTensor(name, kernel.I32, kernel.Shard, shape)
}

// Rows makes a float tensor with a row for every instance of the batch, kept after the step.
func (p *Plan) Rows(name string, shape ...int) *kernel.Tensor {
	return p.newTensor(name, kernel.F32, kernel.Batch, shape)
}

// RowInts is Rows for integers.
func (p *Plan) RowInts(name string, shape ...int) *kernel.Tensor {
	return p.newTensor(name, kernel.I32, kernel.Batch, shape)
}

// Whole makes an integer tensor that the host writes before the first step and every shard reads.
func (p *Plan) Whole(name string, n int) *kernel.Tensor {
	return p.newTensor(name, kernel.I32, kernel.Data, []int{n})
}

// Compact lets devices that compute in bf16 hold t, and its gradient, in bf16. Returns t.
func Compact(t *kernel.Tensor) *kernel.Tensor {
	t.Compact = true
	return t
}

// Keep gives t a row for every instance of the batch, so that the host may read it after the step.
// Returns t.
func Keep(t *kernel.Tensor) *kernel.Tensor {
	t.Root().Space = kernel.Batch
	return t
}

// Columns is a view of columns [from, to) of t.
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

// Frozen gives weight sets 1 and up a layout of their own: what the program learns in set 0 is then
// something else than the network that it reads. Before anything is recorded.
func (p *Plan) Frozen(l *kernel.Layout) { p.frozen = l }

// Apart lets every instance learn for itself, as one whose batch holds nobody else: what it weighs
// does not depend on the number of instances. Before anything is recorded.
func (p *Plan) Apart() { p.apart = true }

// total is by how many instances a weight in the loss is divided.
func (p *Plan) total() int {
	if p.apart {
		return 1
	}
	return p.prog.Total()
}

// Unread lets ops that cannot leave out the gradient of a frozen weight sum it into a parameter of
// set 0 that nobody reads. The parameter is added to the layout, so that weights are stored only
// once the program is recorded.
func (p *Plan) Unread(w *kernel.Tensor) {
	if w == nil || p.unread[w] != nil {
		return
	}
	i := p.prog.Layout.Add("unread."+w.Name, kernel.InitZero, 1, w.Shape...)
	p.unread[w] = p.param(p.dw, kernel.Grad, 0, i)
}

// gradWeight returns where the gradient of a policy weight is summed, or nil for a frozen one.
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

// op records an op whose results gradients may flow to.
func (p *Plan) op(o kernel.Op) {
	p.prog.PerShard = append(p.prog.PerShard, o)
	o.Args(func(t *kernel.Tensor, a kernel.Access) {
		if a == kernel.Write {
			p.made[t.Root()] = true
		}
	})
}

// reverse puts an op's reversal on the tape.
func (p *Plan) reverse(f func()) { p.tape = append(p.tape, f) }

// Append records an op that has no gradient: its results are data, and reversing the tape ends
// there.
func (p *Plan) Append(o kernel.Op) { p.prog.PerShard = append(p.prog.PerShard, o) }

// Once records an op that runs once per step, after all shards.
func (p *Plan) Once(o kernel.Op) { p.prog.Once = append(p.prog.Once, o) }

// Together keeps so many instances in turn, of which a batch has a whole number, in one shard and
// one part of a step. Before Divide, Join and anything recorded.
func (p *Plan) Together(rows int) {
	p.rows = max(1, rows)
	if p.prog.Batch%p.rows != 0 {
		panic(fmt.Sprintf("plan: groups of %d in a batch of %d", p.rows, p.prog.Batch))
	}
	if p.whole {
		return
	}
	p.full = max(1, (p.full+p.rows/2)/p.rows) * p.rows
	p.prog.Shard = min(p.full, p.prog.Batch)
}

// Cut leaves this process its share of every step. Before anything is recorded. What is recorded
// then weighs an instance as one of the whole step's.
func (p *Plan) Cut(s kernel.Share) error {
	n, unit, full := s.Parts(), p.prog.Shard, p.full
	if p.whole {
		unit, full = p.rows, p.rows
	}
	if s.Cuts = p.cuts; s.Cuts > 0 {
		if !kernel.Blocks(s.Cuts, n) {
			return fmt.Errorf("%d ranks cannot share the %d parts of a gradient: use a power of two that divides them", n, s.Cuts)
		}
		n = s.Cuts
	}
	if p.prog.Batch%(n*unit) != 0 {
		in, fewer := "shards", "ranks"
		if p.whole {
			in = "groups"
		}
		if s.Cuts > 0 {
			fewer = "parts"
		}
		return p.uneven(n, unit, in, n*full, fewer)
	}
	p.prog.Share, p.prog.Batch = s, p.prog.Batch/n
	if p.whole {
		p.prog.Shard = p.prog.Batch
	}
	return nil
}

// uneven refuses n parts of whole units, which have that name.
func (p *Plan) uneven(n, unit int, name string, multiple int, fewer string) error {
	in, advice := "", fmt.Sprintf("use a multiple of %d, or fewer %s", multiple, fewer)
	if unit > 1 {
		in = fmt.Sprintf(" in %s of %d", name, unit)
	}
	// a device with shards sums in lanes, which only powers of two share: no batch would do
	if !p.whole && fewer == "ranks" && n&(n-1) != 0 {
		advice = "use a number of ranks that is a power of two"
	}
	return fmt.Errorf("a batch of %d%s does not cut into %d equal parts: %s", p.prog.Batch, in, n, advice)
}

// Divide cuts the step into that many equal parts, of which a device holds one at a time, and adds
// their gradients up. A device that runs a step whole adds them in the order of a tree, so that the
// weights do not depend on how many processes share the step; a device that cuts a step into shards
// has a fixed order already, which parts leave alone (kernel.Program.Turns). peer is the process's
// link to the others, nil where there are none. Divide must be called before anything is recorded.
func (p *Plan) Divide(parts int, peer kernel.Peer) error {
	switch {
	case parts <= 1:
	case p.whole:
		p.cuts = parts
	case p.prog.Batch%(parts*p.rows) != 0:
		return p.uneven(parts, p.rows, "groups", parts*p.rows, "parts")
	default:
		p.prog.Turns = parts
	}
	switch {
	case peer != nil:
		return p.Join(peer)
	case p.cuts > 0:
		return p.Cut(kernel.Share{})
	}
	return nil
}

// Join cuts the step and lets a peer stand between the reduction of the gradient and its use.
// Before anything is recorded.
func (p *Plan) Join(peer kernel.Peer) error {
	p.peer = peer
	return p.Cut(peer.Share())
}

// Optimize records the optimizer: the gradient is reduced, over `every` steps where that is more
// than one, exchanged where the plan was joined, then clipped and applied.
func (p *Plan) Optimize(o *kernel.AdamW, every int) {
	o.Layout = p.prog.Layout
	p.Once(&kernel.Reduce{Layout: o.Layout, Every: every * p.prog.Share.Runs()})
	if p.peer != nil {
		p.Once(&kernel.Exchange{Layout: o.Layout, Peer: p.peer})
	}
	p.Once(o)
}

// Scalar makes a number that is carried from step to step.
func (p *Plan) Scalar(name string) *kernel.Tensor {
	t := p.newTensor(name, kernel.F64, kernel.Scalar, []int{1})
	t.Offset = len(p.prog.Scalars()) - 1
	return t
}

// Backward reverses the tape: every op recorded so far whose result has a gradient emits its own.
func (p *Plan) Backward() {
	for i := len(p.tape) - 1; i >= 0; i-- {
		p.tape[i]()
	}
	p.tape = nil
}

// Grad returns the gradient buffer of t, made on first use.
func (p *Plan) Grad(t *kernel.Tensor) *kernel.Tensor {
	if t.Parent != nil { // the same view
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

// contribute returns t's gradient and whether a writer must add to what is there.
func (p *Plan) contribute(t *kernel.Tensor) (g *kernel.Tensor, accumulate bool) {
	g = p.Grad(t)
	accumulate = p.ready[t]
	p.ready[t] = true
	return g, accumulate
}

// SeedGrad declares that g already holds the gradient of t: where a reversal starts.
func (p *Plan) SeedGrad(t, g *kernel.Tensor) {
	p.grads[t] = g
	p.ready[t] = true
}

// share lets the input of a residual connection take over the output's gradient buffer.
func (p *Plan) share(residual, y *kernel.Tensor) {
	if residual == nil {
		return
	}
	if p.ready[residual] {
		panic("plan: residual input " + residual.Name + " has a gradient before its connection is reversed")
	}
	p.grads[residual], p.ready[residual] = p.Grad(y), true
}
