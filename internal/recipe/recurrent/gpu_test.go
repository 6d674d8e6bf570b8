package recurrent

import (
	"context"
	"errors"
	"math"
	"testing"

	"haul/internal/cu/cutest"
	"haul/internal/kernel"
	"haul/internal/kernel/cuda"
)

// TestLearnersOnAGPU: a learner on a graphics card, which is interpreted here, acts as one on a
// CPU until it has learned, and then has its weights but for rounding.
func TestLearnersOnAGPU(t *testing.T) {
	defer cutest.Install(cutest.Ampere.With(true, true))()
	gpu, err := cuda.Open(cuda.Options{Precision: cuda.FP32})
	if err != nil {
		t.Fatal(err)
	}
	defer gpu.Close()
	s, w := small(), room(t, 3, 5)
	s.Steps, s.Passes, s.Envs, s.Hidden = 12, 1, 3, 8
	var weights [2][]float32
	for i, dev := range []kernel.Device{openCPU(t, 1), gpu} {
		r := newRooms(w, s.Envs, 1)
		l, err := newLearner(dev, &s, r.senses(), r)
		if err != nil {
			t.Fatal(err)
		}
		defer l.close()
		weights[i] = make([]float32, l.net.model.Layout().Len)
		if err := l.begin(3, 8); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the weights that are learned act too
			if err := errors.Join(l.collect(context.Background(), s.Rollout), l.improve(context.Background()), l.net.store.ReadWeights(weights[i])); err != nil {
				t.Fatal(err)
			}
		}
	}
	moved := 0
	for i, v := range weights[0] {
		if math.Abs(float64(weights[1][i]-v)) > 2e-4 {
			t.Fatalf("weight %d is %v on a card and %v on a CPU", i, weights[1][i], v)
		}
		if v != 0 {
			moved++
		}
	}
	if moved < len(weights[0])/2 {
		t.Errorf("%d of %d weights are not 0", moved, len(weights[0]))
	}
}
