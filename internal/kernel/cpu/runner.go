package cpu

import (
	"fmt"
	"math"
	"sync/atomic"
	"unsafe"

	"haul/internal/kernel"
)

// runner replays one program. A step is one fork: shards by lanes, then, when the program
// learns, lane sums and norm, update, packing, each after a barrier.
type runner struct {
	dev     *Device
	prog    *kernel.Program
	sets    []*store
	batch   map[*kernel.Tensor][]float32 // Batch tensors, all rows, and Data tensors
	ops     []func(w *worker)
	workers []*worker
	step    func(id int)

	adam   *kernel.AdamW
	tally  *kernel.Tally
	tokens *kernel.TallyTokens
	onceOp int       // what the phases after the shards are booked on: AdamW, or a tally alone
	parts  []float32 // the gradient of the update's parts so far, where it has several
	ctl    kernel.Control
	state  kernel.State
	sums   kernel.Metrics
	bad    uint64 // first instance of the update whose gradient was not finite

	badNow  bool    // this step's gradient is not finite; set by one worker, read after the join
	nextEMA float64 // this step's running mean, likewise

	feeds []feed // by slab

	lanes    int
	nextLane atomic.Int32
	nextTask [3]atomic.Int32 // sum, update, pack
	squares  []float64       // by chunk of the gradient
}

// chunk is how many weights the optimizer's phases hand out at a time: they stay in L1.
const chunk = 4096

// worker is one core's private state: activations of the shard it runs and scratch for ops.
type worker struct {
	id      int
	p       *primitives
	arena   []float32
	scratch []float32
	words   []uint64
	bits    []uint32  // of dropout masks
	grads   []float32 // the lane being summed
	fresh   bool      // the lane's first shard: gradients are written, not added
	row     int       // the shard's first row in the batch
	active  int       // rows of the shard that exist
	first   uint64    // global index of row 0 of the batch
	ctl     *kernel.Control
	state   *kernel.State
	g       gemmArgs // arguments of calls through the table live here, so that none is allocated
	adam    adamArgs
	steps   gradBlock
	clock   clock
}

// Compile places memory and binds every op to it.
func (d *Device) Compile(p *kernel.Program, sets []kernel.Store) (kernel.Runner, error) {
	r := &runner{dev: d, prog: p, batch: map[*kernel.Tensor][]float32{}, ctl: kernel.Control{Temperature: 1}}
	for _, s := range sets {
		cs, ok := s.(*store)
		if !ok {
			return nil, fmt.Errorf("compile %s: a weight set is not on the CPU", p.Name)
		}
		r.sets = append(r.sets, cs)
	}
	for _, t := range p.Tensors {
		switch t.Space {
		case kernel.Batch:
			r.batch[t] = aligned(p.Shards() * t.Len())
		case kernel.Data:
			r.batch[t] = aligned(t.Len())
		}
	}
	b := binder{r: r, seen: map[int]bool{}, drops: map[dropKey]*dropper{}}
	for _, op := range p.PerShard {
		f, err := b.bind(op)
		if err != nil {
			return nil, fmt.Errorf("compile %s: %w", p.Name, err)
		}
		r.ops = append(r.ops, f)
	}
	for i, op := range p.Once {
		switch o := op.(type) {
		case *kernel.AdamW:
			r.adam, r.onceOp = o, len(p.PerShard)+i
			r.squares = make([]float64, (p.Layout.Len+chunk-1)/chunk)
			r.state.Beta1T, r.state.Beta2T = 1, 1
			if o.Every > 1 {
				r.parts = aligned(p.Layout.Len)
			}
			if err := b.covered(); err != nil {
				return nil, fmt.Errorf("compile %s: %w", p.Name, err)
			}
		case *kernel.Tally:
			r.tally = o
		case *kernel.TallyTokens:
			if g := o.Sums.Cols() / 3; g > len(r.sums.Heads) {
				return nil, fmt.Errorf("compile %s: %s of %d classifiers; the metrics have room for %d", p.Name, o.Kind(), g, len(r.sums.Heads))
			}
			r.tokens = o
		default:
			return nil, fmt.Errorf("compile %s: the CPU has no op %s", p.Name, op.Kind())
		}
		if r.adam == nil {
			r.onceOp = len(p.PerShard) + i
		}
	}
	r.lanes = min(d.lanes, p.Shards())
	for id := range d.workers {
		mem := newSlab(p.ShardLen, b.scratch)
		r.workers = append(r.workers, &worker{id: id, p: d.prims, bits: make([]uint32, b.bits), arena: mem.take(p.ShardLen), scratch: mem.take(b.scratch),
			words: make([]uint64, b.words), ctl: &r.ctl, state: &r.state})
	}
	d.counters.Allocations++
	r.step = r.work
	return r, nil
}

