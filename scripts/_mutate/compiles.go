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
	return c.checkAll(map[string][]byte{path: text})[path]
}

// checkAll says of each of several files of one package why it does not compile as its text, with
// all of them changed.
func (c *compiler) checkAll(texts map[string][]byte) map[string]error {
	c.mu.Lock()
	defer c.mu.Unlock()
	wrong := map[string]error{}
	var of *sourcePackage
	var files []*ast.File
	for path, text := range texts {
		f := c.sources[path]
		if f == nil {
			continue
		}
		changed, err := parser.ParseFile(c.set, path, text, parser.SkipObjectResolution)
		if err != nil {
			wrong[path] = err
			changed = f.shapes
		}
		of, files = f.of, append(files, changed)
	}
	if of == nil {
		return wrong
	}
	conf := types.Config{Importer: c.types, Sizes: types.SizesFor("gc", runtime.GOARCH), Error: func(err error) {
		// Files without bodies import what they do not use.
		if err, ok := err.(types.Error); ok {
			if path := c.set.File(err.Pos).Name(); texts[path] != nil {
				wrong[path] = cmp.Or(wrong[path], error(err))
			}
		}
	}}
	for _, other := range of.files {
		if texts[other.path] == nil {
			files = append(files, other.shapes)
		}
	}
	_, _ = conf.Check(of.path, c.set, files, nil) // Error has had what it returns
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
	stale := func(f *fault, err error) {
		f.Stale = fmt.Sprintf("%s, line %d: does not compile: %s", table, f.line, strings.Join(strings.Fields(err.Error()), " "))
	}
	for _, group := range groups(faults) {
		texts := map[string][]byte{}
		for _, f := range group {
			text, err := f.changed(".")
			if err != nil {
				stale(f, err)
				continue
			}
			texts[f.File] = text
		}
		wrong := c.checkAll(texts)
		for _, f := range group {
			if wrong[f.File] == nil {
				continue
			}
			if err := c.check(f.File, texts[f.File]); err != nil { // alone: another one may have caused it
				stale(f, err)
			}
		}
	}
	return nil
}

// groups are faults that are not stale, of one package and one per file: they are checked together,
// since most of a check goes into the package's declarations.
func groups(faults []*fault) (out [][]*fault) {
	open := map[string][]int{} // by package: its groups
	for _, f := range faults {
		if f.Stale != "" {
			continue
		}
		dir := filepath.Dir(f.File)
		i := slices.IndexFunc(open[dir], func(g int) bool {
			return !slices.ContainsFunc(out[g], func(o *fault) bool { return o.File == f.File })
		})
		if i < 0 {
			i = len(open[dir])
			open[dir] = append(open[dir], len(out))
			out = append(out, nil)
		}
		out[open[dir][i]] = append(out[open[dir][i]], f)
	}
	return out
}
