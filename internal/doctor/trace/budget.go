package trace

import (
	"errors"
	"io"

	"haul/internal/limits"
)

// Budget holds the remaining bytes and events that the traces of one upload may have.
type Budget struct {
	bytes  int64 // unpacked, all layers of packing together
	events int64
	limits *limits.Set
}

// NewBudget returns a budget of unpacked bytes, and of the events that the limits l allow. Nil
// stands for the command line's limits.
func NewBudget(bytes int64, l *limits.Set) *Budget {
	return &Budget{bytes: bytes, events: l.Most(limits.Events), limits: l}
}

// event takes one event from the budget.
func (b *Budget) event() error {
	if b.events == 0 {
		return b.limits.Beyond(limits.Events)
	}
	b.events--
	return nil
}

// ErrTooLarge reports that a trace unpacks to more than the limit.
var ErrTooLarge = errors.New("it unpacks to more than may be read")

// metered counts the unpacked bytes of all layers, and fails beyond the limit.
type metered struct {
	r    io.Reader
	left *Budget
}

func (m *metered) Read(b []byte) (int, error) {
	n, err := m.r.Read(b)
	if m.left.bytes -= int64(n); m.left.bytes < 0 {
		return 0, ErrTooLarge
	}
	return n, err
}
