package draw

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot/vg"

	"haul/internal/vrp"
)

// The page, in points. The field between header and footer has the instance's aspect ratio.
const (
	pageWidth  = vg.Length(640)
	margin     = vg.Length(28)
	header     = vg.Length(62)
	footer     = vg.Length(44)
	inset      = vg.Length(18) // keeps the largest disc inside the field
	minAspect  = 0.45          // least height over width of the field
	maxAspect  = 1.1
	lineWidth  = vg.Length(1.7)
	depotWidth = vg.Length(0.8)
)

var (
	paper = color.NRGBA{R: 0xff, G: 0xff, B: 0xff, A: 0xff}
	field = color.NRGBA{R: 0xf7, G: 0xf7, B: 0xf5, A: 0xff}
	ink   = color.NRGBA{R: 0x1f, G: 0x23, B: 0x28, A: 0xff}
	faded = color.NRGBA{R: 0x65, G: 0x6d, B: 0x76, A: 0xff}
)

// palette is Paul Tol's "muted" qualitative scheme, without sand, which is invisible on a light
// field. Neighbouring colours differ for every common form of colour blindness.
var palette = []color.NRGBA{
	{R: 0xcc, G: 0x66, B: 0x77, A: 0xff}, // rose
	{R: 0x33, G: 0x22, B: 0x88, A: 0xff}, // indigo
	{R: 0x44, G: 0xaa, B: 0x99, A: 0xff}, // teal
	{R: 0x88, G: 0x22, B: 0x55, A: 0xff}, // wine
	{R: 0x88, G: 0xcc, B: 0xee, A: 0xff}, // cyan
	{R: 0x99, G: 0x99, B: 0x33, A: 0xff}, // olive
	{R: 0x11, G: 0x77, B: 0x33, A: 0xff}, // green
	{R: 0xaa, G: 0x44, B: 0x99, A: 0xff}, // purple
}

// Routes draws a solution: depots as squares, customers as discs whose area is their demand, a
// colour per route, and the cost above. caption, if not "", follows the counts; it may name the
// method. If routes have times, a time bar per vehicle is below the map. The solution must be valid
// except for customers that are not served; the problem must have coordinates.
func Routes(w io.Writer, f Format, p *vrp.Problem, s vrp.Solution, caption string) error {
	place, size, err := project(p)
	if err != nil {
		return err
	}
	bars, err := newBars(p, s)
	if err != nil {
		return err
	}
	c, err := newCanvas(f, pageWidth, header+size.Y+footer+bars.height())
	if err != nil {
		return err
	}
	c.Push()
	c.Translate(vg.Point{Y: bars.height()})
	colours := scene(pen{c}, p, s, caption, place, size)
	c.Pop()
	bars.draw(pen{c}, colours)
	return encode(w, f, c)
}

// Titled is a solution with its title and caption.
type Titled struct {
	Title    string // replaces the name of the instance
	Solution vrp.Solution
	Caption  string
}

// SideBySide draws solutions of one problem next to each other, each as in Routes.
func SideBySide(w io.Writer, f Format, p *vrp.Problem, all ...Titled) error {
	place, size, err := project(p)
	if err != nil {
		return err
	}
	c, err := newCanvas(f, pageWidth*vg.Length(len(all)), header+size.Y+footer)
	if err != nil {
		return err
	}
	for _, t := range all {
		named := *p
		if t.Title != "" {
			named.Name = t.Title
		}
		scene(pen{c}, &named, t.Solution, t.Caption, place, size)
		c.Translate(vg.Point{X: pageWidth})
	}
	return encode(w, f, c)
}

// scene draws one page at the canvas's origin, and returns the routes' colours.
func scene(d pen, p *vrp.Problem, s vrp.Solution, caption string, place func(int) vg.Point, size vg.Point) []color.NRGBA {
	d.rect(field, margin, footer, size.X, size.Y)
	drawTitle(d, p, s, caption, footer+size.Y)

	depot := place(0)
	colours := coloursByAngle(depot, s, place)
	types := p.Types()
	for i, route := range s.Routes {
		kind := 0
		if s.Types != nil {
			kind = int(s.Types[i])
		}
		drawRoute(d, colours[i], types[kind].Start, types[kind].End, route, place)
	}
	radius := radiusOf(p, size)
	drawCustomers(d, p, s, colours, place, radius)
	drawNumbers(d, p, place, radius)
	for v := range p.DepotCount() {
		drawDepot(d, place(v))
	}
	drawKey(d, p, radius)
	return colours
}

