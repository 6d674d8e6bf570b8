package convert_test

import (
	"path/filepath"
	"strings"
	"testing"

	"haul/cmd/haul/cli"
	"haul/cmd/haul/clitest"
	"haul/cmd/haul/clitest/inprocess"
)

// TestConvertedProblemsCostTheSame: a problem is solved alike from every format that can say it;
// the others refuse what they cannot say, by name.
func TestConvertedProblemsCostTheSame(t *testing.T) {
	const windows = `{"coords": [[0,0],[10,0],[0,10],[-10,0]], "demands": [0,5,5,5], "capacity": 10, "windows": [[[0,90]],[[0,40]],[[0,90]],[[0,90]]]}`
	file := clitest.Write(t, "w.json", windows)
	for _, c := range []struct{ name, to, refused string }{
		{"w.vrp", "", ""}, {"w.xlsx", "", ""}, {"w.csv", "", ""}, {"again.json", "", ""},
		{"w.txt", "", "say which with --to, solomon or lilim or cordeau"},
		{"w.txt", "lilim", "lilim"}, {"w.gif", "", "name it with --to"}, {"w.json", "gpx", "--to gpx: there is no such format"},
	} {
		out := filepath.Join(t.TempDir(), c.name)
		args := []string{"convert", file, out}
		if c.to != "" {
			args = append(args, "--to", c.to)
		}
		r := inprocess.Run(t, args...)
		if c.refused != "" {
			if r.Code == cli.ExitDone || !strings.Contains(r.Stderr, c.refused) {
				t.Errorf("%v: exit %d, %q", args, r.Code, r.Stderr)
			}
			continue
		}
		if r.Code != cli.ExitDone {
			t.Errorf("%v: exit %d, %q", args, r.Code, r.Stderr)
			continue
		}
		args = []string{"solve", out, "--iterations", "200", "--set", "distance=exact", "--json"}
		if c.name == "w.csv" {
			args = append(args, "--capacity", "10")
		}
		solved := inprocess.Run(t, args...)
		if !strings.Contains(solved.Stdout, `"cost":54.1`) {
			t.Errorf("%s: %s%s", c.name, solved.Stdout, solved.Stderr)
		}
	}
	inprocess.Refused(t, []string{"convert", file, file, "--force"}, cli.ExitUsage, "is a file that the problem is read from")
	inprocess.Refused(t, []string{"convert", file}, cli.ExitUsage, "name the file to read and the file to write")
}

// TestConvertedRoutesHold: routes are written in every format and are the same routes; those that
// break a rule are refused.
func TestConvertedRoutesHold(t *testing.T) {
	square, sol := clitest.Write(t, "square.vrp", clitest.SquareVRP), clitest.Write(t, "x.sol", clitest.SquareSOL)
	for _, name := range []string{"a.json", "a.csv", "a.xlsx", "a.geojson", "a.sol"} {
		out := filepath.Join(t.TempDir(), name)
		if r := inprocess.Object(t, "convert", square, sol, out, "--json"); r["route_count"] != 2.0 {
			t.Errorf("%s: %v", name, r)
		}
		if name == "a.geojson" {
			continue // is not read as routes
		}
		if r := inprocess.Object(t, "check", square, out, "--json"); r["cost"] != 68.0 {
			t.Errorf("%s: %v", name, r)
		}
	}
	inprocess.Refused(t, []string{"convert", square, clitest.Write(t, "y.sol", "Route #1: 1 2 3\n"), "z.csv"}, cli.ExitFailed, "carries 15, the capacity is 10")
}
