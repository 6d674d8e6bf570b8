package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"hash/fnv"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// What a reader could break: a run is a function of its seed and of the source. Candidates are
// ordered by a hash of the seed and of what they change, and taken one after the other until so
// many have compiled; how many are tested at a time changes nothing, and an edit elsewhere moves
// few.

// change is one replacement of text in a file.
type change struct {
	Number  int    `json:"number"` // of those that compile, in the order of the draw
	Package string `json:"package"`
	File    string `json:"file"`
	Line    int    `json:"line"`
	Kind    string `json:"kind"`
	Before  string `json:"before"` // the first line that changes, as it stands
	After   string `json:"after"`  // and as it is planted

	from, to int // bytes of the file
	text     string
	key      string // file, kind, both texts and which of its equals it is

	broken     bool   // it does not compile
	tested     bool   // to the end
	Killed     bool   `json:"killed"`
	By         string `json:"by,omitempty"`
	Equivalent string `json:"equivalent,omitempty"` // why no test can tell
}

// swaps are operators and what they are taken for.
var swaps = map[token.Token][]token.Token{
	token.ADD: {token.SUB}, token.SUB: {token.ADD}, token.MUL: {token.QUO}, token.QUO: {token.MUL}, token.REM: {token.QUO},
	token.LSS: {token.LEQ, token.GEQ}, token.LEQ: {token.LSS, token.GTR}, token.GTR: {token.GEQ, token.LEQ}, token.GEQ: {token.GTR, token.LSS},
	token.EQL: {token.NEQ}, token.NEQ: {token.EQL}, token.LAND: {token.LOR}, token.LOR: {token.LAND},
	token.SHL: {token.SHR}, token.SHR: {token.SHL}, token.AND: {token.OR}, token.OR: {token.AND}, token.XOR: {token.AND},
	token.ADD_ASSIGN: {token.SUB_ASSIGN, token.ASSIGN}, token.SUB_ASSIGN: {token.ADD_ASSIGN}, token.MUL_ASSIGN: {token.QUO_ASSIGN}, token.INC: {token.DEC}, token.DEC: {token.INC},
}

// candidates lists everything that can be changed in a file.
func candidates(root, pkg, name string) ([]*change, error) {
	path := filepath.Join(pkg, name)
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, text, parser.ParseComments)
	if err != nil || ast.IsGenerated(file) {
		return nil, err
	}
	at := func(p token.Pos) int { return set.Position(p).Offset }
	source := func(n ast.Node) string { return string(text[at(n.Pos()):at(n.End())]) }
	var out []*change
	add := func(kind string, from, to token.Pos, with string) {
		out = append(out, &change{Package: pkg, File: path, Kind: kind, from: at(from), to: at(to), text: with})
	}
	operator := func(kind string, pos token.Pos, op token.Token) {
		for _, other := range swaps[op] {
			add(kind, pos, pos+token.Pos(len(op.String())), other.String())
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec, *ast.Field:
			return false // a length in a type is no behaviour
		case *ast.BinaryExpr:
			operator("operator", n.OpPos, n.Op)
		case *ast.BasicLit:
			if n.Kind == token.INT {
				if v, err := strconv.ParseInt(n.Value, 0, 64); err == nil {
					add("constant", n.Pos(), n.End(), strconv.FormatInt(v+1, 10))
					if v > 0 {
						add("constant", n.Pos(), n.End(), strconv.FormatInt(v-1, 10))
					}
				}
			}
			if n.Kind == token.FLOAT {
				add("constant", n.Pos(), n.End(), "(2*"+n.Value+")")
			}
		case *ast.Ident:
			if n.Name == "true" || n.Name == "false" {
				add("constant", n.Pos(), n.End(), strconv.FormatBool(n.Name != "true"))
			}
		case *ast.IfStmt:
			add("condition", n.Cond.Pos(), n.Cond.End(), "!("+source(n.Cond)+")")
			add("condition", n.Cond.Pos(), n.Cond.End(), "("+source(n.Cond)+") && false")
		case *ast.SliceExpr:
			for _, bound := range []ast.Expr{n.Low, n.High} {
				if bound != nil {
					add("bound", bound.Pos(), bound.End(), "("+source(bound)+")+1")
				}
			}
		case *ast.BranchStmt:
			if n.Label == nil && n.Tok == token.CONTINUE {
				add("statement", n.Pos(), n.End(), "break")
			}
		case *ast.IncDecStmt:
			operator("operator", n.TokPos, n.Tok)
			add("statement", n.Pos(), n.End(), "")
		case *ast.AssignStmt:
			operator("operator", n.TokPos, n.Tok)
			if n.Tok != token.DEFINE {
				add("statement", n.Pos(), n.End(), "")
			}
		case *ast.ExprStmt, *ast.DeferStmt, *ast.SendStmt:
			add("statement", n.Pos(), n.End(), "")
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.Ident); ok && (f.Name == "min" || f.Name == "max") {
				break // in any order the same
			}
			for i := 1; i < len(n.Args); i++ {
				a, b := n.Args[i-1], n.Args[i]
				if source(a) != source(b) {
					add("arguments", a.Pos(), b.End(), source(b)+string(text[at(a.End()):at(b.Pos())])+source(a))
				}
			}
		}
		return true
	})
	number(out, string(text))
	return out, nil
}

