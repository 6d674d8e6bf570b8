package world

import (
	"strings"
	"testing"
)

// TestATitleStaysOnItsLine: a file may be anybody's, and what its world is called must not command
// a terminal.
func TestATitleStaysOnItsLine(t *testing.T) {
	r := Recorded{Title: "a\nb\x1b[31m ü", Longest: 1}
	if got := r.Describe(); !strings.HasPrefix(got, "a b [31m ü: 0 fields") {
		t.Errorf("%q", got)
	}
}
