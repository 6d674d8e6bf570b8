package run

import (
	"fmt"
	"math"
	"sync/atomic"

	"haul/internal/kernel"
	"haul/internal/kernel/cpu/isa"
)

// Runner replays one program. A step is one fork: shards by lanes, then the phases of the ops that
// run once, each after a barrier. A step in turns is one fork per turn, of which the last has the
// phases.
type Runner struct {
	Device  *Device
	Program *kernel.Program
	Sets    []*Store
	Batch   map[*kernel.Tensor][]float32 // Batch tensors, all rows, and Data tensors
	ops     []func(w *Worker)
	workers []*Worker
	step    func(id int)

	Phases       []*Phase  // of the ops that run once
	Done         []func()  // what those ops do after the join, on the goroutine that drives the device
	Every        int       // steps of an update
	Squares      []float64 // of the reduced gradient, by chunk
	Piece        Piece     // what of the update this process makes
	Coefficients []string  // the control block's coefficients, by place
	Control      control
	Progress     kernel.State // without Scalars
	names        []string     // of scalars
	Scalar       []float64    // by place
	Sums         sums
	Bad          uint64 // first instance of the update whose gradient was not finite

	feeds []feed // by slab

	Lanes    int      // of this process's share of the step
	cuts     cutting  // its shards, by lanes and turns
	places   []int    // by lane: where its rows are kept, in shards
	Turn     int      // under way
	Between  []func() // what ops that run once take from a turn that is not the last
	Adds     [][2]int // lanes to add up, into and from, in order
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
func (r *Runner) keep() {
	b := &r.before
	b.state, b.sums.steps, b.sums.GradNorm = r.Progress, r.Sums.steps, r.Sums.GradNorm
	b.scalar, b.sums.values = append(b.scalar[:0], r.Scalar...), append(b.sums.values[:0], r.Sums.values...)
	if b.sums.Lanes == nil {
		b.sums.Lanes = make([][]float64, len(r.Sums.Lanes))
	}
	for i, lane := range r.Sums.Lanes {
		b.sums.Lanes[i] = append(b.sums.Lanes[i][:0], lane...)
	}
}

// undo goes back to there.
func (r *Runner) undo() {
	b := &r.before
	r.Progress, r.Sums.steps, r.Sums.GradNorm = b.state, b.sums.steps, b.sums.GradNorm
	copy(r.Scalar, b.scalar)
	copy(r.Sums.values, b.sums.values)
	for i, lane := range b.sums.Lanes {
		copy(r.Sums.Lanes[i], lane)
	}
}

// Stop abandons the update under way.
func (r *Runner) Stop() { r.stop.Store(true) }

// control is the control block as the ops read it.
type control struct {
	LearningRate, Temperature float32
	Coefficients              [kernel.MaxCoefficients]float32
}

// sums are the metrics so far.
type sums struct {
	steps, BadStep int64
	GradNorm       float64
	Names          []string
	Lanes          [][]float64 // by lane, then by name's place
	values         []float64   // what they come to
}

// Chunk is how many weights the optimizer's phases hand out at a time: they stay in L1.
const Chunk = 4096

// Worker is one core's private state: activations of the shard it runs and scratch for ops.
type Worker struct {
	ID      int
	Prims   *isa.Primitives
	arena   []float32
	Scratch []float32
	Words   []uint64
	bits    []uint32  // of dropout masks
	grads   []float32 // the lane being summed
	fresh   bool      // the lane's first shard: gradients are written, not added
	Row     int       // the shard's first row in the batch
	at      int       // and where it is kept
	Active  int       // rows of the shard that exist
	First   uint64    // global index of row 0 of the batch
	Control *control
	Tiles   *isa.TileSet // of bf16; nil in fp32
	Tile    isa.TileArgs // likewise
	Head    isa.HeadArgs // likewise
	g       isa.GemmArgs // arguments of calls through the table live here, so that none is allocated
	Adam    isa.AdamArgs
	clock   clock
	Stop    *atomic.Bool // the runner's
}

// Stopped tells an op whose work may take seconds that nobody waits for it: it may leave the rest
// out, since the whole update is dropped. A shard may be a single instance of any size, so that
// asking between shards is not enough.
func (w *Worker) Stopped() bool { return w.Stop.Load() }

// Product runs one gemm with the fields set; unused pointers must be nil.
func (w *Worker) Product(g isa.GemmArgs) {
	w.g = g
	w.Prims.Gemm(&w.g)
}

// Compile places memory and binds every op to it.
func (d *Device) Compile(p *kernel.Program, sets []kernel.Store) (kernel.Runner, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	r := &Runner{Device: d, Program: p, Batch: map[*kernel.Tensor][]float32{}, Every: 1, Coefficients: p.Coefficients(), Control: control{Temperature: 1}, Progress: kernel.State{}.Normal()}
	for _, s := range sets {
		cs, ok := s.(*Store)
		if !ok {
			return nil, fmt.Errorf("compile %s: a weight set is not on the CPU", p.Name)
		}
		r.Sets = append(r.Sets, cs)
	}
	if err := r.cut(); err != nil {
		return nil, fmt.Errorf("compile %s: %w", p.Name, err)
	}
	for _, t := range p.Tensors {
		switch t.Space {
		case kernel.Batch:
			r.Batch[t] = Aligned(r.cuts.kept() * t.Len())
		case kernel.Data:
			r.Batch[t] = Aligned(t.Len())
		case kernel.Scalar:
			r.names = append(r.names, t.Name)
		}
	}
	r.Scalar = make([]float64, len(r.names))
	r.Sums.Names = p.Sums()
	r.Sums.values = make([]float64, len(r.Sums.Names))
	r.Sums.Lanes = make([][]float64, r.Lanes)
	for i := range r.Sums.Lanes {
		r.Sums.Lanes[i] = make([]float64, len(r.Sums.Names))
	}
	b := Binder{Runner: r, seen: map[int]bool{}, drops: map[dropKey]*Dropper{}, Rotations: map[int][]float32{}}
	for _, op := range p.PerShard {
		f, err := d.ops.Bind(&b, op)
		if err != nil {
			return nil, fmt.Errorf("compile %s: %w", p.Name, err)
		}
		r.ops = append(r.ops, f)
	}
	if err := d.ops.Once(&b); err != nil {
		return nil, fmt.Errorf("compile %s: %w", p.Name, err)
	}
	for id := range d.Workers {
		mem := newSlab(p.ShardLen, b.scratch)
		r.workers = append(r.workers, &Worker{ID: id, Prims: d.Prims, Tiles: d.Tiles, bits: make([]uint32, b.bits), arena: mem.take(p.ShardLen), Scratch: mem.take(b.scratch),
			Words: make([]uint64, b.words), Control: &r.Control, Stop: &r.stop})
	}
	d.counters.Allocations++
	r.step = r.work
	return r, nil
}

// Paths says what a step is made of.
func (r *Runner) Paths() []string {
	in := r.Device.Precision()
	if r.Device.Emulates() {
		in = "fp32 of numbers rounded to bf16, for which this processor has no instructions"
	}
	return []string{fmt.Sprintf("%s kernels, products with weights in %s, one fork per step, %d ops per shard, gradients in %d lanes", isa.SetName(r.Device.Prims, r.Device.Tiles), in, len(r.ops), len(r.Adds)+1)}
}

// Run replays a step.
func (r *Runner) Run() error {
	r.left.Store(false)
	if r.Progress.Part == 0 {
		r.keep()
	}
	for _, p := range r.Phases {
		p.reset()
	}
	for r.Turn = 0; ; r.Turn++ {
		r.nextLane.Store(0)
		r.Device.pool.run(r.step)
		if r.left.Load() {
			r.undo()
			return kernel.ErrStopped
		}
		r.Device.counters.Launches++
		if r.LastTurn() {
			break
		}
		for _, f := range r.Between {
			f()
		}
	}
	r.Device.counters.Steps++
	for _, p := range r.Phases {
		if p.Err != nil {
			return p.Err
		}
	}
	for _, f := range r.Done {
		f()
	}
	r.Sums.steps++
	r.Progress.Instances += uint64(r.Program.Total())
	return nil
}

// work is what each worker does in a step.
func (r *Runner) work(id int) {
	w := r.workers[id]
	w.First = r.Progress.Instances + uint64(r.Program.First())
	w.clock.lap(kernel.Idle, -1)
	for lane := int(r.nextLane.Add(1)) - 1; lane < r.Lanes; lane = int(r.nextLane.Add(1)) - 1 {
		first, _ := r.laneShards(lane)
		from, to := r.cuts.turn(lane, r.Turn)
		for s := from; s < to; s++ {
			r.setShard(w, s, s-from, lane, s == first && r.Progress.Part == 0)
			for i, f := range r.ops {
				if w.Stopped() {
					break
				}
				f(w)
				w.clock.lap(i, s)
			}
		}
		if w.Stopped() { // the last op may have left something out
			r.left.Store(true)
		}
	}
	if r.LastTurn() {
		r.runOnce(w)
	}
}

// meet waits for the other workers between two phases.
func (r *Runner) meet(w *Worker) {
	r.Device.pool.spin.wait()
	w.clock.lap(kernel.Idle, -1)
}

// setShard points the worker at shard s, of which so many of its lane are kept before it. The first
// of a lane in an update is fresh.
func (r *Runner) setShard(w *Worker, s, before, lane int, fresh bool) {
	w.Row = s * r.Program.Shard
	w.at = (r.places[lane] + before) * r.Program.Shard
	w.Active = min(r.Program.Shard, r.Program.Batch-w.Row)
	w.fresh = fresh
	if len(r.Sets) > 0 && r.Sets[0].Lanes != nil {
		w.grads = r.Sets[0].Lanes[lane]
	}
}

// SetControl changes the schedules' block.
func (r *Runner) SetControl(c kernel.Control) error {
	values, err := kernel.Values("coefficient", r.Coefficients, c.Coefficients)
	if err != nil {
		return err
	}
	r.Control = control{LearningRate: c.LearningRate, Temperature: c.Temperature}
	copy(r.Control.Coefficients[:], values)
	return nil
}

// State returns what the next step starts from.
func (r *Runner) State() (kernel.State, error) {
	s := r.Progress
	s.Scalars = kernel.Named(r.names, r.Scalar)
	return s, nil
}

// SetState puts the runner where a checkpoint left it.
func (r *Runner) SetState(s kernel.State) error {
	values, err := kernel.Values("scalar", r.names, s.Scalars)
	if err != nil {
		return err
	}
	copy(r.Scalar, values)
	r.Progress = s.Normal()
	r.Progress.Scalars = nil
	r.keep()
	return nil
}

// TakeMetrics returns the sums and clears them.
func (r *Runner) TakeMetrics() (kernel.Metrics, error) {
	s := &r.Sums
	s.add(r.Adds)
	m := kernel.Metrics{Steps: s.steps, GradNorm: s.GradNorm, BadStep: s.BadStep, Sums: kernel.NewSums(s.Names, s.values)}
	s.steps, s.GradNorm = 0, 0
	for _, l := range s.Lanes {
		clear(l)
	}
	return m, nil
}

// ReadGrad copies the last step's summed gradient, before clipping.
func (r *Runner) ReadGrad(dst []float32) error {
	if !r.learns() {
		return fmt.Errorf("read gradient: %s does not learn", r.Program.Name)
	}
	if err := copyAll(dst, r.Sets[0].Lanes[0]); err != nil {
		return err
	}
	copy(dst[r.Piece.From*Chunk:], r.Piece.Grad)
	return nil
}

// GatherMoments gets the other processes' pieces of the moments, which steps leave alone here.
func (r *Runner) GatherMoments() error {
	if r.Piece.Peer == nil {
		return nil
	}
	if err := r.Piece.Peer.AllGather(r.Sets[0].M, Chunk); err != nil {
		return err
	}
	return r.Piece.Peer.AllGather(r.Sets[0].V, Chunk)
}

// FirstBad replays the step that went wrong, op by op, and names the first result that is not
// finite.
func (r *Runner) FirstBad() (string, error) {
	w := r.workers[0]
	for n := range r.Program.Shards() * r.Every {
		s := n % r.Program.Shards()
		w.First = r.Bad + uint64(n/r.Program.Shards()*r.Program.Total()+r.Program.First())
		lane := r.laneOf(s)
		from, _ := r.laneShards(lane)
		before := s - from
		if r.cuts.turns > 1 {
			before = 0
		}
		r.setShard(w, s, before, lane, s == from && n < r.Program.Shards())
		for i, f := range r.ops {
			f(w)
			var name string
			r.Program.PerShard[i].Args(func(t *kernel.Tensor, a kernel.Access) {
				if name == "" && a != kernel.Read && t.Type == kernel.F32 && !r.finite(w, t) {
					name = fmt.Sprintf("%s, result %s", r.Program.PerShard[i].Kind(), t.Name)
				}
			})
			if name != "" {
				return name, nil
			}
		}
	}
	return "", nil
}

func (r *Runner) finite(w *Worker, t *kernel.Tensor) bool {
	rf := newRef(r, t)
	buf := rf.Of(w)
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
func (r *Runner) Memory() int64 {
	n := 0
	for _, b := range r.Batch {
		n += len(b)
	}
	for _, w := range r.workers {
		n += len(w.arena) + len(w.Scratch) + 2*len(w.Words) + len(w.bits)
	}
	total := int64(n) * 4
	for _, s := range r.Sets {
		total += s.memory()
	}
	return total
}

// Close lets the memory go.
func (r *Runner) Close() error {
	r.Batch, r.workers, r.ops = nil, nil, nil
	return nil
}
