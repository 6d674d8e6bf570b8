package analysis

import (
	"math"
	"testing"
)

// A rank on a slower core differs from a rank with one slow operator, and needs enough operators.
func TestSlower(t *testing.T) {
	rank := func(kinds int, times func(kind int) float64) *Analysis {
		a := &Analysis{pace: map[string]float64{}}
		for k := range kinds {
			a.pace[string(rune('a'+k))] = 1000 * float64(k+1) * times(k)
		}
		return a
	}
	even := func(int) float64 { return 1 }
	for _, x := range []struct {
		name       string
		kinds      int
		times      func(kind int) float64
		middle     float64
		low, found float64
	}{
		{"as the others", 20, even, 1, 1, 20},
		{"a slower core", 20, func(k int) float64 { return 1.5 + 0.02*float64(k) }, 1.7, 1.6, 20},
		{"one slow operator", 20, func(k int) float64 { return map[bool]float64{true: 50, false: 1}[k == 3] }, 1, 1, 20},
		{"the fewest kinds", paceKinds, func(int) float64 { return 2 }, 2, 2, paceKinds},
		{"too few", paceKinds - 1, func(int) float64 { return 2 }, 0, 0, 0},
	} {
		ranks := []*Analysis{rank(20, even), rank(x.kinds, x.times), rank(20, even)}
		middle, low, high, kinds := Slower(ranks, 1)
		if math.Abs(middle-x.middle) > 0.01 || math.Abs(low-x.low) > 0.01 || high < low || kinds != int(x.found) {
			t.Errorf("%s: %v, from %v to %v, %d kinds; want %v, from %v, %v kinds", x.name, middle, low, high, kinds, x.middle, x.low, x.found)
		}
	}
	if _, _, _, kinds := Slower([]*Analysis{rank(20, even)}, 0); kinds != 0 {
		t.Error("a rank alone is compared with nobody")
	}
}
