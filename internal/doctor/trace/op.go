package trace

import (
	"math"
)

// Cause is a rule's position in the table, counted from 1; 0 is no cause yet.
type Cause uint8

// Holds says which calls were made inside an operator.
type Holds uint16

const (
	HoldsLaunch      Holds = 1 << iota
	HoldsWait              // a call that waits for the GPU
	HoldsRead              // a single value copied to the host
	HoldsSingle            // a single value copied to the device
	HoldsSmall             // a small copy of data, either way
	HoldsLargePaged        // a large copy from or to pageable memory
	HoldsAlloc             // a driver allocation or release
	HoldsUnderfilled       // a kernel with fewer blocks than the card has processors
	HoldsCold              // a first use that takes much of it
)

// Op is an operator that no other holds: the unit in which causes are charged.
type Op struct {
	Start    int64
	Dur      float32 // ns; 24 bits are enough for a length and halve the record
	Name     uint32
	Sequence uint32  // autograd's number, which its backward carries too
	Inputs   uint32  // hash of shapes and scalars
	Form     uint32  // of its inputs, in Trace.Forms
	GPU      float32 // ns of kernels that it launched
	Idle     float32 // ns in which the GPU had nothing to do and waited for this operator
	Lead     float32 // such ns of Python between the operator before and this one
	Holds    Holds
	Launches uint16
	Nested   uint16 // operators inside
	Cause    Cause
}

func (o *Op) End() int64 { return o.Start + int64(o.Dur) }

// nest counts operators inside.
func (o *Op) nest(n int) { o.Nested = uint16(min(math.MaxUint16, int(o.Nested)+n)) }

// holdsStart tells whether another operator of the thread that starts at this moment runs inside o.
// Starts decide, not ends: older profilers round both to microseconds, and a child may seem to
// outlive its parent. A start is inside only past what rounding a length to 24 bits can have added.
func (o *Op) holdsStart(at int64) bool {
	return at >= o.Start && at < o.End()-int64(o.Dur/(1<<23))
}
