package report

import (
	"regexp"
	"slices"
	"strings"
)

// Widths count characters, not bytes. Lines are broken between words only.

var escapes = regexp.MustCompile("\x1b\\[[0-9;]*[A-Za-z]")

// Plain returns a line without colour codes, which take no columns on a screen.
func Plain(line string) string { return escapes.ReplaceAllString(line, "") }

// Wrap breaks a line at spaces into lines of at most width characters. Lines after the first are
// indented. A word longer than width stays whole.
func Wrap(line string, width, indent int) []string {
	line = strings.TrimRight(line, " ")
	if shown(line) <= width {
		return []string{line}
	}
	lead := line[:len(line)-len(strings.TrimLeft(line, " "))]
	var out []string
	at := lead
	empty := true
	for rest := line[len(lead):]; rest != ""; {
		// A word with its leading spaces, so that columns within a line keep their positions.
		blanks := len(rest) - len(strings.TrimLeft(rest, " "))
		end := blanks + strings.IndexByte(rest[blanks:]+" ", ' ')
		word := rest[:end]
		rest = rest[end:]
		if !empty && shown(at)+shown(word) > width {
			out = append(out, at)
			at, word = strings.Repeat(" ", indent), strings.TrimLeft(word, " ")
		}
		at += word
		empty = false
	}
	return append(out, at)
}

func shown(s string) int { return runes(Plain(s)) }

func runes(s string) int { return len([]rune(s)) }

// piece is a part of a line. Pieces with a low rank are kept if not all of them fit.
type piece struct {
	text string
	rank int
}

// assemble joins as many pieces as fit into width, in their order and separated by two spaces. The
// first piece is always kept.
func assemble(pieces []piece, width int) string {
	order := make([]int, len(pieces))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return pieces[a].rank - pieces[b].rank })
	keep, used := make([]bool, len(pieces)), 0
	for _, i := range order {
		n := runes(pieces[i].text)
		if n == 0 {
			continue
		}
		if used > 0 {
			n += 2
		}
		if used+n > width && used > 0 {
			break // later pieces matter less: they are left out even if they fit
		}
		keep[i], used = true, used+n
	}
	var out []string
	for i, p := range pieces {
		if keep[i] {
			out = append(out, p.text)
		}
	}
	return fit(strings.Join(out, "  "), width)
}

// Narrow removes columns of a line until it fits: the columns that spare names, in that order, then
// columns from the right. A word of heading ends at the right edge of its column. A column includes
// the character after that edge, where marks are.
func Narrow(line, heading string, spare []string, width int) string {
	if runes(heading) <= width {
		return fit(line, width)
	}
	type column struct {
		name     string
		from, to int
	}
	var columns []column
	at := 0
	for _, name := range strings.Fields(heading) {
		from := at
		at += strings.Index(heading[at:], name) + len(name) + 1
		columns = append(columns, column{name, from, at})
	}
	columns[len(columns)-1].to = max(at, runes(line))
	total := func() (n int) {
		for _, c := range columns {
			n += c.to - c.from
		}
		return n - 1
	}
	for _, name := range spare {
		if total() <= width {
			break
		}
		columns = slices.DeleteFunc(columns, func(c column) bool { return c.name == name })
	}
	for total() > width && len(columns) > 1 {
		columns = columns[:len(columns)-1]
	}
	r, out := []rune(line), ""
	for _, c := range columns {
		out += string(r[min(c.from, len(r)):min(c.to, len(r))])
	}
	return fit(strings.TrimRight(out, " "), width)
}
