package vrp

import (
	"math"
	"strings"
	"testing"

	engine "haul/internal/vrp"
	"haul/vrp/internal/link"
)

// What a solver made is judged before anybody sees it, and a duration that is no number is refused.
func TestSolversAreJudged(t *testing.T) {
	p, err := NewLimited(points(3), ones(3), 2, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for name, routes := range map[string][][]int32{"over the capacity": {{1, 2, 3}}, "a customer left out": {{1, 2}}, "a customer twice": {{1, 2}, {2, 3}}} {
		if s, err := link.Outward(p, engine.Solution{Routes: routes}); err == nil || !strings.Contains(err.Error(), "invalid routes") {
			t.Errorf("%s: %v, %v", name, s, err)
		}
	}
	if s, err := link.Outward(p, engine.Solution{Routes: [][]int32{{1, 2}, {3}}}); err != nil || len(s.(*Solution).Routes) != 2 {
		t.Errorf("%v, %v", s, err)
	}
	for _, d := range []float64{math.NaN(), -1, -math.SmallestNonzeroFloat64} {
		if _, err := NewLimited(points(3), ones(3), 2, Limits{MaxDuration: d}); err == nil || !strings.Contains(err.Error(), "duration") {
			t.Errorf("a duration of %v: %v", d, err)
		}
	}
}