// project returns the position of each node on the page, with one scale for both axes, and the size
// of the field.
func project(p *vrp.Problem) (func(int) vg.Point, vg.Point, error) {
	if len(p.X) == 0 {
		return nil, vg.Point{}, fmt.Errorf("cannot draw %s: the file gives distances but no coordinates", nameOf(p))
	}
	x, y := p.Plane()
	minX, maxX := slices.Min(x), slices.Max(x)
	minY, maxY := slices.Min(y), slices.Max(y)
	dx, dy := maxX-minX, maxY-minY
	extent := math.Max(dx, dy)
	if extent == 0 {
		extent = 1 // all nodes have the same coordinates: any scale will do
	}
	if math.IsInf(extent, 0) || math.IsNaN(extent) {
		return nil, vg.Point{}, fmt.Errorf("cannot draw %s: its coordinates span an infinite distance", nameOf(p))
	}
	width := pageWidth - 2*margin
	aspect := maxAspect
	if dx > 0 {
		aspect = min(max(dy/dx, minAspect), maxAspect)
	}
	size := vg.Point{X: width, Y: vg.Length(aspect) * width}
	innerX, innerY := float64(size.X-2*inset), float64(size.Y-2*inset)
	scale := math.Min(innerX/math.Max(dx, extent*1e-9), innerY/math.Max(dy, extent*1e-9))
	// Space that the limited aspect ratio leaves is divided equally between both sides.
	x0 := float64(margin+inset) + (innerX-scale*dx)/2
	y0 := float64(footer+inset) + (innerY-scale*dy)/2
	return func(v int) vg.Point {
		return vg.Point{X: vg.Length(x0 + scale*(x[v]-minX)), Y: vg.Length(y0 + scale*(y[v]-minY))}
	}, size, nil
}

// coloursByAngle assigns the palette in the order of the routes' directions from the depot, so that
// neighbouring routes have different colours.
func coloursByAngle(depot vg.Point, s vrp.Solution, place func(int) vg.Point) []color.NRGBA {
	angle := make([]float64, len(s.Routes))
	order := make([]int, len(s.Routes))
	for i, route := range s.Routes {
		var x, y vg.Length
		for _, v := range route {
			at := place(int(v))
			x, y = x+at.X-depot.X, y+at.Y-depot.Y
		}
		angle[i], order[i] = math.Atan2(float64(y), float64(x)), i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case angle[a] < angle[b]:
			return -1
		case angle[a] > angle[b]:
			return 1
		}
		return 0
	})
	out := make([]color.NRGBA, len(s.Routes))
	for rank, i := range order {
		out[i] = shade(palette[rank%len(palette)], rank/len(palette))
	}
	// The first and the last route are neighbours too.
	if n := len(order); n > 1 && n%len(palette) == 1 {
		out[order[n-1]] = shade(palette[len(palette)/2], (n-1)/len(palette))
	}
	return out
}

// shade returns a colour's variant for each use of the palette: the colour itself, then darker,
// then lighter, and again. The eye can distinguish three times eight colours; routes of equal
// colour are on different sides of the depot.
func shade(c color.NRGBA, turn int) color.NRGBA {
	mixWith := func(to uint8, part float64) color.NRGBA {
		m := func(x uint8) uint8 { return uint8(math.Round(float64(x)*(1-part) + float64(to)*part)) }
		return color.NRGBA{R: m(c.R), G: m(c.G), B: m(c.B), A: c.A}
	}
	switch turn % 3 {
	case 1:
		return mixWith(0, 0.4)
	case 2:
		return mixWith(0xff, 0.4)
	}
	return c
}

// maxNumbered is the largest number of customers for which their numbers are shown.
const maxNumbered = 250

