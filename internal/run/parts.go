package run

import (
	"errors"
	"fmt"

	"haul/internal/kernel"
)

// What a reader could break: ranks try the same numbers of parts in the same order, and all of
// them try the next number if one has no room. The number that fits is written into the run's
// settings, so that a resumed run is divided in the same way.

// MostParts is the most parts that a step is cut into.
const MostParts = 64

// Parts is a step that may be cut into parts to fit the memory.
type Parts struct {
	Key   string // the setting
	Asked int    // by the settings; 0: as few as fit
	Batch int    // instances of a step
	Unit  int    // instances in turn that a part has whole, 1 and up
}

// Fit calls try with the parts that are asked for, or with 1, 2, and so on, up to the first number
// of equal parts for which there is memory, and says so where that is more than one. try leaves
// nothing behind where it fails, and undoes what it did before: another rank may have failed.
func (s *Setup) Fit(p Parts, try func(parts int) error) (parts int, err error) {
	if p.Asked > 0 {
		return p.Asked, try(p.Asked)
	}
	var first error // of the whole step
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

// next is the least number of equal parts above n; 0: none.
func (s *Setup) next(p Parts, n int) int {
	whole := s.Device.ShardSize(1) == kernel.WholeBatch
	for n++; n <= MostParts; n++ {
		if p.Batch%(n*p.Unit) == 0 && (!whole || s.World == nil || kernel.Blocks(n, s.World.Ranks())) {
			return n
		}
	}
	return 0
}

// anyShort tells whether any rank is short of memory.
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

// shortage is what was refused for want of memory.
type shortage struct {
	what, where, advice string
	bytes, available    int64
}

func (e *shortage) Error() string { return e.reason() + ": " + e.advice }

// reason is the error without its advice.
func (e *shortage) reason() string {
	return fmt.Sprintf("%s needs %s of memory, %s is available on %s", e.what, mebibytes(e.bytes), mebibytes(e.available), e.where)
}

// Is makes it a want of memory.
func (e *shortage) Is(target error) bool { return target == kernel.ErrMemory }

// reason is why something had no room.
func reason(err error) string {
	if e := new(shortage); errors.As(err, &e) {
		return e.reason()
	}
	if err == nil {
		return "a rank has too little memory"
	}
	return err.Error()
}
