package run

import (
	"errors"
	"fmt"

	"haul/internal/kernel"
)

// All ranks try the same numbers of parts in the same order. If one rank lacks memory, all try the
// next number. The number that fits is stored in the run's settings, so that a resumed run is
// divided in the same way.

// MostParts is the largest number of parts of a step.
const MostParts = 64

// Parts describes a step that can be divided into parts to fit into memory.
type Parts struct {
	Key   string // the setting with the number of parts
	Asked int    // the setting's value; 0: the fewest parts that fit
	Batch int    // instances of a step
	Unit  int    // consecutive instances that stay in one part, at least 1
}

// Fit calls try with Asked, or if that is 0 with 1, 2 and so on, and returns the first number of
// equal parts that fits into memory. It reports a number above 1 by a note. try must free
// everything if it fails, and also what its previous call made, because another rank may have
// failed.
func (s *Setup) Fit(p Parts, try func(parts int) error) (parts int, err error) {
	if p.Asked > 0 {
		return p.Asked, try(p.Asked)
	}
	var first error // why the undivided step does not fit
	for parts = 1; parts > 0; parts = s.next(p, parts) {
		err := try(parts)
		short := errors.Is(err, kernel.ErrMemory)
		if err != nil && !short {
			return parts, err
		}
		if s.World != nil {
			var failed error
			if short, failed = s.anyShort(short); failed != nil {
				return parts, errors.Join(failed, err)
			}
		}
		if first == nil {
			first = err
		}
		if !short {
			if parts > 1 {
				s.Note(fmt.Sprintf("a step is computed in %d parts of %d instances, one after another, since in one %s: %s is set to %d",
					parts, p.Batch/parts, reason(first), p.Key, parts))
			}
			return parts, nil
		}
	}
	if first == nil {
		first = errors.New("another rank has too little memory")
	}
	return 1, first
}

// next returns the smallest valid number of equal parts above n, or 0.
func (s *Setup) next(p Parts, n int) int {
	whole := s.Device.ShardSize(1) == kernel.WholeBatch
	for n++; n <= MostParts; n++ {
		if p.Batch%(n*p.Unit) == 0 && (!whole || s.World == nil || kernel.Blocks(n, s.World.Ranks())) {
			return n
		}
	}
	return 0
}

// anyShort reports whether any rank lacks memory.
func (s *Setup) anyShort(own bool) (bool, error) {
	said := []byte{0}
	if own {
		said[0] = 1
	}
	all, err := s.World.Gather(said)
	for _, b := range all {
		own = own || len(b) == 1 && b[0] == 1
	}
	return own, err
}

// shortage is the error for data that does not fit into memory.
type shortage struct {
	what, where, advice string
	bytes, available    int64
}

func (e *shortage) Error() string { return e.reason() + ": " + e.advice }

// reason returns the message without its advice.
func (e *shortage) reason() string {
	return fmt.Sprintf("%s needs %s of memory, %s is available on %s", e.what, mebibytes(e.bytes), mebibytes(e.available), e.where)
}

// Is makes errors.Is match kernel.ErrMemory.
func (e *shortage) Is(target error) bool { return target == kernel.ErrMemory }

// reason returns why something did not fit.
func reason(err error) string {
	if e := new(shortage); errors.As(err, &e) {
		return e.reason()
	}
	if err == nil {
		return "a rank has too little memory"
	}
	return err.Error()
}
