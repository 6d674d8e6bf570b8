package cuda

import (
	"errors"
	"unsafe"

	"haul/internal/cu"
	"haul/internal/kernel"
)

// hostExchange is page-locked memory through which a gradient reaches a peer that needs the host:
// the step's first graph leaves the gradient there, the peer replaces it, the second graph goes on
// with what comes back.
//
// What a reader could break: the peer is called on the goroutine that drives the device, between
// two of its turns on the context's thread, with nothing queued that touches the memory.
type hostExchange struct {
	peer  kernel.Peer
	grads uint64
	host  []byte
	sum   []float32 // the same memory
	rest  *cu.Exec  // the step from the exchange on
	back  func() error
}

// newHostExchange reserves the memory. On the context's thread.
func newHostExchange(c *cu.Context, p kernel.Peer, grads uint64, n int) (*hostExchange, error) {
	host, err := c.HostAlloc(4 * n)
	if err != nil {
		return nil, err
	}
	return &hostExchange{peer: p, grads: grads, host: host, sum: unsafe.Slice((*float32)(unsafe.Pointer(&host[0])), n)}, nil
}

// out brings the gradient to the host and waits for it. On the context's thread.
func (s *hostExchange) out(d *Device) error {
	d.counters.Copied("gradient", true, len(s.host))
	d.counters.Waits++
	if err := d.ctx.CopyOut(unsafe.Pointer(&s.host[0]), s.grads, len(s.host), d.stream); err != nil {
		return err
	}
	return d.ctx.Wait(d.stream)
}

// meet lets the peer have the gradient, and queues what follows.
func (r *runner) meet() error {
	s := r.onHost
	if err := s.peer.Exchange(s.sum); err != nil {
		return err
	}
	if s.back == nil {
		s.back = func() error {
			if err := r.d.ctx.CopyLocked(s.grads, s.host, r.d.stream); err != nil {
				return err
			}
			return s.rest.Launch(r.d.stream)
		}
	}
	r.d.counters.Copied("gradient", false, len(s.host))
	r.d.counters.Launches++
	return r.d.ctx.Do(s.back)
}

// close gives the memory back. On the context's thread, when nothing is queued.
func (s *hostExchange) close(c *cu.Context) error {
	err := c.FreeHost(s.host)
	if s.rest != nil {
		err = errors.Join(err, s.rest.Close())
	}
	return err
}
