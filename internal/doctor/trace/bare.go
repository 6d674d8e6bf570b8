package trace

import (
	"sort"
	"strings"
)

// JAX's profiler writes events without a category. The name of the process gives their device, the
// name of the thread their stream. Other tools' events without categories are not interpreted,
// because nothing describes them.

const FormatJAX = "JAX"

// sortBare adds the events without a category to the trace, once all names are known.
func (t *builder) sortBare() {
	if t.bare.Len() == 0 {
		return
	}
	devices := map[string]uint16{}
	for pid, name := range t.process {
		if rest, ok := strings.CutPrefix(name, "/device:"); ok {
			if i := strings.LastIndexByte(rest, ':'); i >= 0 {
				devices[pid] = uint16(count([]byte(rest[i+1:])))
			}
		}
	}
	if len(devices) == 0 {
		t.sortAutograd()
		return
	}
	t.Format = FormatJAX
	byStream := map[string]bool{} // devices whose work is on threads named after streams
	for _, th := range t.Threads {
		if _, ok := devices[th.pid]; ok && strings.HasPrefix(th.label, "Stream") {
			byStream[th.pid] = true
		}
	}
	starting := t.starting()
	for i := range t.bare.Len() {
		b := t.bare.At(i)
		th := t.Threads[b.thread]
		if n := sort.Search(len(starting), func(i int) bool { return starting[i].End > b.start }); n < len(starting) && starting[n].Start <= b.start {
			if _, ok := devices[th.pid]; !ok {
				continue
			}
		}
		device, onDevice := devices[th.pid]
		switch {
		case onDevice && (strings.HasPrefix(th.label, "Stream") || !byStream[th.pid] && strings.HasPrefix(th.label, "XLA Ops")):
			t.bareWork(b, device, uint32(count([]byte(th.Tid))))
		case onDevice:
		default:
			t.bareHost(b, th)
		}
	}
	t.bare = log[bare]{}
}

// sortAutograd adds the events of torch.autograd.profiler before PyTorch 1.8. Only the name of
// their process describes them: "CPU functions" or "CUDA functions".
func (t *builder) sortAutograd() {
	for i := range t.bare.Len() {
		b := t.bare.At(i)
		switch th := t.Threads[b.thread]; strings.Trim(th.pid, `"`) {
		case "CPU functions":
			th.Ops.Add(Op{Start: b.start, Dur: b.dur, Name: b.name})
		case "CUDA functions":
			t.bareWork(b, 0, uint32(count([]byte(th.Tid))))
		}
	}
	t.bare = log[bare]{}
}

func (t *builder) bareWork(b *bare, device uint16, stream uint32) {
	n := t.Names.as(b.name, asWork)
	g := Work{Start: b.start, Dur: b.dur, Correlation: b.correlation, Name: b.name, Bytes: b.bytes, Blocks: -1,
		Stream: stream, Device: device, Kind: CatKernel, Direction: n.direction, Comm: n.Comm != ""}
	lower := strings.ToLower(n.Text)
	switch {
	case strings.HasPrefix(lower, "memcpy"):
		g.Kind = CatCopy
		if strings.Contains(lower, "h2d") {
			g.Direction = upload
		} else if strings.Contains(lower, "d2h") {
			g.Direction = download
		}
	case strings.HasPrefix(lower, "memset"):
		g.Kind = catSet
	}
	if b.grid > 0 {
		g.Blocks = -1 - b.grid
	}
	if g.Comm {
		t.raw = append(t.raw, Collective{Correlation: g.Correlation, Start: g.Start, Kind: n.Comm})
	}
	t.GPU.Add(g)
}

func (t *builder) bareHost(b *bare, th *Thread) {
	n := t.Names.as(b.name, asCall)
	switch {
	case n.call == callCapture:
	case n.call != CallOther:
		th.Calls.Add(Call{Start: b.start, Dur: b.dur, Correlation: b.correlation, Name: b.name, Kind: n.call})
	case strings.HasPrefix(n.Text, "$"):
		th.Frames.Add(frame{b.start, b.dur, b.name})
		if strings.HasSuffix(n.Text, " block_until_ready") {
			t.Blocked = append(t.Blocked, Span{b.start, b.start + int64(b.dur)})
		}
	case strings.HasPrefix(n.Text, "ThreadpoolListener::"), strings.HasPrefix(n.Text, "BufferSequencingEvent::"):
		// the runtime's bookkeeping around a wait
	default:
		th.Ops.Add(Op{Start: b.start, Dur: b.dur, Name: b.name})
	}
}

// starting returns the spans in which the profiler starts or stops. Host activity inside them is
// not the program's.
func (t *builder) starting() []Span {
	var out []Span
	for i := range t.bare.Len() {
		b := t.bare.At(i)
		if s := t.Names.List[b.name].Text; strings.HasPrefix(s, "$") && (strings.HasSuffix(s, " start_trace") || strings.HasSuffix(s, " stop_trace")) {
			out = append(out, Span{b.start, b.start + int64(b.dur)})
		}
	}
	return Union(out)
}
