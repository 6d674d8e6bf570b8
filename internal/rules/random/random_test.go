package random

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"haul/internal/rules"
	"haul/internal/rules/eval"
	"haul/internal/rules/interpreted"
	"haul/internal/rules/ir"
	"haul/internal/rules/parse"
	"haul/internal/rules/vec"
)

var (
	files = flag.Int("files", 500, "random files that are run in all forms")
	walks = flag.Int("walks", 100, "random routes through instances of each")
	goes  = flag.Int("native", 500, "random files that are compiled by Go and run natively")
	first = flag.Uint64("first", 0, "seed of the first file")
)

// compiled returns the next random file that compiles, from a seed on, and its seed. About one in
// five does not: a constant expression of a random file may overflow or divide by zero.
func compiled(t *testing.T, seed uint64) (*rules.Problem, Options) {
	t.Helper()
	for range 50 {
		o := Options{Seed: seed, Wild: seed%2 == 1}
		if p, err := rules.Compile("random.go", []byte(File(o)), nil); err == nil {
			return p, o
		}
		seed += 2
	}
	t.Fatal("no file compiles")
	return nil, Options{}
}

// counts holds the operations and methods that random files reach.
type counts struct {
	Counts
	ops     map[ir.Op]int
	methods map[parse.Method]int
}

// TestFewFilesAgree is TestFormsAgree and TestGoAgrees on a few files: most faults show there
// within seconds.
func TestFewFilesAgree(t *testing.T) {
	t.Run("forms", func(t *testing.T) { formsAgree(t, min(40, *files)) })
	t.Run("Go", func(t *testing.T) { goAgrees(t, min(40, *goes)) })
}

// TestFormsAgree runs random files plainly, as vector code and as PTX text: every call of every
// method gives equal words. Every operation and method is hit, and masks are mixed in most steps.
func TestFormsAgree(t *testing.T) { formsAgree(t, *files) }

func formsAgree(t *testing.T, files int) {
	t.Helper()
	c := counts{ops: map[ir.Op]int{}, methods: map[parse.Method]int{}}
	seed := *first
	for range files {
		p, o := compiled(t, seed)
		seed = o.Seed + 1
		if err := c.run(p, o); err != nil {
			t.Fatalf("seed %d: %v\n%s", o.Seed, err, File(o))
		}
	}
	t.Logf("%d steps, %d mixed; %d routes ended, %d at a dead end", c.Steps, c.Mixed, c.Ended, c.Dead)
	if files < 500 {
		return
	}
	for _, o := range ir.Ops() {
		if c.ops[o] == 0 {
			t.Errorf("no file has the operation %v", o)
		}
	}
	for _, m := range parse.Methods() {
		if c.methods[m] == 0 {
			t.Errorf("no file has %v", m)
		}
	}
	if 2*c.Mixed < c.Steps || c.Dead == 0 || c.Ended == 0 {
		t.Errorf("of %d steps %d have mixed masks; %d routes ended, %d at a dead end", c.Steps, c.Mixed, c.Ended, c.Dead)
	}
}

// run walks random routes of a file in all forms.
func (c *counts) run(p *rules.Problem, o Options) error {
	text, err := interpreted.New(p)
	if err != nil {
		return err
	}
	for _, m := range parse.Methods() {
		if f := p.Func(m); f != nil {
			c.methods[m]++
			for i := range f.Values {
				c.ops[f.Values[i].Op]++
			}
		}
	}
	fast := &rules.Compared{Form: eval.New(p), Other: vec.New(p), Problem: p, Name: "the vector form"}
	plain := &rules.Compared{Form: fast, Other: vec.NewPlain(p), Problem: p, Name: "the vector form in plain Go"}
	form := &rules.Compared{Form: plain, Other: text, Problem: p, Name: "the PTX text"}
	return Walk(p, form, o.Seed, *walks, &c.Counts, func() error { return errors.Join(fast.Err, plain.Err, form.Err) })
}

// TestFilesRepeat: a file is a function of its options alone.
func TestFilesRepeat(t *testing.T) {
	for seed := range uint64(20) {
		if a, b := File(Options{Seed: seed}), File(Options{Seed: seed}); a != b {
			t.Fatal("two files of one seed differ")
		}
	}
	if a, b := File(Options{Seed: 1}), File(Options{Seed: 2}); a == b {
		t.Fatal(fmt.Sprint("two seeds have one file:\n", a))
	}
}

// TestGoAgrees has Go compile random files, all in one package, and walks them natively and
// plainly: the forms of one compiled file would agree even if it were compiled wrongly.
func TestGoAgrees(t *testing.T) { goAgrees(t, *goes) }

func goAgrees(t *testing.T, files int) {
	t.Helper()
	dir := t.TempDir()
	here, err := filepath.Abs("native_program") // there is no such folder: its files are an overlay
	if err != nil {
		t.Fatal(err)
	}
	replace := map[string]string{}
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		replace[filepath.Join(here, name)] = path
	}
	var table strings.Builder
	seed := *first &^ 1
	for i := range files {
		p, o := compiled(t, seed)
		seed = o.Seed + 2
		o.Suffix = fmt.Sprintf("_%d", i)
		write(fmt.Sprintf("file%d.go", i), strings.Replace(File(o), "package random\n", "package main\n", 1))
		types, steps := "", "nil"
		for _, name := range []string{"Instance", "Node", "Vehicle"} {
			types += "new(" + name + o.Suffix + "), "
		}
		if p.File.Settings != nil {
			types += "new(Settings" + o.Suffix + ")"
		}
		if p.Func(parse.Steps) != nil {
			steps = "Steps" + o.Suffix
		}
		fmt.Fprintf(&table, "\t{Seed: %d, Types: []any{%s}, Steps: %s},\n", o.Seed, types, steps)
	}
	write("main.go", fmt.Sprintf(program, table.String(), max(1, *walks/5)))
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o644); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "native")
	if out, err := exec.Command("go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", binary, "haul/internal/rules/random/native_program").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command(binary).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// program is the main function of the native program.
const program = `package main

import (
	"fmt"
	"os"

	"haul/internal/rules/random"
)

var files = []random.Native{
%s}

func main() {
	var c random.Counts
	for _, f := range files {
		if err := f.Compare(%d, &c); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	fmt.Printf("%%d files, %%d steps, %%d mixed\n", len(files), c.Steps, c.Mixed)
}
`
