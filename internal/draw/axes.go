package draw

import (
	"image/color"
	"math"
	"strconv"

	"gonum.org/v1/plot/vg"
)

// axes are two linear axes on a canvas in a plain style: grey figures, horizontal grid lines, no
// axis lines. They replace gonum's plot, which would add 6 MB to the binary for fonts and formats
// that are not used.
//
// The caller includes all data first, then calls frame, which fixes the ranges, and then draws.
type axes struct {
	pen
	x, y     span
	min, max vg.Point // corners of the rectangle for data

	xFigure, yFigure func(v float64) string // formats of figures; nil: the value itself
}

// span is a range of values. It is empty if min is above max.
type span struct{ min, max float64 }

var nothing = span{math.Inf(1), math.Inf(-1)}

func (s *span) include(v float64) { s.min, s.max = min(s.min, v), max(s.max, v) }

const (
	axisGap    = vg.Length(5)   // between the figures and the data
	axisMarker = vg.Length(2.6) // radius of a point of a curve
)

var gridColour = color.NRGBA{R: 0xe6, G: 0xe6, B: 0xe2, A: 0xff}

// widen adds space above and below the data, and gives an empty or single-point range a width.
func (a *axes) widen(fromZero bool) {
	if a.x.min > a.x.max {
		a.x, a.y = span{0, 1}, span{0, 1}
	}
	if a.x.min == a.x.max {
		a.x.min, a.x.max = a.x.min-0.5, a.x.max+0.5
	}
	if a.y.min > a.y.max { // another panel has points, this one has none
		a.y = span{0, 1}
	}
	room := max(1e-3, 0.05*math.Abs(a.y.max))
	// if values differ by almost nothing, figures would be wider than the picture
	if spread := a.y.max - a.y.min; spread > 0 {
		room = max(0.06*spread, 1e-7*max(1, math.Abs(a.y.max), math.Abs(a.y.min)))
	}
	low := a.y.min
	a.y.max += room
	a.y.min -= room
	if fromZero && low >= 0 { // a value below 0 stays visible
		a.y.min = 0
	}
}

// frame draws the grid, the figures and the name of the x axis inside the rectangle. The rest of it
// is for the data. Points at the edge and the last figure of the x axis stay inside.
func (a *axes) frame(from, to vg.Point, name string) {
	f := face(10, false)
	xs, ys := formatTicks(ticks(a.x, true), a.xFigure), formatTicks(ticks(a.y, a.yFigure != nil), a.yFigure)
	e := f.Extents()
	line, widest := e.Ascent+e.Descent, vg.Length(0)
	for _, t := range ys {
		widest = max(widest, f.Width(t.label))
	}
	last := vg.Length(0) // half the width of the last figure, which may extend past the data
	if n := len(xs); n > 0 {
		last = f.Width(xs[n-1].label) / 2
	}
	a.min = vg.Point{X: from.X + widest + 1.5*axisGap + axisMarker, Y: from.Y + 2*line + axisGap}
	a.max = vg.Point{X: to.X - max(last, axisMarker), Y: to.Y - axisMarker}
	for _, t := range ys {
		y := a.at(0, t.value).Y
		a.line(gridColour, 0.25, vg.Point{X: a.min.X, Y: y}, vg.Point{X: a.max.X, Y: y})
		a.text(faded, f, vg.Point{X: from.X + widest - f.Width(t.label), Y: y - (e.Ascent-e.Descent)/2}, t.label)
	}
	for _, t := range xs {
		a.text(faded, f, vg.Point{X: a.at(t.value, 0).X - f.Width(t.label)/2, Y: from.Y + line + e.Descent}, t.label)
	}
	a.text(faded, f, vg.Point{X: (a.min.X + a.max.X - f.Width(name)) / 2, Y: from.Y + e.Descent}, name)
}

// at returns the position of a point of the data on the canvas.
func (a *axes) at(x, y float64) vg.Point {
	return vg.Point{X: a.min.X + (a.max.X-a.min.X)*vg.Length((x-a.x.min)/(a.x.max-a.x.min)),
		Y: a.min.Y + (a.max.Y-a.min.Y)*vg.Length((y-a.y.min)/(a.y.max-a.y.min))}
}

func (a *axes) all(points []point) []vg.Point {
	out := make([]vg.Point, len(points))
	for i, p := range points {
		out[i] = a.at(p.X, p.Y)
	}
	return out
}

// tick is a figure at an axis.
type tick struct {
	value float64
	label string
}

// formatTicks formats ticks with the figure format of their axis.
func formatTicks(ticks []tick, figure func(v float64) string) []tick {
	if figure == nil {
		return ticks
	}
	for i := range ticks {
		ticks[i].label = figure(ticks[i].value)
	}
	return ticks
}

// ticks returns four to nine multiples of 1, 2 or 5 times a power of ten. If whole, they are
// integers: an axis of epochs has no 2.5.
func ticks(s span, whole bool) []tick {
	step := math.Pow(10, math.Floor(math.Log10(s.max-s.min)))
	switch n := (s.max - s.min) / step; {
	case n < 2:
		step /= 5
	case n < 4:
		step /= 2
	}
	if whole {
		step = max(1, math.Round(step))
	}
	decimals := max(0, int(-math.Floor(math.Log10(step)+1e-9)))
	var out []tick
	for i := math.Ceil(s.min/step - 1e-9); i*step <= s.max+1e-9*step; i++ {
		v := i * step
		if v == 0 {
			v = 0 // Ceil returns a negative zero, which would be shown as -0
		}
		out = append(out, tick{v, strconv.FormatFloat(v, 'f', decimals, 64)})
	}
	return out
}
