package cuda

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"haul/internal/cu"
	"haul/internal/kernel"
	"haul/internal/kernel/cuda/bind"
	"haul/internal/kernel/cuda/fuse"
	"haul/internal/kernel/cuda/routing"
)

// ready is a launch with its kernel found and its arguments packed.
type ready struct {
	function cu.Function
	geometry cu.Geometry
	args     *cu.Args
	beside   bool
	first    bool
	after    bool
	aside    bool
	part     int
}

// ready finds the kernel and packs the arguments. On the context's thread.
func (d *Device) ready(l bind.Launch) (ready, error) {
	a, err := cu.PackArgs(l.Args...)
	if err != nil {
		return ready{}, fmt.Errorf("%s: %w", l.Kernel, err)
	}
	f, err := d.function(l)
	if err == nil {
		if why := d.declared[l.Key()].refuses(l); why != "" {
			panic("cuda: " + why) // a fault of the binder
		}
	}
	return ready{function: f, args: a, beside: l.Beside, first: l.First, after: l.After, aside: l.Aside, part: l.Part, geometry: cu.Geometry{Grid: l.Grid,
		Block: l.Block, Shared: l.Shared}}, err
}

// runner replays one program as one graph. Nothing it queues is waited for until the host reads a
// result.
type runner struct {
	d       *Device
	prog    *kernel.Program
	sets    []*store
	arena   memory                    // shard tensors
	blocks  memory                    // control, state, metrics
	extra   []memory                  // scratch of ops
	batch   map[*kernel.Tensor]memory // Batch and Data tensors
	offsets map[*kernel.Tensor]int    // of shard tensors in the arena, in bytes
	// one op does not fill the card: what counts is how many follow each other
	small    bool
	serial   bool      // memory is reused along the recording, so ops keep its order
	launches [][]ready // by op, the closing advance last
	exec     *cu.Exec
	piece    *cu.Exec      // of an update's parts but the last: nothing is exchanged; nil where it has one
	every    int           // parts of an update
	part     int           // of them done, as the card counts them too
	onHost   *hostExchange // where a peer needs the host; else nil
	gathered uint64        // where the gradients of all processes are put to be added up; 0: the peer sums
	nodes    int
	run      func() error
	watch    stopwatch
	fed      *feeding // nil where no slabs were asked for
	asks     []*ask
	paths    []string // what each rollout and its gradient run on
	steps    int64    // since the metrics were last taken

	coefficients, scalars, sums []string // of the blocks, by place
}

// Compile places memory, binds every op and records the graph.
func (d *Device) Compile(p *kernel.Program, sets []kernel.Store) (kernel.Runner, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	r := &runner{d: d, prog: p, every: every(p), batch: map[*kernel.Tensor]memory{}, offsets: map[*kernel.Tensor]int{}, coefficients: p.Coefficients(), sums: p.Sums()}
	for _, t := range p.Scalars() {
		r.scalars = append(r.scalars, t.Name)
	}
	for _, s := range sets {
		gs, ok := s.(*store)
		if !ok || gs.d != d {
			return nil, fmt.Errorf("compile %s: a weight set is not on this card", p.Name)
		}
		r.sets = append(r.sets, gs)
	}
	gpu := fuse.GPU{Precision: d.precision, Major: d.ctx.Major, Minor: d.ctx.Minor, SMs: d.sms, MaxShared: d.maxShared}
	r.prog = fuse.Rewrite(p, gpu)
	r.small = fuse.FewRows(r.prog)
	d.tell(fuse.Remark(r.prog, gpu))
	if err := r.place(p); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	if err := r.bindAll(); err != nil {
		return nil, errors.Join(fmt.Errorf("compile %s: %w", p.Name, err), r.Close())
	}
	if err := d.ctx.Do(func() error { return errors.Join(r.record(), r.watch.open(d.ctx)) }); err != nil {
		return nil, errors.Join(fmt.Errorf("compile %s: %w", p.Name, err), r.Close())
	}
	if err := r.SetControl(kernel.Control{Temperature: 1}); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	if err := r.SetState(kernel.State{}); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	r.run = r.replay
	return r, nil
}

// tell remarks on a slow way, once per device; "" is none.
func (d *Device) tell(slow string) {
	if slow == "" || d.remark == nil {
		return
	}
	d.remark(slow)
	d.remark = nil
}

