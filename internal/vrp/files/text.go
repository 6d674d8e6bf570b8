package files

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	"haul/internal/limits"
	"haul/internal/vrp"
)

// Shared by the plain text formats of Solomon, of Li and Lim and of Cordeau: lines of numbers.
// What a reader could break: a line is read whole or refused with its number.

// textFile is a file of lines.
type textFile struct {
	name  string
	lines []textLine
	at    int
}

type textLine struct {
	number int
	words  []string
	text   string
}

func openText(r io.Reader, name string) (*textFile, error) {
	data, err := io.ReadAll(lineEnds(io.LimitReader(r, maxFile+1)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(data) > maxFile {
		return nil, tooLarge(name)
	}
	if bad := notText(data); bad != "" {
		return nil, fmt.Errorf("%s: %s", name, bad)
	}
	f := &textFile{name: name}
	number := 0
	for line := range bytes.Lines(bytes.TrimPrefix(data, []byte("\ufeff"))) {
		number++
		if text := strings.TrimSpace(string(line)); text != "" {
			f.lines = append(f.lines, textLine{number, strings.Fields(text), text})
		}
	}
	return f, nil
}

func (f *textFile) errorf(l textLine, format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s", f.name, max(1, l.number), fmt.Sprintf(format, args...))
}

// next is the next line; what says what was expected.
func (f *textFile) next(what string) (textLine, error) {
	if f.at >= len(f.lines) {
		last := textLine{number: 1}
		if len(f.lines) > 0 {
			last = f.lines[len(f.lines)-1]
		}
		return textLine{}, f.errorf(last, "the file ends: expected %s", what)
	}
	f.at++
	return f.lines[f.at-1], nil
}

// numbers reads a line of at least few and at most most numbers; names are for messages.
func (f *textFile) numbers(l textLine, few, most int, names ...string) ([]float64, error) {
	if len(l.words) < few || len(l.words) > most {
		return nil, f.errorf(l, "expected %s, found %s", strings.Join(names, " "), quoteShort(l.text))
	}
	out := make([]float64, len(l.words))
	for i, w := range l.words {
		x, err := parseFloat(w)
		if err != nil {
			return nil, f.errorf(l, "%s %s %v", names[min(i, len(names)-1)], quoteShort(w), err)
		}
		out[i] = x
	}
	return out, nil
}

// amount is a number that must be an integer from 0 on.
func (f *textFile) amount(l textLine, what string, x float64) (int32, error) {
	if x != float64(int32(x)) || x < 0 {
		return 0, f.errorf(l, "%s is %g: expected an integer from 0 on", what, x)
	}
	return int32(x), nil
}

// timed reads a row "number x y demand ready due service" of a place, in order, into the problem.
func (f *textFile) timed(p *vrp.Problem, l textLine, row []float64) error {
	v := len(p.Demand)
	if row[0] != float64(v) {
		return f.errorf(l, "place %g: expected %d, places are numbered in order", row[0], v)
	}
	for i, what := range map[int]string{4: "ready time", 5: "due time", 6: "service time"} {
		if row[i] < 0 {
			return f.errorf(l, "the %s of place %d is %g", what, v, row[i])
		}
	}
	if row[5] < row[4] {
		return f.errorf(l, "the window of place %d closes at %g, before it opens at %g", v, row[5], row[4])
	}
	p.X, p.Y = append(p.X, row[1]), append(p.Y, row[2])
	p.Windows = append(p.Windows, []vrp.Window{{From: row[4], To: row[5]}})
	p.Service = append(p.Service, row[6])
	return nil
}

// finish checks a problem that was read.
func (f *textFile) finish(p *vrp.Problem, o Options) (*vrp.Problem, error) {
	p.Metric = o.Distance.metric(vrp.Exact)
	settle(p)
	if err := p.Check(); err != nil {
		return nil, fmt.Errorf("%s: %w", f.name, err)
	}
	return p, nil
}

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