// number describes the changes of a file and gives each its key.
func number(all []*change, text string) {
	equals := map[string]int{}
	for _, c := range all {
		c.describe(text)
		c.key = strings.Join([]string{c.File, c.Kind, c.Before, c.After}, "\n")
		equals[c.key]++
		c.key += fmt.Sprintf("\n%d", equals[c.key])
	}
}

// place is where the change stands in the order of a draw.
func (c *change) place(seed uint64) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d\n%s", seed, c.key)
	// FNV's last bytes reach only the low bits; a product and a shift spread them.
	v := h.Sum64() * 0x9e3779b97f4a7c15
	return (v ^ v>>32) * 0xd6e8feb86659fd93
}

// results are what an earlier run found, by the key of the change: the test that failed, or one of
// the words below.
type results map[string]string

const (
	survived = "survived"
	broken   = "does not compile"
)

// load reads results; a file that is not there has none.
func (r results) load(path string) error {
	text, err := os.ReadFile(path)
	if path == "" || errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	return err
}

func (r results) save(path string) error {
	if path == "" {
		return nil
	}
	text, err := json.MarshalIndent(r, "", " ")
	if err == nil {
		err = os.WriteFile(path+".new", text, 0o644)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	return err
}

// describe fills in the first line that changes, before and after.
func (c *change) describe(text string) {
	c.Line = 1 + strings.Count(text[:c.from], "\n")
	start := strings.LastIndexByte(text[:c.from], '\n') + 1
	line := func(s string) string {
		s, _, _ = strings.Cut(s, "\n")
		return strings.TrimSpace(s)
	}
	end := c.to + strings.IndexByte(text[c.to:]+"\n", '\n')
	c.Before, c.After = line(text[start:end]), line(text[start:c.from]+c.text+text[c.to:end])
	if c.Before == c.After { // the change is on a later line of a long expression
		c.Before, c.After = line(text[c.from:c.to]), line(c.text)
	}
}

// listPackage are the packages of a pattern with the files that are compiled here.
type listPackage struct {
	Dir, ImportPath      string
	GoFiles, TestGoFiles []string
	XTestGoFiles         []string
	Export               string // the file of its compiled declarations, where -export asked for it
	DepOnly              bool   // no pattern has it
	Module               struct{ Dir string }
	relative             string
}

// goList asks the go command for packages.
func goList(ctx context.Context, root string, args []string) (out []*listPackage, err error) {
	args = append([]string{"list", "-json=Dir,ImportPath,GoFiles,TestGoFiles,XTestGoFiles,Export,DepOnly,Module"}, args...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = root
	var said bytes.Buffer
	cmd.Stderr = &said
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, compilerSays(said.String()))
	}
	for d := json.NewDecoder(bytes.NewReader(text)); d.More(); {
		p := new(listPackage)
		if err := d.Decode(p); err != nil {
			return nil, err
		}
		if !p.DepOnly {
			if p.relative, err = filepath.Rel(p.Module.Dir, p.Dir); err != nil {
				return nil, err
			}
		}
		out = append(out, p)
	}
	return out, nil
}

// listPackages are the packages of the patterns that have tests.
func listPackages(ctx context.Context, patterns []string) ([]*listPackage, error) {
	all, err := goList(ctx, ".", patterns)
	return slices.DeleteFunc(all, func(p *listPackage) bool { return len(p.TestGoFiles)+len(p.XTestGoFiles) == 0 }), err
}

// randomOptions say what is planted.
type randomOptions struct {
	count      int
	from       int // the first of those that compile, counted from 1, that is planted
	seed       uint64
	packages   []string
	only       []string
	equivalent string
	results    string // the file of what earlier runs found
	workers    int
	timeout    time.Duration
	near       bool
	short      bool
	asJSON     bool
	list       bool // print the draw and plant nothing
	cuda       bool // draw in the packages' CUDA sources
}

