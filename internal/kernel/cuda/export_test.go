package cuda

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"haul/internal/kernel"
)

// Modules are the names of all modules that are embedded.
func Modules() []string {
	files, err := fs.Glob(images, "ptx/*.ptx.zst")
	if err != nil || len(files) == 0 {
		panic("no PTX is embedded")
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(strings.TrimPrefix(f, "ptx/"), ".ptx.zst")
	}
	return files
}

// SetImages has modules that lie in a folder read from there.
func SetImages(dir string) {
	readImage = func(name string) ([]byte, error) {
		if packed, err := os.ReadFile(filepath.Join(dir, filepath.Base(name))); err == nil {
			return packed, nil
		}
		return images.ReadFile(name)
	}
}

// Image is the PTX of a module.
func Image(module string) ([]byte, error) { return image(module) }

// SetTeams has starts followed by teams of this size alone, until restore is called.
func SetTeams(size int) (restore func()) {
	before := startsTeams
	startsTeams = []int{size}
	return func() { startsTeams = before }
}

// SetStreamed has rows of bf16 attention streamed from so many tokens on, until restore is called.
func SetStreamed(tokens int) (restore func()) {
	before, beforeGrad := longFrom, longGradFrom
	longFrom, longGradFrom = tokens, tokens
	return func() { longFrom, longGradFrom = before, beforeGrad }
}

// SetLongBlocks has a head's keys shared out among so many of the gradient's blocks for every
// multiprocessor, 0 among none, until restore is called.
func SetLongBlocks(blocks int) (restore func()) {
	before := longBlocks
	longBlocks = blocks
	return func() { longBlocks = before }
}

// SetPipedRate has kernels of its own for another rate of dropout, 0 for none, until restore is
// called.
func SetPipedRate(rate uint32) (restore func()) {
	before := pipedRate
	pipedRate = rate
	return func() { pipedRate = before }
}

// SetHeadPiece has instances cut into pieces of at least so many rows by the pass that ends a
// network, until restore is called.
func SetHeadPiece(rows int) (restore func()) {
	before := headPiece
	headPiece = rows
	return func() { headPiece = before }
}

// SetBatchParts has joined layers done in so many parts of the batch, until restore is called.
func SetBatchParts(parts int) (restore func()) {
	before := batchParts
	batchParts = parts
	return func() { batchParts = before }
}

// Launches binds a program to made-up addresses as Compile does on an H200 and returns a line per
// kernel, in the order of their first launch: how often it is launched, its name, grid, block and
// shared memory. The first line counts all launches and has a digest of them with every argument.
func Launches(t *testing.T, p *kernel.Program, precision Precision) []string {
	t.Helper()
	if joinsLayers(precision, 9, 0, 227<<10) {
		p = joinLayers(p)
	}
	if precision == BF16 {
		p = keepMasks(p)
	}
	ls := bindStep(t, p, precision)
	sum := sha256.New()
	var order []string
	count := map[string]int{}
	for _, l := range ls {
		fmt.Fprintln(sum, l.grid, l.block, l.shared, l.args, l.beside, l.first, l.after, l.aside, l.part) // names may change
		line := fmt.Sprintf("%s %v %v %d", l.key(), l.grid, l.block, l.shared)
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
