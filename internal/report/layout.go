package report

import (
	"regexp"
	"slices"
	"strings"
)

// What a reader could break: widths count characters, not bytes, and a word is never cut where a
// line can end before it.

var escapes = regexp.MustCompile("\x1b\\[[0-9;]*[A-Za-z]")

// Plain is a line without its marks of colour, which take no room on a screen.
func Plain(line string) string { return escapes.ReplaceAllString(line, "") }

// Wrap breaks a line at words so that none is longer than width, the lines after the first
// indented. A word longer than that stays whole.
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
		// A word with the blanks before it, so that columns stay as they are within a line.
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

// piece is a part of a line; those with the lowest rank are kept where not all fit.
type piece struct {
	text string
	rank int
}

// assemble joins as many pieces as fit into width, two blanks between them, in their order; the
// first always stays.
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
			break // what matters less does not take the place of what matters more
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

// Narrow leaves columns of a line out until it fits: those that spare names, in that order, then
// from the right. A word of the heading stands over the right edge of its column; a column has the
// character after that edge too, where marks stand.
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