// every is of how many parts the program is one.
func every(p *kernel.Program) int {
	for _, op := range p.Once {
		if o, ok := op.(*kernel.Reduce); ok {
			return max(1, o.Every)
		}
	}
	return max(1, p.Share.Runs())
}

// align keeps every tensor on its own 256-byte line, as the driver's own allocations are.
func align(bytes int) int { return (bytes + 255) &^ 255 }

// whatFits says which batch would fit the memory that is free, of one that takes total.
func whatFits(free uint64, total, batch int) string {
	if most := int(free*9/10) / max(1, total/batch); most > 0 {
		return fmt.Sprintf("a batch of %d would fit", most)
	}
	return "not even one instance at a time would fit"
}

// place gives every shard tensor that an op names memory of its own, so that ops wait only for
// data; where the card has too little free for that, tensors share memory along the recording, ops
// run in its order, and none are joined.
func (r *runner) place(recorded *kernel.Program) error {
	total := 0
	named := map[*kernel.Tensor]bool{}
	for _, op := range slices.Concat(r.prog.PerShard, r.prog.Once) {
		op.Args(func(t *kernel.Tensor, _ kernel.Access) { named[t.Root()] = true })
	}
	for _, t := range r.prog.Tensors {
		if t.Space == kernel.Shard && named[t] {
			r.offsets[t] = total
			total += align(r.width(t) * t.Len())
		}
	}
	var free uint64
	err := r.d.ctx.Do(func() (err error) { free, _, err = r.d.ctx.MemInfo(); return err })
	if err != nil {
		return err
	}
	if uint64(total) > free*8/10 {
		total, r.serial, r.prog = 4*recorded.ShardLen, true, recorded
		for _, t := range recorded.Tensors {
			if t.Space == kernel.Shard {
				r.offsets[t] = 4 * t.Offset
			}
		}
	}
	if uint64(total) > free {
		return noRoom{fmt.Errorf("%s needs %.1f GiB on %s, %.1f GiB are free; %s", r.prog.Name, gib(total), r.d.ctx.Name, gib(int(free)), whatFits(free, total, r.prog.Batch))}
	}
	if r.arena, err = r.d.alloc(total); err != nil {
		return err
	}
	for _, t := range r.prog.Tensors {
		if t.Space == kernel.Batch || t.Space == kernel.Data {
			if r.batch[t], err = r.d.alloc(4 * t.Len()); err != nil {
				return err
			}
		}
	}
	r.blocks, err = r.d.alloc(blocksBytes)
	return err
}

func gib(bytes int) float64 { return float64(bytes) / (1 << 30) }

// The three blocks that Go reads and writes share one allocation.
const (
	controlAt   = 0
	stateAt     = 256
	metricsAt   = 512
	blocksBytes = 1024
)

// width is the bytes of one of a tensor's elements.
func (r *runner) width(t *kernel.Tensor) int {
	if r.d.precision.Compact(t) {
		return 2
	}
	return 4
}

// address is where a tensor's first element is.
func (r *runner) address(t *kernel.Tensor) uint64 {
	root, at := t.Root(), uint64(0)
	if t.Parent != nil {
		at = uint64(r.width(t) * t.Offset)
	}
	switch root.Space {
	case kernel.Shard:
		return r.arena.at + uint64(r.offsets[root]) + at
	case kernel.Batch, kernel.Data:
		return r.batch[root].at + at
	case kernel.Weight:
		return r.sets[root.Set].weights.at + 4*uint64(root.Offset) + at
	case kernel.Scalar:
		return r.blocks.at + stateAt + uint64(unsafe.Offsetof(state{}.scalars)) + 8*uint64(root.Offset)
	default:
		return r.sets[0].grads.at + 4*uint64(root.Offset) + at
	}
}

// bf16 is where the bf16 copy of a weight is.
func (r *runner) bf16(w *kernel.Tensor) uint64 {
	return r.sets[w.Set].bf16.at + 2*uint64(w.Offset)
}

// scratch reserves memory for the op being bound.
func (r *runner) scratch(bytes int) uint64 {
	m, err := r.d.alloc(bytes)
	if err != nil {
		panic(scratchError{err})
	}
	r.extra = append(r.extra, m)
	return m.at
}

