package doctor

import "fmt"

// Trace is what the rules need of a recording, and no more: a 2 GB file becomes some 100 MB. Times
// are nanoseconds on the trace's own clock. Records are in time order once settle has run; the reader
// alone appends to them.
type Trace struct {
	threads []*thread
	gpu     log[work]
	steps   []window
	loader  []span
	names   names
	cards   []card

	events    int  // complete events in the file
	recorded  int  // of those, the ones with a length in time
	shapes    bool // operators carry their inputs' shapes
	negative  int  // left out: they end before they start
	undated   int  // left out: their time cannot be read
	unordered int  // came before an earlier event of their thread
}

// card is a line of the trace's device list.
type card struct {
	name         string
	major, minor int
	processors   int
}

// thread is one CPU thread's outermost operators and the driver calls made on it.
type thread struct {
	ops   log[op]
	calls log[call]
}

// op is an operator that no other holds: the unit in which causes are charged.
type op struct {
	start    int64
	dur      float32 // ns; 24 bits are enough for a length and halve the record
	name     uint32
	sequence uint32 // autograd's number, which its backward carries too
	inputs   uint32 // hash of shapes and scalars
	holds    holds
	launches uint16
	cause    cause
}

func (o *op) end() int64 { return o.start + int64(o.dur) }

// call is one call of the driver or its runtime that a rule counts.
type call struct {
	start       int64
	dur         float32
	correlation uint32
	kind        callKind
	inOp        bool
}

func (c *call) end() int64 { return c.start + int64(c.dur) }

// work is what a GPU did: a kernel, a copy, a memset.
type work struct {
	start       int64
	dur         float32
	correlation uint32
	name        uint32
	bytes       uint32
	blocks      float32
	kind        category
	direction   direction
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
		direction: directionOf(s), fp32: isFP32Product(s)})
	return id
}

// builder appends events to a trace; it lives as long as the reading.
type builder struct {
	*Trace
	byKey map[string]*thread
	key   []byte
	last  *thread // the thread of lastKey: events come in runs
	prior []byte
}

func newBuilder() *builder { return &builder{Trace: &Trace{}, byKey: map[string]*thread{}} }

func (t *builder) thread(e *event) *thread {
	t.key = append(append(append(t.key[:0], e.pid...), 0), e.tid...)
	if t.last != nil && string(t.key) == string(t.prior) {
		return t.last
	}
	th := t.byKey[string(t.key)]
	if th == nil {
		th = &thread{}
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
	if e.phase != 'X' || e.cat == catOther {
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
	case catOp:
		id := t.names.of(e.name)
		if t.names.list[id].transparent {
			t.note(e)
			return
		}
		t.shapes = t.shapes || e.args.inputs != 0
		ops := &t.thread(e).ops
		if n := ops.len(); n > 0 {
			prev := ops.at(n - 1)
			if prev.holdsStart(e.start) && (e.start > prev.start || dur <= prev.dur) {
				return
			}
			if e.start < prev.start {
				t.unordered++
			}
		}
		ops.add(op{start: e.start, dur: dur, name: id, sequence: e.args.sequence, inputs: uint32(e.args.inputs ^ e.args.inputs>>32)})
	case catCall:
		if kind := t.names.list[t.names.of(e.name)].call; kind != callOther {
			t.thread(e).calls.add(call{start: e.start, dur: dur, correlation: e.args.correlation, kind: kind})
		}
	default:
		id := t.names.of(e.name)
		t.gpu.add(work{start: e.start, dur: dur, correlation: e.args.correlation, name: id, bytes: e.args.bytes,
			blocks: e.args.blocks, kind: e.cat, direction: t.names.list[id].direction})
	}
}

// holdsStart tells whether another operator of the thread that starts at this moment runs inside o.
// Starts decide, not ends: older profilers round both to microseconds, and a child may seem to outlive
// its parent. A start is inside only past what rounding a length to 24 bits can have added.
func (o *op) holdsStart(at int64) bool {
	return at >= o.start && at < o.end()-int64(o.dur/(1<<23))
}

func (t *builder) note(e *event) {
	switch {
	case isStep(e.name):
		t.steps = append(t.steps, window{e.start, e.start + e.dur})
	case isLoader(e.name):
		t.loader = append(t.loader, span{e.start, e.start + e.dur})
	}
}

// settle puts every list in time order and keeps the outermost operators alone.
func (t *builder) settle() *Trace {
	for _, th := range t.threads {
		th.ops.order(func(a, b *op) bool { return a.start < b.start || a.start == b.start && a.dur > b.dur })
		th.calls.order(func(a, b *call) bool { return a.start < b.start })
		kept := 0
		for i := range th.ops.len() {
			if o := th.ops.at(i); kept == 0 || !th.ops.at(kept-1).holdsStart(o.start) {
				*th.ops.at(kept) = *o
				kept++
			}
		}
		th.ops.cut(kept)
	}
	t.gpu.order(func(a, b *work) bool { return a.start < b.start })
	t.steps = tidySteps(t.steps)
	t.loader = union(t.loader)
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
	say(t.unordered, "out of time order, sorted")
	return out
}
