package gpu

import (
	"slices"
	"testing"

	"haul/internal/cu"
	"haul/internal/rng"
	"haul/internal/world/xland"
)

// stepper is a set of environments to compare with those on a CPU.
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

// TestStepsAreThoseOfTheCPU: views, rewards and ends of every step on a GPU equal the
// results of xland.Batch.
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

// compare steps environments and an xland.Batch, with one step and with several steps per launch.
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