// table reserves memory for the op being bound and fills it.
func (r *runner) table(data []byte) uint64 {
	at := r.scratch(len(data))
	if err := r.d.copyIn("tables", at, unsafe.Pointer(unsafe.SliceData(data)), len(data)); err != nil {
		panic(scratchError{err})
	}
	return at
}

// tiled describes a matrix to the copy engine, for the op being bound.
func (r *runner) tiled(m cu.Matrix) uint64 {
	var data []byte
	err := r.d.ctx.Do(func() (err error) { data, err = r.d.ctx.Tiles(m); return err })
	if err != nil {
		panic(scratchError{err})
	}
	at, fresh, err := r.d.described.place(data, r.d.alloc)
	if err == nil && fresh {
		if err = r.d.copyIn("tables", at, unsafe.Pointer(unsafe.SliceData(data)), len(data)); err != nil {
			r.d.described.forget(data)
		}
	}
	if err != nil {
		panic(scratchError{err})
	}
	return at
}

// scratchError carries a failed reservation out of a binder.
type scratchError struct{ error }

// bindAll binds every op and the closing advance.
func (r *runner) bindAll() (err error) {
	defer func() {
		if e, ok := recover().(scratchError); ok {
			err = e.error
		}
	}()
	b := bind.New(r.prog)
	b.Precision, b.SMs, b.MaxShared, b.Memory, b.Hopper = r.d.precision, r.d.sms, r.d.maxShared, r.d.memory, isHopper(r.d.ctx.Device)
	b.Address, b.Bf16, b.Scratch, b.Table, b.Tiled = r.address, r.bf16, r.scratch, r.table, r.tiled
	b.Control, b.State, b.Metrics = r.blocks.at+controlAt, r.blocks.at+stateAt, r.blocks.at+metricsAt
	if len(r.sets) > 0 {
		s := r.sets[0]
		b.LaneSize, b.Weights, b.Bf16Weights, b.Moment1, b.Moment2, b.Grads = s.layout.Len, s.weights.at, s.bf16.at, s.m.at, s.v.at, s.grads.at
	}
	ops := append(append([]kernel.Op(nil), r.prog.PerShard...), r.prog.Once...)
	if !r.serial {
		fuse.Find(b, ops)
	}
	launches, err := launchesOfAll(b, ops)
	if err != nil {
		return err
	}
	closing := bind.Launch{Module: "adamw", Kernel: "advance", Grid: bind.Dim3{1, 1, 1}, Block: bind.Dim3{1, 1, 1}}
	if err := r.d.ctx.Do(func() error { return r.d.fetch(append(slices.Concat(launches...), closing)) }); err != nil {
		return err
	}
	for i, op := range ops {
		switch o := op.(type) {
		case *kernel.Rollout:
			r.paths = append(r.paths, fmt.Sprintf("%s: %s", op.Kind(), routing.RolloutPath(b, o)))
		case *kernel.RolloutGrad:
			r.paths = append(r.paths, fmt.Sprintf("%s: %s", op.Kind(), routing.GradPath(b, o)))
			r.d.tell(routing.Slowly(b, o))
		}
		if err := r.prepare(launches[i]); err != nil {
			return fmt.Errorf("%s: %w", op.Kind(), err)
		}
	}
	r.gathered = b.Gathered
	each, skip := r.prog.Total(), 0
	// its own pieces follow each other; then come those of other processes
	if runs := r.prog.Share.Runs(); runs > 1 {
		each, skip = r.prog.Batch, r.prog.Total()-runs*r.prog.Batch
	}
	closing.Args = []any{b.State, uint32(each), uint32(skip)}
	return r.prepare([]bind.Launch{closing})
}

func (r *runner) prepare(ls []bind.Launch) error {
	out := make([]ready, len(ls))
	for i, l := range ls {
		if err := r.d.ctx.Do(func() (err error) { out[i], err = r.d.ready(l); return err }); err != nil {
			return err
		}
	}
	r.launches = append(r.launches, out)
	return nil
}

// Paths says what a step is made of.
func (r *runner) Paths() []string {
	graph := fmt.Sprintf("one graph of %d kernels, loaded in %.1f s", r.nodes, r.d.loadTime.Seconds())
	if r.serial {
		graph += "; memory is short, so ops share it and keep their order"
	}
	return append([]string{graph}, r.paths...)
}