// Paths says what a step is made of.
func (r *runner) Paths() []string {
	return []string{fmt.Sprintf("%s kernels, one fork a step, %d ops a shard, gradients in %d lanes", r.dev.prims.name, len(r.ops), r.lanes)}
}

// Run replays a step.
func (r *runner) Run() error {
	r.nextLane.Store(0)
	for i := range r.nextTask {
		r.nextTask[i].Store(0)
	}
	r.dev.pool.run(r.step)
	r.dev.counters.Steps++
	r.dev.counters.Launches++
	r.finish()
	return nil
}

// work is what each worker does in a step.
func (r *runner) work(id int) {
	w := r.workers[id]
	w.first = r.state.Instances
	w.clock.lap(kernel.Idle, -1)
	for lane := int(r.nextLane.Add(1)) - 1; lane < r.lanes; lane = int(r.nextLane.Add(1)) - 1 {
		for s := lane; s < r.prog.Shards(); s += r.dev.lanes {
			r.setShard(w, s, lane)
			for i, f := range r.ops {
				f(w)
				w.clock.lap(i, s)
			}
		}
	}
	if len(r.prog.Once) == 0 {
		return
	}
	r.meet(w)
	r.sumLanes(w)
	w.clock.lap(r.onceOp, -1)
	if r.adam == nil || !r.whole() {
		return
	}
	r.meet(w)
	r.update(w)
	w.clock.lap(r.onceOp, -1)
	r.meet(w)
	r.packAll()
	w.clock.lap(r.onceOp, -1)
}

// meet waits for the other workers between two phases.
func (r *runner) meet(w *worker) {
	r.dev.pool.spin.wait()
	w.clock.lap(kernel.Idle, -1)
}

// setShard points the worker at shard s.
func (r *runner) setShard(w *worker, s, lane int) {
	w.row = s * r.prog.Shard
	w.active = min(r.prog.Shard, r.prog.Batch-w.row)
	w.fresh = s < r.dev.lanes
	if r.adam != nil || r.sets != nil && r.sets[0].lanes != nil {
		w.grads = r.sets[0].lanes[lane]
	}
}

// finish advances the state after all workers are done.
func (r *runner) finish() {
	whole := r.adam != nil && r.whole()
	if r.badNow {
		r.badNow, r.bad = false, r.state.Instances-r.state.Part*uint64(r.prog.Batch)
		r.sums.BadStep = int64(r.state.Step) + 1
	}
	if r.tally != nil && r.tally.EMADecay > 0 {
		r.state.EMA = r.nextEMA
		r.state.EMASteps++
	}
	if whole && r.sums.BadStep == 0 {
		r.state.Step++
		r.state.Beta1T *= r.adam.Beta1
		r.state.Beta2T *= r.adam.Beta2
	}
	if r.parts != nil {
		r.state.Part = (r.state.Part + 1) % uint64(r.adam.Every)
	}
	r.state.Instances += uint64(r.prog.Batch)
}

// SetControl changes the schedules' block.
func (r *runner) SetControl(c kernel.Control) error {
	r.ctl = c
	return nil
}

// State returns what the next step starts from.
func (r *runner) State() (kernel.State, error) { return r.state, nil }

