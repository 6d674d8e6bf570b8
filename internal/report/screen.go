package report

import (
	"fmt"
	"io"
	"strings"
)

// Screen is where a run is told to a person: lines that stay, and with Live a block below them that
// is drawn anew.
//
// What a reader could break: a live block is taken off by moving up as many rows as it has, so no
// line of it may wrap.
type Screen struct {
	Words  io.Writer  // progress
	Result io.Writer  // the summary
	Live   bool       // Words is a screen
	Colour bool       // Words takes colour
	Width  func() int // of the screen
	ASCII  bool       // it shows no other characters than these

	note  string // the note that ends the words, "" if something else does
	lines int    // rows of that note
	block int    // rows of the live block on the screen
}

// Note prints a line; on a screen the next figure of the same work takes its place.
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

// wrapped breaks a line at words where somebody watches; a pipe takes it whole.
func (t *Screen) wrapped(line string, indent int) []string {
	if !t.Live {
		return []string{line}
	}
	return Wrap(line, t.Width()-1, indent)
}

// bar is a share as a bar.
func (t *Screen) bar(share float64) string {
	const cells = 12
	full, empty := "█", "░"
	if t.ASCII {
		full, empty = "#", "-"
	}
	n := max(0, min(cells, int(share*cells)))
	return strings.Repeat(full, n) + strings.Repeat(empty, cells-n)
}

// Progress shows how much of some work is done, as a bar where somebody watches; a pipe is told
// once that it has begun. Leave takes the bar away.
func (t *Screen) Progress(what string) func(done, all int) {
	told := false
	return func(done, all int) {
		switch {
		case t.Live:
			t.show([]string{fmt.Sprintf("%s %s %d of %d", what, t.bar(float64(done)/float64(all)), done, all)})
		case !told:
			told = true
			t.write(fmt.Sprintf("%s: %d", what, all))
		}
	}
}

// Leave takes the block off the screen: something else is about to be printed.
func (t *Screen) Leave() { t.clear() }

func (t *Screen) write(line string) {
	t.note = ""
	fmt.Fprintln(t.Words, line)
}

// banner writes what runs, name by name, and the kernels' paths after it.
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

// show replaces the block; its first line is plain.
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
		fmt.Fprintf(t.Words, "\r\x1b[%dA\x1b[J", t.block) // a Ctrl-C was echoed, perhaps
		t.block = 0
	}
}

// The marks of a screen that takes colour.
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
