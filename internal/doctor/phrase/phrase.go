// Package phrase formats numbers, names and counts for people. Package doctor and its rules and
// reports use it.
package phrase

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
)

// Size formats a number of bytes.
func Size(bytes float64) string {
	switch {
	case bytes >= 1<<30:
		return fmt.Sprintf("%.1f GB", bytes/(1<<30))
	case bytes >= 1<<20:
		return fmt.Sprintf("%.1f MB", bytes/(1<<20))
	case bytes >= 1<<10:
		return fmt.Sprintf("%.1f kB", bytes/(1<<10))
	}
	return fmt.Sprintf("%.0f bytes", bytes)
}

// Count1 formats a number with its noun: 1 event, 1,536 kernels.
func Count1(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Thousands(n) + " " + plural(noun)
}

func plural(noun string) string {
	if strings.HasSuffix(noun, "ch") {
		return noun + "es"
	}
	return noun + "s"
}

// Thousands formats a whole number with separators.
func Thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Figure formats milliseconds with their significant digits, down to nanoseconds.
func Figure(ms float64) string {
	switch {
	case ms >= 100 || ms <= -100:
		return fmt.Sprintf("%.0f", ms)
	case ms >= 10 || ms <= -10:
		return fmt.Sprintf("%.1f", ms)
	case math.Abs(ms) >= 0.1 || ms == 0:
		return fmt.Sprintf("%.2f", ms)
	}
	digits := min(7, 1-int(math.Floor(math.Log10(math.Abs(ms)))))
	return strconv.FormatFloat(ms, 'f', digits, 64)
}

// PerStepCount formats a count per step.
func PerStepCount(n float64) string {
	if n < 10 && n != float64(int(n)) {
		return fmt.Sprintf("%.1f", n)
	}
	return Thousands(int(n + 0.5))
}

// Percent formats a share as a percentage.
func Percent(share float64) string {
	if share < 0.1 {
		return fmt.Sprintf("%.1f %%", 100*share)
	}
	return fmt.Sprintf("%.0f %%", 100*share)
}

// Printable replaces control characters of a name by spaces, so that none reaches a terminal.
func Printable(s string) string {
	clean := true
	for i := range len(s) {
		if s[i] < ' ' || s[i] == 0x7f || s[i] >= 0x80 {
			clean = false
			break
		}
	}
	if clean {
		return s
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar || unicode.In(r, unicode.Cf) {
			return ' '
		}
		return r
	}, s)
}

// CountFew formats a count per step with its noun.
func CountFew(n float64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return PerStepCount(n) + " " + plural(noun)
}
