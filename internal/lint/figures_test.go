package lint

import (
	"math"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// A figure that is stated in several places ages in all but one. The bold ones of the README's
// table must stand in the short tables of docs/benchmarks.md, and the bold ones of those in the
// sections that their rows lead to, up to rounding.

var (
	bold   = regexp.MustCompile(`\*\*([^*]+)\*\*`)
	number = regexp.MustCompile(`\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?`)
)

// section is what stands under a heading, up to the next one of its level or above, without the
// short tables themselves.
func section(text, anchor string) string {
	var out []string
	level := 0
	for line := range strings.Lines(text) {
		if m := heading.FindStringSubmatch(strings.TrimRight(line, "\n")); m != nil {
			depth := len(line) - len(strings.TrimLeft(line, "#"))
			if level > 0 && depth <= level {
				break
			}
			if level == 0 && anchors(line)[anchor] {
				level = depth
			}
		}
		if level > 0 {
			out = append(out, line)
		}
	}
	return strings.Join(out, "")
}

// rows are the cells of a page's tables, a row each.
func rows(text string) (out [][]string) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "|") {
			out = append(out, strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|"))
		}
	}
	return out
}

// states says whether a text has a number that rounds to the one written, to its last digit that is
// no zero before the point.
func states(text, written string) bool {
	value := func(s string) float64 {
		v, _ := strconv.ParseFloat(strings.ReplaceAll(s, ",", ""), 64)
		return v
	}
	digits, half := strings.ReplaceAll(written, ",", ""), 0.5
	if _, after, point := strings.Cut(digits, "."); point {
		half *= math.Pow10(-len(after))
	} else {
		half *= math.Pow10(len(digits) - len(strings.TrimRight(digits, "0")))
	}
	for _, s := range number.FindAllString(text, -1) {
		if math.Abs(value(s)-value(written)) <= half*1.0001 {
			return true
		}
	}
	return false
}

// bolds are the bold numbers of a cell.
func bolds(cell string) (out []string) {
	for _, m := range bold.FindAllStringSubmatch(cell, -1) {
		out = append(out, number.FindAllString(m[1], -1)...)
	}
	return out
}

func TestShortFiguresAreThoseOfTheirSections(t *testing.T) {
	const page = "docs/benchmarks.md"
	text := read(t, page)
	short := section(text, "in-short")
	judged := 0
	for _, row := range rows(short) {
		m := link.FindStringSubmatch(row[len(row)-1])
		if m == nil || len(row) < 3 {
			continue
		}
		file, anchor, _ := strings.Cut(m[1], "#")
		of := text
		if file != "" {
			of = read(t, filepath.ToSlash(filepath.Join(filepath.Dir(page), file)))
		}
		for _, figure := range bolds(row[1]) {
			judged++
			if !states(section(of, anchor), figure) {
				t.Errorf("%s: %s of%sis not in %s", page, figure, row[0], m[1])
			}
		}
	}
	of := ""
	for _, row := range rows(short) {
		of += strings.Join(bolds(row[min(1, len(row)-1)]), " ") + "\n"
	}
	for _, row := range rows(section(read(t, "README.md"), "measured")) {
		for _, figure := range bolds(row[1]) {
			judged++
			if !states(of, figure) {
				t.Errorf("README.md: %s of%sis not in the short tables of %s", figure, row[0], page)
			}
		}
	}
	if judged < 30 {
		t.Fatalf("%d figures were found: the tables have changed their form", judged)
	}
}

func TestRoundingIsToTheLastDigit(t *testing.T) {
	for _, c := range []struct {
		text, written string
		want          bool
	}{{"469,728 instances/s", "470,000", true}, {"464,999", "470,000", false}, {"1.568 ± 0.027 %", "1.6", true}, {"1.568", "1.5", false},
		{"0.605 %", "0.61", true}, {"27.9", "27", false}, {"26.5, 27.9", "27", true}, {"2.0 ms", "2.0", true}, {"2.06", "2.0", false}, {"", "1", false}} {
		if got := states(c.text, c.written); got != c.want {
			t.Errorf("%q states %s: %v", c.text, c.written, got)
		}
	}
	if got := section("# a\nx\n## b c\ny\n### d\nz\n## e\n", "b-c"); got != "## b c\ny\n### d\nz\n" {
		t.Errorf("the section is %q", got)
	}
}
