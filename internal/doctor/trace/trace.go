// Package trace reads profiles of any supported profiler into compact records for package doctor
// and its rules. Load opens files of any format and compression, Read parses Chrome traces
// (scan.go, event.go), and the readers of other formats produce the same events. vendor.go and
// family.go contain all vendors' names that other packages use.
package trace

import (
	"bytes"
	"fmt"

	"haul/internal/doctor/memory"
	"haul/internal/doctor/phrase"
)

// Collective is one collective operation on one rank.
type Collective struct {
	Kind        string
	Group       uint32 // a name; 0 if the trace has none
	Members     int
	Bytes       uint64
	Start, End  int64
	Arrived     int64 // host time at which the rank has its data and waits for the others
	Correlation uint32
	Device      uint16
	Host        bool // on a CPU thread
	Exposed     int64
	Step        int
}

// Trace holds the parts of a recording that rules need: a 2 GB file becomes about 100 MB. Times are
// in nanoseconds on the trace's own clock. Records are in time order after settle. Only the reader
// appends to them.
type Trace struct {
	Threads   []*Thread
	GPU       log[Work]
	StepMarks []Window
	Loader    []Span  // fetching of next batches, on any thread
	Updates   []Span  // steps of optimizers
	Workers   bool    // the data loader has separate workers
	Ranges    []Range // annotations of the program, in time order
	Fetches   []fetch
	Framework []Span // the framework's Python code: Regions, and the optimizer's annotations
	Regions   []Span // the framework's loops around operators: an optimizer's step, compiled code
	Compiled  []Span // the parts of Regions that torch.compile made

	Compiling []Span     // torch.compile compiles
	Notes     []Note     // the collectives that the framework announced, in time order
	Overhead  []Span     // the profiler's own work
	Memory    log[Alloc] // memory allocated and freed, in time order
	Aimed     log[aim]   // kernels named by their launches, as in ROCm
	Captures  []Capture  // graphs captured in another recording, which this one may replay
	Names     names
	Forms     []Form // distinct inputs of operators; entry 0 is unknown
	GPUModels []GPUModel
	Job       job
	Format    string // the tool that wrote it, if not PyTorch
	Own       bool   // haul profile wrote it, of a program without Python

	Snapshot *memory.Snapshot // of a memory snapshot, which has no other data

	Events    int  // complete events in the file
	recorded  int  // number of Events with a duration
	Shapes    bool // operators have their inputs' shapes
	negative  int  // left out, because they end before they start
	undated   int  // left out, because their time is invalid
	strays    int  // left out, because they are far from all others
	unordered int  // before an earlier event of their thread
	cut       bool // the file ends too early
	closed    bool // the list of events is complete

	Collectives []Collective
	Captured    []Span // a graph was being captured
	Blocked     []Span // Python waits for the device, according to the runtime's functions
}

// job describes a distributed run.
type job struct {
	Rank, World int
	Known       bool
	backend     string
}

// fetch is one fetching of a data loader's next batch, with its caller.
type fetch struct {
	Span
	Thread *Thread
}

// Range is an annotation of the program, made with record_function for example.
type Range struct {
	Span
	Thread *Thread
	Name   uint32
}

// Note is a collective in an annotation: on the CPU for gloo, at its issue for NCCL.
type Note struct {
	Span
	Thread *Thread
	Name   uint32
	Bytes  uint64
	Group  uint32 // a name; 0 if unknown
}

// Alloc is memory allocated or freed by the framework's allocator.
type Alloc struct {
	At     int64
	Bytes  int64  // negative if freed
	Total  int64  // total bytes allocated on the device afterwards
	Addr   uint64 // 0 if unknown
	Thread int32
	Device uint16
	Host   bool
}

// aim is the kernel that a launch names.
type aim struct{ Correlation, Kernel uint32 }

// Thread holds one CPU thread's outermost operators and driver calls.
type Thread struct {
	pid, Tid string
	label    string // the thread's name in the trace
	number   int
	Ops      log[Op]
	Calls    log[Call]
	Frames   log[frame]
	Inner    log[Inner] // operators inside others that rules examine separately
	Launches int
	Loops    bool // marks the steps
	Feeds    bool // fetches batches for another thread
}

// frame is one call of a Python function.
type frame struct {
	Start int64
	dur   float32
	Name  uint32
}

func (f *frame) End() int64 { return f.Start + int64(f.dur) }

