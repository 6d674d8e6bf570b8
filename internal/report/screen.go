package report

import (
	"fmt"
	"io"
	"strings"
)

// Screen writes the progress of a run for a user: permanent lines and, if Live, a block below them
// that is redrawn.
//
// Lines of a live block never wrap: the block is erased by moving the cursor up by its number of
// rows.
type Screen struct {
	Words  io.Writer  // output for progress
	Result io.Writer  // output for the summary
	Live   bool       // Words is a terminal
	Colour bool       // Words supports colour
	Width  func() int // columns of the terminal
	ASCII  bool       // the terminal shows ASCII only

	note  string // the last note, if it was the last output; else ""
	lines int    // number of rows of that note
	block int    // number of rows of the live block
}

// Note writes a line. On a terminal a later note of the same work replaces it.
func (t *Screen) Note(text string) {
	t.clear()
	what, _, _ := strings.Cut(text, ": ")
	if t.Live && t.note != "" && t.note == what {
		fmt.Fprintf(t.Words, "\x1b[%dA\x1b[J", t.lines)
	}
	lines := t.wrapped(text, 2)
	for _, line := range lines {
		t.write(t.paint(dim, line))
	}
	t.note, t.lines = what, len(lines)
}

// wrapped breaks a line at words for a terminal; for a pipe it returns the whole line.
func (t *Screen) wrapped(line string, indent int) []string {
	if !t.Live {
		return []string{line}
	}
	return Wrap(line, t.Width()-1, indent)
}

// bar returns a fraction as a bar.
func (t *Screen) bar(share float64) string {
	const cells = 12
	full, empty := "█", "░"
	if t.ASCII {
		full, empty = "#", "-"
	}
	n := max(0, min(cells, int(share*cells)))
	return strings.Repeat(full, n) + strings.Repeat(empty, cells-n)
}

// Progress returns a function that shows how much of some work is done: as a bar on a terminal, or
// as one line at the beginning for a pipe. Leave removes the bar.
func (t *Screen) Progress(what string) func(done, all int) {
	begun := false
	return func(done, all int) {
		switch {
		case t.Live:
			t.show([]string{fmt.Sprintf("%s %s %d of %d", what, t.bar(float64(done)/float64(all)), done, all)})
		case !begun:
			begun = true
			t.write(fmt.Sprintf("%s: %d", what, all))
		}
	}
}

// Leave removes the live block before other output.
func (t *Screen) Leave() { t.clear() }

func (t *Screen) write(line string) {
	t.note = ""
	fmt.Fprintln(t.Words, line)
}

// banner writes rows of names and texts, then the paths of kernels.
func (t *Screen) banner(rows [][2]string, paths []string) {
	for k, path := range paths {
		name := ""
		if k == 0 {
			name = "kernels"
		}
		rows = append(rows, [2]string{name, path})
	}
	for _, r := range rows {
		for _, line := range t.wrapped(fmt.Sprintf("  %-9s %s", r[0], r[1]), 12) {
			t.write(line)
		}
	}
}

// show replaces the block; its first line has no colour codes.
func (t *Screen) show(lines []string) {
	width := t.Width() - 1
	var out strings.Builder
	if t.block > 0 {
		fmt.Fprintf(&out, "\r\x1b[%dA", t.block)
	}
	for i, line := range lines {
		line = fit(line, width)
		if i > 0 {
			line = t.paint(cyan, line)
		}
		out.WriteString(line + "\x1b[K\n")
	}
	t.note = ""
	io.WriteString(t.Words, out.String())
	t.block = len(lines)
}

func (t *Screen) clear() {
	if t.block > 0 {
		fmt.Fprintf(t.Words, "\r\x1b[%dA\x1b[J", t.block) // \r: the terminal may have echoed ^C
		t.block = 0
	}
}

// Control sequences of terminals with colour.
const (
	bold = "\x1b[1m"
	dim  = "\x1b[2m"
	cyan = "\x1b[36m"
)

func (t *Screen) paint(mark, s string) string {
	if !t.Colour {
		return s
	}
	return mark + s + "\x1b[0m"
}
