package draw

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/color"
	"image/png"
	"io"
	"math"
	"strings"
	"testing"

	"haul/internal/vrp"
)

func square() (*vrp.Problem, vrp.Solution) {
	p := &vrp.Problem{Name: "square <4> & co", Capacity: 10, Demand: []int32{0, 3, 4, 5, 6},
		X: []float64{50, 0, 100, 100, 0}, Y: []float64{50, 0, 0, 100, 100}}
	return p, vrp.Solution{Routes: [][]int32{{1, 2}, {3}, {4}}}
}

// TestCostsHaveTheirUnit: a picture shows the unit of its cost, if it is known.
func TestCostsHaveTheirUnit(t *testing.T) {
	for unit, change := range map[string]func(*vrp.Problem){
		" metres": func(p *vrp.Problem) {
			p.Metric, p.X, p.Y = vrp.GreatCircle, []float64{13.1, 13.2, 13.3, 13.4, 13.5}, []float64{52.1, 52.2, 52.3, 52.4, 52.5}
		},
		" in the file&#39;s units": func(p *vrp.Problem) { p.Comment = "haul scale=100" },
		"":                         func(*vrp.Problem) {},
	} {
		p, s := square()
		change(p)
		var buf bytes.Buffer
		if err := Routes(&buf, SVG, p, s, "savings"); err != nil {
			t.Fatal(err)
		}
		svg := strings.ReplaceAll(buf.String(), "'", "&#39;")
		if want := ">cost " + Cost(p.Cost(s)) + unit + "<"; !strings.Contains(svg, want) {
			t.Errorf("the picture does not say %q", want)
		}
	}
}

func TestSVGIsWellFormedAndComplete(t *testing.T) {
	p, s := square()
	var buf bytes.Buffer
	if err := Routes(&buf, SVG, p, s, "savings"); err != nil {
		t.Fatal(err)
	}
	svg := buf.String()
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("not XML: %v", err)
		}
	}
	for _, want := range []string{"square &lt;4&gt; &amp; co", "cost " + Cost(p.Cost(s)), "3 routes · 4 customers · capacity 10 · savings", "sans-serif"} {
		if !strings.Contains(svg, want) {
			t.Errorf("the picture does not say %q", want)
		}
	}
	for i := range s.Routes {
		hex := strings.ToUpper(hexOf(i))
		if !strings.Contains(strings.ToUpper(svg), hex) {
			t.Errorf("no route is drawn in %s", hex)
		}
	}
}

func hexOf(i int) string {
	const digits = "0123456789ABCDEF"
	c := palette[i]
	out := []byte{'#'}
	for _, v := range []uint8{c.R, c.G, c.B} {
		out = append(out, digits[v>>4], digits[v&15])
	}
	return string(out)
}

func TestPNGHasThePagesSize(t *testing.T) {
	p, s := square()
	var buf bytes.Buffer
	if err := Routes(&buf, PNG, p, s, ""); err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(&buf)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := img.Bounds().Dx(), int(pageWidth)*pngDPI/72; got != want {
		t.Errorf("%d pixels wide, want %d", got, want)
	}
}

// Both axes have the same scale, and all nodes are inside the field, for any shape of the instance.
func TestProjectionKeepsProportions(t *testing.T) {
	for _, c := range []struct {
		name string
		x, y []float64
	}{
		{"the north", []float64{10.70, 10.74, 10.70}, []float64{59.90, 59.90, 59.91}},
		{"the date line", []float64{179.99, -179.99, 179.97}, []float64{0, 0, 0.01}},
		{"square", []float64{0, 1, 1}, []float64{0, 0, 1}},
		{"wide", []float64{0, 1000, 500}, []float64{0, 1, 3}},
		{"tall", []float64{0, 1, 3}, []float64{0, 1000, 500}},
		{"a line", []float64{0, 5, 9}, []float64{7, 7, 7}},
		{"a column", []float64{7, 7, 7}, []float64{0, 5, 9}},
		{"one spot", []float64{3, 3, 3}, []float64{4, 4, 4}},
		{"negative", []float64{-9, -4, 0}, []float64{-1, -2, -8}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &vrp.Problem{Demand: make([]int32, 3), X: c.x, Y: c.y}
			round := 1e-6
			if strings.HasPrefix(c.name, "the ") { // coordinates on the globe, which a page shows flat
				p.Metric, round = vrp.GreatCircle, 1e-3
			}
			place, size, err := project(p)
			if err != nil {
				t.Fatal(err)
			}
			page := func(i, j int) float64 {
				a, b := place(i), place(j)
				return math.Hypot(float64(a.X-b.X), float64(a.Y-b.Y))
			}
			if d01, d02 := p.Dist(0, 1), p.Dist(0, 2); d01 > 0 && math.Abs(page(0, 1)/d01-page(0, 2)/d02) > round*page(0, 1)/d01 {
				t.Errorf("scales differ: %v and %v", page(0, 1)/d01, page(0, 2)/d02)
			}
			for v := range c.x {
				at := place(v)
				if at.X < margin || at.X > margin+size.X || at.Y < footer || at.Y > footer+size.Y || math.IsNaN(float64(at.X+at.Y)) {
					t.Errorf("node %d at %v lies outside the field of %v", v, at, size)
				}
			}
		})
	}
}

