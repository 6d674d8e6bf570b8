package ptx

import (
	"fmt"
	"slices"
	"sort"
	"unsafe"
)

// span is the range [from, to) of host addresses.
type span struct{ from, to uint64 }

// holds reports whether the n bytes from address `at` on are in the span.
func (s span) holds(at, n uint64) bool {
	size := s.to - s.from
	return n <= size && at-s.from <= size-n
}

// Memory is the set of allocations that kernels may access. It must not change while a kernel runs.
type Memory struct{ spans []span }

// Add makes n bytes at a host address accessible to kernels.
func (m *Memory) Add(at uint64, n int) {
	i := sort.Search(len(m.spans), func(i int) bool { return m.spans[i].from > at })
	m.spans = slices.Insert(m.spans, i, span{at, at + uint64(n)})
}

// Remove undoes Add for an address. It reports whether the address was known.
func (m *Memory) Remove(at uint64) bool {
	i := sort.Search(len(m.spans), func(i int) bool { return m.spans[i].from >= at })
	if i == len(m.spans) || m.spans[i].from != at {
		return false
	}
	m.spans = slices.Delete(m.spans, i, i+1)
	return true
}

// Bytes returns n bytes at an address, which must be in one allocation.
func (m *Memory) Bytes(at uint64, n int) ([]byte, error) {
	s, ok := m.find(at)
	if !ok || !s.holds(at, uint64(n)) {
		return nil, fmt.Errorf("%d bytes at %#x: %s", n, at, m.describe(at))
	}
	return unsafe.Slice((*byte)(pointer(at)), n), nil
}

func (m *Memory) find(at uint64) (span, bool) {
	i := sort.Search(len(m.spans), func(i int) bool { return m.spans[i].from > at }) - 1
	if i < 0 || at >= m.spans[i].to {
		return span{}, false
	}
	return m.spans[i], true
}

// describe describes an address relative to the allocations.
func (m *Memory) describe(at uint64) string {
	i := sort.Search(len(m.spans), func(i int) bool { return m.spans[i].from > at })
	if i > 0 {
		s := m.spans[i-1]
		return fmt.Sprintf("%d bytes into an allocation of %d at %#x", at-s.from, s.to-s.from, s.from)
	}
	if i < len(m.spans) {
		return fmt.Sprintf("%d bytes before the first allocation", m.spans[i].from-at)
	}
	return "nothing is allocated"
}

// pointer converts an address to a pointer. The address is never in Go's heap.
func pointer(at uint64) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&at)) }

// reach checks an access of n bytes by a lane and returns its pointer. In shared and local memory,
// at is an offset from the beginning of the space.
func (w *warp) reach(in *inst, sp space, at uint64, lane int, n uint64, writes bool) unsafe.Pointer {
	if sp == global || sp == generic && at < sharedWindow {
		if !w.near.holds(at, n) {
			s, ok := w.b.l.memory.find(at)
			if !ok || !s.holds(at, n) {
				w.failLane(in, lane, "%s outside of all allocations: %d bytes at %#x, %s", verb(writes), n, at, w.b.l.memory.describe(at))
			}
			w.near = s
		}
		if at&(n-1) != 0 {
			w.failLane(in, lane, "%s %d bytes at %#x, which is no multiple of it", verb(writes), n, at)
		}
		return pointer(at)
	}
	return w.inner(in, sp, at, lane, n, writes)
}

// inner is reach for shared and local memory.
func (w *warp) inner(in *inst, sp space, at uint64, lane int, n uint64, writes bool) unsafe.Pointer {
	if sp == generic {
		switch {
		case at >= localWindow:
			sp, at = local, at-localWindow
		default:
			sp, at = shared, at-sharedWindow
		}
	}
	if at&(n-1) != 0 {
		w.failLane(in, lane, "%s %d bytes at %#x, which is no multiple of it", verb(writes), n, at)
	}
	if sp == shared {
		at -= sharedBase
		if size := uint64(len(w.b.shared)); at >= size || at+n > size {
			w.failLane(in, lane, "%s outside of the block's shared memory: %d bytes at %d of %d", verb(writes), n, int64(at), size)
		}
		if w.b.races != nil {
			w.b.races.access(w, in, lane, int(at), int(n), writes)
		}
		if writes && w.b.proxy != nil {
			w.b.proxy.wrote(w.index, int(at), int(n))
		}
		return unsafe.Pointer(&w.b.shared[at])
	}
	size := uint64(w.b.l.p.localBytes)
	if at >= size || at+n > size {
		w.failLane(in, lane, "%s outside of the thread's local memory: %d bytes at %d of %d", verb(writes), n, int64(at), size)
	}
	return unsafe.Pointer(&w.local[uint64(lane)*up64(size, 16)+at])
}

func up64(n, to uint64) uint64 { return (n + to - 1) / to * to }

func verb(writes bool) string {
	if writes {
		return "writes"
	}
	return "reads"
}

// address returns the address of the instruction for a lane.
func (w *warp) address(in *inst, lane int) uint64 {
	switch {
	case in.a == none:
		return uint64(in.imm)
	case in.narrow:
		return uint64(reg[uint32](w, in.a)[lane]) + uint64(in.imm)
	}
	return reg[uint64](w, in.a)[lane] + uint64(in.imm)
}