// Run queues one step: a replay of the graph, or as many as it has pieces.
func (r *runner) Run() error {
	r.steps++
	r.d.counters.Steps++
	r.d.counters.Launches += int64(r.prog.Share.Runs())
	return r.queue(r.run)
}

// queue has a step queued, by a function that ends with replay, and lets the peer have its gradient
// where one waits on the host.
func (r *runner) queue(step func() error) error {
	meets := r.onHost != nil && r.updates()
	if err := r.d.ctx.Do(step); err != nil {
		return err
	}
	if meets {
		if err := r.meet(); err != nil {
			return err
		}
	}
	r.part = (r.part + r.prog.Share.Runs()) % r.every
	return nil
}

// updates tells whether the next step ends an update: only then a gradient is exchanged.
func (r *runner) updates() bool { return (r.part+r.prog.Share.Runs())%r.every == 0 }

// SetControl changes the schedules' block.
func (r *runner) SetControl(c kernel.Control) error {
	values, err := kernel.Values("coefficient", r.coefficients, c.Coefficients)
	if err != nil {
		return err
	}
	b := packControl(c, values)
	return r.d.copyIn("control", r.blocks.at+controlAt, unsafe.Pointer(&b), int(unsafe.Sizeof(b)))
}

// State reads what the next step starts from.
func (r *runner) State() (kernel.State, error) {
	var b state
	err := r.d.copyOut("state", unsafe.Pointer(&b), r.blocks.at+stateAt, int(unsafe.Sizeof(b)))
	b.instances -= uint64(r.prog.First())
	return b.unpack(r.scalars), err
}

// SetState puts the runner where a checkpoint left it.
func (r *runner) SetState(s kernel.State) error {
	values, err := kernel.Values("scalar", r.scalars, s.Scalars)
	if err != nil {
		return err
	}
	r.part = int(s.Part) % r.every
	s.Instances += uint64(r.prog.First()) // of this process's share
	b := packState(s.Normal(), values)
	return r.d.copyIn("state", r.blocks.at+stateAt, unsafe.Pointer(&b), int(unsafe.Sizeof(b)))
}

// TakeMetrics reads the sums and clears them, all but the mark of a bad step.
func (r *runner) TakeMetrics() (kernel.Metrics, error) {
	var b metrics
	if err := r.d.copyOut("metrics", unsafe.Pointer(&b), r.blocks.at+metricsAt, int(unsafe.Sizeof(b))); err != nil {
		return kernel.Metrics{}, err
	}
	out := b.unpack(r.sums, r.steps)
	r.steps = 0
	sums := int(unsafe.Offsetof(b.badStep)) / 4
	err := r.d.ctx.Do(func() error { return r.d.ctx.Fill(r.blocks.at+metricsAt, 0, sums, r.d.stream) })
	return out, err
}

// ReadBatch copies a Batch or Data tensor out.
func (r *runner) ReadBatch(t *kernel.Tensor, dst any) error {
	m, p, err := r.rows(t, dst)
	if err != nil {
		return err
	}
	return r.d.copyOut(t.Name, p, m.at, m.bytes)
}

// WriteBatch replaces a Batch or Data tensor.
func (r *runner) WriteBatch(t *kernel.Tensor, src any) error {
	m, p, err := r.rows(t, src)
	if err != nil {
		return err
	}
	return r.d.copyIn(t.Name, m.at, p, m.bytes)
}

func (r *runner) rows(t *kernel.Tensor, host any) (memory, unsafe.Pointer, error) {
	m, ok := r.batch[t]
	if !ok {
		return m, nil, fmt.Errorf("%v is not a batch or data tensor of %s", t, r.prog.Name)
	}
	var p unsafe.Pointer
	var n int
	switch h := host.(type) {
	case []float32:
		p, n = unsafe.Pointer(unsafe.SliceData(h)), len(h)
	case []int32:
		p, n = unsafe.Pointer(unsafe.SliceData(h)), len(h)
	default:
		return m, nil, fmt.Errorf("%v: want []float32 or []int32, got %T", t, host)
	}
	if 4*n != m.bytes {
		return m, nil, fmt.Errorf("%v: %d elements given, it has %d", t, n, m.bytes/4)
	}
	return m, p, nil
}

// GatherMoments has nothing to gather: every card updates all weights, which takes it microseconds.
func (r *runner) GatherMoments() error { return nil }

