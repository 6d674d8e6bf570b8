package gpu

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"

	"haul/internal/cu"
	"haul/internal/rng"
	"haul/internal/world/xland"
)

// stepper is environments that step beside those of a CPU.
type stepper interface {
	Step(from, steps int) error
	Seen(views []uint8, rewards []float32, ends []uint8) error
	Counts() (episodes, goals int, err error)
}

// cases are every layout, view and kind of tasks, with walls that hide and without. Short episodes
// draw many starts.
var cases = []struct {
	env, tasks    string
	view, horizon int
	opaque        bool
}{
	{"R1-9x9", "trivial", 5, 243, false},
	{"R1-9x9", "small", 3, 20, true},
	{"R2-9x9", "medium", 7, 30, true},
	{"R4-13x13", "high", 5, 50, false},
	{"R6-13x13", "small", 7, 25, true},
	{"R9-16x16", "high", 5, 40, true},
}

// TestStepsAreThoseOfTheCPU: on the card views, rewards and ends of every step are those of
// xland.Batch.
func TestStepsAreThoseOfTheCPU(t *testing.T) {
	driver, err := cu.Open()
	if err != nil {
		t.Skip("no GPU: ", err)
	}
	if found, err := driver.Devices(); err != nil || len(found) == 0 {
		t.Skip("no GPU: ", err)
	}
	compare(t, func(t *testing.T, w xland.World, tasks []xland.ID, key rng.JAXKey, actions []uint8) stepper {
		b, err := New(0, w, tasks, key)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		})
		if err := b.Actions(actions); err != nil {
			t.Fatal(err)
		}
		return b
	})
}

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

// compare steps environments beside xland.Batch, one at a time and several in a launch.
func compare(t *testing.T, open func(t *testing.T, w xland.World, tasks []xland.ID, key rng.JAXKey, actions []uint8) stepper) {
	const envs, steps, together = 129, 320, 16 // one environment past a block
	for _, c := range cases {
		t.Run(c.env+"/"+c.tasks, func(t *testing.T) {
			w, err := xland.New(c.env, xland.Tasks{Name: c.tasks, Seed: xland.PublicSeed})
			if err != nil {
				t.Fatal(err)
			}
			w.View, w.Horizon, w.Opaque = c.view, c.horizon, c.opaque
			if err := w.Check(); err != nil {
				t.Fatal(err)
			}
			tasks, actions := make([]xland.ID, envs), make([]uint8, envs*steps)
			for i := range tasks {
				tasks[i] = xland.ID(i)
			}
			for i := range actions {
				actions[i] = uint8(rng.Below(rng.At(3, uint64(i), 0, rng.Actions)[0], uint32(xland.NumActions)))
			}
			want, err := xland.NewBatch(w, tasks, rng.NewJAXKey(7), 1)
			if err != nil {
				t.Fatal(err)
			}
			got := open(t, w, tasks, rng.NewJAXKey(7), actions)
			views, rewards, ends := make([]uint8, len(want.Views)), make([]float32, envs), make([]uint8, envs)
			see := func(step int) {
				t.Helper()
				if err := got.Seen(views, rewards, ends); err != nil {
					t.Fatal(err)
				}
				for i := range envs {
					n := w.View * w.View
					if !slices.Equal(views[i*n:][:n], want.Views[i*n:][:n]) {
						t.Fatalf("step %d, environment %d sees %v, on a CPU %v", step, i, views[i*n:][:n], want.Views[i*n:][:n])
					}
					if step > 0 && (rewards[i] != want.Rewards[i] || (ends[i] != 0) != want.Ends[i]) {
						t.Fatalf("step %d, environment %d: %v, ends %d, on a CPU %v, %v", step, i, rewards[i], ends[i], want.Rewards[i], want.Ends[i])
					}
				}
			}
			see(0)
			episodes, goals := 0, 0
			for step := 0; step < steps; {
				each := 1
				if step >= steps/2 {
					each = together
				}
				if err := got.Step(step, each); err != nil {
					t.Fatal(err)
				}
				for range each {
					want.Step(actions[step*envs:][:envs])
					for i, ended := range want.Ends {
						if ended {
							episodes++
						}
						if want.Rewards[i] > 0 {
							goals++
						}
					}
					step++
				}
				see(step)
			}
			e, g, err := got.Counts()
			if err != nil || e != episodes || g != goals || episodes == 0 || goals == 0 {
				t.Errorf("%d episodes, %d of them with the goal, on a CPU %d and %d: %v", e, g, episodes, goals, err)
			}
		})
	}
}
