package draw

import (
	"image/color"
	"io"
	"math"
	"slices"

	"gonum.org/v1/plot/vg"
)

// point is a point of the data.
type point struct{ X, Y float64 }

// Curve is a named line. Add ignores points that are not finite.
type Curve struct {
	Name   string
	points []point
}

// Add appends a point.
func (c *Curve) Add(x, y float64) {
	if !math.IsNaN(x+y) && !math.IsInf(x+y, 0) {
		c.points = append(c.points, point{x, y})
	}
}

// Band is the area between two lines over the same x. Add ignores points that are not finite.
type Band struct {
	Name      string
	low, high []point
}

// Add appends a point to both lines.
func (b *Band) Add(x, low, high float64) {
	if !math.IsNaN(x+low+high) && !math.IsInf(x+low+high, 0) {
		b.low = append(b.low, point{x, low})
		b.high = append(b.high, point{x, high})
	}
}

// outline returns the upper line, followed by the lower line backwards.
func (b *Band) outline() []point {
	out := slices.Clone(b.high)
	for _, p := range slices.Backward(b.low) {
		out = append(out, p)
	}
	return out
}

// Panel is a pair of axes with its curves.
type Panel struct {
	Title, X  string
	Curves    []Curve // the last one is the most important: it has the strongest colour
	Band      Band    // drawn behind the curves, in the last one's colour; none if it has no points
	Level     float64 // y of a dashed line, such as the optimum; drawn if LevelName is not ""
	LevelName string
	FromZero  bool // the y axis starts at 0

	// XFigure and YFigure format the figures of an axis whose values are transformed, such as
	// logarithms; nil: the value itself. With a format, figures are at integer values only.
	XFigure, YFigure func(v float64) string
}

// The page of panels, in points.
const (
	panelWidth  = vg.Length(420)
	lonePanel   = vg.Length(600)
	panelHeight = vg.Length(300)
	panelHeader = vg.Length(62)
	panelLegend = vg.Length(40)
	legendRow   = vg.Length(14)
)

// curveColours are the colours of the palette with the highest contrast to each other and to the
// paper, beginning with the last curve's.
var curveColours = []color.NRGBA{palette[1], palette[4], palette[0], palette[2]}

// Panels draws panels next to each other under a title.
func Panels(w io.Writer, f Format, title, subtitle string, panels ...Panel) error {
	each := panelWidth
	if len(panels) == 1 {
		each = lonePanel // the width of the title
	}
	rows := 1
	for _, p := range panels {
		rows = max(rows, p.legend(each).rows)
	}
	width := each * vg.Length(len(panels))
	height := panelHeader + panelLegend + panelHeight + vg.Length(rows-1)*legendRow
	c, err := newCanvas(f, width, height)
	if err != nil {
		return err
	}
	d := pen{c}
	d.text(ink, face(17, true), vg.Point{X: margin, Y: height - 34}, title)
	d.text(faded, face(11, false), vg.Point{X: margin, Y: height - 52}, subtitle)
	x := nothing
	for _, p := range panels {
		for _, c := range p.Curves {
			for _, at := range c.points {
				x.include(at.X)
			}
		}
	}
	for _, p := range panels {
		drawPanel(d, p, each, x, rows)
		c.Translate(vg.Point{X: each})
	}
	return encode(w, f, c)
}

// legend holds the positions of a panel's curve names, from its left edge and by row from the top.
type legend struct {
	at   []vg.Point
	rows int
}

// Lengths of the line before a name, of that line with the space after it, and of the space after a
// name.
const (
	keyLine   = vg.Length(14)
	keySpace  = vg.Length(19)
	keyBehind = vg.Length(14)
)

// legend lays out the names of the panel's curves in rows.
func (p Panel) legend(width vg.Length) (out legend) {
	at, letters := vg.Point{X: margin}, face(10, false)
	add := func(name string) {
		takes := keySpace + letters.Width(name)
		if at.X > margin && at.X+takes > width {
			at = vg.Point{X: margin, Y: at.Y + legendRow}
			out.rows++
		}
		out.at = append(out.at, at)
		at.X += takes + keyBehind
	}
	out.rows = 1
	if len(p.Band.high) > 0 {
		add(p.Band.Name)
	}
	for _, c := range p.Curves {
		if len(c.points) > 0 {
			add(c.Name)
		}
	}
	if p.LevelName != "" {
		add(p.LevelName)
	}
	return out
}

// drawPanel draws a panel at the canvas's origin. x is the range that all panels share; rows is the
// number of rows of names above the panel.
func drawPanel(d pen, p Panel, width vg.Length, x span, rows int) {
	a := axes{pen: d, x: x, y: nothing, xFigure: p.XFigure, yFigure: p.YFigure}
	for _, c := range p.Curves {
		for _, at := range c.points {
			a.y.include(at.Y)
		}
	}
	area := p.Band.outline()
	for _, at := range area {
		a.y.include(at.Y)
	}
	if p.LevelName != "" {
		a.y.include(p.Level)
	}
	a.widen(p.FromZero)
	a.frame(vg.Point{X: margin, Y: margin / 2}, vg.Point{X: width - margin, Y: panelHeight - 4}, p.X)

	top := panelHeight + 8 + vg.Length(rows-1)*legendRow
	d.text(ink, face(12, true), vg.Point{X: margin, Y: top + 18}, p.Title)
	names := p.legend(width).at
	key := func(c color.Color, thickness vg.Length, dashes []vg.Length, name string) {
		at := vg.Point{X: names[0].X, Y: top - names[0].Y}
		names = names[1:]
		d.dashed(c, thickness, dashes, at.Add(vg.Point{Y: 3}), at.Add(vg.Point{X: keyLine, Y: 3}))
		d.text(faded, face(10, false), at.Add(vg.Point{X: keySpace}), name)
	}
	if len(area) > 0 {
		shade := curveColours[0]
		shade.A = 0x38
		d.polygon(shade, a.all(area)...)
		key(shade, 2, nil, p.Band.Name)
	}
	for i, c := range p.Curves {
		if len(c.points) == 0 {
			continue
		}
		colour := curveColours[(len(p.Curves)-1-i)%len(curveColours)]
		points := a.all(c.points)
		d.line(colour, 2, points...)
		if len(points) <= 60 {
			for _, at := range points {
				d.disc(colour, at, axisMarker)
			}
		}
		key(colour, 2, nil, c.Name)
	}
	if p.LevelName != "" {
		dashes := []vg.Length{5, 4}
		d.dashed(faded, 1.4, dashes, a.at(a.x.min, p.Level), a.at(a.x.max, p.Level))
		key(faded, 1.4, dashes, p.LevelName)
	}
}
