package kerneltest

import (
	"fmt"
	"slices"
	"testing"

	"haul/internal/kernel"
)

// largeShapes are of a model's own width, about the sizes where a device may have to change from
// kernels that hold an instance to kernels that read it in parts.
func largeShapes() []shape {
	var out []shape
	for i, n := range []int{127, 128, 129, 191, 200, 255, 256, 257, 320, 500, 1023, 1024, 1025, 2000} {
		if i%2 == 0 {
			out = append(out, shape{n, 8, 16})
		} else {
			out = append(out, shape{n, 4, 32})
		}
	}
	return out
}

// largeFleets are of largeShapes, one start and several, and of a rule set that no kernel holds.
func largeFleets() []fleet {
	var out []fleet
	for i, s := range largeShapes() {
		f := fleet{shape: s, starts: 1, capacity: 50, temperature: []float32{1, 2.5, 0.6}[i%3], pairs: i%3 == 1, near: []float32{0, 0.3}[i%2]}
		out = append(out, f)
		f.starts, f.forced, f.pairs = []int{5, 20, 17}[i%3], true, i%2 == 0
		if s.nodes > 1000 { // which the reference would take minutes for
			f.starts = 5
		}
		out = append(out, f)
		if i%3 == 0 && s.nodes <= 320 {
			out = append(out, f.view())
		}
	}
	// the most nodes of kernels that hold all of an instance, and starts for more than a block
	for i, s := range []shape{{129, 4, 32}, {136, 8, 16}, {131, 4, 32}} {
		f := fleet{shape: s, starts: []int{33, 20, 130}[i], forced: true, capacity: 40, temperature: 1, near: []float32{0, 0.2, 0}[i], pairs: i == 2}
		if i == 1 {
			f.most = 30 // demands past any table of them
		}
		out = append(out, f)
	}
	heavy := fleet{shape: shape{140, 8, 16}, starts: 8, forced: true, capacity: 90, temperature: 1, most: 60}
	tied := fleet{shape: shape{130, 4, 32}, starts: 6, forced: true, capacity: 40, temperature: 1, flat: true}
	// so cold that no one reference serves a row's powers
	cold := fleet{shape: shape{135, 4, 32}, starts: 6, forced: true, capacity: 50, temperature: 0.25}
	return append(append(out, heavy, tied, cold), largeRuled()...)
}

// RunLarge runs attention, rollouts and the gradients of their decisions at sizes of at most so
// many nodes, past those that a device may hold whole, twice over, as RunStarts holds them.
func RunLarge(t *testing.T, unit float64, nodes int, open func(t *testing.T) kernel.Device) {
	fleets := slices.DeleteFunc(largeFleets(), func(f fleet) bool { return f.nodes > nodes })
	shapes := slices.DeleteFunc(largeShapes(), func(s shape) bool { return s.nodes > nodes })
	// each is a subtest of its own, so that one run may take the sizes that it has time for
	each := func(test func(*testing.T, kernel.Device, []fleet)) func(*testing.T, kernel.Device) {
		return func(t *testing.T, dev kernel.Device) {
			for _, f := range fleets {
				t.Run(f.String(), func(t *testing.T) { test(t, dev, []fleet{f}) })
			}
		}
	}
	parts := []part{
		{"attention", func(t *testing.T, dev kernel.Device) {
			for _, s := range shapes {
				t.Run(fmt.Sprint("N=", s.nodes), func(t *testing.T) { attentionOf(t, dev, []shape{s}) })
			}
		}},
		{"rollout", each(testStartsRollout)},
		{"rollout.grad", each(testStartsGrad)},
	}
	run(t, parts, func(t *testing.T) kernel.Device { return rounded{Device: open(t), unit: unit} })
}
