package check

import (
	"math"
	"strings"
	"testing"
)

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

func TestCounted(t *testing.T) {
	for _, c := range []struct {
		stated, cost float64
		want         bool
	}{{27106.46, 2710646, true}, {27106.46, 2710646.5, true}, {27106.46, 2710647, false}, {0.5, 50, false}, {1, 100, true}} {
		if got := counted(c.stated, c.cost); strings.Contains(got, "counts the hundreds") != c.want {
			t.Errorf("%v: %q", c, got)
		}
	}
	if got := counted(69, 68) + counted(0, 0); got != "" {
		t.Error(got)
	}
}
