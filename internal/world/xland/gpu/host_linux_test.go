package gpu

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"

	"haul/internal/rng"
	"haul/internal/world/xland"
)

// TestTheKernelsCodeOnAProcessor: the code of the kernels, compiled for a processor, does what
// xland.Batch does.
func TestTheKernelsCodeOnAProcessor(t *testing.T) {
	compiler := ""
	for _, name := range []string{"clang++-19", "clang++", "g++"} {
		if path, err := exec.LookPath(name); err == nil {
			compiler = path
			break
		}
	}
	if compiler == "" {
		t.Skip("no C++ compiler")
	}
	dir := t.TempDir()
	source, library := filepath.Join(dir, "host.cpp"), filepath.Join(dir, "host.so")
	if err := os.WriteFile(source, []byte(hostCode), 0o644); err != nil {
		t.Fatal(err)
	}
	if text, err := exec.Command(compiler, "-std=c++17", "-O1", "-shared", "-fPIC", "-Wno-unknown-pragmas", "-I", "src", "-o", library, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	handle, err := purego.Dlopen(library, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		t.Skip("libraries cannot be opened here: ", err)
	}
	var run func(parts *hostParts, actions unsafe.Pointer, steps, begins int32)
	purego.RegisterLibFunc(&run, handle, "run")
	compare(t, func(t *testing.T, w xland.World, tasks []xland.ID, key rng.JAXKey, actions []uint8) stepper {
		return newHost(t, w, tasks, key, actions, run)
	})
}

const hostCode = `
typedef unsigned int u32;
#define FN static inline
#define SLOW static
#include "xland.cuh"
struct Parts { u8 *views; float *paid; u8 *ended; u32 *state; u8 *grids; const u8 *programs; const int *task; const Room *room; const u8 *blank;
  const float *rewards; const u8 *can; int n; };
extern "C" void run(Parts *p, const u8 *actions, int steps, int begins) {
  Batch b = {p->views, p->paid, p->ended, p->state, p->grids, p->programs, p->task, {p->room, p->blank, p->rewards, p->can}, p->n};
  for (int i = 0; i < b.n; i++) {
    if (begins) begin(b, i);
    else advance(b, actions, steps, i);
  }
}
`

// hostParts mirror Parts.
type hostParts struct {
	views, paid, ended, state, grids, programs, task, room, blank, rewards, can unsafe.Pointer
	n                                                                           int32
}

type host struct {
	run     func(*hostParts, unsafe.Pointer, int32, int32)
	parts   hostParts
	views   []uint8
	paid    []float32
	ended   []uint8
	state   []uint32
	actions []uint8
	n       int
	kept    []any // what the parts point at
}

func newHost(t *testing.T, w xland.World, tasks []xland.ID, key rng.JAXKey, actions []uint8, run func(*hostParts, unsafe.Pointer, int32, int32)) *host {
	t.Helper()
	tables, err := w.Tables(tasks)
	if err != nil {
		t.Fatal(err)
	}
	n := len(tasks)
	h := &host{run: run, n: n, actions: actions, views: make([]uint8, n*w.View*w.View), paid: make([]float32, n), ended: make([]uint8, n), state: make([]uint32, stateWords*n)}
	task, grids := make([]int32, n), make([]uint8, n*len(tables.Blank))
	for i := range tasks {
		k := key.Split(uint32(i))
		task[i], h.state[i], h.state[n+i] = int32(i), k[0], k[1]
	}
	h.kept = []any{tables, task, grids}
	h.parts = hostParts{unsafe.Pointer(&h.views[0]), unsafe.Pointer(&h.paid[0]), unsafe.Pointer(&h.ended[0]), unsafe.Pointer(&h.state[0]), unsafe.Pointer(&grids[0]),
		unsafe.Pointer(&tables.Programs[0]), unsafe.Pointer(&task[0]), unsafe.Pointer(&tables.Room[0]), unsafe.Pointer(&tables.Blank[0]),
		unsafe.Pointer(&tables.Rewards[0]), unsafe.Pointer(&tables.Can[0]), int32(n)}
	h.run(&h.parts, nil, 0, 1)
	return h
}

func (h *host) Step(from, steps int) error {
	h.run(&h.parts, unsafe.Pointer(&h.actions[from*h.n]), int32(steps), 0)
	return nil
}

func (h *host) Seen(views []uint8, rewards []float32, ends []uint8) error {
	copy(views, h.views)
	copy(rewards, h.paid)
	copy(ends, h.ended)
	return nil
}

func (h *host) Counts() (episodes, goals int, err error) {
	for i := range h.n {
		episodes, goals = episodes+int(h.state[5*h.n+i]), goals+int(h.state[6*h.n+i])
	}
	return episodes, goals, nil
}