// drawNumbers writes the number of each customer in the .sol file next to its disc.
func drawNumbers(d pen, p *vrp.Problem, place func(int) vg.Point, radius func(int32) vg.Length) {
	if p.N() > maxNumbered {
		return
	}
	size := vg.Length(7)
	if p.N() > 120 {
		size = 5
	}
	letters := face(size, false)
	var taken []box // areas of discs and labels
	for v := range p.Demand {
		at, r := place(v), radius(p.Demand[v])
		taken = append(taken, box{at.X - r, at.Y - r, at.X + r, at.Y + r})
	}
	for v := p.DepotCount(); v < len(p.Demand); v++ {
		at, r, name := place(v), radius(p.Demand[v]), label(p, v)
		width, high := letters.Width(name), size*0.75
		for _, from := range []vg.Point{{X: at.X + r + 1, Y: at.Y + r*0.4}, {X: at.X + r + 1, Y: at.Y - high}, {X: at.X - r - 1 - width, Y: at.Y}, {X: at.X - width/2, Y: at.Y + r + 1}, {X: at.X - width/2, Y: at.Y - r - high - 1}} {
			own := box{from.X, from.Y, from.X + width, from.Y + high}
			if p.N() > labelAll && slices.ContainsFunc(taken, own.meets) {
				continue
			}
			taken = append(taken, own)
			d.text(faded, letters, from, name)
			break
		}
	}
}

// labelAll is the number of customers from which labels that would overlap something are left out.
const labelAll = 60

// box is a rectangle on the page.
type box struct{ left, bottom, right, top vg.Length }

func (b box) meets(o box) bool {
	return b.left < o.right && o.left < b.right && b.bottom < o.top && o.bottom < b.top
}

// label returns a customer's name on a map: its id if that is short, else its number.
func label(p *vrp.Problem, v int) string {
	if id := p.ID(v); len([]rune(id)) <= 8 {
		return id
	}
	return strconv.Itoa(v)
}

// drawRoute draws edges between customers as solid lines. The two edges to depots are thin and
// pale, because around the depot of a large instance they would hide everything else. An end that
// is vrp.None has no such edge.
func drawRoute(d pen, c color.NRGBA, start, end int, route []int32, place func(int) vg.Point) {
	if len(route) == 0 {
		return
	}
	pts := make([]vg.Point, len(route))
	for i, v := range route {
		pts[i] = place(int(v))
	}
	pale := c
	pale.A = 0x99
	if start != vrp.None {
		d.line(pale, depotWidth, place(start), pts[0])
	}
	if end != vrp.None {
		d.line(pale, depotWidth, pts[len(pts)-1], place(end))
	}
	if len(pts) > 1 {
		d.line(c, lineWidth, pts...)
	}
}

// drawCustomers draws large discs first, so that a small disc near a large one is visible.
func drawCustomers(d pen, p *vrp.Problem, s vrp.Solution, colours []color.NRGBA, place func(int) vg.Point, radius func(int32) vg.Length) {
	type customer struct {
		node   int32
		colour color.NRGBA
	}
	var all []customer
	served := make([]bool, len(p.Demand))
	for i, route := range s.Routes {
		for _, v := range route {
			if int(v) >= p.DepotCount() { // not a reload
				all = append(all, customer{v, colours[i]})
				served[v] = true
			}
		}
	}
	for v := p.DepotCount(); v < len(served); v++ {
		if !served[v] {
			all = append(all, customer{int32(v), paper})
		}
	}
	slices.SortStableFunc(all, func(a, b customer) int { return int(p.Demand[b.node]) - int(p.Demand[a.node]) })
	for _, c := range all {
		at, r := place(int(c.node)), radius(p.Demand[c.node])
		d.disc(field, at, r+1)
		if c.colour == paper { // not served: a ring
			d.disc(ink, at, r+0.5)
		}
		d.disc(c.colour, at, r)
	}
}

func drawDepot(d pen, at vg.Point) {
	const half = vg.Length(5.5)
	d.rect(field, at.X-half-1.5, at.Y-half-1.5, 2*half+3, 2*half+3)
	d.rect(ink, at.X-half, at.Y-half, 2*half, 2*half)
}