func TestNeighbouringRoutesDifferInColour(t *testing.T) {
	for _, n := range []int{2, 3, 8, 9, 16, 17, 21, 25} {
		p := &vrp.Problem{Capacity: 1, Demand: []int32{0}, X: []float64{0}, Y: []float64{0}}
		var s vrp.Solution
		// rank of route i by angle; 5 and n have no common factor
		around := func(i int) int { return (i*5 + 1) % n }
		if n%5 == 0 {
			around = func(i int) int { return (i*7 + 1) % n }
		}
		at := make([]int, n)
		for i := range n {
			angle := float64(around(i)) / float64(n) * 2 * math.Pi
			p.X, p.Y = append(p.X, math.Cos(angle)), append(p.Y, math.Sin(angle))
			p.Demand = append(p.Demand, 1)
			s.Routes = append(s.Routes, []int32{int32(i + 1)})
			at[around(i)] = i
		}
		place, _, err := project(p)
		if err != nil {
			t.Fatal(err)
		}
		colours := coloursByAngle(place(0), s, place)
		for k := range at {
			if a, b := at[k], at[(k+1)%n]; colours[a] == colours[b] {
				t.Errorf("of %d routes, %d and %d lie side by side in one colour", n, a+1, b+1)
			}
		}
	}
}

func TestRefusals(t *testing.T) {
	p, s := square()
	bare := *p
	bare.X, bare.Y = nil, nil
	far := *p
	far.X = []float64{-1e308, 1e308, 0, 0, 0}
	for _, c := range []struct {
		name   string
		format Format
		p      *vrp.Problem
		want   string
	}{
		{"no coordinates", SVG, &bare, "no coordinates"},
		{"infinite extent", SVG, &far, "infinite"},
		{"format", "gif", p, `format "gif"`},
	} {
		if err := Routes(io.Discard, c.format, c.p, s, ""); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error with %q", c.name, err, c.want)
		}
	}
}

func TestFormatOf(t *testing.T) {
	for path, want := range map[string]Format{"a.svg": SVG, "b/c.PNG": PNG} {
		if got, err := FormatOf(path); err != nil || got != want {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
	for _, path := range []string{"routes", "routes.gif"} {
		if _, err := FormatOf(path); err == nil || !strings.Contains(err.Error(), ".svg or .png") {
			t.Errorf("%s: got %v", path, err)
		}
	}
}

func TestCost(t *testing.T) {
	for value, want := range map[float64]string{27591: "27,591", 375: "375", 3.94812: "3.9481", 1234567: "1,234,567", 28000.4: "28,000", -1200: "-1,200", 999.5: "999.5000", 0: "0",
		0.0625: "0.0625", 0.01234567: "0.01235", 0.000123456: "0.0001235", 1.50851e-11: "1.509e-11", -2.5e-9: "-2.500e-09"} {
		if got := Cost(value); got != want {
			t.Errorf("%v: %q, want %q", value, got, want)
		}
	}
}

func TestSideBySideDrawsEachSolution(t *testing.T) {
	p, s := square()
	var one, two bytes.Buffer
	if err := Routes(&one, SVG, p, s, "left"); err != nil {
		t.Fatal(err)
	}
	if err := SideBySide(&two, SVG, p, Titled{Solution: s, Caption: "left"}, Titled{Title: "optimum", Solution: s, Caption: "right"}); err != nil {
		t.Fatal(err)
	}
	for _, caption := range []string{"left", "right", "optimum"} {
		if !strings.Contains(two.String(), caption) {
			t.Errorf("the picture does not say %q", caption)
		}
	}
	const sheet = 1 // one white rectangle below both solutions
	if got, want := strings.Count(two.String(), "<path")-sheet, 2*(strings.Count(one.String(), "<path")-sheet); got != want {
		t.Errorf("%d shapes, two of the single picture have %d", got, want)
	}
	if err := SideBySide(&two, SVG, &vrp.Problem{Demand: p.Demand, Capacity: p.Capacity}, Titled{Solution: s}); err == nil {
		t.Error("drew a problem without coordinates")
	}
}

// Before, a picture of 25 routes had eight colours and no numbers of customers.
func TestManyRoutesHaveColoursAndNumbers(t *testing.T) {
	p := &vrp.Problem{Name: "many", Capacity: 1, Demand: []int32{0}, X: []float64{0}, Y: []float64{0}}
	var s vrp.Solution
	for i := range 24 {
		angle := float64(i) / 24 * 2 * math.Pi
		p.X, p.Y, p.Demand = append(p.X, math.Cos(angle)), append(p.Y, math.Sin(angle)), append(p.Demand, 1)
		s.Routes = append(s.Routes, []int32{int32(i + 1)})
	}
	place, _, err := project(p)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[color.NRGBA]bool{}
	for _, c := range coloursByAngle(place(0), s, place) {
		seen[c] = true
	}
	if len(seen) != 24 {
		t.Errorf("24 routes have %d colours", len(seen))
	}
	var svg bytes.Buffer
	if err := Routes(&svg, SVG, p, s, ""); err != nil {
		t.Fatal(err)
	}
	for _, number := range []string{">1</text>", ">24</text>"} {
		if !strings.Contains(svg.String(), number) {
			t.Errorf("no customer is called %s", number)
		}
	}
}

// Panels are headed by their method if the instance has no name.
func TestPanelsSayWhoMadeThem(t *testing.T) {
	p := &vrp.Problem{Capacity: 1, Demand: []int32{0, 1}, X: []float64{0, 1}, Y: []float64{0, 1}}
	s := vrp.Solution{Routes: [][]int32{{1}}}
	var svg bytes.Buffer
	if err := SideBySide(&svg, SVG, p, Titled{Solution: s, Caption: "policy"}, Titled{Solution: s, Caption: "optimum"}); err != nil {
		t.Fatal(err)
	}
	text := svg.String()
	if strings.Contains(text, "unnamed") || !strings.Contains(text, ">policy</text>") || !strings.Contains(text, ">optimum</text>") {
		t.Errorf("%s", text)
	}
}
