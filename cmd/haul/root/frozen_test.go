package root_test

import (
	"os"
	"strings"
	"testing"

	"haul/cmd/haul/root"
)

// frozenCommands returns the command lines of the pages and help of the last release, each
// with its page.
// A line that begins with ~ was within a sentence and may have placeholders.
func frozenCommands(t *testing.T) []example {
	t.Helper()
	text, err := os.ReadFile("testdata/commands.txt")
	if err != nil {
		t.Fatal(err)
	}
	var out []example
	page := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "# "); ok {
			page = name
			continue
		}
		command, spoken := strings.CutPrefix(line, "~ ")
		for _, e := range commands(page, command) {
			e.words, _ = root.Moved(e.words)
			e.spoken = spoken
			out = append(out, e)
		}
	}
	return out
}

// TestFrozenCommandsStand parses every command line that the pages and help of the last release
// showed. What a user has written down still runs, or is answered with the line to type.
func TestFrozenCommandsStand(t *testing.T) {
	all := frozenCommands(t)
	if len(all) < 280 {
		t.Errorf("only %d frozen commands were found", len(all))
	}
	for _, e := range all {
		if _, err := e.check(!e.spoken); err != nil {
			t.Errorf("%s: %s: %v", e.where, e.line, err)
		}
	}
}
