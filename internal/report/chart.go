package report

import (
	"fmt"
	"math"
	"strings"
)

// dots is a canvas of braille characters, each two dots wide and four high.
type dots struct {
	w, h  int // in dots
	cells []byte
}

// brailleBits[y][x] is the bit of a dot within its character in Unicode.
var brailleBits = [4][2]byte{{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}

func newDots(columns, rows int) *dots {
	return &dots{w: 2 * columns, h: 4 * rows, cells: make([]byte, columns*rows)}
}

// set draws a dot; y counts from the bottom.
func (d *dots) set(x, y int) {
	if x < 0 || x >= d.w || y < 0 || y >= d.h {
		return
	}
	top := d.h - 1 - y
	d.cells[top/4*(d.w/2)+x/2] |= brailleBits[top%4][x%2]
}

// line draws the dots between two points, one step at a time along the longer side.
func (d *dots) line(x0, y0, x1, y1 int) {
	steps := max(abs(x1-x0), abs(y1-y0), 1)
	for i := range steps + 1 {
		t := float64(i) / float64(steps)
		d.set(x0+int(math.Round(t*float64(x1-x0))), y0+int(math.Round(t*float64(y1-y0))))
	}
}

func abs(n int) int { return max(n, -n) }

func (d *dots) row(r int) string {
	var s strings.Builder
	for _, c := range d.cells[r*d.w/2 : (r+1)*d.w/2] {
		s.WriteRune(0x2800 + rune(c))
	}
	return strings.TrimRight(s.String(), "\u2800")
}

// The bits of the upper and the lower half of a character.
const (
	upperHalf = 0x01 | 0x08 | 0x02 | 0x10
	lowerHalf = 0x04 | 0x20 | 0x40 | 0x80
)

// plain returns a row in ASCII, which shows which half of a character has dots.
func (d *dots) plain(r int) string {
	var s strings.Builder
	for _, c := range d.cells[r*d.w/2 : (r+1)*d.w/2] {
		switch {
		case c&upperHalf != 0 && c&lowerHalf != 0:
			s.WriteByte(':')
		case c&upperHalf != 0:
			s.WriteByte('\'')
		case c != 0:
			s.WriteByte('.')
		default:
			s.WriteByte(' ')
		}
	}
	return strings.TrimRight(s.String(), " ")
}

// lines returns the curve from 1 to the run's end, with a dotted line at a level such as the
// optimum and the extremes at the left. It has `rows` lines of at most width columns.
func (c Chart) lines(width, rows int, ascii bool) []string {
	const margin = 8
	points, last, level, name := c.Points, c.Last, c.Level, c.Name
	columns := width - margin - len(name) - 1
	if len(points) == 0 || columns < 8 || rows < 2 {
		return nil
	}
	lo, hi := level, level
	for _, p := range points {
		lo, hi = min(lo, p.Y), max(hi, p.Y)
	}
	if !(hi > lo) || math.IsInf(hi-lo, 0) {
		return nil
	}
	d := newDots(columns, rows)
	atX := func(x float64) int {
		if last < 2 {
			return d.w / 2
		}
		return int(math.Round((x - 1) / float64(last-1) * float64(d.w-1)))
	}
	atY := func(y float64) int { return int(math.Round((y - lo) / (hi - lo) * float64(d.h-1))) }
	for x := 0; x < d.w; x += 4 {
		d.set(x, atY(level))
	}
	for i, p := range points {
		from := points[max(0, i-1)]
		d.line(atX(from.X), atY(from.Y), atX(p.X), atY(p.Y))
	}
	levelRow := rows - 1 - atY(level)/4
	out := make([]string, rows)
	for r := range out {
		label := ""
		switch r {
		case 0:
			label = fmt.Sprintf("%.4f", hi)
		case rows - 1:
			label = fmt.Sprintf("%.4f", lo)
		}
		cells := d.row(r)
		if ascii {
			cells = d.plain(r)
		}
		if r == levelRow {
			cells += strings.Repeat(" ", columns-len([]rune(cells))) + " " + name
		}
		out[r] = padLeft(label, margin-1) + " " + cells
	}
	return out
}
