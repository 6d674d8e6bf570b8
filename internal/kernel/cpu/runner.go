package cpu

import (
	"fmt"
	"math"
	"sync/atomic"
	"unsafe"

	"haul/internal/kernel"
)

// runner replays one program. A step is one fork: shards by lanes, then the phases of the ops that
// run once, each after a barrier. A step in turns is one fork per turn, of which the last has the
// phases.
type runner struct {
	dev     *Device
	prog    *kernel.Program
	sets    []*store
	batch   map[*kernel.Tensor][]float32 // Batch tensors, all rows, and Data tensors
	ops     []func(w *worker)
	workers []*worker
	step    func(id int)

	phases  []*phase  // of the ops that run once
	done    []func()  // what those ops do after the join, on the goroutine that drives the device
	every   int       // steps of an update
	squares []float64 // of the reduced gradient, by chunk
	piece   piece     // what of the update this process makes
	coefs   []string  // the control block's coefficients, by place
	ctl     control
	state   kernel.State // without Scalars
	names   []string     // of scalars
	scalar  []float64    // by place
	sums    sums
	bad     uint64 // first instance of the update whose gradient was not finite

	feeds []feed // by slab

	lanes    int      // of this process's share of the step
	cuts     cutting  // its shards, by lanes and turns
	places   []int    // by lane: where its rows are kept, in shards
	turn     int      // under way
	between  []func() // what ops that run once take from a turn that is not the last
	adds     [][2]int // lanes to add up, into and from, in order
	nextLane atomic.Int32

	stop   atomic.Bool // somebody does not want to wait for the step under way
	left   atomic.Bool // a worker has left shards of it out; settled behind the first barrier
	before rewind
}

// rewind is where an update began, beside weights and moments, which only its last phase changes.
type rewind struct {
	state  kernel.State
	scalar []float64
	sums   sums
}

// keep notes where the update begins.
func (r *runner) keep() {
	b := &r.before
	b.state, b.sums.steps, b.sums.gradNorm = r.state, r.sums.steps, r.sums.gradNorm
	b.scalar, b.sums.values = append(b.scalar[:0], r.scalar...), append(b.sums.values[:0], r.sums.values...)
	if b.sums.lanes == nil {
		b.sums.lanes = make([][]float64, len(r.sums.lanes))
	}
	for i, lane := range r.sums.lanes {
		b.sums.lanes[i] = append(b.sums.lanes[i][:0], lane...)
	}
}

// undo goes back to there.
func (r *runner) undo() {
	b := &r.before
	r.state, r.sums.steps, r.sums.gradNorm = b.state, b.sums.steps, b.sums.gradNorm
	copy(r.scalar, b.scalar)
	copy(r.sums.values, b.sums.values)
	for i, lane := range b.sums.lanes {
		copy(r.sums.lanes[i], lane)
	}
}

// Stop abandons the update under way.
func (r *runner) Stop() { r.stop.Store(true) }

// control is the control block as the ops read it.
type control struct {
	LearningRate, Temperature float32
	coefficients              [kernel.MaxCoefficients]float32
}

// sums are the metrics so far.
type sums struct {
	steps, badStep int64
	gradNorm       float64
	names          []string
	lanes          [][]float64 // by lane, then by name's place
	values         []float64   // what they come to
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
	at      int       // and where it is kept
	active  int       // rows of the shard that exist
	first   uint64    // global index of row 0 of the batch
	ctl     *control
	tiles   *tileSet // of bf16; nil in fp32
	tile    tileArgs // likewise
	head    headArgs // likewise
	g       gemmArgs // arguments of calls through the table live here, so that none is allocated
	adam    adamArgs
	steps   gradBlock
	clock   clock
	stop    *atomic.Bool // the runner's
}

// stopped tells an op whose work may take seconds that nobody waits for it: it may leave the rest
// out, since the whole update is dropped. A shard may be a single instance of any size, so that
// asking between shards is not enough.
func (w *worker) stopped() bool { return w.stop.Load() }

