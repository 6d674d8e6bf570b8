// Command mutate plants faults in copies of the tree and tells which of them no test notices.
//
// What a reader could break: a fault counts as noticed only by a test that failed with it and
// passes without it. One whose text is not in its file exactly once, or that does not compile, is
// stale and counts as not noticed; so does one whose test is red without it. One that is stale is
// an error, however many others were noticed.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// fault is one entry of the table.
type fault struct {
	Number  int    `json:"number"` // among those that were asked for, from 1
	What    string `json:"what"`
	Named   bool   `json:"named"` // survived once, and never may again
	Package string `json:"package"`
	File    string `json:"file"`
	before  string
	after   string
	line    int // of the table

	Stale   string  `json:"stale,omitempty"` // why it cannot be planted
	Planted bool    `json:"planted"`
	Killed  bool    `json:"killed"`
	By      string  `json:"by,omitempty"` // the first test that failed
	Seconds float64 `json:"seconds"`
}

// procs bounds a copy's compiler and tests; 0: they take the machine.
var procs int

// memory is what a process may hold, in GiB.
var memory float64

// share is the least of faults that must be noticed.
const share = 0.9

func main() {
	table := flag.String("table", "scripts/mutations.txt", "the `file` of faults")
	var only []string
	flag.Func("only", "plant only faults whose description, file or package, or line of a draw, has this `text`; given again: or that one", func(text string) error {
		only = append(only, text)
		return nil
	})
	named := flag.Bool("named", false, "plant only faults that survived once (@!)")
	workers := flag.Int("workers", 2, "copies of the tree that are tested at a time")
	timeout := flag.Duration("timeout", 4*time.Minute, "of one package's tests; a fault that hangs them is noticed")
	asJSON := flag.Bool("json", false, "print the result as JSON")
	list := flag.Bool("list", false, "list the faults, or the draw of --random, and plant none; exit 1 where one is stale")
	var o randomOptions
	flag.IntVar(&o.count, "random", 0, "plant this many faults that are drawn by themselves, in the packages that are named as arguments")
	flag.IntVar(&o.from, "from", 1, "begin with the fault of this `number`, of a draw or of the table: a run that was ended goes on")
	flag.Uint64Var(&o.seed, "seed", 1, "of --random")
	flag.StringVar(&o.equivalent, "equivalent", "scripts/mutate-equivalent.txt", "the `file` of drawn faults that no test can tell, with the reason of each")
	flag.StringVar(&o.results, "results", "", "the `file` in which --random keeps what it found; faults that it has as dead are not planted again")
	flag.BoolVar(&o.near, "near", false, "run only the tests of a fault's file and those that name its function: quick, and what survives is not yet judged")
	flag.BoolVar(&o.short, "short", false, "run the tests of --random with -short")
	flag.BoolVar(&o.cuda, "cuda", false, "draw the faults of --random in the packages' CUDA sources; clang makes their modules anew and the interpreted GPU runs them")
	flag.IntVar(&procs, "procs", 0, "cores that each copy's compiler and tests may use; 0: all")
	flag.Float64Var(&memory, "memory", 4, "GiB that a process of the tests may hold; a fault that needs more is noticed; 0: any")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var ok bool
	var err error
	switch o.packages = flag.Args(); {
	case o.count < 0 || o.count == 0 && len(o.packages) > 0 || o.count > 0 && len(o.packages) == 0:
		err = fmt.Errorf("--random N and the packages it plants in go together, as in --random 100 ./internal/run ./internal/comm")
	case o.from < 1:
		err = fmt.Errorf("--from %d: the first fault has the number 1", o.from)
	case o.count > 0 && o.from > o.count:
		err = fmt.Errorf("--from %d is above the %d faults of --random", o.from, o.count)
	case memory < 0:
		err = fmt.Errorf("--memory %g is below 0", memory)
	case o.count > 0:
		o.only, o.workers, o.timeout, o.asJSON, o.list = only, *workers, *timeout, *asJSON, *list
		ok, err = random(ctx, o)
	default:
		ok, err = run(ctx, tableOptions{*table, only, *named, *list, o.near, o.from, *workers, *timeout, *asJSON})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

// tableOptions say which faults of a table are planted.
type tableOptions struct {
	table       string
	only        []string
	named, list bool
	near        bool
	from        int // the number of the first, from 1, of those that the others leave
	workers     int
	timeout     time.Duration
	asJSON      bool
}

// wants tells whether the fault is one that was asked for.
func (o *tableOptions) wants(f *fault) bool {
	return (f.Named || !o.named) && wanted(o.only, f.What+" "+f.File+" "+f.Package)
}

// wanted tells whether the text has one of the parts; without any it is.
func wanted(parts []string, text string) bool {
	return len(parts) == 0 || slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
}

func run(ctx context.Context, o tableOptions) (ok bool, err error) {
	text, err := os.ReadFile(o.table)
	if err != nil {
		return false, err
	}
	faults, err := parse(string(text))
	if err != nil {
		return false, fmt.Errorf("%s: %w", o.table, err)
	}
	faults = slices.DeleteFunc(faults, func(f *fault) bool { return !o.wants(f) })
	if len(faults) == 0 {
		return false, fmt.Errorf("%s has no fault with %q", o.table, o.only)
	}
	for i, f := range faults {
		f.Number = i + 1
	}
	if o.from > len(faults) {
		return false, fmt.Errorf("--from %d: there are %d faults", o.from, len(faults))
	}
	faults = faults[o.from-1:]
	fresh := true
	for _, f := range faults {
		if err := f.check("."); err != nil {
			f.Stale = fmt.Sprintf("%s, line %d: %v", o.table, f.line, err)
		}
	}
	if err := compileAll(ctx, o.table, faults); err != nil {
		return false, err
	}
	for _, f := range faults {
		fresh = fresh && f.Stale == ""
		if o.list {
			fmt.Printf("%-28s %s%s\n", f.Package, f.What, strings.Repeat("  (stale)", min(1, len(f.Stale))))
		}
		if o.list && f.Stale != "" {
			fmt.Fprintln(os.Stderr, "stale:", f.Stale)
		}
	}
	if o.list {
		return fresh, nil
	}
	if err := limitMemory(); err != nil {
		return false, err
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
	if err := clean(ctx, copies[0], faults, o.timeout); err != nil {
		return false, err
	}
	err = plantAll(ctx, copies, faults, newJudge(o.timeout, o.near))
	ok, failed := report(faults, o.asJSON) // of what was planted, where it was ended early
	return ok && err == nil, errors.Join(err, failed)
}

// parse reads the table: a line "@ package file: what", or "@! " for a named fault, then the text
// before as lines that begin with "-" and the text after as lines that begin with "+". Everything
// after that one character is taken as it stands. "#" begins a comment.
func parse(text string) (out []*fault, err error) {
	for i, line := range strings.Split(text, "\n") {
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '@':
			head, what, found := strings.Cut(strings.TrimLeft(line, "@! "), ": ")
			place := strings.Fields(head)
			if !found || len(place) != 2 {
				return nil, fmt.Errorf("line %d: %q is not \"@ package file: what\"", i+1, line)
			}
			out = append(out, &fault{What: what, Named: strings.HasPrefix(line, "@!"), Package: place[0], File: filepath.Join(place[0], place[1]), line: i + 1})
		case len(out) == 0:
			return nil, fmt.Errorf("line %d: text before any fault", i+1)
		case line[0] == '-':
			out[len(out)-1].before += line[1:] + "\n"
		case line[0] == '+':
			out[len(out)-1].after += line[1:] + "\n"
		default:
			return nil, fmt.Errorf("line %d: %q begins with none of @ - + #", i+1, line)
		}
	}
	for _, f := range out {
		f.before, f.after = strings.TrimSuffix(f.before, "\n"), strings.TrimSuffix(f.after, "\n")
		if f.before == f.after {
			return nil, fmt.Errorf("line %d: nothing changes", f.line)
		}
	}
	return out, nil
}

// check wants the text in its file once, and Go where it stood replaced.
func (f *fault) check(root string) error {
	text, err := os.ReadFile(filepath.Join(root, f.File))
	if err != nil {
		return err
	}
	if n := strings.Count(string(text), f.before); n != 1 {
		return fmt.Errorf("%s has %q %d times, want once", f.File, f.before, n)
	}
	if filepath.Ext(f.File) == ".go" {
		_, err = parser.ParseFile(token.NewFileSet(), f.File, strings.Replace(string(text), f.before, f.after, 1), parser.SkipObjectResolution)
	}
	return err
}

// changed is the file with the fault in it.
func (f *fault) changed(root string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(root, f.File))
	return []byte(strings.Replace(string(text), f.before, f.after, 1)), err
}

// listTree is what git knows and what it does not ignore; without git, all files outside of the
// folders that are built.
func listTree() (names []string, err error) {
	if text, err := exec.Command("git", "ls-files", "-coz", "--exclude-standard").Output(); err == nil {
		return strings.Split(strings.TrimRight(string(text), "\x00"), "\x00"), nil
	}
	built := []string{".git", "build", "runs", "data", "dist", "bin"}
	err = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains(built, path):
			return filepath.SkipDir
		case d.Type().IsRegular():
			names = append(names, path)
		}
		return nil
	})
	return names, err
}

