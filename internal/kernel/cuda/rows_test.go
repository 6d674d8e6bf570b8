package cuda_test

import (
	"errors"
	"flag"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"haul/internal/config"
	"haul/internal/kernel"
	"haul/internal/kernel/cuda"
	"haul/internal/kernel/cuda/fuse"
	"haul/internal/recipe"
)

var updateRows = flag.Bool("update-rows", false, "write testdata/rows.txt anew")

// benchmarkRows are the GPU rows of docs/benchmarks.md, as scripts/rows times them: settings, and
// what is set beside them. Routing multiplies in tf32, agents in bf16.
var benchmarkRows = []string{
	"tiny_1", "small", "medium", "large", "pomo10", "pomo20", "cvrp20", "cvrp50", "cvrp100",
	"pomo100 training.batch_size=256",
	"pomo100 training.batch_size=256 model.num_heads=8",
	"pomo100 problem.num_customers=50 baseline.starts=50 training.batch_size=512",
	"vrp50 training.batch_size=256 problem.attributes=all",
	"vrp100 training.batch_size=256 problem.attributes=all",
	"vrp50 training.batch_size=256 problem.attributes=mdall",
	"vrp100 training.batch_size=256 problem.attributes=mdall",
	"large problem.num_customers=128", "large problem.num_customers=200",
	"large problem.num_customers=500 training.batch_size=64", "large problem.num_customers=1000 training.batch_size=64",
	"pomo100 problem.num_customers=128 baseline.starts=128 training.batch_size=256",
	"pomo100 problem.num_customers=200 baseline.starts=200 training.batch_size=256",
	"pomo100 problem.num_customers=500 baseline.starts=100 training.batch_size=64",
	"pomo100 problem.num_customers=1000 baseline.starts=100 training.batch_size=64",
	"ad_dr", "ad_dr_compressed",
	"ad_dr_compressed use_compressed_context=false train_source_timesteps=8192 n_transit=1024 train_batch_size=164",
	"ad_dr_compressed use_compressed_context=false train_source_timesteps=8192 n_transit=4096 train_batch_size=41",
	"ad_tabular tf_n_embd=512 tf_n_layer=4 tf_dim_feedforward=1024 train_batch_size=512",
}

// programs is a device that keeps what it is given to compile, and compiles nothing.
type programs struct{ last *kernel.Program }

var errNotCompiled = errors.New("kept, not compiled")

func (*programs) Name() string                                        { return "cuda:0 (programs)" }
func (*programs) ShardSize(int) int                                   { return kernel.WholeBatch }
func (*programs) NewStore(*kernel.Layout, bool) (kernel.Store, error) { return noStore{}, nil }
func (*programs) Counters() *kernel.Counters                          { return &kernel.Counters{} }
func (*programs) Close() error                                        { return nil }

// AvailableMemory is that of an H200, whatever the machine has.
func (*programs) AvailableMemory() (int64, bool) { return 139 << 30, true }

func (d *programs) Compile(p *kernel.Program, _ []kernel.Store) (kernel.Runner, error) {
	d.last = p
	return nil, errNotCompiled
}

// noStore takes weights and keeps none.
type noStore struct{ kernel.Store }

func (noStore) WriteWeights([]float32) error { return nil }
func (noStore) Close() error                 { return nil }

// rowLaunches are the launches of one row, as cuda.Launches has them.
func rowLaunches(t *testing.T, row string) []string {
	t.Helper()
	words := strings.Fields(row)
	cfg, err := config.LoadAny("", words[0], words[1:])
	if err != nil {
		t.Fatal(err)
	}
	d := &programs{}
	if _, err := recipe.Step(d, cfg); !errors.Is(err, errNotCompiled) {
		t.Fatalf("%s: %v", row, err)
	}
	precision := cuda.TF32
	if strings.HasPrefix(row, "ad_") {
		precision = cuda.BF16
	}
	return cuda.Launches(t, d.last, precision)
}

// TestRowsLaunches compares the launches of every benchmark row on an H200, arguments included,
// with testdata/rows.txt: kernels may move, and what they are given stays.
func TestRowsLaunches(t *testing.T) {
	var out strings.Builder
	for _, row := range benchmarkRows {
		out.WriteString("# " + row + "\n" + strings.Join(rowLaunches(t, row), "\n") + "\n")
	}
	const golden = "testdata/rows.txt"
	if *updateRows {
		if err := os.WriteFile(golden, []byte(out.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(out.String(), "\n")); diff != "" {
		t.Errorf("launches differ (-golden +now); go test ./internal/kernel/cuda -run TestRowsLaunches -update-rows writes them:\n%s", diff)
	}
}

// TestFusionsServeTheirRow: the row of the benchmarks that a fusion names launches each of its
// kernels. Without the fusion none of them is launched there, and no fewer kernels are.
func TestFusionsServeTheirRow(t *testing.T) {
	table := fuse.Table
	defer func() { fuse.Table = table }()
	for i, f := range table {
		launched := func(lines []string) (kernels []string) {
			for _, k := range f.Kernels {
				if slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, " "+k+" ") || strings.Contains(l, " "+k+"_") }) {
					kernels = append(kernels, k)
				}
			}
			return kernels
		}
		fuse.Table = table
		with := rowLaunches(t, f.Row)
		if diff := cmp.Diff(f.Kernels, launched(with)); diff != "" {
			t.Errorf("%s: %s launches other kernels (-table +row):\n%s", f.Name, f.Row, diff)
		}
		fuse.Table = slices.Delete(slices.Clone(table), i, i+1)
		without := rowLaunches(t, f.Row)
		if left := launched(without); len(left) > 0 {
			t.Errorf("%s: without it %s still launches %v", f.Name, f.Row, left)
		}
		if a, b := launchCount(t, with), launchCount(t, without); a > b {
			t.Errorf("%s: %s has %d launches with it, %d without", f.Name, f.Row, a, b)
		}
	}
}

// launchCount is the number that the first line begins with.
func launchCount(t *testing.T, lines []string) int {
	t.Helper()
	n, err := strconv.Atoi(strings.Fields(lines[0])[0])
	if err != nil {
		t.Fatal(err)
	}
	return n
}
