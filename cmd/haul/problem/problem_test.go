package problem_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"haul/cmd/haul/cli"
	"haul/cmd/haul/clitest/inprocess"
)

// write writes files below a fresh folder and returns it.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "some where") // a path with a space
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestNewWritesAPackage: what haul problem new writes passes haul problem check, is drawn, and
// builds, vets and tests as an ordinary Go package without a network.
func TestNewWritesAPackage(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "mine2")
	made := inprocess.Object(t, "problem", "new", dir, "--json")
	if made["dir"] != dir || len(made["files"].([]any)) != 6 {
		t.Fatalf("%v", made)
	}
	r := inprocess.Object(t, "problem", "check", dir, "--json")
	if r["name"] != "mine2" || len(r["findings"].([]any)) != 0 || r["symmetric"] != true {
		t.Errorf("%v", r)
	}
	d := inprocess.Object(t, "problem", "draw", dir, "--customers", "4", "--set", "Limit=2.5", "--json")
	if len(d["nodes"].([]any)) != 5 || d["instance"].(map[string]any)["Limit"] != 2.5 || d["problem"] != "mine2" {
		t.Errorf("%v", d)
	}
	for _, args := range [][]string{{"vet", "./..."}, {"test", "./..."}} {
		cmd := exec.Command("go", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS=", "GOWORK=off")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("go %v: %v\n%s", args, err, out)
		}
	}
	if r := inprocess.Run(t, "problem", "new", dir); r.Code != cli.ExitUsage || !strings.Contains(r.Stderr, "is not empty") {
		t.Errorf("%+v", r)
	}
}

// TestAStrangersFile: a problem that Haul has not, from another folder.
func TestAStrangersFile(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "colour", "colour.go"))
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(string(text), "\n"); lines >= 120 {
		t.Errorf("%d lines", lines)
	}
	dir := write(t, map[string]string{"colour.go": strings.Replace(string(text), `"haul/problem"`, `"example.org/releases/haul/problem"`, 1), "colour_test.go": "package colour\n"})
	for _, path := range []string{dir, filepath.Join(dir, "colour.go")} {
		r := inprocess.Object(t, "problem", "check", path, "--json")
		if len(r["findings"].([]any)) != 0 || r["dead_ends"] != 0.0 || r["symmetric"] != true || len(r["optima"].([]any)) < 4 {
			t.Errorf("%v", r)
		}
	}
	one := inprocess.Object(t, "problem", "check", dir, "--set", "Colours=1", "--json")["optima"].([]any)
	six := inprocess.Object(t, "problem", "check", dir, "--json")["optima"].([]any)
	last := func(o []any) float64 { return o[3].(map[string]any)["cost"].(float64) }
	if last(one) > last(six) {
		t.Errorf("the optimum with one colour is %v, with six %v", last(one), last(six))
	}
}

// TestMistakesAreListed: a file that does not compile, and one that does and has a fault.
func TestMistakesAreListed(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "colour", "colour.go"))
	if err != nil {
		t.Fatal(err)
	}
	wrong := write(t, map[string]string{"colour.go": strings.Replace(string(text), "to.Demand <= v.Left &&", "to.Demand <= v.Left+v.Missing &&", 1)})
	r := inprocess.Run(t, "problem", "check", wrong)
	if r.Code != cli.ExitFailed || !strings.Contains(r.Stdout, "colour.go:50:31: v.Missing undefined") || !strings.Contains(r.Stderr, "does not compile") {
		t.Errorf("%+v", r)
	}
	if r := inprocess.Run(t, "problem", "check", wrong, "--json"); r.Code != cli.ExitFailed || !strings.Contains(r.Stdout, `"line":50`) {
		t.Errorf("%+v", r)
	}
	if r := inprocess.Run(t, "problem", "draw", wrong); r.Code != cli.ExitFailed || !strings.Contains(r.Stderr, "v.Missing undefined") || r.Stdout != "" {
		t.Errorf("%+v", r)
	}
	fault := write(t, map[string]string{"colour.go": strings.Replace(string(text), "to.Demand <= v.Left &&", "to.Demand < 0 &&", 1)})
	if r := inprocess.Run(t, "problem", "check", fault); r.Code != cli.ExitFailed || !strings.Contains(r.Stdout, "Fits and Returns allow no node at the start") || !strings.Contains(r.Stderr, "has faults") {
		t.Errorf("%+v", r)
	}
}

// TestProblemRefuses: what is wrong on the command line or in the folder is named in one line.
func TestProblemRefuses(t *testing.T) {
	empty, two := write(t, map[string]string{"a.txt": ""}), write(t, map[string]string{"a.go": "package a\n", "b.go": "package a\n"})
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"problem", "new"}, cli.ExitUsage, "name the problem"},
		{[]string{"problem", "new", "Mine"}, cli.ExitUsage, "no name of a Go package"},
		{[]string{"problem", "new", "func"}, cli.ExitUsage, "no name of a Go package"},
		{[]string{"problem", "new", "problem"}, cli.ExitUsage, "no name of a Go package"},
		{[]string{"problem", "new", empty}, cli.ExitUsage, "no name of a Go package"},
		{[]string{"problem", "check"}, cli.ExitUsage, "name a problem"},
		{[]string{"problem", "check", "nosuch"}, cli.ExitFailed, "no built-in problem of that name"},
		{[]string{"problem", "check", "./nosuch"}, cli.ExitFailed, "no such file"},
		{[]string{"problem", "check", empty}, cli.ExitFailed, "has no Go file"},
		{[]string{"problem", "check", two}, cli.ExitFailed, "has 2 Go files (a.go, b.go)"},
		{[]string{"problem", "check", "op", "--instances", "0"}, cli.ExitUsage, "at least 1"},
		{[]string{"problem", "check", "op", "--routes", "0"}, cli.ExitUsage, "at least 1"},
		{[]string{"problem", "draw", "op", "--customers", "0"}, cli.ExitUsage, "use 1 to 100000"},
		{[]string{"problem", "draw", "op", "--customers", "100001"}, cli.ExitUsage, "use 1 to 100000"},
		{[]string{"problem", "draw", "op", "--set", "Limit"}, cli.ExitUsage, "as in Limit=4"},
		{[]string{"problem", "draw", "op", "--set", "Limits=4"}, cli.ExitUsage, "no setting Limits"},
		{[]string{"problem", "draw", "op", "--set", "Limit=far"}, cli.ExitUsage, "is no float32"},
		{[]string{"problem", "draw", "op", "--set", "Limit=-1"}, cli.ExitUsage, "below the least"},
	} {
		inprocess.Refused(t, c.args, c.code, c.want)
	}
}

// TestDrawRepeats: an instance depends on its seed and number alone, and the table has what the
// JSON has. Infinite fields are null.
func TestDrawRepeats(t *testing.T) {
	args := []string{"problem", "draw", "vrp", "--customers", "3", "--instance", "5"}
	a, b := inprocess.Run(t, args...), inprocess.Run(t, args...)
	if a.Code != cli.ExitDone || a.Stdout != b.Stdout || !strings.Contains(a.Stdout, "+Inf") || strings.Count(a.Stdout, "\n") != 9+2+4 {
		t.Errorf("%+v", a)
	}
	if c := inprocess.Run(t, append(args, "--seed", "43")...); c.Stdout == a.Stdout {
		t.Error("two seeds have one instance")
	}
	if d := inprocess.Object(t, append(args, "--json")...); d["instance"].(map[string]any)["Limit"] != nil || d["number"] != 5.0 {
		t.Errorf("%v", d)
	}
}

func TestMain(m *testing.M) { inprocess.Main(m) }
