package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// starts tells whether a file starts a goroutine: by a go statement, or by a method named Go, as
// sync.WaitGroup and errgroup.Group have it.
func starts(file *ast.File) (found bool) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch s := n.(type) {
		case *ast.GoStmt:
			found = true
		case *ast.CallExpr:
			if m, ok := s.Fun.(*ast.SelectorExpr); ok && m.Sel.Name == "Go" {
				found = true
			}
		}
		return !found
	})
	return found
}

// TestRaceStepFindsEveryGoroutine: the packages that .ci/run races are those whose source starts a
// goroutine, whatever is started and however it is written.
func TestRaceStepFindsEveryGoroutine(t *testing.T) {
	root := filepath.Join("..", "..")
	packages := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return skipDir(root, path)
		}
		rel, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err == nil && starts(file) {
			packages["./"+filepath.ToSlash(rel)] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for p := range packages {
		want = append(want, p)
	}
	slices.Sort(want)
	if !slices.Contains(want, "./internal/loader") {
		t.Fatalf("the walk does not know that the loader has workers: %v", want)
	}
	run := exec.Command(filepath.Join(root, ".ci", "run"), "raced")
	out, err := run.Output()
	if err != nil {
		t.Skipf("no shell runs .ci/run here: %v", err)
	}
	var got []string
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, "./") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the race step and the source differ: %s", diff)
	}
}

// TestWhatIsNotRacedIsThere: the tests that the race step leaves out are tests of packages that it
// races, so that none is left out by a name that means another.
func TestWhatIsNotRacedIsThere(t *testing.T) {
	root := filepath.Join("..", "..")
	lines := func(step string) (out []string) {
		text, err := exec.Command(filepath.Join(root, ".ci", "run"), step).Output()
		if err != nil {
			t.Skipf("no shell runs .ci/run here: %v", err)
		}
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); !strings.HasPrefix(line, "==") {
				out = append(out, line)
			}
		}
		return out
	}
	found := map[string]int{}
	for _, folder := range lines("raced") {
		names, err := filepath.Glob(filepath.Join(root, folder, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
					found[f.Name.Name]++
				}
			}
		}
	}
	left := lines("unraced")
	if len(left) == 0 {
		t.Fatal("no test is left out: the list is not read")
	}
	for _, name := range left {
		if found[name] != 1 {
			t.Errorf("%s is left out of the race step, and is a test of %d packages", name, found[name])
		}
	}
}

func TestStartsOfGoroutinesAreSeen(t *testing.T) {
	for body, want := range map[string]bool{
		"go f()": true, "go func() {}()": true, "w.Go(f)": true, "l.pool.Go(l.collate)": true, "w.Go(func() {})": true, "go (f)()": true, "if x { go f() }": true,
		"f()": false, "w.Wait()": false, `f("go f()")`: false, "// go f()": false,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "x.go", "package p\nfunc p() {\n"+body+"\n}\n", 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := starts(file); got != want {
			t.Errorf("%s: %v", body, got)
		}
	}
}
