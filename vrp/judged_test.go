package vrp

import (
	"math"
	"strings"
	"testing"

	engine "haul/internal/vrp"
	"haul/vrp/internal/link"
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
		if _, err := NewLimited(points(3), ones(3), 2, Limits{MaxDuration: d}); err == nil || !strings.Contains(err.Error(), "a route's duration is limited to") {
			t.Errorf("a duration of %v: %v", d, err)
		}
	}
}

// What a solver of another package made is judged before anybody sees it.
func TestSolversAreJudged(t *testing.T) {
	p, err := New(points(3), ones(3), 2)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := link.Outward(p, engine.Solution{Routes: [][]int32{{1, 2, 3}}}); err == nil || !strings.Contains(err.Error(), "invalid routes") {
		t.Errorf("%v, %v", s, err)
	}
	if s, err := link.Outward(p, engine.Solution{Routes: [][]int32{{1, 2}, {3}}}); err != nil || len(s.(*Solution).Routes) != 2 {
		t.Errorf("%v, %v", s, err)
	}
}
