package kerneltest

import (
	"slices"
	"testing"

	"haul/internal/kernel"
	"haul/internal/model"
)

// testFeeder trains on the same rows three ways, written before each step, fed from slabs that are
// filled again as soon as they are taken, and drawn on the device, and expects the same bits.
func testFeeder(t *testing.T, dev kernel.Device) {
	const steps, slabs = 7, 3
	a := agent{ADConfig: model.ADConfig{Width: 16, Heads: 2, Layers: 1, Feed: 32, Dropout: 0.1}, tokens: 19, compressed: true, batch: few(dev, 19)}
	written := a.on(t, dev)
	for i := range steps {
		written.write(t, a.ints(uint64(i*a.batch)))
		check(t, written.run.Run())
	}
	want := written.weights(t)

	fed := a.on(t, dev)
	feeder, ok := fed.run.(kernel.Feeder)
	if !ok {
		t.Fatalf("%s: the runner takes no slabs", dev.Name())
	}
	// the device is busy when slabs are made: what prepares them must not come after the first rows
	for range 3 * steps {
		check(t, written.run.Run())
	}
	ring, err := feeder.NewSlabs(fed.tensors(), slabs)
	check(t, err)
	if len(ring) != slabs || ring[0].ID == ring[1].ID {
		t.Fatalf("%d slabs, the first two numbered %d and %d; want %d, each with its own number", len(ring), ring[0].ID, ring[1].ID, slabs)
	}
	for i := range steps {
		slab := ring[i%slabs]
		if i >= slabs {
			check(t, feeder.Taken(slab))
		}
		for j, values := range a.ints(uint64(i * a.batch)) {
			if copy(slab.Ints[j], values) != len(values) || len(slab.Ints[j]) != len(values) {
				t.Fatalf("slab for %v has room for %d, want %d", fed.tensors()[j], len(slab.Ints[j]), len(values))
			}
		}
		check(t, feeder.Feed(slab))
	}
	if !slices.Equal(fed.weights(t), want) {
		t.Error("weights differ between rows that were written and rows that were fed")
	}
	if state, err := fed.run.State(); err != nil || state.Step != steps || state.Instances != uint64(steps*a.batch) {
		t.Errorf("state %+v, %v after %d fed steps", state, err, steps)
	}
	check(t, fed.run.Close())
	check(t, written.run.Close())

	a.drawn = true
	drawn := a.on(t, dev)
	for range steps {
		check(t, drawn.run.Run())
	}
	if !slices.Equal(drawn.weights(t), want) {
		t.Error("weights differ between rows that were written and rows that the device drew")
	}
	check(t, drawn.run.Close())
}
