package draw

import (
	"testing"

	"gonum.org/v1/plot/vg"
	"pgregory.net/rapid"
)

// TestAxesHoldTheirData: for any values, points and markers are inside the rectangle of the axes,
// right of and above the figures, and a larger value is higher. Values may differ by less than
// figures can show.
func TestAxesHoldTheirData(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, err := newCanvas(SVG, 400, 300)
		if err != nil {
			t.Fatal(err)
		}
		a := axes{pen: pen{c}, x: nothing, y: nothing}
		points := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) point {
			return point{float64(rapid.IntRange(0, 500).Draw(t, "x")), rapid.Float64Range(-1e4, 1e4).Draw(t, "y")}
		}), 0, 20).Draw(t, "points")
		for _, p := range points {
			a.x.include(p.X)
			a.y.include(p.Y)
		}
		a.widen(rapid.Bool().Draw(t, "from zero"))
		from, to := vg.Point{X: 10, Y: 20}, vg.Point{X: 390, Y: 280}
		a.frame(from, to, "epoch")
		if !(from.X < a.min.X && a.min.X < a.max.X && a.max.X < to.X && from.Y < a.min.Y && a.min.Y < a.max.Y && a.max.Y < to.Y) {
			t.Fatalf("data between %v and %v of %v and %v", a.min, a.max, from, to)
		}
		for i, p := range points {
			at := a.at(p.X, p.Y)
			if at.X < a.min.X-1e-6 || at.X > a.max.X+1e-6 || at.Y < a.min.Y-1e-6 || at.Y > a.max.Y+1e-6 {
				t.Fatalf("%v lies at %v, outside %v and %v", p, at, a.min, a.max)
			}
			if i > 0 && (p.Y > points[i-1].Y+1e-3) != (at.Y > a.at(points[i-1].X, points[i-1].Y+1e-3).Y) {
				t.Fatalf("%v is not in order with %v", p, points[i-1])
			}
		}
	})
}
