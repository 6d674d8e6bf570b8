package gen_test

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"haul/cmd/haul/cli"
	"haul/cmd/haul/clitest/inprocess"
)

// A generated file, solved exactly and unrounded, must cost what the generated instance costs; one
// of a single tour has one vehicle.
func TestGenWritesWhatSolveSolves(t *testing.T) {
	for _, c := range []struct {
		set          string
		scale, slack float64
		single       bool
	}{{"grid:7", 100, 1e-6, false}, {"uniform:7", 1e6, 1e-5, false}, {"tsp-grid:7", 100, 1e-6, true}, {"tsp:7", 1e6, 1e-5, true}} {
		dir := filepath.Join(t.TempDir(), "a", "folder")
		flags := []string{c.set, "--seed", "9", "--first", "5", "--count", "2", "--json"}
		g := inprocess.Object(t, append([]string{"gen", "--out", dir}, flags...)...)
		files := g["files"].([]any)
		if len(files) != 2 || g["instances"] != 2.0 {
			t.Fatalf("%v", g)
		}
		sum := 0.0
		for _, name := range files {
			r := inprocess.Object(t, "solve", filepath.Join(dir, name.(string)), "--method", "exact", "--set", "distance=exact", "--json")
			sum += r["cost"].(float64) / c.scale / 7
			text, err := os.ReadFile(filepath.Join(dir, name.(string)))
			if err != nil || strings.Contains(string(text), "VEHICLES : 1\n") != c.single || (len(r["routes"].([]any)) == 1) != c.single {
				t.Errorf("%s, a single tour %v: %v in %s, %v", c.set, c.single, r["routes"], text, err)
			}
		}
		mean := inprocess.Object(t, append([]string{"eval", "--method", "exact"}, flags...)...)["mean_cpc"].(float64)
		if math.Abs(sum/2-mean) > c.slack {
			t.Errorf("%s: files cost %v a customer, instances %v", c.set, sum/2, mean)
		}
	}
}

func TestGenAsksBeforeItOverwrites(t *testing.T) {
	dir := t.TempDir()
	args := []string{"gen", "grid:5", "--out", dir}
	if r := inprocess.Run(t, args...); r.Code != cli.ExitDone {
		t.Fatal(r.Stderr)
	}
	inprocess.Refused(t, args, cli.ExitFailed, "--force")
	if r := inprocess.Run(t, append(args, "--force")...); r.Code != cli.ExitDone {
		t.Error(r.Stderr)
	}
}
