package root_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"haul/cmd/haul/cli"
	"haul/cmd/haul/clitest"
	"haul/cmd/haul/clitest/inprocess"
)

// TestSlipsOfTheHand: what is mistyped is told with what was most likely meant, and a value with
// what it must be.
func TestSlipsOfTheHand(t *testing.T) {
	for line, want := range map[string]string{
		"slove x":                             `did you mean "solve"?`,
		"trian":                               `did you mean "train"?`,
		"pol":                                 `did you mean "policies"?`,
		"config chekc":                        `did you mean "check"?`,
		"xyzzy":                               `haul has no command "xyzzy" (see haul --help)`,
		"solve x.vrp --time 3":                `--time is "3": a time with its unit, for example 30s or 5m, is needed`,
		"train --resume nosuch":               "there is no folder nosuch",
		"train --rank 0":                      "--rank and --rendezvous need --ranks",
		"gen grid:10 --out set.npy":           "--out set.npy: instances are written as .npz or .pkl",
		"solve no.csv":                        "open no.csv: ",
		"eval kol":                            "kol is neither a file nor the name of a set",
		"solve no.csv --capacity 0":           "--capacity is 0: at least 1 is needed",
		"solve no.csv --capacity -3":          "--capacity is -3: at least 1 is needed",
		"solve x.csv --capacity 3000000000":   "--capacity is 3000000000: at most 2147483647 can be given",
		"solve --seed 99999999999999999999":   "--seed is 99999999999999999999: at most 18446744073709551615 can be given",
		"train --epochs 99999999999999999999": "--epochs is 99999999999999999999: at most 9223372036854775807 can be given",
	} {
		r := inprocess.Run(t, strings.Fields(line)...)
		if r.Code == cli.ExitDone || !strings.Contains(r.Stderr, want) || strings.Count(r.Stderr, "\n") != 1 {
			t.Errorf("haul %s: exit %d, %q, want %q", line, r.Code, r.Stderr, want)
		}
	}
	if _, err := os.Stat("set.npy"); err == nil {
		t.Error("a folder set.npy was made")
	}
}

// TestHelpHeedsColumns: where output goes into a pipe, COLUMNS says how wide help may be.
func TestHelpHeedsColumns(t *testing.T) {
	t.Setenv("COLUMNS", "70")
	for line := range strings.Lines(inprocess.Run(t, "solve", "--help").Stdout) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 70 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

// TestPlacesThatTakeNoFileAreToldFirst: a search does not run for its time to say then that its
// routes cannot be written.
func TestPlacesThatTakeNoFileAreToldFirst(t *testing.T) {
	square, dir := clitest.Write(t, "square.vrp", clitest.SquareVRP), t.TempDir()
	places := []string{filepath.Join(square, "x.sol")}
	if runtime.GOOS == "linux" {
		places = append(places, "/proc/x.sol") // nobody makes files there
	}
	for _, out := range places {
		inprocess.Refused(t, []string{"solve", square, "--time", "1h", "--out", out}, cli.ExitFailed, "cannot write "+out)
	}
	nowhere := filepath.Join(square, "x.")
	for _, line := range []string{"eval --policy cvrp20 --count 20000 --plot %ssvg", "lab run all --page %smd", "doctor ../../../docs/examples/trace.json.gz --html %shtml",
		"profile --steps 1000 --trace %sjson", "bench scale --config large --plot %spng"} {
		line = fmt.Sprintf(line, nowhere)
		ctx, cancel := context.WithTimeout(t.Context(), clitest.Patience)
		if r := inprocess.RunIn(ctx, strings.Fields(line)...); r.Code != cli.ExitFailed || r.Stdout != "" || !strings.HasPrefix(r.Stderr, "haul: cannot write "+nowhere) || strings.Count(r.Stderr, "\n") != 1 {
			t.Errorf("haul %s: exit %d, %q, %q", line, r.Code, r.Stdout, r.Stderr)
		}
		cancel()
	}
	folder := filepath.Join(dir, "x.sol")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	inprocess.Refused(t, []string{"solve", square, "--time", "1h", "--out", folder}, cli.ExitFailed, "it is a folder")
	if r := inprocess.Run(t, "solve", square, "--out", filepath.Join(dir, "y.sol")); r.Code != cli.ExitDone {
		t.Error(r.Stderr)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 2 {
		t.Errorf("%v, %v: only what was written may be left", left, err)
	}
}

// TestFlagsThatWouldDoNothing: what one flag writes another would write over, and what one asks for
// another has no word for.
func TestFlagsThatWouldDoNothing(t *testing.T) {
	square, picture := clitest.Write(t, "square.vrp", clitest.SquareVRP), filepath.Join(t.TempDir(), "x.svg")
	inprocess.Refused(t, []string{"solve", square, "--iterations", "10", "--plot", picture, "--curve", filepath.Dir(picture) + "/./x.svg"}, cli.ExitUsage, "--plot and --curve would both write "+picture)
	inprocess.Refused(t, []string{"doctor", "--diff", "a.json", "b.json", "--breakdown"}, cli.ExitUsage, "--breakdown describes one trace or job, and --diff compares two")
	for _, name := range []string{"x.xlsx", "x.geojson", "x.sol"} {
		inprocess.Refused(t, []string{"gen", "grid:3", "--out", filepath.Join(t.TempDir(), name)}, cli.ExitUsage, "instances are written as .npz or .pkl, or as .vrp files into a folder")
	}
}
