package doctor

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Trace is what the rules need of a recording, and no more: a 2 GB file becomes some 100 MB. Times
// are nanoseconds on the trace's own clock. Records are in time order once settle has run; the
// reader alone appends to them.
type Trace struct {
	threads  []*thread
	gpu      log[work]
	steps    []window
	loader   []span // next batches, on any thread
	fetches  []fetch
	regions  []span // the framework's own loops around operators: an optimizer's step, compiled code
	compiled []span // of those, torch.compile's

	compiling []span  // torch.compile at work
	notes     []note  // the collectives that the framework announced, in time order
	overhead  []span  // the profiler's own work
	memory    []level // bytes allocated on the device
	names     names
	cards     []card
	job       job
	format    string // what wrote it, where that is not PyTorch
	own       bool   // haul profile wrote it, of a program without Python

	events    int  // complete events in the file
	recorded  int  // of those, the ones with a length in time
	shapes    bool // operators carry their inputs' shapes
	negative  int  // left out: they end before they start
	undated   int  // left out: their time cannot be read
	strays    int  // left out of the one step: far from all the others
	unordered int  // came before an earlier event of their thread

	collectives []collective
	captured    []span // a graph was being captured
	blocked     []span // Python waits for the device, as the runtime's own functions tell
}

// job is what a distributed run tells of itself.
type job struct {
	rank, world int
	known       bool
	backend     string
}

// fetch is one call for a data loader's next batch, and who made it.
type fetch struct {
	span
	thread *thread
}

// note is a collective as an annotation announces it: on the CPU for gloo, at its issue for NCCL.
type note struct {
	span
	thread *thread
	name   uint32
	bytes  uint64
	group  uint32 // a name, 0 when not told
}

// level is how many bytes were allocated at a moment.
type level struct {
	at    int64
	bytes int64
}

// card is a line of the trace's device list.
type card struct {
	name         string
	major, minor int
	processors   int
}

// thread is one CPU thread's outermost operators and the driver calls made on it.
type thread struct {
	pid, tid string
	label    string // the name that the trace gives it
	number   int
	ops      log[op]
	calls    log[call]
	frames   log[frame]
	launches int
	loops    bool // it marks the steps
	feeds    bool // it fetches batches for another thread
}

// frame is a Python function while it ran.
type frame struct {
	start int64
	dur   float32
	name  uint32
}

func (f *frame) end() int64 { return f.start + int64(f.dur) }

// op is an operator that no other holds: the unit in which causes are charged.
type op struct {
	start    int64
	dur      float32 // ns; 24 bits are enough for a length and halve the record
	name     uint32
	sequence uint32  // autograd's number, which its backward carries too
	inputs   uint32  // hash of shapes and scalars
	idle     float32 // ns in which the GPU had nothing to do and waited for this operator
	lead     float32 // such ns of Python between the operator before and this one
	holds    holds
	launches uint16
	nested   uint16 // operators inside
	cause    cause
}

func (o *op) end() int64 { return o.start + int64(o.dur) }

// nest counts operators inside.
func (o *op) nest(n int) { o.nested = uint16(min(math.MaxUint16, int(o.nested)+n)) }

// call is one call of the driver or its runtime that a rule counts.
type call struct {
	start       int64
	dur         float32
	correlation uint32
	name        uint32
	kind        callKind
	inOp        bool
	cold        bool // the first use of something: a context, a library, a kernel
}

func (c *call) end() int64 { return c.start + int64(c.dur) }

// work is what a GPU did: a kernel, a copy, a memset.
type work struct {
	start       int64
	dur         float32
	correlation uint32
	name        uint32
	bytes       uint32
	blocks      float32 // per multiprocessor; negative when not told
	stream      uint32
	device      uint16
	kind        category
	direction   direction
	comm        bool
}

func (w *work) end() int64 { return w.start + int64(w.dur) }

// window is one profiler step; span any stretch of time, its end left out.
type (
	window struct{ start, end int64 }
	span   struct{ start, end int64 }
)

// names keeps each name once, with what follows from it.
type names struct {
	index map[string]uint32
	list  []name
}

type name struct {
	text        string
	transparent bool      // an operator that only wraps others
	call        callKind  // what a call of this name does
	direction   direction // where a copy of this name goes
	fp32        bool      // a matrix product in full fp32
	family      family    // what a kernel of this name computes
	comm        string    // the collective that a kernel or an annotation of this name carries out
	chip        int       // the architecture that the name tells, times ten
}

func (n *names) of(b []byte) uint32 {
	if id, ok := n.index[string(b)]; ok {
		return id
	}
	if n.index == nil {
		n.index = map[string]uint32{}
	}
	s := string(b)
	id := uint32(len(n.list))
	n.index[s] = id
	n.list = append(n.list, name{text: s, transparent: isWrapper(s), call: callKindOf(s),
		direction: directionOf(s), fp32: isFP32Product(s), family: familyOf(s), comm: collectiveOf(s), chip: chipOf(s)})
	return id
}

