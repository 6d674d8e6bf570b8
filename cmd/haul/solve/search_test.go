package solve

import (
	"bytes"
	"strings"
	"testing"

	"haul/internal/search"

	"haul/cmd/haul/cli"
)

// TestLiveLineFits: the line of a search stays within the screen, where one that is broken would
// fill it.
func TestLiveLineFits(t *testing.T) {
	for columns, want := range map[int]string{25: "best 587", 45: "4 routes", 80: "iterations/s"} {
		var out bytes.Buffer
		l := (&app{&cli.App{Stderr: &out, Columns: columns}}).newLive(&solveFlags{})
		l.terminal = true
		l.show(search.Progress{Seconds: 1234.5, Iterations: 1 << 40, Cost: 587, Routes: 4})
		line := strings.Trim(out.String(), "\r")
		if len(line) >= columns || !strings.HasSuffix(strings.TrimRight(line, "0123456789 "), strings.TrimRight(want, "0123456789 ")) {
			t.Errorf("at %d columns: %q", columns, line)
		}
	}
}