// Compile places memory and binds every op to it.
func (d *Device) Compile(p *kernel.Program, sets []kernel.Store) (kernel.Runner, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	r := &runner{dev: d, prog: p, batch: map[*kernel.Tensor][]float32{}, every: 1, coefs: p.Coefficients(), ctl: control{Temperature: 1}, state: kernel.State{}.Normal()}
	for _, s := range sets {
		cs, ok := s.(*store)
		if !ok {
			return nil, fmt.Errorf("compile %s: a weight set is not on the CPU", p.Name)
		}
		r.sets = append(r.sets, cs)
	}
	if err := r.cut(); err != nil {
		return nil, fmt.Errorf("compile %s: %w", p.Name, err)
	}
	for _, t := range p.Tensors {
		switch t.Space {
		case kernel.Batch:
			r.batch[t] = aligned(r.cuts.kept() * t.Len())
		case kernel.Data:
			r.batch[t] = aligned(t.Len())
		case kernel.Scalar:
			r.names = append(r.names, t.Name)
		}
	}
	r.scalar = make([]float64, len(r.names))
	r.sums.names = p.Sums()
	r.sums.values = make([]float64, len(r.sums.names))
	r.sums.lanes = make([][]float64, r.lanes)
	for i := range r.sums.lanes {
		r.sums.lanes[i] = make([]float64, len(r.sums.names))
	}
	b := binder{r: r, seen: map[int]bool{}, drops: map[dropKey]*dropper{}, rotations: map[int][]float32{}}
	for _, op := range p.PerShard {
		f, err := b.bind(op)
		if err != nil {
			return nil, fmt.Errorf("compile %s: %w", p.Name, err)
		}
		r.ops = append(r.ops, f)
	}
	if err := b.bindOnce(); err != nil {
		return nil, fmt.Errorf("compile %s: %w", p.Name, err)
	}
	for id := range d.workers {
		mem := newSlab(p.ShardLen, b.scratch)
		r.workers = append(r.workers, &worker{id: id, p: d.prims, tiles: d.tiles, bits: make([]uint32, b.bits), arena: mem.take(p.ShardLen), scratch: mem.take(b.scratch),
			words: make([]uint64, b.words), ctl: &r.ctl, stop: &r.stop})
	}
	d.counters.Allocations++
	r.step = r.work
	return r, nil
}

// Paths says what a step is made of.
func (r *runner) Paths() []string {
	in := r.dev.Precision()
	if r.dev.Emulates() {
		in = "fp32 of numbers rounded to bf16, for which this processor has no instructions"
	}
	return []string{fmt.Sprintf("%s kernels, products with weights in %s, one fork per step, %d ops per shard, gradients in %d lanes", setName(r.dev.prims, r.dev.tiles), in, len(r.ops), len(r.adds)+1)}
}

// Run replays a step.
func (r *runner) Run() error {
	r.left.Store(false)
	if r.state.Part == 0 {
		r.keep()
	}
	for _, p := range r.phases {
		p.reset()
	}
	for r.turn = 0; ; r.turn++ {
		r.nextLane.Store(0)
		r.dev.pool.run(r.step)
		if r.left.Load() {
			r.undo()
			return kernel.ErrStopped
		}
		r.dev.counters.Launches++
		if r.lastTurn() {
			break
		}
		for _, f := range r.between {
			f()
		}
	}
	r.dev.counters.Steps++
	for _, p := range r.phases {
		if p.err != nil {
			return p.err
		}
	}
	for _, f := range r.done {
		f()
	}
	r.sums.steps++
	r.state.Instances += uint64(r.prog.Total())
	return nil
}

// work is what each worker does in a step.
func (r *runner) work(id int) {
	w := r.workers[id]
	w.first = r.state.Instances + uint64(r.prog.First())
	w.clock.lap(kernel.Idle, -1)
	for lane := int(r.nextLane.Add(1)) - 1; lane < r.lanes; lane = int(r.nextLane.Add(1)) - 1 {
		first, _ := r.laneShards(lane)
		from, to := r.cuts.turn(lane, r.turn)
		for s := from; s < to; s++ {
			r.setShard(w, s, s-from, lane, s == first && r.state.Part == 0)
			for i, f := range r.ops {
				if w.stopped() {
					break
				}
				f(w)
				w.clock.lap(i, s)
			}
		}
		if w.stopped() { // the last op may have left something out
			r.left.Store(true)
		}
	}
	if r.lastTurn() {
		r.runOnce(w)
	}
}