// SetState puts the runner where a checkpoint left it.
func (r *runner) SetState(s kernel.State) error {
	r.state = s.Normal()
	return nil
}

// TakeMetrics returns the sums and clears them.
func (r *runner) TakeMetrics() (kernel.Metrics, error) {
	m := r.sums
	r.sums = kernel.Metrics{BadStep: m.BadStep}
	return m, nil
}

// ReadGrad copies the last step's summed gradient, before clipping.
func (r *runner) ReadGrad(dst []float32) error {
	if r.adam == nil {
		return fmt.Errorf("read gradient: %s does not learn", r.prog.Name)
	}
	return copyAll(dst, r.sets[0].lanes[0])
}

// FirstBad replays the step that went wrong, op by op, and names the first result that is not finite.
func (r *runner) FirstBad() (string, error) {
	w := r.workers[0]
	for n := range r.prog.Shards() * r.partsOf() {
		s := n % r.prog.Shards()
		w.first = r.bad + uint64(n/r.prog.Shards()*r.prog.Batch)
		r.setShard(w, s, s%r.dev.lanes)
		for i, f := range r.ops {
			f(w)
			var name string
			r.prog.PerShard[i].Args(func(t *kernel.Tensor, a kernel.Access) {
				if name == "" && a != kernel.Read && t.Type == kernel.F32 && !r.finite(w, t) {
					name = fmt.Sprintf("%s, result %s", r.prog.PerShard[i].Kind(), t.Name)
				}
			})
			if name != "" {
				return name, nil
			}
		}
	}
	return "", nil
}

// partsOf is how many steps make an update.
func (r *runner) partsOf() int {
	if r.parts == nil {
		return 1
	}
	return r.adam.Every
}

func (r *runner) finite(w *worker, t *kernel.Tensor) bool {
	rf := newRef(r, t)
	buf := rf.of(w)
	for row := range t.Rows() {
		for _, v := range buf[row*t.Stride:][:t.Cols()] {
			if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
				return false
			}
		}
	}
	return true
}

// Memory is what the runner and its stores hold.
func (r *runner) Memory() int64 {
	n := len(r.parts)
	for _, b := range r.batch {
		n += len(b)
	}
	for _, w := range r.workers {
		n += len(w.arena) + len(w.scratch) + 2*len(w.words) + len(w.bits)
	}
	total := int64(n) * 4
	for _, s := range r.sets {
		total += s.memory()
	}
	return total
}

// Close lets the memory go.
func (r *runner) Close() error {
	r.batch, r.workers, r.ops = nil, nil, nil
	return nil
}

// ref is a tensor resolved as far as compiling can.
type ref struct {
	space  kernel.Space
	buf    []float32 // Batch and Weight
	offset int       // Shard and Grad
	n      int       // elements from the tensor's start to the end of its root
	rowLen int       // Batch: elements an instance
	stride int
}

func newRef(r *runner, t *kernel.Tensor) ref {
	if t == nil {
		return ref{}
	}
	root, at := t.Root(), 0
	if t.Parent != nil {
		at = t.Offset
	}
	rf := ref{space: root.Space, offset: root.Offset + at, n: root.Len() - at, stride: t.Stride}
	switch root.Space {
	case kernel.Batch:
		rf.buf, rf.rowLen, rf.offset = r.batch[root], root.Len()/root.Shape[0], at
	case kernel.Weight:
		rf.buf = r.sets[root.Set].weights
	case kernel.Data:
		rf.buf = r.batch[root]
	}
	return rf
}

// of is the tensor's memory for the shard the worker runs; nil for an absent tensor.
func (f *ref) of(w *worker) []float32 {
	if f.n == 0 {
		return nil
	}
	switch f.space {
	case kernel.Shard:
		return w.arena[f.offset:][:f.n]
	case kernel.Grad:
		return w.grads[f.offset:][:f.n]
	case kernel.Batch:
		return f.buf[w.row*f.rowLen+f.offset:][:f.n]
	default:
		return f.buf[f.offset:][:f.n]
	}
}

func ptr(f []float32) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(f)) }