// copyTree copies the tree n times.
func copyTree(n int) (dirs []string, err error) {
	names, err := listTree()
	if err != nil {
		return nil, fmt.Errorf("list the tree: %w", err)
	}
	for range n {
		dir, err := os.MkdirTemp("", "haul-mutate-")
		if err != nil {
			return dirs, err
		}
		dirs = append(dirs, dir)
		for _, name := range names {
			data, err := os.ReadFile(name)
			if os.IsNotExist(err) {
				continue // removed, and not yet committed
			}
			if err != nil {
				return dirs, err
			}
			info, err := os.Stat(name)
			if err != nil {
				return dirs, err
			}
			to := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
				return dirs, err
			}
			if err := os.WriteFile(to, data, info.Mode()); err != nil {
				return dirs, err
			}
		}
	}
	return dirs, nil
}

// test runs a package's tests and returns what they said.
func test(ctx context.Context, dir, pkg string, timeout time.Duration, flags ...string) (string, error) {
	return testIn(ctx, nil, dir, pkg, timeout, flags...)
}

// testIn does so with some variables of the environment changed.
func testIn(ctx context.Context, env []string, dir, pkg string, timeout time.Duration, flags ...string) (string, error) {
	// The tests end themselves at their timeout. What hangs a compiler, or a process that the tests
	// have left with their output, ends a little later.
	ctx, cancel := context.WithTimeout(ctx, timeout+2*time.Minute)
	defer cancel()
	args := append([]string{"test", "-vet=off", "-failfast", "-timeout", timeout.String()}, flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, "./"+pkg)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	if procs > 0 {
		cmd.Env = append(cmd.Env, fmt.Sprintf("GOMAXPROCS=%d", procs))
		cmd.Args = slices.Insert(cmd.Args, 2, fmt.Sprintf("-p=%d", procs))
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	// Children of the tests go with them.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	err := cmd.Run()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what a test that panicked has left
	}
	return out.String(), err
}

