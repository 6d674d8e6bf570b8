package main

import (
	"cmp"
	"context"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// What a reader could break: compiler reads types, it generates no code. Of a package it checks
// the bodies of the changed file alone, the other files lend their declarations, so that an entry
// costs milliseconds. What it lets pass may still not compile (a declaration that another file
// uses); then the build says so.

// compiler tells whether a changed file still compiles with its package.
type compiler struct {
	set     *token.FileSet
	types   types.Importer
	mu      sync.Mutex             // guards what follows, and the importer
	sources map[string]*sourceFile // by its path below the root
}

// sourceFile is a file of a package that is compiled here.
type sourceFile struct {
	of     *sourcePackage
	path   string
	shapes *ast.File // without bodies
}

// sourcePackage is a package and its files.
type sourcePackage struct {
	path  string
	files []*sourceFile
}

// newCompiler reads the packages of the patterns, and asks the go command to compile what they
// import.
func newCompiler(ctx context.Context, root string, patterns []string) (*compiler, error) {
	deps, err := goList(ctx, root, append([]string{"-export", "-deps"}, patterns...))
	if err != nil {
		return nil, err
	}
	exports := map[string]string{}
	c := &compiler{set: token.NewFileSet(), sources: map[string]*sourceFile{}}
	for _, p := range deps {
		exports[p.ImportPath] = p.Export
		if p.DepOnly {
			continue
		}
		own := &sourcePackage{path: p.ImportPath}
		for _, name := range p.GoFiles {
			f := &sourceFile{of: own, path: filepath.Join(p.relative, name)}
			if f.shapes, err = parser.ParseFile(c.set, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution); err != nil {
				return nil, err
			}
			for _, d := range f.shapes.Decls {
				if d, ok := d.(*ast.FuncDecl); ok {
					d.Body = nil
				}
			}
			own.files = append(own.files, f)
			c.sources[f.path] = f
		}
	}
	c.types = importer.ForCompiler(c.set, "gc", func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fmt.Errorf("%s is not compiled", path)
		}
		return os.Open(exports[path])
	})
	return c, nil
}

// check says why the file at path does not compile as text. A file that is not compiled on this
// machine, another system's or one outside of the packages, passes.
func (c *compiler) check(path string, text []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.sources[path]
	if f == nil {
		return nil
	}
	changed, err := parser.ParseFile(c.set, path, text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	var wrong error
	conf := types.Config{Importer: c.types, Sizes: types.SizesFor("gc", runtime.GOARCH), Error: func(err error) {
		// Files without bodies import what they do not use.
		if err, ok := err.(types.Error); ok && c.set.File(err.Pos).Name() == path {
			wrong = cmp.Or(wrong, error(err))
		}
	}}
	files := []*ast.File{changed}
	for _, other := range f.of.files {
		if other != f {
			files = append(files, other.shapes)
		}
	}
	_, _ = conf.Check(f.of.path, c.set, files, nil) // Error has had what it returns
	return wrong
}

// compileAll marks as stale the faults that do not compile.
func compileAll(ctx context.Context, table string, faults []*fault) error {
	var patterns []string
	for _, f := range faults {
		if f.Stale == "" && filepath.Ext(f.File) == ".go" && !strings.Contains(f.File, "/_") {
			patterns = append(patterns, "./"+filepath.Dir(f.File))
		}
	}
	slices.Sort(patterns)
	if patterns = slices.Compact(patterns); len(patterns) == 0 {
		return nil
	}
	c, err := newCompiler(ctx, ".", patterns)
	if err != nil {
		return err
	}
	for _, f := range faults {
		if f.Stale != "" {
			continue
		}
		text, err := f.changed(".")
		if err == nil {
			err = c.check(f.File, text)
		}
		if err != nil {
			f.Stale = fmt.Sprintf("%s, line %d: does not compile: %s", table, f.line, strings.Join(strings.Fields(err.Error()), " "))
		}
	}
	return nil
}
