package trace

import (
	"math"
)

// Cause is a rule's position in the table, counted from 1; 0 is no cause.
type Cause uint8

// Holds is a set of kinds of calls that were made inside an operator.
type Holds uint16

const (
	HoldsLaunch      Holds = 1 << iota
	HoldsWait              // a call that waits for the GPU
	HoldsRead              // a single value copied to the host
	HoldsSingle            // a single value copied to the device
	HoldsSmall             // a small copy of data in either direction
	HoldsLargePaged        // a large copy from or to pageable memory
	HoldsAlloc             // an allocation or release by the driver
	HoldsUnderfilled       // a kernel with fewer blocks than the GPU has processors
	HoldsCold              // a first use that takes much of the operator's time
)

// Op is an outermost operator of a thread: the unit that causes are attributed to.
type Op struct {
	Start    int64
	Dur      float32 // ns; 24 bits are precise enough and halve the record
	Name     uint32
	Sequence uint32  // autograd's number, which the backward operator has too
	Inputs   uint32  // hash of shapes and scalars
	Form     uint32  // index of its inputs in Trace.Forms
	GPU      float32 // ns of kernels that it launched
	Idle     float32 // ns in which the GPU was idle and waited for this operator
	Lead     float32 // ns of such idle time in Python between the previous operator and this one
	Holds    Holds
	Launches uint16
	Nested   uint16 // number of operators inside
	Cause    Cause
}

func (o *Op) End() int64 { return o.Start + int64(o.Dur) }

// nest adds operators inside.
func (o *Op) nest(n int) { o.Nested = uint16(min(math.MaxUint16, int(o.Nested)+n)) }

// holdsStart reports whether another operator of the thread that starts at this time runs inside o.
// It compares starts, not ends: older profilers round both to microseconds, so that a child may
// seem to outlive its parent. A start counts as inside beyond the rounding of a length to 24 bits.
func (o *Op) holdsStart(at int64) bool {
	return at >= o.Start && at < o.End()-int64(o.Dur/(1<<23))
}