// limitMemory bounds what each process from here on may hold: memory of its own that it can write
// to, not address space, of which Go's runtime reserves far more than it uses.
func limitMemory() error {
	if memory == 0 {
		return nil
	}
	var r syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_DATA, &r); err != nil {
		return fmt.Errorf("the limit of memory: %w", err)
	}
	if most := uint64(memory * (1 << 30)); most < r.Cur {
		r.Cur = most
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_DATA, &r); err != nil {
		return fmt.Errorf("the limit of memory: %w", err)
	}
	return nil
}

// clean tests assembly as it is generated before anything is planted in what generates it. Faults
// of one that is red cannot be judged: they are stale.
func clean(ctx context.Context, dir string, faults []*fault, timeout time.Duration) error {
	red := map[string]string{} // by generator; empty: it is clean
	for _, f := range faults {
		generator, ok := f.generator()
		if !ok || f.Stale != "" {
			continue
		}
		if _, known := red[generator]; !known {
			out, failed, err := f.testGenerated(ctx, dir, generator, timeout)
			red[generator] = ""
			if failed = errors.Join(failed, err); failed != nil {
				red[generator] = fmt.Sprintf("%s is red without any fault: %v\n%s", f.Package, failed, tail(out))
			}
		}
		f.Stale = red[generator]
	}
	return ctx.Err()
}

