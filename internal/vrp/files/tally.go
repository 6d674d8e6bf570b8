package files

import (
	"context"
	"io"

	"haul/internal/limits"
)

// tally counts what the tables of one problem hold, the files beside it included, and stops their
// reading at a limit or at the end of a context.
type tally struct {
	limits                *limits.Set
	ctx                   context.Context // nil: reading goes on to the end
	sheets                int64
	rows, cells, unpacked int64
}

func newTally(o Options) *tally { return &tally{limits: o.Limits, ctx: o.Context} }

// listenEach is how many rows, cells or bytes are read between two looks at the context.
const listenEach = 1 << 12

// add counts n more of one kind, of which sum have been counted.
func (t *tally) add(name limits.Name, sum *int64, n int64) error {
	before := *sum
	if *sum += n; *sum > t.limits.Most(name) {
		return t.limits.Beyond(name)
	}
	if t.ctx != nil && before/listenEach != *sum/listenEach {
		return context.Cause(t.ctx)
	}
	return nil
}

func (t *tally) sheet() error { return t.add(limits.Sheets, &t.sheets, 1) }

// row counts a row with room for so many cells.
func (t *tally) row(cells int) error {
	if err := t.add(limits.Rows, &t.rows, 1); err != nil {
		return err
	}
	return t.cell(cells)
}

func (t *tally) cell(n int) error { return t.add(limits.Cells, &t.cells, int64(n)) }

// unpack returns r with its bytes counted, and no more than most of them.
func (t *tally) unpack(r io.Reader, most limits.Name) io.Reader {
	return &unpacking{r: r, t: t, most: most}
}

type unpacking struct {
	r    io.Reader
	t    *tally
	most limits.Name // of this part alone
	n    int64
}

func (u *unpacking) Read(b []byte) (int, error) {
	n, err := u.r.Read(b)
	if over := u.t.add(limits.Unpacked, &u.t.unpacked, int64(n)); over != nil {
		return 0, over
	}
	if u.n += int64(n); u.n > u.t.limits.Most(u.most) {
		return 0, u.t.limits.Beyond(u.most)
	}
	return n, err
}
