package draw

import (
	"bytes"
	"image/png"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func panels(n int) []Panel {
	var a, b Curve
	a.Name, b.Name = "training", "validation"
	band := Band{Name: "goals"}
	for i := range n {
		band.Add(float64(i+1), 0.3+1/float64(i+2), 0.6)
		a.Add(float64(i+1), 0.5+1/float64(i+2))
		b.Add(float64(i+1), 0.4+1/float64(i+2))
	}
	return []Panel{{Title: "Cost", X: "epoch", Curves: []Curve{a, b}, Level: 0.39, LevelName: "optimum"},
		{Title: "Gap, %", X: "epoch", Curves: []Curve{b}, Band: band, FromZero: true}}
}

func TestPanels(t *testing.T) {
	for _, n := range []int{0, 1, 2, 16, 300} {
		var svg, raster bytes.Buffer
		if err := Panels(&svg, SVG, "quick", "10 customers", panels(n)...); err != nil {
			t.Fatalf("%d points: %v", n, err)
		}
		for _, want := range []string{"quick", "10 customers", "Cost", "epoch", "optimum"} {
			if !strings.Contains(svg.String(), want) {
				t.Errorf("%d points: the picture does not say %q", n, want)
			}
		}
		if err := Panels(&raster, PNG, "quick", "10 customers", panels(n)...); err != nil {
			t.Fatal(err)
		}
		img, err := png.Decode(&raster)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := img.Bounds().Dx(), int(2*panelWidth*pngDPI/72); got != want {
			t.Errorf("%d pixels wide, want %d", got, want)
		}
	}
}

// Before, the figures of the y axis extended halfway into the margin of the page.
func TestFiguresStayInsideTheMargin(t *testing.T) {
	var b bytes.Buffer
	if err := Panels(&b, PNG, "quick", "10 customers", panels(16)...); err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(&b)
	if err != nil {
		t.Fatal(err)
	}
	const pixel, blur = pngDPI / 72, 1
	box := img.Bounds()
	for _, edge := range [][2]int{{0, pixel*int(margin) - blur}, {box.Dx() - pixel*int(margin) + pixel*blur, box.Dx()}} {
		for x := edge[0]; x < edge[1]; x++ {
			for y := box.Min.Y; y < box.Max.Y; y++ {
				if r, g, b, _ := img.At(x, y).RGBA(); r != 0xffff || g != 0xffff || b != 0xffff {
					t.Fatalf("pixel %d, %d of %v is not paper", x, y, box.Max)
				}
			}
		}
	}
}

func TestCurveLeavesOutWhatIsNotFinite(t *testing.T) {
	var c Curve
	c.Add(1, math.NaN())
	c.Add(2, math.Inf(1))
	c.Add(3, 4)
	if len(c.points) != 1 || c.points[0].Y != 4 {
		t.Errorf("%v", c.points)
	}
	var b Band
	b.Add(1, 0, math.NaN())
	b.Add(2, 0, 1)
	b.Add(3, 0.5, 1.5)
	want := []point{{X: 2, Y: 1}, {X: 3, Y: 1.5}, {X: 3, Y: 0.5}, {X: 2, Y: 0}}
	if got := b.outline(); !slices.Equal(got, want) {
		t.Errorf("the band runs along %v, want %v", got, want)
	}
}

func TestTicks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lo := rapid.Float64Range(-100, 100).Draw(t, "lo")
		width := math.Pow(10, rapid.Float64Range(-4, 5).Draw(t, "log width"))
		whole := rapid.Bool().Draw(t, "whole")
		got := ticks(span{lo, lo + width}, whole)
		if len(got) > 11 || !whole && len(got) < 3 {
			t.Fatalf("%d ticks from %g over %g", len(got), lo, width)
		}
		seen := map[string]bool{}
		for _, k := range got {
			if k.value < lo-1e-6*width || k.value > lo+width+1e-6*width {
				t.Fatalf("tick %g is outside", k.value)
			}
			if seen[k.label] || whole && k.value != math.Trunc(k.value) {
				t.Fatalf("tick %q is repeated or not whole", k.label)
			}
			seen[k.label] = true
		}
	})
	if got := ticks(span{0, 14}, false); got[0].label != "0" {
		t.Errorf("zero is labelled %q", got[0].label)
	}
}

// TestNamesStayInTheirPanel: names that do not fit next to each other are in several rows, and the
// page grows by these rows.
func TestNamesStayInTheirPanel(t *testing.T) {
	curve := func(name string) Curve {
		c := Curve{Name: name}
		c.Add(1, 1)
		return c
	}
	long := strings.Repeat("m", 22) // 22 of the widest letter: two such names do not fit into a row
	for _, c := range []struct {
		names []string
		rows  int
	}{{nil, 1}, {[]string{"a", "b", "c"}, 1}, {[]string{long}, 1}, {[]string{long, "b"}, 1}, {[]string{long, long}, 2},
		{[]string{"a", long, long}, 2}, {[]string{long, long, long}, 3}, {[]string{long + long + long, "b"}, 2}} {
		p := Panel{Title: "Cost", X: "epoch"}
		for _, name := range c.names {
			p.Curves = append(p.Curves, curve(name))
		}
		got := p.legend(panelWidth)
		if got.rows != c.rows || len(got.at) != len(c.names) {
			t.Errorf("%d names: %d rows with %d, want %d", len(c.names), got.rows, len(got.at), c.rows)
		}
		letters := face(10, false)
		for i, at := range got.at {
			if end := at.X + keySpace + letters.Width(c.names[i]); end > panelWidth && at.X > margin {
				t.Errorf("name %d ends at %v of %v", i, end, panelWidth)
			}
		}
		height := func(p ...Panel) int {
			var raster bytes.Buffer
			if err := Panels(&raster, PNG, "quick", "", p...); err != nil {
				t.Fatal(err)
			}
			img, err := png.Decode(&raster)
			if err != nil {
				t.Fatal(err)
			}
			return img.Bounds().Dy()
		}
		more := height(p, Panel{}) - height(Panel{}, Panel{})
		if want := int(float64(c.rows-1) * float64(legendRow) * pngDPI / 72); more < want-1 || more > want+1 {
			t.Errorf("%d rows: the page is %d pixels higher, want %d", c.rows, more, want)
		}
	}
}
