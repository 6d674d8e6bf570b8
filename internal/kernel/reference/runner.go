package reference

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"haul/internal/kernel"
)

// Runner interprets one program. What a reader could break: tensors are cut to the live instances
// of the shard before an op sees them, which is how rows past the batch's end come to contribute
// nothing.
type Runner[F Float] struct {
	device  *Device[F]
	prog    *kernel.Program
	sets    []*Store[F]
	floats  map[*kernel.Tensor][]F     // by root tensor; a Batch tensor has room for every shard
	ints    map[*kernel.Tensor][]int32 // the same
	grad    []F
	control kernel.Control
	state   kernel.State
	// what the step to replay started from: the first bad one, else the last
	before  kernel.State
	metrics kernel.Metrics     // without Sums
	sums    []float64          // by place
	every   int                // steps of an update
	shard   int                // the shard being run
	fed     [][]*kernel.Tensor // what each slab feeds, by its ID
}

// Compile allocates every root tensor.
func (d *Device[F]) Compile(p *kernel.Program, sets []kernel.Store) (kernel.Runner, error) {
	if err := p.Check(); err != nil {
		return nil, fmt.Errorf("reference: %w", err)
	}
	if len(sets) < p.Sets {
		return nil, fmt.Errorf("reference: compile %s: %d weight sets given, %d needed", p.Name, len(sets), p.Sets)
	}
	r := &Runner[F]{device: d, prog: p, floats: map[*kernel.Tensor][]F{}, ints: map[*kernel.Tensor][]int32{},
		control: kernel.Control{Temperature: 1}, every: 1}
	r.sums = make([]float64, len(p.Sums()))
	for _, s := range sets {
		store, ok := s.(*Store[F])
		if !ok {
			return nil, fmt.Errorf("reference: compile %s: a %T is no store of this device", p.Name, s)
		}
		r.sets = append(r.sets, store)
	}
	if p.Layout != nil {
		r.grad = make([]F, p.Layout.Len)
	}
	for _, t := range p.Tensors {
		size := t.Len()
		if t.Space == kernel.Batch {
			size *= p.Shards()
		}
		switch {
		case t.Space == kernel.Weight || t.Space == kernel.Grad || t.Space == kernel.Scalar:
		case t.Type == kernel.I32:
			r.ints[t] = make([]int32, size)
		default:
			r.floats[t] = make([]F, size)
		}
	}
	return r, r.SetState(kernel.State{})
}

// Run interprets the program once.
func (r *Runner[F]) Run() error {
	r.device.counters.Steps++
	if r.metrics.BadStep == 0 {
		r.before = r.state
	}
	if r.state.Part == 0 { // else the gradients of this update's earlier parts are in it
		clear(r.grad)
	}
	for r.shard = range r.prog.Shards() {
		for _, op := range r.prog.PerShard {
			if err := r.perShard(op); err != nil {
				return err
			}
		}
	}
	for _, op := range r.prog.Once {
		if err := r.once(op); err != nil {
			return err
		}
	}
	r.metrics.Steps++
	r.state.Part = (r.state.Part + 1) % uint64(r.every)
	r.state.Instances += uint64(r.prog.Batch)
	return nil
}

// FirstBad replays a step from the state it started from, what runs once per step left out.
func (r *Runner[F]) FirstBad() (string, error) {
	after, sum := r.state, slices.Clone(r.grad)
	defer func() { r.state = after; copy(r.grad, sum) }()
	r.state = r.before
	clear(r.grad)
	for r.shard = range r.prog.Shards() {
		for _, op := range r.prog.PerShard {
			if err := r.perShard(op); err != nil {
				return "", err
			}
			if t := r.bad(op); t != nil {
				return op.Kind() + ", result " + t.Name, nil
			}
		}
	}
	return "", nil
}

// bad is the first tensor written by op that holds a value that is not finite.
func (r *Runner[F]) bad(op kernel.Op) (bad *kernel.Tensor) {
	op.Args(func(t *kernel.Tensor, a kernel.Access) {
		if bad != nil || a == kernel.Read || t.Type != kernel.F32 {
			return
		}
		m := r.matrix(t)
		for i := range m.Rows {
			for _, v := range m.Row(i) {
				if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
					bad = t
				}
			}
		}
	})
	return bad
}

// SetControl sets the control block.
func (r *Runner[F]) SetControl(c kernel.Control) error {
	_, err := kernel.Values("coefficient", r.prog.Coefficients(), c.Coefficients)
	if err == nil {
		r.control = c
	}
	return err
}

