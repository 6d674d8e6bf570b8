package vrp

import (
	"math"
	"strings"
	"testing"
)

// Routes are judged as they are asked for, and a duration that is no number is refused.
func TestRoutesAreJudged(t *testing.T) {
	p, err := New(points(3), ones(3), 2)
	if err != nil {
		t.Fatal(err)
	}
	for name, routes := range map[string][][]int{"over the capacity": {{1, 2, 3}}, "a customer left out": {{1, 2}}, "a customer twice": {{1, 2}, {2, 3}}} {
		if err := p.Validate(routes); err == nil {
			t.Errorf("%s passes", name)
		}
	}
	if err := p.Validate([][]int{{1, 2}, {3}}); err != nil {
		t.Error(err)
	}
	for _, d := range []float64{math.NaN(), -1, -math.SmallestNonzeroFloat64} {
		if _, err := NewLimited(points(3), ones(3), 2, Limits{MaxDuration: d}); err == nil || !strings.Contains(err.Error(), "duration") {
			t.Errorf("a duration of %v: %v", d, err)
		}
	}
}