// builder appends events to a trace; it lives as long as the reading.
type builder struct {
	*Trace
	byKey    map[string]*thread
	key      []byte
	last     *thread // the thread of lastKey: events come in runs
	prior    []byte
	bare     log[bare]         // events without a category, until the threads' names are known
	process  map[string]string // names of processes by pid
	raw      []collective      // communication kernels with what their arguments tell
	captures map[*thread]int64
}

// bare is an event whose kind its thread's name decides.
type bare struct {
	start       int64
	dur         float32
	thread      int32
	name        uint32
	correlation uint32
	bytes       uint32
	grid        float32
}

func newBuilder() *builder {
	t := &builder{Trace: &Trace{}, byKey: map[string]*thread{}, process: map[string]string{}}
	t.names.of(nil) // name 0 is no name
	return t
}

func (t *builder) thread(e *event) *thread {
	t.key = append(append(append(t.key[:0], e.pid...), 0), e.tid...)
	if t.last != nil && string(t.key) == string(t.prior) {
		return t.last
	}
	th := t.byKey[string(t.key)]
	if th == nil {
		th = &thread{pid: string(e.pid), tid: string(e.tid), number: len(t.threads)}
		t.byKey[string(t.key)] = th
		t.threads = append(t.threads, th)
	}
	t.last, t.prior = th, append(t.prior[:0], t.key...)
	return th
}

// add files one event. An operator inside the one before it on its thread is dropped here, which
// keeps a third of a trace's operators; settle drops those that came out of order.
func (t *builder) add(e *event) {
	t.events++
	switch e.phase {
	case 'M':
		t.metadata(e)
		return
	case 'i':
		if e.args.total >= 0 && e.hasStart && e.args.device != hostMemory {
			t.memory = append(t.memory, level{e.start, e.args.total})
		}
		return
	case 'X':
	default:
		return
	}
	if e.cat == catOther {
		return
	}
	if !e.hasStart || !e.hasDur {
		t.undated++
		return
	}
	if e.dur < 0 {
		t.negative++
		return
	}
	t.recorded++
	dur := float32(e.dur)
	switch e.cat {
	case catNote:
		t.note(e)
	case catPython:
		t.thread(e).frames.add(frame{e.start, dur, t.names.of(e.name)})
	case catOverhead:
		if isProfilers(e.name) {
			t.overhead = append(t.overhead, span{e.start, e.start + e.dur})
		}
	case catBare:
		t.bare.add(bare{e.start, dur, int32(t.thread(e).number), t.names.of(e.name), e.args.correlation, e.args.bytes, e.args.grid})
	case catOp:
		id := t.names.of(e.name)
		if t.names.list[id].transparent {
			t.note(e)
			return
		}
		if isCompiling(e.name) {
			t.compiling = append(t.compiling, span{e.start, e.start + e.dur})
		}
		t.shapes = t.shapes || e.args.inputs != 0
		th := t.thread(e)
		ops := &th.ops
		if n := ops.len(); n > 0 {
			prev := ops.at(n - 1)
			if prev.holdsStart(e.start) && (e.start > prev.start || dur <= prev.dur) {
				prev.nest(1)
				return
			}
			if e.start < prev.start {
				t.unordered++
			}
		}
		ops.add(op{start: e.start, dur: dur, name: id, sequence: e.args.sequence, inputs: uint32(e.args.inputs ^ e.args.inputs>>32)})
		if len(e.args.stack) > 0 {
			if where := innermostOf(e.args.stack); len(where) > 0 {
				th.frames.add(frame{e.start, dur, t.names.of(where)})
			}
		}
	case catCall:
		id := t.names.of(e.name)
		kind := t.names.list[id].call
		if e.foreign && kind == callOther {
			kind = foreignKind(e.name, e.args.correlation)
		}
		switch {
		case kind == callCapture:
			t.capture(e)
		case kind != callOther || e.dur >= longCall:
			t.thread(e).calls.add(call{start: e.start, dur: dur, correlation: e.args.correlation, name: id, kind: kind})
		}
	default:
		t.work(e)
	}
}

// longCall is the length from which a driver call that no rule counts is kept: a first use of the
// driver shows in such a call.
const longCall = 20_000 // ns

func (t *builder) work(e *event) {
	id := t.names.of(e.name)
	n := &t.names.list[id]
	g := work{start: e.start, dur: float32(e.dur), correlation: e.args.correlation, name: id, bytes: e.args.bytes,
		blocks: e.args.blocks, stream: e.args.stream, device: uint16(e.args.device), kind: e.cat, direction: n.direction}
	if !e.args.hasDevice {
		g.device = uint16(count(e.pid))
	}
	if g.blocks < 0 && e.args.grid > 0 {
		g.blocks = -1 - e.args.grid // settle divides by the card's processors
	}
	if e.cat == catKernel && (n.comm != "" || len(e.args.collective) > 0) {
		g.comm = true
		c := collective{correlation: g.correlation, start: g.start, kind: n.comm, members: int(e.args.members),
			bytes: e.args.elements * uint64(widthOf(e.args.dtype))}
		if len(e.args.collective) > 0 {
			c.kind = plainCollective(string(e.args.collective), c.kind)
		}
		if len(e.args.group) > 0 {
			c.group = t.names.of(e.args.group)
		}
		t.raw = append(t.raw, c)
	}
	t.gpu.add(g)
}

