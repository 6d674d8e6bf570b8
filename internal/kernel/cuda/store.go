package cuda

import (
	"errors"
	"fmt"
	"unsafe"

	"haul/internal/kernel"
	"haul/internal/kernel/cuda/bind"
	"haul/internal/kernel/cuda/optimizer"
)

// store is one weight set on the card: the flat buffer and, where it is trained, moments and
// gradient lanes. In precision bf16 whoever writes the weights writes their bf16 copy too.
type store struct {
	d       *Device
	layout  *kernel.Layout
	weights memory
	bf16    memory // the weights in bf16, in that precision
	m, v    memory
	grads   memory
}

// NewStore allocates a weight set.
func (d *Device) NewStore(l *kernel.Layout, train bool) (kernel.Store, error) {
	s := &store{d: d, layout: l}
	size := 4 * l.Len
	want := []struct {
		m     *memory
		bytes int
	}{{&s.weights, size}}
	if d.precision == bind.BF16 {
		want = append(want, struct {
			m     *memory
			bytes int
		}{&s.bf16, size / 2})
	}
	if train {
		want = append(want, []struct {
			m     *memory
			bytes int
		}{{&s.m, size}, {&s.v, size}, {&s.grads, bind.GradLanes * size}}...)
	}
	for _, w := range want {
		var err error
		if *w.m, err = d.alloc(w.bytes); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

func (s *store) size(n int) error {
	if n != s.layout.Len {
		return fmt.Errorf("copy weights: %d elements, the layout has %d", n, s.layout.Len)
	}
	return nil
}

func (s *store) read(tag string, m memory, dst []float32) error {
	if err := s.size(len(dst)); err != nil {
		return err
	}
	return s.d.copyOut(tag, unsafe.Pointer(unsafe.SliceData(dst)), m.at, 4*len(dst))
}

func (s *store) write(tag string, m memory, src []float32) error {
	if err := s.size(len(src)); err != nil {
		return err
	}
	return s.d.copyIn(tag, m.at, unsafe.Pointer(unsafe.SliceData(src)), 4*len(src))
}

// ReadWeights copies the flat buffer out.
func (s *store) ReadWeights(dst []float32) error { return s.read("weights", s.weights, dst) }

// WriteWeights replaces the flat buffer.
func (s *store) WriteWeights(src []float32) error {
	if err := s.write("weights", s.weights, src); err != nil {
		return err
	}
	return s.d.ctx.Do(s.halve)
}

// halve makes the bf16 copy of the weights. On the context's thread.
func (s *store) halve() error {
	if s.bf16.at == 0 || s.layout.Len == 0 { // a program may have no weights
		return nil
	}
	pairs := s.layout.Len / 2
	l := bind.Launch{Module: "adamw", Kernel: "halve", Grid: bind.Dim3{bind.Ceil(pairs, optimizer.AdamwThreads), 1, 1}, Block: bind.Dim3{optimizer.AdamwThreads, 1, 1},
		Args: []any{s.bf16.at, s.weights.at, bind.I32(pairs)}}
	r, err := s.d.ready(l)
	if err != nil {
		return err
	}
	return s.d.ctx.Launch(r.function, r.geometry, s.d.stream, r.args)
}

// ReadMoments copies the optimizer's moments out.
func (s *store) ReadMoments(m, v []float32) error {
	if err := s.read("moments", s.m, m); err != nil {
		return err
	}
	return s.read("moments", s.v, v)
}

// WriteMoments replaces the optimizer's moments.
func (s *store) WriteMoments(m, v []float32) error {
	if err := s.write("moments", s.m, m); err != nil {
		return err
	}
	return s.write("moments", s.v, v)
}

// CopyWeights takes another store's weights without leaving the card.
func (s *store) CopyWeights(from kernel.Store) error {
	f, ok := from.(*store)
	if !ok || f.d != s.d {
		return fmt.Errorf("copy weights: the other store is not on this card")
	}
	return s.d.ctx.Do(func() error {
		if err := s.d.ctx.CopyWithin(s.weights.at, f.weights.at, 4*s.layout.Len, s.d.stream); err != nil {
			return err
		}
		return s.halve()
	})
}

// Close gives the memory back to the card.
func (s *store) Close() error {
	var errs []error
	for _, m := range []*memory{&s.weights, &s.bf16, &s.m, &s.v, &s.grads} {
		errs = append(errs, m.free())
		*m = memory{}
	}
	return errors.Join(errs...)
}

// StoreMemory is what NewStore will take.
func (d *Device) StoreMemory(l *kernel.Layout, train bool) int64 {
	n := 4 * int64(l.Len)
	if d.precision == bind.BF16 {
		n += 2 * int64(l.Len)
	}
	if train {
		n += (2 + bind.GradLanes) * 4 * int64(l.Len)
	}
	return n
}

// Arenas is one: the whole batch is a shard.
func (d *Device) Arenas() int { return 1 }

// Kept is every shard: there is one.
func (d *Device) Kept(p *kernel.Program) int { return p.Shards() }

func (s *store) memory() int64 {
	return int64(s.weights.bytes + s.bf16.bytes + s.m.bytes + s.v.bytes + s.grads.bytes)
}
