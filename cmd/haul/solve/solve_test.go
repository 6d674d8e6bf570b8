package solve

import (
	"math"
	"testing"
)

func TestSampleAgreesWithItsDefinition(t *testing.T) {
	values := []float64{0.41, 0.39, 0.47, 0.3}
	var s sample
	sum, sumSq := 0.0, 0.0
	for _, v := range values {
		s.add(v)
		sum += v
	}
	for _, v := range values {
		sumSq += (v - sum/4) * (v - sum/4)
	}
	if se := *s.standardError(); math.Abs(s.mean-sum/4) > 1e-12 || math.Abs(se-math.Sqrt(sumSq/3/4)) > 1e-12 {
		t.Errorf("mean %v ± %v", s.mean, se)
	}
}

func TestSameCost(t *testing.T) {
	for _, c := range []struct {
		stated, cost float64
		want         bool
	}{
		{68, 68, true}, {67, 68, false}, {68.5, 68, false}, {524.61, 524.6111, true}, {524.62, 524.6111, false}, {math.NaN(), 68, true},
	} {
		if got := sameCost(c.stated, c.cost); got != c.want {
			t.Errorf("stated %v, true %v: %v", c.stated, c.cost, got)
		}
	}
}
