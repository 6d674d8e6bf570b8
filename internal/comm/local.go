package comm

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"
)

// local connects ranks of one process: each rank is a goroutine with its own device. A rank that
// fails must call World.Fail, or the others wait for it forever.
type local struct {
	rank int
	hub  *hub
}

type hub struct {
	mu    sync.Mutex
	all   sync.Cond
	n     int
	here  int
	round int
	gone  bool // a rank has failed
	sends []unsafe.Pointer
	calls []collectiveCall // by rank: its present call
}

// collectiveCall describes a collective call of one rank. All ranks must make the same call:
// otherwise they exchange wrong data and then deadlock.
type collectiveCall struct {
	what  string
	bytes int
}

var errGone = errors.New("another rank has failed")

// Local returns n ranks that are goroutines of one process, for tests and experiments.
func Local(n int) []*World {
	h := &hub{n: n, sends: make([]unsafe.Pointer, n), calls: make([]collectiveCall, n)}
	h.all.L = &h.mu
	out := make([]*World, n)
	for r := range out {
		out[r] = newWorld(Place{Launcher: "a test", Rank: r, Size: n, LocalRank: r, LocalSize: n}, &local{r, h})
	}
	return out
}

// fail makes all present and later calls return errGone.
func (h *hub) fail() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gone = true
	h.all.Broadcast()
}

// call calls f with the pointers of all ranks, after every rank has called it, and returns after
// f has returned on every rank. It fails if the ranks' calls differ.
func (l *local) call(own collectiveCall, p unsafe.Pointer, f func(all []unsafe.Pointer)) error {
	h := l.hub
	wait := func() error {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.gone { // a rank has failed and will not come
			return errGone
		}
		round := h.round
		if h.here++; h.here == h.n {
			h.here, h.round = 0, h.round+1
			h.all.Broadcast()
		}
		for h.round == round {
			if h.gone {
				return errGone
			}
			h.all.Wait()
		}
		return nil
	}
	h.mu.Lock()
	if !h.gone { // after a failure, other ranks may still read sends and calls
		h.sends[l.rank], h.calls[l.rank] = p, own
	}
	h.mu.Unlock()
	if err := wait(); err != nil {
		return err
	}
	for r, c := range h.calls {
		if c != h.calls[0] { // all ranks find the same difference and fail
			h.fail()
			return fmt.Errorf("the ranks have parted: rank 0 came to %s %d bytes, rank %d to %s %d",
				h.calls[0].what, h.calls[0].bytes, r, c.what, c.bytes)
		}
	}
	f(h.sends)
	return wait()
}

func bytesAt(p unsafe.Pointer, at, n int) []byte { return unsafe.Slice((*byte)(unsafe.Add(p, at)), n) }

func (l *local) name() string            { return "memory" }
func (l *local) do(f func() error) error { return f() }
func (l *local) close() error            { return nil }
func (l *local) scatter(recv, send unsafe.Pointer, cuts []int32) error {
	at, own := int(cuts[l.rank]), int(cuts[l.rank+1]-cuts[l.rank])
	return l.call(collectiveCall{"scatter", int(cuts[len(cuts)-1])}, send, func(all []unsafe.Pointer) {
		for i, p := range all {
			if i != l.rank && own > 0 {
				copy(bytesAt(recv, i*own, own), bytesAt(p, at, own))
			}
		}
	})
}
func (l *local) complete(p unsafe.Pointer, cuts []int32) error {
	return l.call(collectiveCall{"complete", int(cuts[len(cuts)-1])}, p, func(all []unsafe.Pointer) {
		for i, from := range all {
			if at, n := int(cuts[i]), int(cuts[i+1]-cuts[i]); i != l.rank && n > 0 {
				copy(bytesAt(p, at, n), bytesAt(from, at, n))
			}
		}
	})
}
func (l *local) allgather(recv, send unsafe.Pointer, block int) error {
	return l.call(collectiveCall{"gather", block}, send, func(all []unsafe.Pointer) {
		for i, p := range all {
			copy(bytesAt(recv, i*block, block), bytesAt(p, 0, block))
		}
	})
}
func (l *local) broadcast(p unsafe.Pointer, n int) error {
	return l.call(collectiveCall{"broadcast", n}, p, func(all []unsafe.Pointer) {
		if l.rank > 0 {
			copy(bytesAt(p, 0, n), bytesAt(all[0], 0, n))
		}
	})
}
