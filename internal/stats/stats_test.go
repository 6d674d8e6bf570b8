package stats

import (
	"math"
	"testing"
)

// TestPairedTest compares with closed forms: with one and two degrees of freedom the distribution
// function is elementary.
func TestPairedTest(t *testing.T) {
	twoDF := func(t float64) float64 { return 0.5 + t/(2*math.Sqrt(2+t*t)) }
	for _, c := range []struct {
		name string
		a, b []float64
		want float64
	}{
		// differences -1, -3: t = -2
		{"one degree", []float64{1, 2}, []float64{2, 5}, 0.5 + math.Atan(-2)/math.Pi},
		{"two degrees", []float64{1, 2, 3}, []float64{2, 4, 6}, twoDF(-2 * math.Sqrt(3))}, // -1, -2, -3
		{"the worse candidate", []float64{2, 4, 6}, []float64{1, 2, 3}, twoDF(2 * math.Sqrt(3))},
		{"no difference", []float64{1, 2, 3}, []float64{1, 2, 3}, 1},
		{"the same gain everywhere", []float64{1, 2, 3}, []float64{2, 3, 4}, 0},
		{"one pair tells nothing", []float64{1}, []float64{2}, 1},
	} {
		if got := PairedTest(c.a, c.b); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: p = %v, want %v", c.name, got, c.want)
		}
	}
	// Student's own sleep data (1908), ten patients, two drugs: t = -4.0621, p = 0.001416 one-sided.
	drug1 := []float64{0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0}
	drug2 := []float64{1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4}
	if p := PairedTest(drug1, drug2); math.Abs(p-0.001416) > 1e-6 {
		t.Errorf("sleep data: p = %v", p)
	}
}

func TestMeans(t *testing.T) {
	mean, se := MeanSE([]float64{1, 2, 3, 4})
	if mean != 2.5 || math.Abs(se-math.Sqrt(5.0/3/4)) > 1e-15 {
		t.Errorf("mean %v, se %v", mean, se)
	}
	// Logarithms 0 and log 4: their standard error is log 2, and that of the mean is as large a share
	// of it.
	if g, se := Geometric([]float64{1, 4}); math.Abs(g-2) > 1e-15 || math.Abs(se-2*math.Ln2) > 1e-15 {
		t.Errorf("geometric mean %v ± %v", g, se)
	}
	// Gaps of 1/10, 0 and 0: an instance that costs nothing either way has none.
	gap, gapSE := Gap([]float64{2.2, 4, 0}, []float64{2, 4, 0})
	if !(math.Abs(gap-0.1/3) <= 1e-12) || !(math.Abs(gapSE-0.1/3) <= 1e-12) {
		t.Errorf("gap %v ± %v", gap, gapSE)
	}
	for _, c := range []struct {
		v        []float64
		mean, se float64
	}{{nil, 0, 0}, {[]float64{7}, 7, 0}, {[]float64{3, 5}, 4, 1}} {
		if mean, se := MeanSE(c.v); mean != c.mean || se != c.se {
			t.Errorf("%v: %v ± %v, want %v ± %v", c.v, mean, se, c.mean, c.se)
		}
	}
	if ShareOf(3, 4) != 0.75 || ShareOf(3, 0) != 0 {
		t.Errorf("shares %v and %v", ShareOf(3, 4), ShareOf(3, 0))
	}
}
