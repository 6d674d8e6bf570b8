package run

import (
	"fmt"

	"haul/internal/kernel"
	"haul/internal/kernel/cpu/isa"
)

// ReadBatch copies the rows of a Batch tensor that exist, or all of a Data tensor.
func (r *Runner) ReadBatch(t *kernel.Tensor, dst any) error {
	buf, err := r.rows(t)
	if err != nil {
		return err
	}
	switch d := dst.(type) {
	case []float32:
		return copyAll(d, buf)
	case []int32:
		if len(d) != len(buf) {
			return fmt.Errorf("read %v: %d elements into %d", t, len(buf), len(d))
		}
		copy(d, isa.Ints(buf))
		return nil
	}
	return fmt.Errorf("read %v: want []float32 or []int32, got %T", t, dst)
}

// WriteBatch replaces the rows of a Batch tensor that exist, or all of a Data tensor.
func (r *Runner) WriteBatch(t *kernel.Tensor, src any) error {
	buf, err := r.rows(t)
	if err != nil {
		return err
	}
	switch s := src.(type) {
	case []float32:
		return copyAll(buf, s)
	case []int32:
		return r.writeInts(t, s)
	}
	return fmt.Errorf("write %v: want []float32 or []int32, got %T", t, src)
}

// writeInts is WriteBatch for integers: without an interface, which would take memory at every step
// that is fed.
func (r *Runner) writeInts(t *kernel.Tensor, src []int32) error {
	buf, err := r.rows(t)
	if err != nil {
		return err
	}
	if len(src) != len(buf) {
		return fmt.Errorf("write %v: %d elements into %d", t, len(src), len(buf))
	}
	copy(isa.Ints(buf), src)
	return nil
}

func (r *Runner) rows(t *kernel.Tensor) ([]float32, error) {
	buf, ok := r.Batch[t]
	if !ok {
		return nil, fmt.Errorf("%v is neither a batch nor a data tensor of %s", t, r.Program.Name)
	}
	if t.Space == kernel.Data {
		return buf, nil
	}
	if r.cuts.turns > 1 {
		return nil, fmt.Errorf("%v: %s is run in %d turns, and keeps the rows of one", t, r.Program.Name, r.cuts.turns)
	}
	return buf[:t.Len()/t.Shape[0]*r.Program.Batch], nil
}

// feed is the tensors that the runner's slabs fill.
type feed []*kernel.Tensor

// NewSlabs makes n slabs of plain memory.
func (r *Runner) NewSlabs(ts []*kernel.Tensor, n int) ([]*kernel.Slab, error) {
	slabs := make([]*kernel.Slab, n)
	for i := range slabs {
		slabs[i] = &kernel.Slab{ID: len(r.feeds) + i}
		for _, t := range ts {
			rows, err := r.rows(t)
			if err != nil {
				return nil, fmt.Errorf("slabs: %w", err)
			}
			if t.Type != kernel.I32 || t.Space != kernel.Batch {
				return nil, fmt.Errorf("slabs: %v is not a batch tensor of integers", t)
			}
			slabs[i].Ints = append(slabs[i].Ints, make([]int32, len(rows)))
		}
	}
	for range n {
		r.feeds = append(r.feeds, feed(ts))
	}
	r.Device.counters.Allocations++
	return slabs, nil
}

// Feed copies the slab and runs a step.
func (r *Runner) Feed(s *kernel.Slab) error {
	for i, t := range r.feeds[s.ID] {
		if err := r.writeInts(t, s.Ints[i]); err != nil {
			return err
		}
	}
	return r.Run()
}

// Taken returns at once: Feed has read the slab.
func (r *Runner) Taken(*kernel.Slab) error { return nil }
