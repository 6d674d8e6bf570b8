package reference

import (
	"math"
	"testing"

	"haul/internal/kernel"
)

// TestLossesByHand: cross-entropy with smoothing, and the clipped policy loss on both sides of the
// clip.
func TestLossesByHand(t *testing.T) {
	logits, d, sums := Matrix[float64]{[]float64{1, 0, -1, 2}, 2, 2, 2}, zeros(2, 2), make([]float64, 3)
	CrossEntropy(d, logits, []int32{1, 1}, nil, sums, &kernel.CrossEntropy{Columns: []int{2}, Smoothing: 0.25, Weight: 0.5})
	soft := func(a, b float64) float64 { return 1 / (1 + math.Exp(b-a)) } // probability of a
	smoothing := 0.25
	want := 0.0
	for r, row := range [][2]float64{{1, 0}, {-1, 2}} {
		p := soft(row[0], row[1])
		want += -smoothing/2*math.Log(p) - (1-smoothing/2)*math.Log(1-p)
		if got, dz := d.Row(r)[0], 0.5*(p-smoothing/2); math.Abs(got-dz) > 1e-12 {
			t.Errorf("slope of row %d is %v, want %v", r, got, dz)
		}
	}
	if math.Abs(sums[0]-want) > 1e-12 || sums[1] != 2 || sums[2] != 1 {
		t.Errorf("sums %v, want a loss of %v, 2 labels and 1 hit", sums, want)
	}
	o := &kernel.PPO{Clip: 0.25, ValueCoef: 0.5, EntropyCoef: 0.1, Weight: 1}
	for _, c := range []struct {
		then, adv float64
		loss      float64
		left      float64
	}{
		{math.Log(0.5), 2, -2, 0},       // ratio 1
		{math.Log(0.25), 2, -2.5, 1},    // ratio 2, held at 1.25
		{math.Log(0.25), -2, 4, 1},      // ratio 2, a bad action: not held
		{math.Log(0.8), 2, -1.25, 1},    // ratio 0.625, a good action: not held
		{math.Log(0.8), -2, 2 * .75, 1}, // held at 0.75
	} {
		sums, dout := make([]float64, 4), make([]float64, 3)
		ppo(dout, []float64{0, 0, 0.75}, []float64{1, c.then, c.adv, 0.25}, sums, o)
		if math.Abs(sums[0]-c.loss) > 1e-9 || math.Abs(sums[1]-0.25) > 1e-12 || math.Abs(sums[2]-math.Ln2) > 1e-12 || sums[3] != c.left {
			t.Errorf("advantage %v: sums %v, want %v, 0.25, log 2, %v", c.adv, sums, c.loss, c.left)
		}
	}
}
