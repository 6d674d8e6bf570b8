package solve

import (
	"strings"
	"testing"
	"time"
)

// TestLateness: a solve that takes longer than its limit says so and why; a fiftieth more, or a
// twentieth of a second, is no more than a look at the clock.
func TestLateness(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		limit, took, reading time.Duration
		want                 string
	}{
		{0, 10 * s, s, ""},
		{10 * s, 10 * s, s, ""},
		{10 * s, 10*s + 200*time.Millisecond, s, ""},
		{10 * s, 10*s + 201*time.Millisecond, s, "passed by 0.2 s: first routes and judging them took the rest"},
		{s, s + 50*time.Millisecond, s, ""},
		{s, s + 51*time.Millisecond, 0, "the time limit of 1s was passed by 0.1 s: first"},
		{s, 3 * s, s/2 + 1, "passed by 2.0 s: reading it took 0.5 s; give it more time"},
	} {
		if got := lateness(c.limit, c.took, c.reading); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
