package cli

import (
	_ "embed"
	"testing"
)

// TestControlCharactersAreShown: what a file holds must not command the terminal.
func TestControlCharactersAreShown(t *testing.T) {
	if got, want := OneLine("a\x1b[31m\nb\x00\tc"), `a\x1b[31m; b\x00\x09c`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
