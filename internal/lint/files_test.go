package lint

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// floors lists packages whose files stand in an order, from the top: a file uses only what is
// declared in itself or below. A file that is not listed fails the test: give it its place.
var floors = map[string][]string{
	"internal/vrp": {"merge_depot.go", "exact_parts.go", "exact_many.go", "source.go", "exact.go", "cost.go", "batch.go", "variant.go", "depots.go", "plane.go", "attributes.go", "validate.go", "violations.go",
		"check.go", "check_fleet.go", "check_sums.go", "within.go", "evaluate.go", "rest.go", "limits.go", "schedule.go", "rule.go", "problem.go", "parts.go", "doc.go"},
	"internal/solve": {"solve.go", "choose.go", "table.go", "run.go", "unserved.go"},
	"internal/policy": {"info.go", "file.go", "evaluate.go", "route_many.go", "stepper.go", "beam.go", "active.go", "batch.go", "recombine_search.go", "routed.go", "recombine.go", "recombine_pool.go", "recombine_order.go", "normalize.go",
		"policy.go", "evaluator.go", "program.go", "networks.go", "warm_start.go", "rules.go", "rules_varied.go", "reference.go", "decode.go", "rules_file.go"},
	"internal/doctor/report": {"html.go", "ranks_diff.go", "ranks_text.go", "timeline.go", "ranks.go", "ranks_why.go", "repeats.go", "release.go", "diff.go", "report.go", "breakdown.go"},
	// Causes of lost time that others are told apart from stand below them.
	"internal/doctor/rule": {"evaluate.go", "anomaly_mode.go", "comm_exposed.go", "copies.go", "fp32_matmul.go", "fp64.go", "loader_starved.go", "long_wait.go", "oversubscribed.go", "padding_overhead.go",
		"pageable_copy.go", "python_bound.go", "recorded.go", "repeated_work.go", "slow_product.go", "small_batch.go", "sync_storm.go", "tensor_in_loop.go", "transfer_storm.go", "unfused.go",
		"alloc_thrash.go", "copy_exposed.go", "dead_runs.go", "dispatch_bound.go", "launch_bound.go", "recompile.go", "dead_graph.go", "hints.go", "rule.go"},
	"internal/doctor/analysis": {"analyse.go", "release.go", "alone.go", "breakdown.go", "charge.go", "jitter.go", "pace.go", "spikes.go", "meeting.go", "dispatch.go", "fetches.go", "graphs.go", "host.go", "iterations.go", "path.go", "period.go",
		"attribute.go", "comm.go", "memory.go", "modules.go", "roofline.go", "gaps.go", "products.go", "autograd.go", "flops.go", "link.go", "median.go", "where.go", "analysis.go"},
	"internal/doctor/trace": {"open.go", "release.go", "only.go", "extent.go", "foreign.go", "read.go", "rocprof.go", "settle.go", "bare.go", "trace.go", "capture.go", "event.go", "family.go", "form.go", "log.go",
		"op.go", "spans.go", "scan.go", "vendor.go", "budget.go"},
}

// exported finds what the packages of floors import, as the compiler left it.
func exported(t *testing.T, fset *token.FileSet) types.Importer {
	t.Helper()
	args := []string{"list", "-export", "-deps", "-json=ImportPath,Export"}
	for pkg := range floors {
		args = append(args, "haul/"+pkg)
	}
	list, err := exec.Command("go", args...).Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	exports := map[string]string{}
	for d := json.NewDecoder(bytes.NewReader(list)); d.More(); {
		var p struct{ ImportPath, Export string }
		if err := d.Decode(&p); err != nil {
			t.Fatal(err)
		}
		exports[p.ImportPath] = p.Export
	}
	return importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
}

// upward lists what files of a package use of files above them. Where an import is not found the
// rest of the package is looked at all the same.
func upward(order []string, fset *token.FileSet, files []*ast.File, from types.Importer) []string {
	name := func(p token.Pos) string { return filepath.Base(fset.Position(p).Filename) }
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	conf := types.Config{Error: func(error) {}, Importer: from}
	pkg, _ := conf.Check("p", fset, files, info)
	var out []string
	for _, f := range files {
		if !slices.Contains(order, name(f.Pos())) {
			out = append(out, name(f.Pos())+" has no place in the order of its package's files")
		}
	}
	for use, object := range info.Uses {
		if object.Pkg() != pkg || !object.Pos().IsValid() {
			continue
		}
		from, to := slices.Index(order, name(use.Pos())), slices.Index(order, name(object.Pos()))
		if from >= 0 && to >= 0 && to < from {
			out = append(out, fmt.Sprintf("%s uses %s of %s, which stands above it", name(use.Pos()), object.Name(), name(object.Pos())))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// nowhere finds no package.
type nowhere struct{}

func (nowhere) Import(path string) (*types.Package, error) {
	return nil, fmt.Errorf("%s is not looked at", path)
}

func TestFilesPointDown(t *testing.T) {
	fset := token.NewFileSet()
	imports := exported(t, fset)
	for pkg, order := range floors {
		dir := filepath.Join("..", "..", filepath.FromSlash(pkg))
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		var files []*ast.File
		for _, e := range entries {
			if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
				continue
			}
			f, err := parser.ParseFile(fset, filepath.Join(dir, e.Name()), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
		if len(files) != len(order) {
			t.Errorf("%s has %d files, its order names %d", pkg, len(files), len(order))
		}
		for _, v := range upward(order, fset, files, imports) {
			t.Errorf("%s: %s", pkg, v)
		}
	}
}

// TestUpwardIsFound: functions, methods, fields and types of files above, past imports that nobody
// resolves.
func TestUpwardIsFound(t *testing.T) {
	fset := token.NewFileSet()
	var files []*ast.File
	for name, text := range map[string]string{
		"top.go":    `package p; import "some/where"; func Top(l *Low) where.Thing { l.act(); return where.It }; func (l *Low) climb() {}; type High struct{ field int }`,
		"bottom.go": `package p; import "some/where"; type Low struct{ at where.Thing }; func (l *Low) act() { l.climb(); Top(l); var h High; h.field = 1 }`,
		"new.go":    `package p`,
	} {
		f, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	want := []string{
		"bottom.go uses High of top.go, which stands above it", "bottom.go uses Top of top.go, which stands above it",
		"bottom.go uses climb of top.go, which stands above it", "bottom.go uses field of top.go, which stands above it",
		"new.go has no place in the order of its package's files"}
	if diff := cmp.Diff(want, upward([]string{"top.go", "bottom.go"}, fset, files, nowhere{})); diff != "" {
		t.Error(diff)
	}
}