// Call is one call of the driver or its runtime that a rule counts.
type Call struct {
	Start       int64
	Dur         float32
	Correlation uint32
	Name        uint32
	Kind        CallKind
	InOp        bool
	Cold        bool // the first use of a context, a library or a kernel
}

func (c *Call) End() int64 { return c.Start + int64(c.Dur) }

// Work is one activity of a GPU: a kernel, a copy or a memset.
type Work struct {
	Start       int64
	Dur         float32
	Correlation uint32
	Name        uint32
	Bytes       uint32
	Blocks      float32 // per multiprocessor; negative if unknown
	Stream      uint32
	Device      uint16
	Kind        category
	Direction   direction
	Comm        bool
}

func (w *Work) End() int64 { return w.Start + int64(w.Dur) }

// names stores each name once, with the facts derived from it.
type names struct {
	index map[string]uint32
	List  []name
}

type name struct {
	Text        string
	as          nameUse   // the uses that facts have been derived for
	transparent bool      // an operator that only wraps others
	inner       bool      // an operator that is kept inside others too
	valued      bool      // an operator whose work depends on its scalars
	call        CallKind  // kind of the call with this name
	direction   direction // direction of the copy with this name
	FP32        bool      // a matrix product in full fp32
	FP64        bool      // a kernel in double precision
	Layout      bool      // a kernel that only changes the order of a tensor's dimensions
	Family      family    // computation of the kernel
	Comm        string    // the collective of the kernel or annotation
	Chip        int       // GPU architecture in the name, times ten
}

func (n *names) of(b []byte) uint32 {
	if id, ok := n.index[string(b)]; ok {
		return id
	}
	if n.index == nil {
		n.index = map[string]uint32{}
	}
	s := string(b)
	id := uint32(len(n.List))
	n.index[s] = id
	n.List = append(n.List, name{Text: s})
	return id
}

// nameUse is the use of a name, such as an operator's. Deriving every fact from every name would
// take longer than reading the events, in traces with a separate name per event.
type nameUse uint8

const (
	asOp nameUse = 1 << iota
	asCall
	asWork
)

// as returns a name with all facts for this use.
func (n *names) as(id uint32, use nameUse) *name {
	x := &n.List[id]
	if x.as&use == use {
		return x
	}
	x.as |= use
	switch use {
	case asOp:
		x.transparent, x.inner, x.valued = isWrapper(x.Text), isInner(x.Text), isValued(x.Text)
	case asCall:
		x.call = callKindOf(x.Text)
	case asWork:
		x.direction, x.FP32, x.Family, x.Comm, x.Chip = directionOf(x.Text), isFP32Product(x.Text), familyOf(x.Text), collectiveOf(x.Text), chipOf(x.Text)
		x.FP64, x.Layout = isFP64Kernel(x.Text), isLayoutKernel(x.Text)
	}
	return x
}

// builder appends events to a trace while a file is read.
type builder struct {
	*Trace
	byKey    map[string]*Thread
	key      []byte
	last     *Thread // the thread of lastKey: consecutive events are often of one thread
	prior    []byte
	bare     log[bare]         // events without a category, until the threads' names are known
	process  map[string]string // names of processes by pid
	forms    map[string]uint32 // by their text
	formKey  []byte
	raw      []Collective // communication kernels with their arguments
	captures map[*Thread]int64
	left     *Budget
	over     error // the file exceeds the limit of events; later events are left out
}

// bare is an event whose thread's name determines its kind.
type bare struct {
	start       int64
	dur         float32
	thread      int32
	name        uint32
	correlation uint32
	bytes       uint32
	grid        float32
}

func newBuilder(left *Budget) *builder {
	t := &builder{left: left, Trace: &Trace{}, byKey: map[string]*Thread{}, process: map[string]string{}}
	t.Names.of(nil) // name 0 is no name
	return t
}

func (t *builder) thread(e *event) *Thread {
	t.key = append(append(append(t.key[:0], e.pid...), 0), e.tid...)
	if t.last != nil && string(t.key) == string(t.prior) {
		return t.last
	}
	th := t.byKey[string(t.key)]
	if th == nil {
		th = &Thread{pid: string(e.pid), Tid: string(e.tid), number: len(t.Threads)}
		t.byKey[string(t.key)] = th
		t.Threads = append(t.Threads, th)
	}
	t.last, t.prior = th, append(t.prior[:0], t.key...)
	return th
}

