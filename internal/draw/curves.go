package draw

import (
	"image/color"
	"io"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Curve is a named line. Points that are not finite are left out.
type Curve struct {
	Name   string
	points plotter.XYs
}

// Add appends a point.
func (c *Curve) Add(x, y float64) {
	if !math.IsNaN(x+y) && !math.IsInf(x+y, 0) {
		c.points = append(c.points, plotter.XY{X: x, Y: y})
	}
}

// Band is the space between two lines over the same x. Points that are not finite are left out.
type Band struct {
	Name      string
	low, high plotter.XYs
}

// Add appends a point to both lines.
func (b *Band) Add(x, low, high float64) {
	if !math.IsNaN(x+low+high) && !math.IsInf(x+low+high, 0) {
		b.low = append(b.low, plotter.XY{X: x, Y: low})
		b.high = append(b.high, plotter.XY{X: x, Y: high})
	}
}

// outline goes along the upper line and back along the lower.
func (b *Band) outline() plotter.XYs {
	out := slices.Clone(b.high)
	for _, p := range slices.Backward(b.low) {
		out = append(out, p)
	}
	return out
}

// Panel is one set of axes with its curves.
type Panel struct {
	Title, X  string
	Curves    []Curve // the last is the one to look at: it has the strongest colour
	Band      Band    // behind the curves, in the last one's colour; none when it has no points
	Level     float64 // a dashed line, such as the optimum, where LevelName is given
	LevelName string
	FromZero  bool // the axis starts at 0
}

// The page of panels, in points.
const (
	panelWidth  = vg.Length(420)
	lonePanel   = vg.Length(600)
	panelHeight = vg.Length(300)
	panelHeader = vg.Length(62)
	panelLegend = vg.Length(40)
)

// curveColours are the palette's with the most contrast to each other and to the paper, the last curve's first.
var curveColours = []color.NRGBA{palette[1], palette[4], palette[0], palette[2]}

// Panels draws panels side by side under a title.
func Panels(w io.Writer, f Format, title, subtitle string, panels ...Panel) error {
	each := panelWidth
	if len(panels) == 1 {
		each = lonePanel // the title's words need it
	}
	width := each * vg.Length(len(panels))
	height := panelHeader + panelLegend + panelHeight
	c, err := newCanvas(f, width, height)
	if err != nil {
		return err
	}
	d := pen{c}
	d.rect(paper, 0, 0, width, height)
	d.text(ink, face(17, true), vg.Point{X: margin, Y: height - 34}, title)
	d.text(faded, face(11, false), vg.Point{X: margin, Y: height - 52}, subtitle)
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, p := range panels {
		for _, c := range p.Curves {
			for _, at := range c.points {
				lo, hi = min(lo, at.X), max(hi, at.X)
			}
		}
	}
	for _, p := range panels {
		if err := drawPanel(d, p, each, lo, hi); err != nil {
			return err
		}
		c.Translate(vg.Point{X: each})
	}
	return encode(w, f, c)
}

// drawPanel draws a panel at the canvas's origin, over the range of x that all panels share.
func drawPanel(d pen, p Panel, width vg.Length, lo, hi float64) error {
	axes := plot.New()
	axes.BackgroundColor = nil
	style(&axes.X, p.X)
	style(&axes.Y, "")
	axes.X.Tick.Marker = ticks{whole: true}
	axes.Y.Tick.Marker = ticks{}
	grid := plotter.NewGrid()
	grid.Vertical.Width = 0
	grid.Horizontal.Color = color.NRGBA{R: 0xe6, G: 0xe6, B: 0xe2, A: 0xff}
	axes.Add(grid)

	at := vg.Point{X: margin, Y: panelHeight + 8}
	d.text(ink, face(12, true), vg.Point{X: margin, Y: panelHeight + 26}, p.Title)
	key := func(c color.Color, dashed bool, name string) {
		if dashed {
			d.line(c, 1.4, at.Add(vg.Point{Y: 3}), at.Add(vg.Point{X: 5, Y: 3}))
			d.line(c, 1.4, at.Add(vg.Point{X: 9, Y: 3}), at.Add(vg.Point{X: 14, Y: 3}))
		} else {
			d.line(c, 2, at.Add(vg.Point{Y: 3}), at.Add(vg.Point{X: 14, Y: 3}))
		}
		at.X += 19
		at.X += d.text(faded, face(10, false), at, name) + 14
	}
	if len(p.Band.low) > 0 {
		shade := curveColours[0]
		shade.A = 0x38
		area, err := plotter.NewPolygon(p.Band.outline())
		if err != nil {
			return err
		}
		area.Color, area.LineStyle.Width = shade, 0
		axes.Add(area)
		key(shade, false, p.Band.Name)
	}
	for i, c := range p.Curves {
		if len(c.points) == 0 {
			continue
		}
		colour := curveColours[(len(p.Curves)-1-i)%len(curveColours)]
		line, err := plotter.NewLine(c.points)
		if err != nil {
			return err
		}
		line.Color, line.Width = colour, 2
		axes.Add(line)
		if len(c.points) <= 60 {
			marks, err := plotter.NewScatter(c.points)
			if err != nil {
				return err
			}
			marks.GlyphStyle = draw.GlyphStyle{Color: colour, Radius: 2.6, Shape: draw.CircleGlyph{}}
			axes.Add(marks)
		}
		key(colour, false, c.Name)
	}
	if p.LevelName != "" {
		level := plotter.NewFunction(func(float64) float64 { return p.Level })
		level.Color, level.Width, level.Dashes = faded, 1.4, []vg.Length{5, 4}
		axes.Add(level)
		axes.Y.Min, axes.Y.Max = min(axes.Y.Min, p.Level), max(axes.Y.Max, p.Level)
		key(faded, true, p.LevelName)
	}
	axes.X.Min, axes.X.Max = lo, hi
	widen(axes, p.FromZero)
	axes.Draw(draw.Crop(draw.NewCanvas(d.Canvas, width, panelHeight), margin/2, -margin, margin/2, -4))
	return nil
}

// widen gives the axes room above and below the data, and a width to panels with one point or none.
func widen(p *plot.Plot, fromZero bool) {
	if p.X.Min > p.X.Max {
		p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, 1, 0, 1
	}
	if p.X.Min == p.X.Max {
		p.X.Min, p.X.Max = p.X.Min-0.5, p.X.Max+0.5
	}
	room := 0.06 * (p.Y.Max - p.Y.Min)
	if room == 0 {
		room = max(1e-3, 0.05*math.Abs(p.Y.Max))
	}
	p.Y.Max += room
	p.Y.Min -= room
	if fromZero {
		p.Y.Min = min(0, p.Y.Min)
		if p.Y.Min > -room*2 && p.Y.Min < 0 {
			p.Y.Min = 0
		}
	}
}

// style makes an axis quiet: no line of its own, small grey figures.
func style(a *plot.Axis, label string) {
	font := face(10, false).Font
	a.Label.Text = label
	a.Label.TextStyle = text.Style{Color: faded, Font: font, Handler: plot.DefaultTextHandler, XAlign: draw.XCenter, YAlign: draw.YBottom}
	a.LineStyle.Width = 0
	a.Tick.LineStyle.Width = 0
	a.Tick.Length = 4
	a.Tick.Label.Font, a.Tick.Label.Color = font, faded
}

// ticks labels four to nine multiples of 1, 2 or 5 times a power of ten; whole: no fractions, for there is no epoch 2.5.
type ticks struct{ whole bool }

func (t ticks) Ticks(lo, hi float64) []plot.Tick {
	step := math.Pow(10, math.Floor(math.Log10(hi-lo)))
	switch n := (hi - lo) / step; {
	case n < 2:
		step /= 5
	case n < 4:
		step /= 2
	}
	if t.whole {
		step = max(1, math.Round(step))
	}
	decimals := max(0, int(-math.Floor(math.Log10(step)+1e-9)))
	var out []plot.Tick
	for i := math.Ceil(lo/step - 1e-9); i*step <= hi+1e-9*step; i++ {
		v := i * step
		if v == 0 {
			v = 0 // Ceil makes a negative zero, which would be labelled -0
		}
		out = append(out, plot.Tick{Value: v, Label: strconv.FormatFloat(v, 'f', decimals, 64)})
	}
	return out
}
