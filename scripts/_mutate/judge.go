package main

import (
	"cmp"
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// What a reader could break: a fault is dead only by a test that fails with it and passes without
// it. The tests near a fault go first, for speed alone: it survives by all tests of its packages.

// judge runs tests with a fault and without it.
type judge struct {
	timeout time.Duration
	flags   []string
	near    bool // run no others than the tests near a fault
	mu      sync.Mutex
	clean   map[string]error // what was run without any fault; nil: it passed

	cuda    sync.Mutex // guards what follows: tests of kernels as a program, and their modules
	binary  string
	modules cudaModules
}

func newJudge(timeout time.Duration, near bool, flags ...string) *judge {
	return &judge{timeout: timeout, near: near, flags: flags, clean: map[string]error{}}
}

// verdict is what tests said of a fault.
type verdict struct {
	killed bool
	by     string // the test that failed
	broken string // why it does not compile

	pkg    string // whose tests failed
	flags  []string
	judged bool // what killed it is known to pass without it
}

// ask runs the tests of the packages with the fault that stands in the copy at a byte of the file.
func (j *judge) ask(ctx context.Context, dir string, pkgs []string, file string, at int) (v verdict) {
	try := func(pkg string, flags ...string) bool {
		flags = append(slices.Clone(j.flags), flags...)
		out, err := test(ctx, dir, pkg, j.timeout, flags...)
		if err == nil {
			return false
		}
		if strings.Contains(out, "[build failed]") || strings.Contains(out, "[setup failed]") {
			v.broken = compilerSays(out)
			return true
		}
		v.killed, v.by, v.pkg, v.flags = true, cmp.Or(firstFailure(out), "its exit code"), pkg, flags
		if top, _, _ := strings.Cut(v.by, "/"); strings.HasPrefix(top, "Test") || strings.HasPrefix(top, "Example") || strings.HasPrefix(top, "Fuzz") {
			v.flags = append(slices.Clone(j.flags), "-run", "^"+top+"$")
		}
		return true
	}
	for _, pkg := range pkgs {
		if names := near(dir, pkg, file, at); len(names) > 0 && try(pkg, "-run", "^("+strings.Join(names, "|")+")$") {
			return v
		}
	}
	if j.near {
		return v
	}
	for _, pkg := range pkgs {
		if try(pkg) {
			return v
		}
	}
	return v
}

// sound tells whether what killed a fault passes without it. The copy has no fault meanwhile.
func (j *judge) sound(ctx context.Context, dir string, v verdict) error {
	key := v.pkg + " " + strings.Join(v.flags, " ")
	j.mu.Lock()
	err, known := j.clean[key]
	j.mu.Unlock()
	if known {
		return err
	}
	out, err := test(ctx, dir, v.pkg, j.timeout, v.flags...)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		err = fmt.Errorf("%s is red without any fault: %w\n%s", key, err, tail(out))
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.clean[key] = err
	return err
}

// near are the tests of a package that are likely to notice a change: those of the file's own test
// file, and those that name the function it is in. There are none where most of them are near.
func near(dir, pkg, file string, at int) (names []string) {
	inside := enclosing(filepath.Join(dir, file), at)
	word := regexp.MustCompile(`\b` + regexp.QuoteMeta(cmp.Or(inside, "no function")) + `\b`)
	own := strings.TrimSuffix(filepath.Base(file), ".go") + "_test.go"
	paths, _ := filepath.Glob(filepath.Join(dir, pkg, "*_test.go"))
	all := 0
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		set := token.NewFileSet()
		tests, err := parser.ParseFile(set, path, text, parser.SkipObjectResolution)
		if err != nil {
			continue
		}
		for _, d := range tests.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Test") || f.Name.Name == "TestMain" {
				continue
			}
			all++
			body := text[set.Position(f.Pos()).Offset:set.Position(f.End()).Offset]
			if filepath.Base(path) == own || word.Match(body) {
				names = append(names, f.Name.Name)
			}
		}
	}
	if 2*len(names) > all {
		return nil
	}
	return names
}

// enclosing is the function of the file that a byte is in; empty where it is in none.
func enclosing(path string, at int) string {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
	if err != nil {
		return ""
	}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && set.Position(f.Pos()).Offset <= at && at < set.Position(f.End()).Offset {
			return f.Name.Name
		}
	}
	return ""
}
