package eval

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
