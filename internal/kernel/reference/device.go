package reference

import (
	"errors"
	"fmt"

	"haul/internal/kernel"
)

// Device runs programs in plain Go, in F, a shard at a time.
type Device[F Float] struct {
	shard    int
	unit     float64 // 0, or what operands of products and Compact tensors are rounded to
	counters kernel.Counters
}

// New makes a device that likes `shard` instances in a shard.
func New[F Float](shard int) *Device[F] { return &Device[F]{shard: shard} }

// NewRounded makes a device that multiplies matrices, and keeps Compact tensors, in numbers of
// relative error `unit`, 2⁻⁸ for bf16: what a device with such products may at most be off.
func NewRounded[F Float](shard int, unit float64) *Device[F] {
	return &Device[F]{shard: shard, unit: unit}
}

// Name is what the device computes in.
func (d *Device[F]) Name() string { return fmt.Sprintf("reference %T", F(0)) }

// ShardSize is what New was given.
func (d *Device[F]) ShardSize(int) int { return d.shard }

// Counters counts runs and host copies; the device launches nothing.
func (d *Device[F]) Counters() *kernel.Counters { return &d.counters }

// Close has nothing to release.
func (d *Device[F]) Close() error { return nil }

// Store holds weights and moments in F; gradients belong to the runner.
type Store[F Float] struct {
	layout  *kernel.Layout
	w, m, v []F
}

// NewStore makes a store of zeros.
func (d *Device[F]) NewStore(l *kernel.Layout, train bool) (kernel.Store, error) {
	s := &Store[F]{layout: l, w: make([]F, l.Len)}
	if train {
		s.m, s.v = make([]F, l.Len), make([]F, l.Len)
	}
	return s, nil
}

func convert[D, S Float](dst []D, src []S) error {
	if len(dst) != len(src) {
		return fmt.Errorf("reference: %d elements given, %d needed", len(dst), len(src))
	}
	for i, v := range src {
		dst[i] = D(v)
	}
	return nil
}

// ReadWeights copies the flat buffer out.
func (s *Store[F]) ReadWeights(dst []float32) error { return convert(dst, s.w) }

// WriteWeights copies the flat buffer in.
func (s *Store[F]) WriteWeights(src []float32) error { return convert(s.w, src) }

// ReadMoments copies both moments out.
func (s *Store[F]) ReadMoments(m, v []float32) error {
	return errors.Join(convert(m, s.m), convert(v, s.v))
}

// WriteMoments copies both moments in.
func (s *Store[F]) WriteMoments(m, v []float32) error {
	return errors.Join(convert(s.m, m), convert(s.v, v))
}

// CopyWeights takes another store's weights.
func (s *Store[F]) CopyWeights(from kernel.Store) error {
	o, ok := from.(*Store[F])
	if !ok {
		return fmt.Errorf("reference: weights of a %T cannot be copied to a %T", from, s)
	}
	return convert(s.w, o.w)
}

// Close drops the numbers.
func (s *Store[F]) Close() error {
	s.w, s.m, s.v = nil, nil, nil
	return nil
}

// Weights are the store's own numbers, in full precision: what a check by differences moves.
func (s *Store[F]) Weights() []F { return s.w }