// random plants faults that nobody thought up, and says which of them the tests let pass.
func random(ctx context.Context, o randomOptions) (ok bool, err error) {
	packages, err := listPackages(ctx, o.packages)
	if err != nil {
		return false, err
	}
	var all []*change
	if o.cuda {
		sources, err := cudaSources(packages)
		if err != nil {
			return false, err
		}
		for _, path := range sources {
			found, err := cudaCandidates(".", path)
			if err != nil {
				return false, err
			}
			all = append(all, found...)
		}
		packages = nil
	}
	for _, p := range packages {
		for _, name := range p.GoFiles {
			found, err := candidates(".", p.relative, name)
			if err != nil {
				return false, err
			}
			all = append(all, found...)
		}
	}
	if len(all) == 0 {
		return false, fmt.Errorf("%s has nothing to change", strings.Join(o.packages, " "))
	}
	slices.SortFunc(all, func(a, b *change) int {
		return cmp.Or(cmp.Compare(a.place(o.seed), b.place(o.seed)), cmp.Compare(a.key, b.key))
	})
	argued, err := argue(o.equivalent)
	if err != nil {
		return false, err
	}
	found := results{}
	if err := found.load(o.results); err != nil {
		return false, err
	}
	fmt.Fprintf(os.Stderr, "%d candidates\n", len(all))
	if all, err = compiling(ctx, all, o); err == nil {
		if o.count -= o.from - 1; len(o.only) > 0 { // of the draw, which stays what it is
			all = slices.DeleteFunc(all[:min(o.count, len(all))], func(c *change) bool { return !wanted(o.only, c.File+" "+c.Before) })
		}
		err = limitMemory()
	}
	if err != nil {
		return false, err
	}
	if o.list {
		for _, c := range all[:min(o.count, len(all))] {
			fmt.Printf("%3d  %s:%d (%s)  %s  =>  %s\n", c.Number, c.File, c.Line, c.Kind, c.Before, c.After)
		}
		return true, nil
	}
	copies, err := copyTree(o.workers)
	defer func() {
		for _, dir := range copies {
			os.RemoveAll(dir)
		}
	}()
	if err != nil {
		return false, err
	}
	done, err := plantRandom(ctx, copies, all, argued, found, o)
	return reportRandom(done, o), err
}

// compiling are the changes of a draw that compile, from the first that is planted to the last,
// each with its number. A few more follow them, for those that the build refuses nevertheless.
func compiling(ctx context.Context, all []*change, o randomOptions) (out []*change, err error) {
	var c *compiler
	if !o.cuda { // clang says which of the others do not compile
		if c, err = newCompiler(ctx, ".", o.packages); err != nil {
			return nil, err
		}
	}
	texts := map[string][]byte{}
	most := o.count + o.count/10 + 10
	if o.cuda {
		most += o.count
	}
	for _, change := range all {
		if len(out) == most || ctx.Err() != nil {
			break
		}
		text := texts[change.File]
		if text == nil {
			if text, err = os.ReadFile(change.File); err != nil {
				return nil, err
			}
			texts[change.File] = text
		}
		if c == nil || c.check(change.File, change.changed(text)) == nil {
			out = append(out, change)
			change.Number = len(out)
		}
	}
	if o.from > len(out) {
		return nil, fmt.Errorf("--from %d: only %d changes compile", o.from, len(out))
	}
	return out[o.from-1:], ctx.Err()
}

// argue reads the changes that no test can tell, with the reason of each, in the table's format.
func argue(path string) (map[string]string, error) {
	text, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	faults, err := parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	out := map[string]string{}
	for _, f := range faults {
		out[f.File+"\n"+f.before+"\n"+f.after] = f.What
	}
	return out, nil
}

