package cuda

import (
	"errors"
	"fmt"
	"unsafe"

	"haul/internal/cu"
	"haul/internal/kernel"
)

// What a reader could break: all that a step is asked goes through the step's own stream in order,
// copies in, the graph, the copy out, and the host waits once, at the end. The memory is
// page-locked: from any other the driver copies twice, and waits.

// ask is what a step is told and answers.
type ask struct {
	parts []askPart // what it is told, then the answer
	host  []byte
	step  func() error
}

// askPart is a tensor with its place in the host's memory.
type askPart struct {
	tensor *kernel.Tensor
	host   []byte
}

// NewAsk reserves page-locked memory.
func (r *runner) NewAsk(in []*kernel.Tensor, out *kernel.Tensor) (*kernel.Ask, error) {
	if r.prog.Share.Runs() > 1 || r.onHost != nil {
		return nil, fmt.Errorf("ask %s: a step in pieces, or one that waits for its peers, answers nobody", r.prog.Name)
	}
	a, bytes := new(ask), 0
	for i, t := range append(append([]*kernel.Tensor(nil), in...), out) {
		want := kernel.I32
		if i == len(in) {
			want = kernel.F32
		}
		m, ok := r.batch[t]
		if !ok || t.Space != kernel.Batch || t.Type != want {
			return nil, fmt.Errorf("ask %s: %v is not a batch tensor of type %v", r.prog.Name, t, want)
		}
		bytes += align(m.bytes)
	}
	if err := r.d.ctx.Do(func() (err error) { a.host, err = r.d.ctx.HostAlloc(bytes); return err }); err != nil {
		return nil, fmt.Errorf("reserve %.1f MiB that %s reads itself: %w", float64(bytes)/(1<<20), r.d.ctx.Name, err)
	}
	at, public := 0, &kernel.Ask{ID: len(r.asks)}
	for _, t := range in {
		n := r.batch[t].bytes
		a.parts = append(a.parts, askPart{t, a.host[at:][:n]})
		public.In = append(public.In, unsafe.Slice((*int32)(unsafe.Pointer(&a.host[at])), n/4))
		at += align(n)
	}
	n := r.batch[out].bytes
	a.parts = append(a.parts, askPart{out, a.host[at:][:n]})
	public.Out = unsafe.Slice((*float32)(unsafe.Pointer(&a.host[at])), n/4)
	a.step = func() error { return r.askNow(a) }
	r.asks = append(r.asks, a)
	return public, nil
}

// Asking lets do have the context's thread.
func (r *runner) Asking(a *kernel.Ask, do func(step func() error) error) error {
	if a.ID >= len(r.asks) {
		return errors.New("ask: the memory is another runner's")
	}
	own := r.asks[a.ID]
	return r.d.ctx.Do(func() error { return do(own.step) })
}

// askNow is one step. On the context's thread.
func (r *runner) askNow(a *ask) error {
	c, last := r.d.ctx, len(a.parts)-1
	for i := range a.parts[:last] {
		p := &a.parts[i]
		r.d.counters.Copied(p.tensor.Name, false, len(p.host))
		if err := c.CopyLocked(r.batch[p.tensor].at, p.host, r.d.stream); err != nil {
			return err
		}
	}
	r.steps++
	r.d.counters.Steps++
	r.d.counters.Launches++
	if err := r.replay(); err != nil {
		return err
	}
	r.part = (r.part + 1) % r.every
	p := &a.parts[last]
	r.d.counters.Copied(p.tensor.Name, true, len(p.host))
	r.d.counters.Waits++
	if err := c.CopyBack(p.host, r.batch[p.tensor].at, r.d.stream); err != nil {
		return err
	}
	return c.Wait(r.d.stream)
}

// close gives the memory back. On the context's thread, when nothing is queued.
func (a *ask) close(c *cu.Context) error { return c.FreeHost(a.host) }