// State returns the state.
func (r *Runner[F]) State() (kernel.State, error) { return r.state, nil }

// SetState sets the state.
func (r *Runner[F]) SetState(s kernel.State) error {
	var names []string
	for _, t := range r.prog.Scalars() {
		names = append(names, t.Name)
	}
	values, err := kernel.Values("scalar", names, s.Scalars)
	if err == nil {
		r.state = s.Normal()
		r.state.Scalars = kernel.Named(names, values)
	}
	return err
}

// TakeMetrics returns the sums and clears them.
func (r *Runner[F]) TakeMetrics() (kernel.Metrics, error) {
	m := r.metrics
	m.Sums = kernel.NewSums(r.prog.Sums(), r.sums)
	r.metrics = kernel.Metrics{BadStep: m.BadStep}
	clear(r.sums)
	return m, nil
}

var errBatch = errors.New("reference: not a Batch or Data tensor of this program, or a slice of another type or length")

// host reports whether the host may read and write t.
func host(t *kernel.Tensor) bool { return t.Space == kernel.Batch || t.Space == kernel.Data }

// ReadBatch copies a Batch or Data tensor out.
func (r *Runner[F]) ReadBatch(t *kernel.Tensor, dst any) error {
	n := r.batchLen(t)
	switch d := dst.(type) {
	case []float32:
		if src, ok := r.floats[t]; ok && host(t) {
			return convert(d, src[:n])
		}
	case []int32:
		if src, ok := r.ints[t]; ok && host(t) && len(d) == n {
			copy(d, src)
			return nil
		}
	}
	return errBatch
}

// WriteBatch copies a Batch or Data tensor in.
func (r *Runner[F]) WriteBatch(t *kernel.Tensor, src any) error {
	n := r.batchLen(t)
	switch s := src.(type) {
	case []float32:
		if dst, ok := r.floats[t]; ok && host(t) {
			return convert(dst[:n], s)
		}
	case []int32:
		if dst, ok := r.ints[t]; ok && host(t) && len(s) == n {
			copy(dst, s)
			return nil
		}
	}
	return errBatch
}

// NewSlabs makes slabs in ordinary memory.
func (r *Runner[F]) NewSlabs(ts []*kernel.Tensor, n int) ([]*kernel.Slab, error) {
	out := make([]*kernel.Slab, n)
	for i := range out {
		out[i] = &kernel.Slab{ID: len(r.fed)}
		for _, t := range ts {
			if _, ok := r.ints[t]; !ok || t.Space != kernel.Batch {
				return nil, fmt.Errorf("reference: feed %s: %w", t.Name, errBatch)
			}
			out[i].Ints = append(out[i].Ints, make([]int32, r.batchLen(t)))
		}
		r.fed = append(r.fed, ts)
	}
	return out, nil
}

// Feed copies the slab and runs a step.
func (r *Runner[F]) Feed(s *kernel.Slab) error {
	for i, t := range r.fed[s.ID] {
		if err := r.WriteBatch(t, s.Ints[i]); err != nil {
			return err
		}
	}
	return r.Run()
}

// Taken has nothing to wait for.
func (r *Runner[F]) Taken(*kernel.Slab) error { return nil }

// Batch is a Batch tensor's own numbers, in full precision.
func (r *Runner[F]) Batch(t *kernel.Tensor) []F { return r.floats[t][:r.batchLen(t)] }

// batchLen is how many elements of t the host reads or writes.
func (r *Runner[F]) batchLen(t *kernel.Tensor) int {
	if t.Space == kernel.Data {
		return t.Len()
	}
	return t.Len() / t.Shape[0] * r.prog.Batch
}

// GatherMoments has nothing to gather: every process updates all weights.
func (r *Runner[F]) GatherMoments() error { return nil }

// ReadGrad copies the summed gradient out.
func (r *Runner[F]) ReadGrad(dst []float32) error { return convert(dst, r.grad) }

// Grad is the summed gradient in full precision.
func (r *Runner[F]) Grad() []F { return r.grad }

// Memory counts the runner's own buffers.
func (r *Runner[F]) Memory() int64 {
	var f F
	width := int64(8)
	if _, single := any(f).(float32); single {
		width = 4
	}
	n := int64(len(r.grad)) * width
	for _, b := range r.floats {
		n += int64(len(b)) * width
	}
	for _, b := range r.ints {
		n += int64(len(b)) * 4
	}
	return n
}

// Close has nothing to release.
func (r *Runner[F]) Close() error { return nil }
