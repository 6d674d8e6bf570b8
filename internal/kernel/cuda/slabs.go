package cuda

import (
	"errors"
	"fmt"
	"unsafe"

	"haul/internal/cu"
	"haul/internal/kernel"
)

// What a reader could break: a copy passes beside the step under way because it lands in an area
// apart from the tensors that the step reads, and moves there on the step's own stream. Two such
// areas take turns; an area is filled again only when the move out of it has passed, so that the
// host, which waits for its slab's copy, is never more than a few steps ahead of the card.

// areas are the staging areas that take turns.
const areas = 2

// feed is one set of tensors that slabs are made for.
type feed struct {
	tensors []*kernel.Tensor
	bytes   int
	stage   [areas]memory
	moved   [areas]cu.Event // what was in the area has moved to the tensors
	next    int
}

// slab is the host memory behind a kernel.Slab.
type slab struct {
	feed *feed
	host []byte
	read cu.Event // the copy has passed
}

// feeding is what a runner that is fed holds.
type feeding struct {
	copies cu.Stream
	feeds  []*feed
	slabs  []*slab
	now    *slab // what queue and reach work on: a closure would take memory every step
	queue  func() error
	reach  func() error
}

// NewSlabs reserves page-locked memory, and staging areas for these tensors.
func (r *runner) NewSlabs(ts []*kernel.Tensor, n int) ([]*kernel.Slab, error) {
	if r.prog.Share.Runs() > 1 {
		return nil, fmt.Errorf("feed %s: a step in %d pieces draws its own rows", r.prog.Name, r.prog.Share.Runs())
	}
	f := &feed{tensors: ts}
	for _, t := range ts {
		if m, ok := r.batch[t]; !ok || t.Space != kernel.Batch || t.Type != kernel.I32 {
			return nil, fmt.Errorf("feed %s: %v is not a batch tensor of integers", r.prog.Name, t)
		} else {
			f.bytes += align(m.bytes)
		}
	}
	if r.fed == nil {
		r.fed = &feeding{queue: r.feedNow, reach: r.reachNow}
		if err := r.d.ctx.Do(func() (err error) { r.fed.copies, err = r.d.ctx.NewStream(); return err }); err != nil {
			return nil, err
		}
	}
	r.fed.feeds = append(r.fed.feeds, f)
	for i := range f.stage {
		var err error
		if f.stage[i], err = r.d.alloc(f.bytes); err != nil {
			return nil, err
		}
	}
	var out []*kernel.Slab
	err := r.d.ctx.Do(func() (err error) {
		for i := range f.moved {
			if f.moved[i], err = r.d.ctx.NewEvent(); err != nil {
				return err
			}
			// The area is being filled with zeros on the step's stream, which the copies' stream knows
			// nothing of.
			if err = r.d.ctx.Record(f.moved[i], r.d.stream); err != nil {
				return err
			}
		}
		for range n {
			s := &slab{feed: f}
			r.fed.slabs = append(r.fed.slabs, s)
			if s.host, err = r.d.ctx.HostAlloc(f.bytes); err != nil {
				return err
			}
			if s.read, err = r.d.ctx.NewEvent(); err != nil {
				return err
			}
			out = append(out, &kernel.Slab{Ints: r.slices(f, s.host), ID: len(r.fed.slabs) - 1})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reserve %d slabs of %.1f MiB that %s reads itself: %w", n, float64(f.bytes)/(1<<20), r.d.ctx.Name, err)
	}
	return out, nil
}

// slices are the tensors' places in a slab.
func (r *runner) slices(f *feed, host []byte) [][]int32 {
	out := make([][]int32, len(f.tensors))
	at := 0
	for i, t := range f.tensors {
		n := r.batch[t].bytes
		out[i] = unsafe.Slice((*int32)(unsafe.Pointer(&host[at])), n/4)
		at += align(n)
	}
	return out
}

// Feed queues the slab's copy beside the step under way, and a step that reads it.
func (r *runner) Feed(s *kernel.Slab) error {
	if r.fed == nil || s.ID >= len(r.fed.slabs) {
		return errors.New("feed: the slab is another runner's")
	}
	r.fed.now = r.fed.slabs[s.ID]
	r.d.counters.Copied("batch", false, r.fed.now.feed.bytes)
	r.steps++
	r.d.counters.Steps++
	r.d.counters.Launches++
	return r.queue(r.fed.queue)
}

// feedNow is Feed on the context's thread.
func (r *runner) feedNow() error {
	c, s, f := r.d.ctx, r.fed.now, r.fed.now.feed
	area := f.next
	f.next = (f.next + 1) % areas
	if err := c.After(f.moved[area], r.fed.copies); err != nil {
		return err
	}
	if err := c.CopyLocked(f.stage[area].at, s.host, r.fed.copies); err != nil {
		return err
	}
	if err := c.Record(s.read, r.fed.copies); err != nil {
		return err
	}
	if err := c.After(s.read, r.d.stream); err != nil {
		return err
	}
	from := f.stage[area].at
	for _, t := range f.tensors {
		m := r.batch[t]
		if err := c.CopyWithin(m.at, from, m.bytes, r.d.stream); err != nil {
			return err
		}
		from += uint64(align(m.bytes))
	}
	if err := c.Record(f.moved[area], r.d.stream); err != nil {
		return err
	}
	return r.replay()
}

// Taken waits for the slab's last copy, and for nothing queued after it.
func (r *runner) Taken(s *kernel.Slab) error {
	if r.fed == nil || s.ID >= len(r.fed.slabs) {
		return errors.New("feed: the slab is another runner's")
	}
	r.fed.now = r.fed.slabs[s.ID]
	return r.d.ctx.Do(r.fed.reach)
}

// reachNow is Taken on the context's thread. Only a copy still under way counts as a wait.
func (r *runner) reachNow() error {
	passed, err := r.d.ctx.Passed(r.fed.now.read)
	if err != nil || passed {
		return err
	}
	r.d.counters.Waits++
	return r.d.ctx.Reach(r.fed.now.read)
}

// memory is what the staging areas take of the card.
func (g *feeding) memory() int64 {
	total := int64(0)
	if g != nil {
		for _, f := range g.feeds {
			total += int64(areas * f.bytes)
		}
	}
	return total
}

// close waits for the copies and gives everything back. On the context's thread.
func (g *feeding) close(c *cu.Context) error {
	errs := []error{c.Wait(g.copies)}
	for _, s := range g.slabs {
		if s.read != 0 {
			errs = append(errs, c.FreeEvent(s.read))
		}
		if s.host != nil {
			errs = append(errs, c.FreeHost(s.host))
		}
	}
	for _, f := range g.feeds {
		for i := range f.stage {
			if f.moved[i] != 0 {
				errs = append(errs, c.FreeEvent(f.moved[i]))
			}
			if f.stage[i].at != 0 {
				errs = append(errs, c.Free(f.stage[i].at))
			}
		}
	}
	return errors.Join(append(errs, c.FreeStream(g.copies))...)
}
