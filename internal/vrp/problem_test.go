package vrp

import "testing"

// TestMetrics: each metric on a triangle whose sides are whole, on one whose are not, and on
// TSPLIB's own examples of the two odd ones (Ulysses' first two places; att48's first two).
func TestMetrics(t *testing.T) {
	at := func(m Metric, x1, y1, x2, y2 float64) float64 {
		p := &Problem{Metric: m, Demand: []int32{0, 0}, X: []float64{x1, x2}, Y: []float64{y1, y2}}
		if there, back := p.Dist(0, 1), p.Dist(1, 0); there != back {
			t.Errorf("metric %d: %g there, %g back", m, there, back)
		}
		return p.Dist(0, 1)
	}
	for _, c := range []struct {
		m    Metric
		want float64 // from (0,0) to (1,1): 1.41421356...
	}{{Rounded, 1}, {Ceil, 2}, {Trunc, 1}, {Tenths, 1.4}, {Thousandths, 1.414}, {Att, 1}} {
		if got := at(c.m, 0, 0, 1, 1); got != c.want {
			t.Errorf("metric %d: %g, want %g", c.m, got, c.want)
		}
	}
	// Every whole triangle up to 200: a metric that cuts must not lose a unit to the last bit.
	for a := 1.0; a <= 200; a++ {
		for b := a; b <= 200; b++ {
			c := at(Thousandths, 0, 0, a, b)
			if c*c != a*a+b*b {
				continue
			}
			for _, m := range []Metric{Ceil, Trunc, Tenths, Rounded} {
				if got := at(m, 0, 0, a, b); got != c {
					t.Errorf("metric %d: %g by %g is %g, want %g", m, a, b, got, c)
				}
			}
		}
	}
	if got := at(Geo, 38.24, 20.42, 39.57, 26.15); got != 509 {
		t.Errorf("GEO: %g, want 509", got)
	}
	if got := at(Geo, 38.24, 20.42, 38.24, 20.42); got != 0 {
		t.Errorf("GEO at one place: %g", got)
	}
	if got := at(Att, 6734, 1453, 2233, 10); got != 1495 {
		t.Errorf("ATT: %g, want 1495", got)
	}
}

// Points in time are those of a day where there is a clock, whatever its unit.
func TestTimeText(t *testing.T) {
	for _, c := range []struct {
		clock, x float64
		want     string
	}{{1, 510, "08:30"}, {1, 510.5, "08:30:30"}, {60, 30600, "08:30"}, {1.0 / 60, 8.5, "08:30"}, {1, 59, "00:59"}, {1, 60, "01:00"}, {0, 510, "510"}, {1, -1, "-1"}} {
		if got := (&Problem{Clock: c.clock}).TimeText(c.x); got != c.want {
			t.Errorf("%g by a clock of %g is %s, want %s", c.x, c.clock, got, c.want)
		}
	}
}

// TestSpansReadAsClocksDo: lengths of time in hours and minutes where times are those of a day.
func TestSpansReadAsClocksDo(t *testing.T) {
	for _, c := range []struct {
		clock, x float64
		want     string
	}{{0, 73.25, "73.25"}, {1, 73.25, "01:13:15"}, {60, 4395, "01:13:15"}, {1, 0, "00:00"}, {1, 1.0 / 121, "less than a second"}, {1, 1.0 / 119, "00:00:01"}} {
		p := &Problem{Clock: c.clock}
		if got := p.SpanText(c.x); got != c.want {
			t.Errorf("%g at %g per minute: %s, want %s", c.x, c.clock, got, c.want)
		}
	}
}