// ReadGrad copies the last step's summed gradient, which the optimizer left in lane 0.
func (r *runner) ReadGrad(dst []float32) error {
	return r.sets[0].read("gradient", r.sets[0].grads, dst)
}

// FirstBad replays the step that went wrong, op by op, and names the first result that is not
// finite.
func (r *runner) FirstBad() (string, error) {
	var b metrics
	if err := r.d.copyOut("metrics", unsafe.Pointer(&b), r.blocks.at+metricsAt, int(unsafe.Sizeof(b))); err != nil {
		return "", err
	}
	saved, err := r.State()
	if err != nil {
		return "", err
	}
	if b.badStep != 0 {
		again := saved
		again.Instances = b.badFirst - uint64(r.prog.First())
		if err := r.SetState(again); err != nil {
			return "", err
		}
	}
	name := ""
	for i, op := range r.prog.PerShard {
		if err := r.d.ctx.Do(func() error { return r.launchOp(i) }); err != nil {
			return "", err
		}
		op.Args(func(t *kernel.Tensor, a kernel.Access) {
			if name == "" && err == nil && a != kernel.Read && t.Type == kernel.F32 {
				var ok bool
				if ok, err = r.finite(t); err == nil && !ok {
					name = fmt.Sprintf("%s, result %s", op.Kind(), t.Name)
				}
			}
		})
		if err != nil || name != "" {
			break
		}
	}
	return name, errors.Join(err, r.SetState(saved))
}

// launchOp queues the kernels of one op outside the graph. On the context's thread.
func (r *runner) launchOp(i int) error {
	for _, l := range r.launches[i] {
		if err := r.d.ctx.Launch(l.function, l.geometry, r.d.stream, l.args); err != nil {
			return err
		}
	}
	return nil
}

// finite looks at every element of a float tensor. A bf16 number is the upper half of the same
// number in fp32.
func (r *runner) finite(t *kernel.Tensor) (bool, error) {
	span, width := (t.Rows()-1)*t.Stride+t.Cols(), r.width(t)
	host := make([]byte, span*width)
	if err := r.d.copyOut(t.Name, unsafe.Pointer(&host[0]), r.address(t), len(host)); err != nil {
		return false, err
	}
	const exponent = 0x7f80
	for row := range t.Rows() {
		for c := range t.Cols() {
			at := (row*t.Stride+c+1)*width - 2
			if binary.LittleEndian.Uint16(host[at:])&exponent == exponent {
				return false, nil
			}
		}
	}
	return true, nil
}

// Memory is what the runner and its stores hold on the card.
func (r *runner) Memory() int64 {
	total := int64(r.arena.bytes+r.blocks.bytes) + r.fed.memory()
	for _, m := range r.batch {
		total += int64(m.bytes)
	}
	for _, m := range r.extra {
		total += int64(m.bytes)
	}
	for _, s := range r.sets {
		total += s.memory()
	}
	return total
}

// Close frees the runner's memory and graph; weight sets stay.
func (r *runner) Close() error {
	var errs []error
	if r.exec != nil {
		errs = append(errs, r.d.ctx.Do(func() error { return errors.Join(r.d.ctx.Wait(r.d.stream), r.exec.Close(), r.watch.close(r.d.ctx)) }))
		r.exec = nil
	}
	if r.piece != nil {
		errs = append(errs, r.d.ctx.Do(r.piece.Close))
		r.piece = nil
	}
	if r.onHost != nil {
		errs = append(errs, r.d.ctx.Do(func() error { return r.onHost.close(r.d.ctx) }))
		r.onHost = nil
	}
	if r.fed != nil {
		errs = append(errs, r.d.ctx.Do(func() error { return r.fed.close(r.d.ctx) }))
		r.fed = nil
	}
	for _, a := range r.asks {
		errs = append(errs, r.d.ctx.Do(func() error { return a.close(r.d.ctx) }))
	}
	r.asks = nil
	blocks := append([]memory{r.arena, r.blocks}, r.extra...)
	for _, m := range r.batch {
		blocks = append(blocks, m)
	}
	for _, m := range blocks {
		errs = append(errs, m.free())
	}
	r.arena, r.blocks, r.extra, r.batch = memory{}, memory{}, nil, nil
	return errors.Join(errs...)
}