// add adds one event. It drops an operator inside the previous operator of its thread at once,
// which leaves a third of a trace's operators. settle drops inner operators that were out of order.
func (t *builder) add(e *event) {
	if t.over == nil {
		t.over = t.left.event()
	}
	if t.over != nil {
		return
	}
	t.Events++
	switch e.phase {
	case 'M':
		t.metadata(e)
		return
	case 'i':
		if e.args.total >= 0 && e.hasStart {
			t.Memory.Add(Alloc{At: e.start, Bytes: e.args.change, Total: e.args.total, Addr: e.args.addr,
				Thread: int32(t.thread(e).number), Device: uint16(e.args.device), Host: e.args.host})
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
		t.thread(e).Frames.Add(frame{e.start, dur, t.Names.of(e.name)})
	case catOverhead:
		if isProfilers(e.name) {
			t.Overhead = append(t.Overhead, Span{e.start, e.start + e.dur})
		}
	case catBare:
		t.bare.Add(bare{e.start, dur, int32(t.thread(e).number), t.Names.of(e.name), e.args.correlation, e.args.bytes, e.args.grid})
	case catOp:
		id := t.Names.of(e.name)
		named := t.Names.as(id, asOp)
		if named.transparent {
			t.note(e)
			return
		}
		if isCompiling(e.name) {
			t.Compiling = append(t.Compiling, Span{e.start, e.start + e.dur})
		}
		t.Shapes = t.Shapes || e.args.inputs != 0
		th := t.thread(e)
		ops := &th.Ops
		if n := ops.Len(); n > 0 {
			prev := ops.At(n - 1)
			if prev.holdsStart(e.start) && (e.start > prev.Start || dur <= prev.Dur) {
				prev.nest(1)
				if named.inner {
					th.Inner.Add(Inner{e.start, dur, id, t.form(e, named.valued)})
				}
				return
			}
			if e.start < prev.Start {
				t.unordered++
			}
		}
		ops.Add(Op{Start: e.start, Dur: dur, Name: id, Sequence: e.args.sequence, Inputs: uint32(e.args.inputs ^ e.args.inputs>>32), Form: t.form(e, named.valued)})
		if len(e.args.stack) > 0 {
			if where := innermostOf(e.args.stack); len(where) > 0 {
				th.Frames.Add(frame{e.start, dur, t.Names.of(where)})
			}
		}
	case catCall:
		id := t.Names.of(e.name)
		kind := t.Names.as(id, asCall).call
		if e.foreign && kind == CallOther {
			kind = foreignKind(e.name, e.args.correlation)
		}
		switch {
		case kind == callCapture:
			t.capture(e)
		case kind != CallOther || e.dur >= longCall:
			t.thread(e).Calls.Add(Call{Start: e.start, Dur: dur, Correlation: e.args.correlation, Name: id, Kind: kind})
			if len(e.args.kernel) > 0 && kind == CallLaunch {
				t.Aimed.Add(aim{e.args.correlation, t.Names.of(e.args.kernel)})
			}
		}
	default:
		t.work(e)
	}
}

// longCall is the length from which a driver call that no rule counts is kept, because first uses
// of the driver show in such calls.
const longCall = 20_000 // ns

func (t *builder) work(e *event) {
	id := t.Names.of(e.name)
	n := t.Names.as(id, asWork)
	g := Work{Start: e.start, Dur: float32(e.dur), Correlation: e.args.correlation, Name: id, Bytes: e.args.bytes,
		Blocks: e.args.blocks, Stream: e.args.stream, Device: uint16(e.args.device), Kind: e.cat, Direction: n.direction}
	if !e.args.hasDevice {
		g.Device = uint16(count(e.pid))
	}
	if g.Blocks < 0 && e.args.grid > 0 {
		g.Blocks = -1 - e.args.grid // settle divides by the GPU's number of processors
	}
	if e.cat == CatKernel && (n.Comm != "" || len(e.args.collective) > 0) {
		g.Comm = true
		c := Collective{Correlation: g.Correlation, Start: g.Start, Kind: n.Comm, Members: int(e.args.members),
			Bytes: e.args.elements * uint64(widthOf(e.args.dtype))}
		if len(e.args.collective) > 0 {
			c.Kind = plainCollective(string(e.args.collective), c.Kind)
		}
		if len(e.args.group) > 0 {
			c.Group = t.Names.of(e.args.group)
		}
		t.raw = append(t.raw, c)
	}
	t.GPU.Add(g)
}

// metadata stores the names of processes and threads.
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

// capture pairs the begin and the end of a graph's capture. The interval between them becomes a
// span on the thread, since launches in it start no work.
func (t *builder) capture(e *event) {
	th := t.thread(e)
	if bytes.Contains(e.name, []byte("Begin")) {
		if t.captures == nil {
			t.captures = map[*Thread]int64{}
		}
		t.captures[th] = e.start
		return
	}
	if from, ok := t.captures[th]; ok {
		t.Captured = append(t.Captured, Span{from, e.start + e.dur})
		delete(t.captures, th)
	}
}

func (t *builder) note(e *event) {
	if isUpdate(e.name) || isZeroing(e.name) || e.cat == catOp && isRegion(e.name) {
		t.Framework = append(t.Framework, Span{e.start, e.start + e.dur})
	}
	switch {
	case isStep(e.name):
		t.StepMarks = append(t.StepMarks, Window{e.start, e.start + e.dur})
		t.thread(e).Loops = true
	case isUpdate(e.name):
		t.Updates = append(t.Updates, Span{e.start, e.start + e.dur})
		if e.cat == catOp {
			t.Regions = append(t.Regions, Span{e.start, e.start + e.dur})
		}
		t.annotation(e)
	case isLoader(e.name):
		t.Loader = append(t.Loader, Span{e.start, e.start + e.dur})
		t.Workers = t.Workers || bytes.Contains(e.name, []byte("MultiProcessing"))
		t.Fetches = append(t.Fetches, fetch{Span{e.start, e.start + e.dur}, t.thread(e)})
	case isCompiling(e.name):
		t.Compiling = append(t.Compiling, Span{e.start, e.start + e.dur})
	case e.cat == catOp && isRegion(e.name): // a program may have an annotation with the same name
		t.Regions = append(t.Regions, Span{e.start, e.start + e.dur})
		if isCompiled(e.name) {
			t.Compiled = append(t.Compiled, Span{e.start, e.start + e.dur})
		}
	case isBackend(e.name):
		id := t.Names.of(e.name)
		t.Names.as(id, asWork)
		n := Note{Span: Span{e.start, e.start + e.dur}, Thread: t.thread(e), Name: id,
			Bytes: e.args.elements * uint64(widthOf(e.args.dtype))}
		if len(e.args.group) > 0 {
			n.Group = t.Names.of(e.args.group)
		}
		t.Notes = append(t.Notes, n)
	default:
		t.annotation(e)
	}
}

// annotation stores the range of an annotation, for OnlyRange.
func (t *builder) annotation(e *event) {
	if e.cat == catNote && len(t.Ranges) < maxRanges {
		t.Ranges = append(t.Ranges, Range{Span{e.start, e.start + e.dur}, t.thread(e), t.Names.of(e.name)})
	}
}

// maxRanges limits the stored annotations of a program.
const maxRanges = 1 << 18

// Cut reports whether the file ends before its events do.
func (t *Trace) Cut() bool { return t.cut && !t.closed }

// Remarks returns the faults of the recording, one line each.
func (t *Trace) Remarks() []string {
	var out []string
	say := func(n int, what string) {
		if n > 0 {
			out = append(out, fmt.Sprintf("%s %s", phrase.Count1(n, "event"), what))
		}
	}
	if t.cut {
		out = append(out, fmt.Sprintf("the file is cut off after %s: what came behind them is missing", phrase.Count1(t.Events, "event")))
	}
	say(t.negative, "with a negative duration left out")
	say(t.undated, "without a readable time left out")
	say(t.strays, "far from all the others in time left out")
	say(t.unordered, "out of time order, sorted")
	return out
}

// maxForms limits the stored forms. Operators beyond it have an unknown form.
const maxForms = 1 << 18

// form returns the number of an event's inputs.
func (t *builder) form(e *event, valued bool) uint32 {
	if len(e.args.dims) == 0 {
		return 0
	}
	t.formKey = append(append(append(t.formKey[:0], e.args.dims...), 0), e.args.types...)
	var values []byte
	if valued {
		values = e.args.values
		t.formKey = append(append(t.formKey, 0), values...)
	}
	if id, ok := t.forms[string(t.formKey)]; ok {
		return id
	}
	if len(t.Forms) >= maxForms {
		return 0
	}
	if t.forms == nil {
		t.forms = map[string]uint32{}
		t.Forms = []Form{{}}
	}
	id := uint32(len(t.Forms))
	t.forms[string(t.formKey)] = id
	t.Forms = append(t.Forms, formOf(e.args.dims, e.args.types, values))
	return id
}