// plantAll shares the faults out to the copies.
func plantAll(ctx context.Context, copies []string, faults []*fault, j *judge) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var mu sync.Mutex // guards next and standard error
	next := 0
	take := func() *fault {
		mu.Lock()
		defer mu.Unlock()
		if next == len(faults) || ctx.Err() != nil {
			return nil
		}
		next++
		return faults[next-1]
	}
	var wg sync.WaitGroup
	for _, dir := range copies {
		wg.Go(func() {
			for f := take(); f != nil; f = take() {
				if f.Stale != "" {
					continue
				}
				if err := f.plant(ctx, dir, j); err != nil {
					cancel(err)
					return
				}
				word := "killed  " + f.By
				switch {
				case f.Stale != "":
					word = "STALE  " + f.Stale
				case !f.Killed:
					word = "SURVIVED"
				}
				mu.Lock()
				fmt.Fprintf(os.Stderr, "%3d  %5.1f s  %s: %s  %s\n", f.Number, f.Seconds, f.Package, f.What, word)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// plant puts the fault into a copy, runs the tests, and takes it out again.
func (f *fault) plant(ctx context.Context, dir string, j *judge) error {
	path := filepath.Join(dir, f.File)
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	at := strings.Index(string(text), f.before)
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), f.before, f.after, 1)), 0o644); err != nil {
		return err
	}
	began := time.Now()
	var v verdict
	if generator, ok := f.generator(); ok {
		var out string
		var failed error
		if out, failed, err = f.testGenerated(ctx, dir, generator, j.timeout); failed != nil {
			v = verdict{killed: true, by: firstFailure(out)}
		}
	} else if ext := filepath.Ext(f.File); ext == ".cu" || ext == ".cuh" {
		v, err = j.askCUDA(ctx, dir, f.File, 1)
	} else {
		v = j.ask(ctx, dir, []string{f.Package}, f.File, at)
	}
	if failed := os.WriteFile(path, text, 0o644); failed != nil {
		return failed
	}
	if v.pkg != "" && err == nil && ctx.Err() == nil {
		err = j.sound(ctx, dir, v)
	}
	f.Seconds = time.Since(began).Seconds()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	f.Planted = true
	switch {
	case err != nil:
		f.Stale = fmt.Sprintf("line %d: %v", f.line, err)
	case v.broken != "":
		f.Stale = fmt.Sprintf("line %d: does not compile: %s", f.line, v.broken)
	default:
		f.Killed, f.By = v.killed, v.by
	}
	return nil
}

// firstFailure names the test that noticed; "panic", "memory" and "timeout" where none could say
// so.
func firstFailure(out string) string {
	name := ""
	for line := range strings.Lines(out) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "--- FAIL: "); ok {
			full, _, _ := strings.Cut(rest, " ")
			if len(full) > len(name) && strings.HasPrefix(full, name) { // a subtest follows its test
				name = full
			}
		}
	}
	switch {
	case name != "":
		return name
	case strings.Contains(out, "panic: test timed out"):
		return "timeout"
	case strings.Contains(out, "out of memory") || strings.Contains(out, "cannot allocate memory"):
		return "memory"
	case strings.Contains(out, "panic:"):
		return "panic"
	}
	return ""
}

// compilerSays is the first line of a failed build that names a place.
func compilerSays(out string) string {
	for line := range strings.Lines(out) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			return line
		}
	}
	return "no word why"
}

func tail(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-25):], "\n")
}

// report prints the survivors and the shares, and says whether they are enough.
func report(faults []*fault, asJSON bool) (bool, error) {
	var named, other, deadNamed, deadOther, stale int
	for _, f := range faults {
		stale += min(1, len(f.Stale))
		kill := 0
		if f.Killed {
			kill = 1
		}
		if f.Named {
			named++
			deadNamed += kill
		} else {
			other++
			deadOther += kill
		}
	}
	ok := stale == 0 && deadNamed == named && float64(deadOther) >= share*float64(other)
	if asJSON {
		e := json.NewEncoder(os.Stdout)
		e.SetIndent("", "  ")
		return ok, e.Encode(map[string]any{"faults": faults, "named": named, "named_killed": deadNamed, "stale": stale, "others": other, "others_killed": deadOther, "enough": ok})
	}
	for _, f := range faults {
		switch {
		case f.Stale != "":
			fmt.Printf("stale:    %s: %s: %s\n", f.Package, f.What, f.Stale)
		case !f.Planted:
			fmt.Printf("not planted: %s, %s: %s\n", f.Package, f.File, f.What)
		case !f.Killed:
			fmt.Printf("survived: %s, %s: %s\n", f.Package, f.File, f.What)
		}
	}
	fmt.Printf("named faults: %d of %d killed\n", deadNamed, named)
	if other > 0 {
		fmt.Printf("others:       %d of %d killed, %.1f %%\n", deadOther, other, 100*float64(deadOther)/float64(other))
	}
	if stale > 0 {
		fmt.Printf("stale:        %d, which cannot be judged\n", stale)
	}
	return ok, nil
}