// radiusOf returns the radius of a demand's disc. Areas are proportional to demands. The largest
// disc is chosen so that discs rarely overlap at this number of customers; the smallest one is
// visible.
func radiusOf(p *vrp.Problem, size vg.Point) func(int32) vg.Length {
	top := float64(max(slices.Max(p.Demand), 1))
	room := math.Sqrt(float64(size.X*size.Y) / float64(max(p.N(), 1)))
	largest := min(max(0.14*room, 2.5), 9)
	return func(demand int32) vg.Length {
		return vg.Length(max(largest*math.Sqrt(float64(demand)/top), 1.3))
	}
}

// Unit returns the unit of a problem's costs with a space before it, "" if it is unknown: metres
// for coordinates on the globe, or the unit of a file that was scaled to integers.
func Unit(p *vrp.Problem) string {
	if p.Metric == vrp.GreatCircle && p.Fleet == nil { // with a fleet, costs are those of its vehicles
		return " metres"
	}
	if _, scaled := p.Scale(); scaled {
		return " in the file's units"
	}
	return ""
}

func drawTitle(d pen, p *vrp.Problem, s vrp.Solution, caption string, top vg.Length) {
	heading := nameOf(p)
	if p.Name == "" && caption != "" {
		heading, caption = caption, "" // without a name, the caption with the method becomes the heading
	}
	x := d.text(ink, face(17, true), vg.Point{X: margin, Y: top + 32}, heading)
	d.text(ink, face(17, false), vg.Point{X: margin + x + 10, Y: top + 32}, "cost "+Cost(p.Cost(s))+Unit(p))
	line := fmt.Sprintf("%s · %s", count(len(s.Routes), "route"), count(p.N(), "customer"))
	if p.Fleet == nil {
		line += " · capacity " + group(int64(p.Capacity))
	}
	if caption != "" {
		line += " · " + caption
	}
	d.text(faded, face(11, false), vg.Point{X: margin, Y: top + 13}, line)
}

// drawKey draws the legend: the depot, and discs at the smallest and largest demand.
func drawKey(d pen, p *vrp.Problem, radius func(int32) vg.Length) {
	const mid = vg.Length(22)
	small := face(10, false)
	x := margin
	d.rect(ink, x, mid-4, 8, 8)
	x += 14
	x += d.text(faded, small, vg.Point{X: x, Y: mid - 3.5}, "depot") + 22
	if p.N() == 0 {
		return
	}
	low, high := slices.Min(p.Demand[p.DepotCount():]), slices.Max(p.Demand[p.DepotCount():])
	marks := []int32{low}
	if high > low {
		marks = append(marks, high)
	}
	x += d.text(faded, small, vg.Point{X: x, Y: mid - 3.5}, "demand") + 12
	for _, q := range marks {
		r := radius(q)
		d.disc(faded, vg.Point{X: x + r, Y: mid}, r)
		x += 2*r + 5
		x += d.text(faded, small, vg.Point{X: x, Y: mid - 3.5}, amount(p, q)) + 14
	}
}

// amount formats a demand in the unit of its file.
func amount(p *vrp.Problem, q int32) string {
	if x := p.Amount(0, int64(q)); x != math.Trunc(x) {
		return strconv.FormatFloat(x, 'f', -1, 64)
	}
	return group(int64(p.Amount(0, int64(q))))
}

// Cost formats a cost for users: integers in groups of digits, small costs with four decimals, and
// costs below 1e-4 with four significant digits.
func Cost(c float64) string {
	switch {
	case c == math.Trunc(c) && math.Abs(c) < 1e15:
		return group(int64(c))
	case math.Abs(c) >= 1e4 && math.Abs(c) < 1e15:
		return group(int64(math.Round(c)))
	case math.Abs(c) < 1e-4: // not 0
		return strconv.FormatFloat(c, 'e', 3, 64)
	case math.Abs(c) < 0.1:
		return strconv.FormatFloat(c, 'g', 4, 64)
	default:
		return strconv.FormatFloat(c, 'f', 4, 64)
	}
}

func group(v int64) string {
	s := strconv.FormatInt(v, 10)
	start := 0
	if v < 0 {
		start = 1
	}
	for i := len(s) - 3; i > start; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return group(int64(n)) + " " + noun + "s"
}

func nameOf(p *vrp.Problem) string {
	if p.Name == "" {
		return "unnamed instance"
	}
	return p.Name
}
