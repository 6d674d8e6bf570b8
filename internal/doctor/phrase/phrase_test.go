package phrase

import "testing"

// Milliseconds have the digits that mean something, at each border on both sides.
func TestFigure(t *testing.T) {
	for ms, want := range map[float64]string{
		0: "0.00", 100: "100", -100: "-100", 99.94: "99.9", -99.94: "-99.9", 10: "10.0", -10: "-10.0",
		9.99: "9.99", -9.99: "-9.99", 0.1: "0.10", -0.1: "-0.10", 0.0999: "0.100", 0.05: "0.050", 0.0012: "0.0012",
	} {
		if got := Figure(ms); got != want {
			t.Errorf("%v is %q, want %q", ms, got, want)
		}
	}
}
