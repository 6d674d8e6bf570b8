package cuda

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"haul/internal/kernel"
	"haul/internal/kernel/cuda/attention"
	"haul/internal/kernel/cuda/bind"
	"haul/internal/kernel/cuda/fuse"
	"haul/internal/kernel/cuda/routing"
)

// Modules are the names of all modules that are embedded.
func Modules() []string {
	names, err := modules()
	if err != nil || len(names) == 0 {
		panic("no PTX is embedded")
	}
	return names
}

// SetImages has modules that lie in a folder read from there.
func SetImages(dir string) {
	readImage = func(name string) ([]byte, error) {
		if packed, err := os.ReadFile(filepath.Join(dir, filepath.Base(name))); err == nil {
			return packed, nil
		}
		return readFamilies(name)
	}
}

// Image is the PTX of a module.
func Image(module string) ([]byte, error) { return image(module) }

// SetTeams has starts followed by teams of this size alone, until restore is called.
func SetTeams(size int) (restore func()) {
	before := routing.StartsTeams
	routing.StartsTeams = []int{size}
	return func() { routing.StartsTeams = before }
}

// SetStreamed has rows of bf16 attention streamed from so many tokens on, until restore is called.
func SetStreamed(tokens int) (restore func()) {
	before, beforeGrad := attention.LongFrom, attention.LongGradFrom
	attention.LongFrom, attention.LongGradFrom = tokens, tokens
	return func() { attention.LongFrom, attention.LongGradFrom = before, beforeGrad }
}

// SetLongBlocks has a head's keys shared out among so many of the gradient's blocks for every
// multiprocessor, 0 among none, until restore is called.
func SetLongBlocks(blocks int) (restore func()) {
	before := attention.LongBlocks
	attention.LongBlocks = blocks
	return func() { attention.LongBlocks = before }
}

// SetPipedRate has kernels of its own for another rate of dropout, 0 for none, until restore is
// called.
func SetPipedRate(rate uint32) (restore func()) {
	before := attention.PipedRate
	attention.PipedRate = rate
	return func() { attention.PipedRate = before }
}

// SetHeadPiece has instances cut into pieces of at least so many rows by the pass that ends a
// network, until restore is called.
func SetHeadPiece(rows int) (restore func()) {
	before := fuse.HeadPiece
	fuse.HeadPiece = rows
	return func() { fuse.HeadPiece = before }
}

// SetBatchParts has joined layers done in so many parts of the batch, until restore is called.
func SetBatchParts(parts int) (restore func()) {
	before := bind.BatchParts
	bind.BatchParts = parts
	return func() { bind.BatchParts = before }
}

// h200 is the GPU of the launches that tests look at.
var h200 = fuse.GPU{Precision: BF16, Major: 9, SMs: 132, MaxShared: 227 << 10}

// Launches binds a program to made-up addresses as Compile does on an H200 and returns a line per
// kernel, in the order of their first launch: how often it is launched, its name, grid, block and
// shared memory. The first line counts all launches and has a digest of them with every argument.
func Launches(t *testing.T, p *kernel.Program, precision bind.Precision) []string {
	t.Helper()
	gpu := h200
	gpu.Precision = precision
	p = fuse.Rewrite(p, gpu)
	b := testBinder(p, precision)
	ops := slices.Concat(p.PerShard, p.Once)
	fuse.Find(b, ops)
	var ls []bind.Launch
	for _, op := range ops {
		more, err := launchesOf(b, op)
		if err != nil {
			t.Fatalf("%s: %v", op.Kind(), err)
		}
		ls = append(ls, more...)
	}
	sum := sha256.New()
	var order []string
	count := map[string]int{}
	for _, l := range ls {
		fmt.Fprintln(sum, l.Grid, l.Block, l.Shared, l.Args, l.Beside, l.First, l.After, l.Aside, l.Part) // names may change
		line := fmt.Sprintf("%s %v %v %d", l.Key(), l.Grid, l.Block, l.Shared)
		if count[line]++; count[line] == 1 {
			order = append(order, line)
		}
	}
	out := []string{fmt.Sprintf("%d launches, digest %.8x", len(ls), sum.Sum(nil))}
	for _, line := range order {
		out = append(out, fmt.Sprintf("%3d %s", count[line], line))
	}
	return out
}