// meet waits for the other workers between two phases.
func (r *runner) meet(w *worker) {
	r.dev.pool.spin.wait()
	w.clock.lap(kernel.Idle, -1)
}

// setShard points the worker at shard s, of which so many of its lane are kept before it. The first
// of a lane in an update is fresh.
func (r *runner) setShard(w *worker, s, before, lane int, fresh bool) {
	w.row = s * r.prog.Shard
	w.at = (r.places[lane] + before) * r.prog.Shard
	w.active = min(r.prog.Shard, r.prog.Batch-w.row)
	w.fresh = fresh
	if len(r.sets) > 0 && r.sets[0].lanes != nil {
		w.grads = r.sets[0].lanes[lane]
	}
}

// SetControl changes the schedules' block.
func (r *runner) SetControl(c kernel.Control) error {
	values, err := kernel.Values("coefficient", r.coefs, c.Coefficients)
	if err != nil {
		return err
	}
	r.ctl = control{LearningRate: c.LearningRate, Temperature: c.Temperature}
	copy(r.ctl.coefficients[:], values)
	return nil
}

// State returns what the next step starts from.
func (r *runner) State() (kernel.State, error) {
	s := r.state
	s.Scalars = kernel.Named(r.names, r.scalar)
	return s, nil
}

// SetState puts the runner where a checkpoint left it.
func (r *runner) SetState(s kernel.State) error {
	values, err := kernel.Values("scalar", r.names, s.Scalars)
	if err != nil {
		return err
	}
	copy(r.scalar, values)
	r.state = s.Normal()
	r.state.Scalars = nil
	r.keep()
	return nil
}

// TakeMetrics returns the sums and clears them.
func (r *runner) TakeMetrics() (kernel.Metrics, error) {
	s := &r.sums
	s.add(r.adds)
	m := kernel.Metrics{Steps: s.steps, GradNorm: s.gradNorm, BadStep: s.badStep, Sums: kernel.NewSums(s.names, s.values)}
	s.steps, s.gradNorm = 0, 0
	for _, l := range s.lanes {
		clear(l)
	}
	return m, nil
}

// ReadGrad copies the last step's summed gradient, before clipping.
func (r *runner) ReadGrad(dst []float32) error {
	if !r.learns() {
		return fmt.Errorf("read gradient: %s does not learn", r.prog.Name)
	}
	if err := copyAll(dst, r.sets[0].lanes[0]); err != nil {
		return err
	}
	copy(dst[r.piece.from*chunk:], r.piece.grad)
	return nil
}

// GatherMoments gets the other processes' pieces of the moments, which steps leave alone here.
func (r *runner) GatherMoments() error {
	if r.piece.peer == nil {
		return nil
	}
	if err := r.piece.peer.AllGather(r.sets[0].m, chunk); err != nil {
		return err
	}
	return r.piece.peer.AllGather(r.sets[0].v, chunk)
}

// FirstBad replays the step that went wrong, op by op, and names the first result that is not
// finite.
func (r *runner) FirstBad() (string, error) {
	w := r.workers[0]
	for n := range r.prog.Shards() * r.every {
		s := n % r.prog.Shards()
		w.first = r.bad + uint64(n/r.prog.Shards()*r.prog.Total()+r.prog.First())
		lane := r.laneOf(s)
		from, _ := r.laneShards(lane)
		before := s - from
		if r.cuts.turns > 1 {
			before = 0
		}
		r.setShard(w, s, before, lane, s == from && n < r.prog.Shards())
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
	n := 0
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
	rowLen int       // Batch: elements per instance
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
		return f.buf[w.at*f.rowLen+f.offset:][:f.n]
	default:
		return f.buf[f.offset:][:f.n]
	}
}

func ptr(f []float32) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(f)) }