// plantRandom goes through the changes until enough have compiled.
func plantRandom(ctx context.Context, copies []string, all []*change, argued map[string]string, found results, o randomOptions) ([]*change, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	j := newJudge(o.timeout, o.near, o.flags()...)
	var red error
	var mu sync.Mutex // guards what follows, red and standard error
	next, compiled := 0, 0
	take := func() *change {
		mu.Lock()
		defer mu.Unlock()
		if next == len(all) || compiled >= o.count || ctx.Err() != nil {
			return nil
		}
		next++
		return all[next-1]
	}
	var wg sync.WaitGroup
	for _, dir := range copies {
		wg.Go(func() {
			for c := take(); c != nil; c = take() {
				c.Equivalent = argued[c.File+"\n"+c.Before+"\n"+c.After]
				mu.Lock()
				before := found[c.key]
				mu.Unlock()
				switch {
				case c.Equivalent != "":
				case before == broken:
					c.broken = true
				case before != "" && before != survived:
					c.Killed, c.By = true, before
				default:
					unsound, err := c.plant(ctx, dir, j, o.seed)
					if err != nil {
						cancel(err)
						return
					}
					if unsound != nil {
						mu.Lock()
						red = errors.Join(red, unsound)
						mu.Unlock()
						continue
					}
				}
				mu.Lock()
				found[c.key] = survived
				if c.Killed {
					found[c.key] = c.By
				} else if c.broken {
					found[c.key] = broken
				}
				if err := found.save(o.results); err != nil {
					cancel(err)
				}
				if c.tested = true; !c.broken {
					compiled++
					word := "killed by " + c.By
					switch {
					case c.Equivalent != "":
						word = "equivalent: " + c.Equivalent
					case !c.Killed:
						word = "SURVIVED"
					}
					fmt.Fprintf(os.Stderr, "%3d  %s:%d  %s  =>  %s  %s\n", c.Number, c.File, c.Line, c.Before, c.After, word)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	// Workers may have tested a few more than were asked for.
	done := slices.DeleteFunc(slices.Clone(all[:next]), func(c *change) bool {
		return c.broken || !c.tested // a run that was ended counts what it has tested to the end, survivors too
	})
	return done[:min(o.count, len(done))], errors.Join(red, context.Cause(ctx))
}

// changed is the file with the change in it.
func (c *change) changed(text []byte) []byte {
	return slices.Concat(text[:c.from], []byte(c.text), text[c.to:])
}

// plant puts the change into a copy, runs the tests, and takes it out again. red says that what
// failed with it fails without it, so that nothing is known.
func (c *change) plant(ctx context.Context, dir string, j *judge, seed uint64) (red, err error) {
	path := filepath.Join(dir, c.File)
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(path, c.changed(text), 0o644); err != nil {
		return nil, err
	}
	var v verdict
	if ext := filepath.Ext(c.File); ext == ".cu" || ext == ".cuh" {
		if v, err = j.askCUDA(ctx, dir, c.File, seed); err != nil {
			return nil, errors.Join(err, os.WriteFile(path, text, 0o644))
		}
	} else {
		v = j.ask(ctx, dir, judges(dir, c.Package), c.File, c.from)
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		return nil, err
	}
	if v.killed && !v.judged && ctx.Err() == nil {
		red = j.sound(ctx, dir, v)
	}
	c.broken, c.Killed, c.By = v.broken != "", v.killed, v.by
	return red, ctx.Err()
}

// judges are the packages whose tests judge a change: its own, and the one that it is a part of,
// since a family of packages (doctor, doctor/trace, ...) is often tested at its door.
func judges(dir, pkg string) []string {
	above := filepath.Dir(pkg)
	if tests, _ := filepath.Glob(filepath.Join(dir, above, "*_test.go")); len(tests) > 0 {
		return []string{pkg, above}
	}
	return []string{pkg}
}

// flags are those of go test.
func (o *randomOptions) flags() []string {
	if o.short {
		return []string{"-short"}
	}
	return nil
}

// reportRandom prints the survivors and the share by package, and says whether it is enough.
func reportRandom(done []*change, o randomOptions) bool {
	type tally struct{ Planted, Killed, Equivalent int }
	by := map[string]*tally{}
	var total tally
	for _, c := range done {
		t := by[c.Package]
		if t == nil {
			t = new(tally)
			by[c.Package] = t
		}
		for _, t := range []*tally{t, &total} {
			t.Planted++
			switch {
			case c.Equivalent != "":
				t.Equivalent++
			case c.Killed:
				t.Killed++
			}
		}
	}
	dead := func(t *tally) float64 { return float64(t.Killed+t.Equivalent) / float64(max(1, t.Planted)) }
	ok := total.Planted > 0 && dead(&total) >= share
	if o.asJSON {
		e := json.NewEncoder(os.Stdout)
		e.SetIndent("", "  ")
		_ = e.Encode(map[string]any{"seed": o.seed, "changes": done, "packages": by, "total": total, "enough": ok})
		return ok
	}
	for _, c := range done {
		if !c.Killed && c.Equivalent == "" {
			fmt.Printf("survived: %s:%d (%s)\n  -%s\n  +%s\n", c.File, c.Line, c.Kind, c.Before, c.After)
		}
	}
	var names []string
	for name := range by {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		t := by[name]
		fmt.Printf("%-32s %3d planted, %3d killed, %d argued equivalent: %.1f %%\n", name, t.Planted, t.Killed, t.Equivalent, 100*dead(t))
	}
	fmt.Printf("%-32s %3d planted, %3d killed, %d argued equivalent: %.1f %%\n", "all", total.Planted, total.Killed, total.Equivalent, 100*dead(&total))
	return ok
}
