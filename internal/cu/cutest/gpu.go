// Package cutest is a CUDA driver without a GPU, for tests: it implements the functions that
// package cu calls with host memory and the interpreter of package ptx. A launch has completed when
// its call returns. A fault of a kernel is CUDA_ERROR_ILLEGAL_ADDRESS, with a message that names
// the kernel, the line, the block and the thread. As with a real GPU, every later call then fails
// with it, until Install is called again.
//
// Haul itself never imports this package. Memory that kernels or copies access is never in Go's
// heap.
package cutest

import (
	"fmt"
	"os"
	"sync"

	"haul/internal/cu"
	"haul/internal/ptx"
)

// GPU describes an interpreted GPU.
type GPU struct {
	Name            string
	Major, Minor    int // compute capability
	Multiprocessors int
	Memory          int // bytes
	Shared          int // the largest shared memory of a block, in bytes
	Races           bool
	// of the launches of a graph that may run next, the last one added runs first
	Late bool
}

// Ampere runs the kernels for every GPU, Hopper also the modules for sm_90a. Both have few
// multiprocessors, so that kernels launch few blocks.
var (
	Ampere = GPU{Name: "interpreted sm_80", Major: 8, Multiprocessors: 4, Memory: 8 << 30, Shared: 163 << 10}
	Hopper = GPU{Name: "interpreted sm_90a", Major: 9, Multiprocessors: 4, Memory: 8 << 30, Shared: 227 << 10}
)

// Install makes cu.Open find these GPUs, until restore is called. Open contexts keep their GPU.
func Install(gpus ...GPU) (restore func()) {
	use.Lock()
	before := here
	here = &machine{gpus: gpus, handles: map[uintptr]any{}, owned: map[uint64][]byte{}}
	use.Unlock()
	undo := cu.Replace(symbol)
	return func() {
		undo()
		use.Lock()
		here = before
		use.Unlock()
	}
}

// Variable is the environment variable that selects an interpreted GPU by its architecture, "sm_80"
// or "sm_90a". A suffix ",races" turns on the detection of races in shared memory; ",late" runs the
// launches of a graph as late as its edges allow.
const Variable = "HAUL_CARD"

// Wanted installs the GPU that the environment selects, until the process ends.
func Wanted() error {
	switch want := os.Getenv(Variable); want {
	case "":
	case "sm_80":
		Install(Ampere)
	case "sm_80,races":
		Install(Ampere.With(true, false))
	case "sm_80,late":
		Install(Ampere.With(false, true))
	case "sm_90a":
		Install(Hopper)
	case "sm_90a,races":
		Install(Hopper.With(true, false))
	case "sm_90a,late":
		Install(Hopper.With(false, true))
	default:
		return fmt.Errorf("%s=%s: sm_80 or sm_90a is known, with ,races or ,late behind it", Variable, want)
	}
	return nil
}

// With returns the GPU with these checks.
func (c GPU) With(races, late bool) GPU {
	c.Races, c.Late = races, late
	return c
}

// use guards here during every call.
var (
	use  sync.Mutex
	here *machine
)

// machine is the state of the driver.
type machine struct {
	gpus         []GPU
	memory       ptx.Memory
	owned        map[uint64][]byte // device memory and page-locked memory, by address
	taken        int               // bytes of device memory in use
	handles      map[uintptr]any
	last         uintptr
	fault        error // fault of a kernel: all later calls fail
	Instructions int64
}

func (m *machine) add(v any) uintptr {
	m.last++
	m.handles[m.last] = v
	return m.last
}

// find returns the object of a handle.
func find[T any](h uintptr) (T, bool) {
	v, ok := here.handles[h].(T)
	return v, ok
}

// drop deletes a handle to an object of type T, and reports whether it existed.
func drop[T any](h uintptr) bool {
	_, ok := find[T](h)
	delete(here.handles, h)
	return ok
}

// Executed returns the number of warp instructions that kernels have executed since Install.
func Executed() int64 {
	use.Lock()
	defer use.Unlock()
	return here.Instructions
}
