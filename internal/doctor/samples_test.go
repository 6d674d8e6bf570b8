package doctor

import (
	"bytes"
	"compress/gzip"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"haul/internal/doctor/report"
	"haul/internal/sqlite/sqlitetest"
)

// This file makes the samples of docs/examples that the pages and --help show, and checks the
// claims about them. `go test ./internal/doctor -run TestSamples -samples` writes them again.
var writeSamples = flag.Bool("samples", false, "write the doctor's samples in docs/examples")

func samplePath(name string) string {
	return filepath.Join("..", "..", "docs", "examples", filepath.FromSlash(name))
}

// samples are the files by name; those packed are given unpacked, since packing differs between
// versions of Go.
func samples() map[string][]byte {
	out := map[string][]byte{"report.sqlite": sqlitetest.File(4096, readsTables()...)}
	for rank, late := range []func(*synth){nil, loaderFor(6000)} {
		text := strings.NewReplacer(`"world_size":4`, `"world_size":2`, `"Group size":8`, `"Group size":2`).Replace(string(rankTrace(rank, 0, late)))
		out[fmt.Sprintf("ranks/rank%d.json.gz", rank)] = []byte(text)
	}
	for name, reads := range map[string]int{"before.json.gz": 40, "after.json.gz": 0} {
		s := newSynth()
		for n := range 3 {
			s.gpu = s.now
			s.step(n, func() {
				loaderFor(20 + 125*float64(reads))(s)
				s.dense(40, 100)
				for range reads {
					s.kernelOp("aten::sum", "", 2, 0.01)
					s.item()
				}
			})
		}
		out[name] = s.json()
	}
	return out
}

// readsTables are a run that reads a value back after every kernel, as Nsight Systems exports it.
func readsTables() []sqlitetest.Table {
	const thread, device, stream = 77, 0, 7
	names := []string{"cudaLaunchKernel_v7000", "cudaMemcpyAsync_v3020", "cudaStreamSynchronize_v3020", "void reduce_kernel<float>", "aten::item", "aten::sum"}
	id := func(name string) int { return slices.Index(names, name) + 1 }
	var strings, ranges, calls, kernels, copies [][]any
	for i, name := range names {
		strings = append(strings, []any{sqlitetest.RowID(i + 1), name})
	}
	for i := range 100 {
		at, n := 1_000_000+60_000*i, 2*i+1
		ranges = append(ranges, []any{at, at + 18_000, 59, nil, thread, id("aten::sum")}, []any{at + 20_000, at + 55_000, 59, nil, thread, id("aten::item")})
		calls = append(calls, []any{at + 10_000, at + 15_000, 0, thread, n, id("cudaLaunchKernel_v7000"), 0},
			[]any{at + 25_000, at + 31_000, 0, thread, n + 1, id("cudaMemcpyAsync_v3020"), 0}, []any{at + 31_000, at + 50_000, 0, thread, 0, id("cudaStreamSynchronize_v3020"), 0})
		kernels = append(kernels, []any{at + 16_000, at + 46_000, device, 1, stream, n, 0, id("void reduce_kernel<float>"), id("void reduce_kernel<float>"), 528, 1, 1})
		copies = append(copies, []any{at + 47_000, at + 48_500, device, stream, n + 1, 4, 2, 2, 1})
	}
	tables := nsysTables()
	for i, rows := range [][][]any{strings, calls, kernels, copies, tables[4].Rows, ranges} {
		tables[i].Rows = rows
	}
	return tables
}

func TestSamples(t *testing.T) {
	for name, want := range samples() {
		path := samplePath(name)
		packed := strings.HasSuffix(name, ".gz")
		if *writeSamples {
			data := want
			if packed {
				data = pack(t, want)
			}
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(path)
		if err == nil && packed {
			var z *gzip.Reader
			if z, err = gzip.NewReader(bytes.NewReader(got)); err == nil {
				got, err = io.ReadAll(z)
			}
		}
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what this file makes (%v): go test ./internal/doctor -run TestSamples -samples", name, err)
		}
	}
}

func TestSamplesShowWhatThePagesSay(t *testing.T) {
	var ranks []*report.Report
	for _, name := range []string{"ranks/rank0.json.gz", "ranks/rank1.json.gz"} {
		ranks = append(ranks, loadOne(t, samplePath(name)))
	}
	j := report.JoinRanks(ranks)
	if len(j.Findings) == 0 || j.Findings[0].ID != "straggler" || *j.Findings[0].Rank != 1 || !strings.Contains(strings.Join(j.Findings[0].Evidence, ";"), "its data loader") {
		t.Errorf("ranks: %+v", j.Findings)
	}
	d := report.Compare(loadOne(t, samplePath("before.json.gz")), loadOne(t, samplePath("after.json.gz")))
	if !slices.Equal(d.Gone, []string{"loader-starved", "sync-storm"}) || len(d.Come) > 0 || d.DeltaMS > -5 {
		t.Errorf("before and after: gone %v, come %v, %v ms", d.Gone, d.Come, d.DeltaMS)
	}
	if r := loadOne(t, samplePath("report.sqlite")); r.PerStep.Kernels != 100 || len(ids(r)) == 0 || ids(r)[0] != "sync-storm" {
		t.Errorf("report.sqlite: %+v, %v", r.PerStep, ids(r))
	}
}
