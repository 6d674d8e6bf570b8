// Package cutest is a CUDA driver without a card, for tests: the entry points that package cu
// calls, over memory of the host and the interpreter of package ptx. A launch has run when its
// call returns. What a kernel does wrong is the driver's CUDA_ERROR_ILLEGAL_ADDRESS, and the
// driver's words for it name the kernel, the line, the block and the thread; as on a card, every
// later call fails with it, until the card is put in place again.
//
// What a reader could break: the program must never import this package, and no memory that a
// kernel or a copy touches may lie in Go's heap.
package cutest

import (
	"fmt"
	"os"
	"sync"

	"haul/internal/cu"
	"haul/internal/ptx"
)

// Card is what the driver says of itself.
type Card struct {
	Name            string
	Major, Minor    int // compute capability
	Multiprocessors int
	Memory          int // bytes
	Shared          int // the most that a block may have, in bytes
	Races           bool
	// of what a graph leaves open, the launch that was added last runs first
	Late bool
}

// Ampere runs the kernels that every GPU runs, Hopper also the modules for sm_90a. Both have few
// multiprocessors, so that few blocks are as many as the kernels want.
var (
	Ampere = Card{Name: "interpreted sm_80", Major: 8, Multiprocessors: 4, Memory: 8 << 30, Shared: 163 << 10}
	Hopper = Card{Name: "interpreted sm_90a", Major: 9, Multiprocessors: 4, Memory: 8 << 30, Shared: 227 << 10}
)

// Install puts cards where cu.Open finds them, until restore is called. Contexts that are open keep
// theirs.
func Install(cards ...Card) (restore func()) {
	use.Lock()
	before := here
	here = &machine{cards: cards, handles: map[uintptr]any{}, owned: map[uint64][]byte{}}
	use.Unlock()
	undo := cu.Replace(symbol)
	return func() {
		undo()
		use.Lock()
		here = before
		use.Unlock()
	}
}

// Variable is the environment's wish for an interpreted card: its architecture, "sm_80" or
// "sm_90a". With ",races" behind it shared memory is watched for races, with ",late" launches of a
// graph run as late as its edges allow.
const Variable = "HAUL_CARD"

// Wanted installs the card that the environment asks for, for the rest of the process.
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

// With is the card with its checks.
func (c Card) With(races, late bool) Card {
	c.Races, c.Late = races, late
	return c
}

// use holds the machine while a call is under way.
var (
	use  sync.Mutex
	here *machine
)

// machine is all that the driver keeps.
type machine struct {
	cards        []Card
	memory       ptx.Memory
	owned        map[uint64][]byte // device memory and locked memory, by address
	taken        int               // bytes of device memory
	handles      map[uintptr]any
	last         uintptr
	fault        error // of a kernel: all calls fail after it
	Instructions int64
}

func (m *machine) add(v any) uintptr {
	m.last++
	m.handles[m.last] = v
	return m.last
}

// find is a handle's object.
func find[T any](h uintptr) (T, bool) {
	v, ok := here.handles[h].(T)
	return v, ok
}

// drop forgets a handle of that kind.
func drop[T any](h uintptr) bool {
	_, ok := find[T](h)
	delete(here.handles, h)
	return ok
}

// Executed is how many instructions of warps the kernels have taken since Install.
func Executed() int64 {
	use.Lock()
	defer use.Unlock()
	return here.Instructions
}
