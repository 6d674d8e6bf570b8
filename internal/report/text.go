package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Thousands formats a number in groups of digits: 204,800.
func Thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Bytes formats a size in the unit in which it has two to four digits.
func Bytes(n int64) string {
	const unit = 1 << 10
	for _, u := range []struct {
		size int64
		name string
	}{{unit * unit * unit, "GiB"}, {unit * unit, "MiB"}, {unit, "KiB"}} {
		if n >= u.size {
			return fmt.Sprintf("%.3g %s", float64(n)/float64(u.size), u.name)
		}
	}
	return fmt.Sprintf("%d B", n)
}

// Duration formats seconds: 4.2 s, 1:23, 2:03:04.
func Duration(seconds float64) string {
	if math.IsNaN(seconds) || seconds < 0 || seconds > 1e9 {
		return "?"
	}
	if seconds < 10 {
		return fmt.Sprintf("%.1f s", seconds)
	}
	s := int(math.Round(seconds))
	switch {
	case s < 60:
		return fmt.Sprintf("%d s", s)
	case s < 3600:
		return fmt.Sprintf("%d:%02d", s/60, s%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
}

// Long formats a time of hours or more in a unit for planning: "31 hours", "5 days", "3 weeks".
func Long(seconds float64) string {
	for _, u := range []struct {
		seconds float64
		least   float64
		name    string
	}{{365.25 * 86400, 2, "years"}, {7 * 86400, 3, "weeks"}, {86400, 2, "days"}} {
		if n := math.Round(seconds / u.seconds); n >= u.least {
			if n > 1e9 {
				return "ages"
			}
			return "about " + Thousands(int64(n)) + " " + u.name
		}
	}
	return "about " + Plural(int64(max(1, math.Round(seconds/3600))), "hour")
}

// Plural formats a number with its noun.
func Plural(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Thousands(n) + " " + noun + "s"
}

// Operations formats a rate or an amount of floating-point work: 158 GFLOP.
func Operations(n float64) string {
	for _, u := range []struct {
		size float64
		name string
	}{{1e15, "PFLOP"}, {1e12, "TFLOP"}, {1e9, "GFLOP"}} {
		if n >= u.size {
			return fmt.Sprintf("%.3g %s", n/u.size, u.name)
		}
	}
	return fmt.Sprintf("%.3g MFLOP", n/1e6)
}

// GapText formats a gap in percent; nil is a dash.
func GapText(gap *float64) string {
	if gap == nil {
		return "–"
	}
	return Signed(100**gap, 2) + " %"
}

// Signed formats a number with its sign and a number of decimals. Values that round to zero are
// +0.00, because a minus would suggest a gain.
func Signed(x float64, decimals int) string {
	s := fmt.Sprintf("%+.*f", decimals, x)
	if strings.Trim(s, "-0.") == "" {
		s = "+" + s[1:]
	}
	return s
}

// CostText formats a cost; nil is a dash.
func CostText(c *float64) string {
	if c == nil {
		return "–"
	}
	return fmt.Sprintf("%.4f", *c)
}

// fit truncates a line to a terminal's width, so that it does not wrap and rows can be counted.
func fit(s string, width int) string {
	if r := []rune(s); len(r) > width {
		return string(r[:max(0, width)])
	}
	return s
}

// padLeft aligns text at the right, with widths in runes.
func padLeft(s string, width int) string {
	if n := width - len([]rune(s)); n > 0 {
		return strings.Repeat(" ", n) + s
	}
	return s
}

// ShellWord quotes a path for a shell, so that a command with it can be copied.
func ShellWord(path string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+=:,@%", r) || r > 127
	}
	if path != "" && strings.IndexFunc(path, func(r rune) bool { return !plain(r) }) < 0 {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
