package trace

import (
	"testing"
)

func TestNanoseconds(t *testing.T) {
	for _, c := range []struct {
		in   string
		want int64
		ok   bool
	}{
		{"0", 0, true}, {"12", 12_000, true}, {"12.5", 12_500, true}, {"3845033789199.435", 3845033789199435, true},
		{"0.0019", 1, true}, {"-3.25", -3250, true}, {"1.5e3", 1_500_000, true}, {"1E-3", 1, true},
		{"", 0, false}, {"-", 0, false}, {"x", 0, false}, {"inf", 0, false}, {"1e300", 0, false}, {"99999999999999999999", 0, false}, {"null", 0, false},
	} {
		got, ok := nanoseconds([]byte(c.in))
		if got != c.want || ok != c.ok {
			t.Errorf("%q: %d %v, want %d %v", c.in, got, ok, c.want, c.ok)
		}
	}
}