// metadata keeps the names of processes and threads.
func (t *builder) metadata(e *event) {
	switch string(e.name) {
	case "process_name":
		t.process[string(e.pid)] = string(e.args.label)
	case "thread_name":
		if len(e.args.label) > 0 {
			t.thread(e).label = string(e.args.label)
		}
	}
}

// capture pairs the begin and the end of a graph's capture; what lies between is recorded as a span
// on the thread, since launches there start no work.
func (t *builder) capture(e *event) {
	th := t.thread(e)
	if bytes.Contains(e.name, []byte("Begin")) {
		if t.captures == nil {
			t.captures = map[*thread]int64{}
		}
		t.captures[th] = e.start
		return
	}
	if from, ok := t.captures[th]; ok {
		t.captured = append(t.captured, span{from, e.start + e.dur})
		delete(t.captures, th)
	}
}

// holdsStart tells whether another operator of the thread that starts at this moment runs inside o.
// Starts decide, not ends: older profilers round both to microseconds, and a child may seem to
// outlive its parent. A start is inside only past what rounding a length to 24 bits can have added.
func (o *op) holdsStart(at int64) bool {
	return at >= o.start && at < o.end()-int64(o.dur/(1<<23))
}

func (t *builder) note(e *event) {
	switch {
	case isStep(e.name):
		t.steps = append(t.steps, window{e.start, e.start + e.dur})
		t.thread(e).loops = true
	case isLoader(e.name):
		t.loader = append(t.loader, span{e.start, e.start + e.dur})
		t.fetches = append(t.fetches, fetch{span{e.start, e.start + e.dur}, t.thread(e)})
	case isCompiling(e.name):
		t.compiling = append(t.compiling, span{e.start, e.start + e.dur})
	case e.cat == catOp && isRegion(e.name): // an annotation of the same name may be a user's
		t.regions = append(t.regions, span{e.start, e.start + e.dur})
		if isCompiled(e.name) {
			t.compiled = append(t.compiled, span{e.start, e.start + e.dur})
		}
	case isBackend(e.name):
		n := note{span: span{e.start, e.start + e.dur}, thread: t.thread(e), name: t.names.of(e.name),
			bytes: e.args.elements * uint64(widthOf(e.args.dtype))}
		if len(e.args.group) > 0 {
			n.group = t.names.of(e.args.group)
		}
		t.notes = append(t.notes, n)
	}
}

// settle puts every list in time order and keeps the outermost operators alone.
func (t *builder) settle() *Trace {
	t.sortBare()
	for _, th := range t.threads {
		th.ops.order(func(a, b *op) bool { return a.start < b.start || a.start == b.start && a.dur > b.dur })
		th.calls.order(func(a, b *call) bool { return a.start < b.start })
		th.frames.order(func(a, b *frame) bool { return a.start < b.start || a.start == b.start && a.dur > b.dur })
		kept := 0
		for i := range th.ops.len() {
			o := th.ops.at(i)
			if kept > 0 && th.ops.at(kept-1).holdsStart(o.start) {
				th.ops.at(kept - 1).nest(1 + int(o.nested))
				continue
			}
			*th.ops.at(kept) = *o
			kept++
		}
		th.ops.cut(kept)
	}
	t.gpu.order(func(a, b *work) bool { return a.start < b.start })
	for i := range t.gpu.len() {
		if g := t.gpu.at(i); g.blocks < -1 {
			if len(t.cards) > 0 && t.cards[0].processors > 0 {
				g.blocks = (-1 - g.blocks) / float32(t.cards[0].processors)
			} else {
				g.blocks = -1
			}
		}
	}
	t.steps = tidySteps(t.steps)
	t.loader = union(t.loader)
	t.regions = union(t.regions)
	t.compiled = union(t.compiled)
	t.compiling = union(t.compiling)
	t.overhead = union(t.overhead)
	t.captured = union(t.captured)
	t.blocked = union(t.blocked)
	slices.SortStableFunc(t.notes, func(a, b note) int { return cmp.Compare(a.start, b.start) })
	slices.SortStableFunc(t.memory, func(a, b level) int { return cmp.Compare(a.at, b.at) })
	t.collectives = t.raw
	slices.SortStableFunc(t.collectives, func(a, b collective) int { return cmp.Compare(a.start, b.start) })
	return t.Trace
}

// Remarks are the faults of the recording itself, one line each.
func (t *Trace) Remarks() []string {
	var out []string
	say := func(n int, what string) {
		if n > 0 {
			out = append(out, fmt.Sprintf("%s %s", count1(n, "event"), what))
		}
	}
	say(t.negative, "with a negative duration left out")
	say(t.undated, "without a readable time left out")
	say(t.strays, "far from all the others in time left out")
	say(t.unordered, "out of time order, sorted")
	return out
}
