package doctor

import "strings"

// JAX's profiler writes events without a category: the name of the process says which device they
// belong to, the name of the thread which stream. A trace of any other tool that has no categories
// is left alone, since nothing tells what its events are.

const formatJAX = "JAX"

// sortBare files the events without a category once all names are known.
func (t *builder) sortBare() {
	if t.bare.len() == 0 {
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
		return
	}
	t.format = formatJAX
	byStream := map[string]bool{} // devices whose work stands on threads named after streams
	for _, th := range t.threads {
		if _, ok := devices[th.pid]; ok && strings.HasPrefix(th.label, "Stream") {
			byStream[th.pid] = true
		}
	}
	for i := range t.bare.len() {
		b := t.bare.at(i)
		th := t.threads[b.thread]
		device, onDevice := devices[th.pid]
		switch {
		case onDevice && (strings.HasPrefix(th.label, "Stream") || !byStream[th.pid] && strings.HasPrefix(th.label, "XLA Ops")):
			t.bareWork(b, device, uint32(count([]byte(th.tid))))
		case onDevice:
		default:
			t.bareHost(b, th)
		}
	}
	t.bare = log[bare]{}
}

func (t *builder) bareWork(b *bare, device uint16, stream uint32) {
	n := &t.names.list[b.name]
	g := work{start: b.start, dur: b.dur, correlation: b.correlation, name: b.name, bytes: b.bytes, blocks: -1,
		stream: stream, device: device, kind: catKernel, direction: n.direction, comm: n.comm != ""}
	lower := strings.ToLower(n.text)
	switch {
	case strings.HasPrefix(lower, "memcpy"):
		g.kind = catCopy
		if strings.Contains(lower, "h2d") {
			g.direction = upload
		} else if strings.Contains(lower, "d2h") {
			g.direction = download
		}
	case strings.HasPrefix(lower, "memset"):
		g.kind = catSet
	}
	if b.grid > 0 {
		g.blocks = -1 - b.grid
	}
	if g.comm {
		t.raw = append(t.raw, collective{correlation: g.correlation, start: g.start, kind: n.comm})
	}
	t.gpu.add(g)
}

func (t *builder) bareHost(b *bare, th *thread) {
	n := &t.names.list[b.name]
	switch {
	case n.call == callCapture:
	case n.call != callOther:
		th.calls.add(call{start: b.start, dur: b.dur, correlation: b.correlation, name: b.name, kind: n.call})
	case strings.HasPrefix(n.text, "$"):
		th.frames.add(frame{b.start, b.dur, b.name})
		if strings.HasSuffix(n.text, " block_until_ready") {
			t.blocked = append(t.blocked, span{b.start, b.start + int64(b.dur)})
		}
	case strings.HasPrefix(n.text, "ThreadpoolListener::"), strings.HasPrefix(n.text, "BufferSequencingEvent::"):
		// the runtime's bookkeeping around what it waits for
	default:
		th.ops.add(op{start: b.start, dur: b.dur, name: b.name})
	}
}
