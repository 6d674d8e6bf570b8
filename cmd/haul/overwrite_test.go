package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"haul/internal/draw"
	"haul/internal/run"
)

// TestPicturesAndPagesAreNotReplacedUnasked: eval --plot and doctor --html keep a file that is
// there, say so before the work, and replace it where --force is given.
func TestPicturesAndPagesAreNotReplacedUnasked(t *testing.T) {
	dir := t.TempDir()
	for name, args := range map[string][]string{
		"routes.svg": {"eval", "--policy", "cvrp20", "--count", "2", "--device", "cpu", "--plot"},
		"page.html":  {"doctor", "../../docs/examples/trace.json.gz", "--html"},
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("mine"), 0o644); err != nil {
			t.Fatal(err)
		}
		args = append(args, path)
		refused(t, args, exitFailed, path+" is there already: give another name, or --force to replace it")
		if text, err := os.ReadFile(path); err != nil || string(text) != "mine" {
			t.Errorf("%s: %q, %v", name, text, err)
		}
		if r := haul(t, append(args, "--force")...); r.code != exitDone {
			t.Errorf("%v --force: %s", args, r.stderr)
		}
		if text, err := os.ReadFile(path); err != nil || !strings.Contains(string(text), "<svg") && !strings.Contains(string(text), "<html") {
			t.Errorf("%s was not replaced: %.40q, %v", name, text, err)
		}
	}
}

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
