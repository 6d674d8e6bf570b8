package eval

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"haul/internal/draw"
	"haul/internal/run"
)

// TestAPictureBesideIsKeptAndTheResultTold: the name of a second picture is known after the
// evaluation only; what was measured is told nevertheless.
func TestAPictureBesideIsKeptAndTheResultTold(t *testing.T) {
	first := filepath.Join(t.TempDir(), "a.svg")
	if err := os.WriteFile(strings.Replace(first, "a.svg", "a-two.svg", 1), []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	line := func(w io.Writer, _ draw.Format) error { _, err := io.WriteString(w, "<svg/>"); return err }
	pictures := []run.Drawing{{Draw: line}, {Suffix: "-two", Draw: line}}
	if _, err := plotAll(first, false, draw.SVG, pictures); err == nil || !strings.Contains(err.Error(), "a-two.svg is there already") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(first); err == nil {
		t.Error("one of two pictures was drawn")
	}
	if drawn, err := plotAll(first, true, draw.SVG, pictures); err != nil || len(drawn) != 2 {
		t.Errorf("%v, %v", drawn, err)
	}
}
