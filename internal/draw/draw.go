// Package draw draws pictures as SVG and PNG: routes on a map, paths in a grid room, and curves.
// cmd/haul, internal/report and the recipes call it.
//
// Both formats use the same drawing code on gonum's vg.Canvas, in points, with the origin at the
// bottom left. Only newCanvas and encode depend on the format, so that both pictures are equal.
package draw

import (
	"bytes"
	"fmt"
	"image/color"
	"io"
	"math"
	"path/filepath"
	"strings"
	"sync"

	"codeberg.org/go-fonts/liberation/liberationsansbold"
	"codeberg.org/go-fonts/liberation/liberationsansregular"
	xfont "golang.org/x/image/font"
	"golang.org/x/image/font/opentype"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Format is a picture's file format.
type Format string

// The formats.
const (
	SVG Format = "svg"
	PNG Format = "png"
)

// FormatOf returns the format for a file name's extension.
func FormatOf(path string) (Format, error) {
	ext := strings.ToLower(strings.TrimPrefix(filepath.Ext(path), "."))
	switch f := Format(ext); f {
	case SVG, PNG:
		return f, nil
	case "":
		return "", fmt.Errorf("picture %q has no extension: use .svg or .png", path)
	default:
		return "", fmt.Errorf("picture %q: cannot write %q, use .svg or .png", path, ext)
	}
}

// pngDPI gives a picture two pixels per point, which is sharp on high-resolution screens.
const pngDPI = 144

// newCanvas returns a white canvas. For PNG it fills the pixels directly, which is faster than
// drawing a rectangle.
func newCanvas(f Format, w, h vg.Length) (vg.CanvasWriterTo, error) {
	switch f {
	case SVG:
		c := vgsvg.New(w, h)
		pen{c}.rect(paper, 0, 0, w, h)
		return c, nil
	case PNG:
		return vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(w, h), vgimg.UseDPI(pngDPI), vgimg.UseBackgroundColor(paper))}, nil
	default:
		return nil, fmt.Errorf("cannot draw format %q: use svg or png", f)
	}
}

// encode writes the finished canvas. For SVG it adds font families with the same metrics to the one
// font that vgsvg names, so that viewers without that font show the same layout.
func encode(w io.Writer, f Format, c vg.CanvasWriterTo) error {
	if p, ok := c.(vgimg.PngCanvas); ok {
		return writePNG(w, p.Image())
	}
	var buf bytes.Buffer
	if _, err := c.WriteTo(&buf); err != nil {
		return err
	}
	_, err := w.Write(bytes.ReplaceAll(buf.Bytes(),
		[]byte("font-family:Liberation Sans;"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;")))
	return err
}

// fonts holds the two fonts of pictures, parsed at first use.
var fonts = sync.OnceValue(func() *font.Cache {
	var c font.Collection
	for weight, ttf := range map[xfont.Weight][]byte{xfont.WeightNormal: liberationsansregular.TTF, xfont.WeightBold: liberationsansbold.TTF} {
		parsed, err := opentype.Parse(ttf)
		if err != nil {
			panic("draw: an embedded font is broken: " + err.Error())
		}
		c = append(c, font.Face{Font: font.Font{Typeface: "Liberation", Variant: "Sans", Weight: weight}, Face: parsed})
	}
	return font.NewCache(c)
})

func face(size vg.Length, bold bool) font.Face {
	f := font.Font{Typeface: "Liberation", Variant: "Sans"}
	if bold {
		f.Weight = xfont.WeightBold
	}
	return fonts().Lookup(f, size)
}

// pen is a canvas with the shapes that pictures use.
type pen struct{ vg.Canvas }

func (p pen) rect(c color.Color, x, y, w, h vg.Length) {
	p.polygon(c, vg.Point{X: x, Y: y}, vg.Point{X: x + w, Y: y}, vg.Point{X: x + w, Y: y + h}, vg.Point{X: x, Y: y + h})
}

func (p pen) polygon(c color.Color, pts ...vg.Point) {
	path := through(pts)
	path.Close()
	p.SetColor(c)
	p.Fill(path)
}

// through returns the path along points.
func through(pts []vg.Point) vg.Path {
	var path vg.Path
	path.Move(pts[0])
	for _, pt := range pts[1:] {
		path.Line(pt)
	}
	return path
}

func (p pen) disc(c color.Color, at vg.Point, r vg.Length) {
	var path vg.Path
	path.Move(vg.Point{X: at.X + r, Y: at.Y})
	path.Arc(at, r, 0, 2*math.Pi)
	path.Close()
	p.SetColor(c)
	p.Fill(path)
}

func (p pen) line(c color.Color, width vg.Length, pts ...vg.Point) { p.dashed(c, width, nil, pts...) }

// dashed draws a line with dashes and gaps of the given lengths.
func (p pen) dashed(c color.Color, width vg.Length, dashes []vg.Length, pts ...vg.Point) {
	p.SetColor(c)
	p.SetLineWidth(width)
	p.SetLineDash(dashes, 0)
	p.Stroke(through(pts))
}

// text writes s with its baseline starting at the point and returns its width.
func (p pen) text(c color.Color, f font.Face, at vg.Point, s string) vg.Length {
	p.SetColor(c)
	p.FillString(f, at, s)
	return f.Width(s)
}
