package draw

import (
	"image/color"
	"math"
	"strconv"

	"gonum.org/v1/plot/vg"

	"haul/internal/vrp"
)

// A time bar per vehicle, below the map. Times come from vrp.Evaluate; a bar has its route's
// colour.

const (
	barRow    = vg.Length(15)
	barHalf   = vg.Length(4)
	barLabel  = vg.Length(72) // width to the left of the bars
	barFoot   = vg.Length(30) // height of the axis
	barsAbove = vg.Length(20)
	mostBars  = 60 // bars are left out for more vehicles
)

// bars holds the plans of the routes that are shown. If there are none, nothing is drawn.
type bars struct {
	p      *vrp.Problem
	plans  []vrp.RoutePlan
	index  []int // by plan: index of its route in the solution
	types  []vrp.VehicleType
	within span
}

// newBars evaluates the routes of a problem whose vehicles have times.
func newBars(p *vrp.Problem, s vrp.Solution) (*bars, error) {
	b := &bars{p: p, types: p.Types(), within: nothing}
	if p.Limited() == nil && p.Service == nil && p.MaxDuration == 0 {
		return b, nil
	}
	e, err := vrp.Evaluate(p, s)
	if err != nil {
		return nil, err
	}
	b.plans, b.index = e.Routes[:min(len(e.Routes), mostBars)], e.Index
	for _, r := range b.plans {
		b.within.include(r.Start)
		b.within.include(r.End)
	}
	if b.within.min == b.within.max {
		b.within.max++ // an axis needs a width
	}
	return b, nil
}

func (b *bars) height() vg.Length {
	if len(b.plans) == 0 {
		return 0
	}
	return barsAbove + barRow*vg.Length(len(b.plans)) + barFoot
}

func (b *bars) draw(d pen, colours []color.NRGBA) {
	if len(b.plans) == 0 {
		return
	}
	left, width := margin+barLabel, pageWidth-2*margin-barLabel
	at := func(t float64) vg.Length {
		t = min(max(t, b.within.min), b.within.max)
		return left + width*vg.Length((t-b.within.min)/max(b.within.max-b.within.min, 1e-12))
	}
	bottom := barFoot
	top := bottom + barRow*vg.Length(len(b.plans))
	for _, tick := range b.ticks() {
		if tick.value < b.within.min || tick.value > b.within.max {
			continue
		}
		d.line(field, 1, vg.Point{X: at(tick.value), Y: bottom}, vg.Point{X: at(tick.value), Y: top})
		small := face(9, false)
		d.text(faded, small, vg.Point{X: at(tick.value) - small.Width(tick.label)/2, Y: bottom - 12}, tick.label)
	}
	d.text(faded, face(9, false), vg.Point{X: margin, Y: 4}, "time: driving a line, service a block, waiting pale, breaks dark; the thin line above a stop is its window")
	for i := range b.plans {
		b.bar(d, &b.plans[i], colours[b.index[i]], top-barRow*(vg.Length(i)+0.5), at, i)
	}
}

// bar draws the bar of one vehicle.
func (b *bars) bar(d pen, r *vrp.RoutePlan, c color.NRGBA, y vg.Length, at func(float64) vg.Length, number int) {
	name := b.types[r.Type].Name
	if name == "" {
		name = "route"
	}
	if len(name) > 11 {
		name = name[:10] + "."
	}
	d.text(faded, face(9, false), vg.Point{X: margin, Y: y - 3}, strconv.Itoa(number+1)+" "+name)
	d.line(c, 1, vg.Point{X: at(r.Start), Y: y}, vg.Point{X: at(r.End), Y: y})
	pale := c
	pale.A = 0x44
	for _, s := range r.Stops {
		if s.Wait > 0 {
			d.rect(pale, at(s.Arrival), y-barHalf/2, at(s.Begin)-at(s.Arrival), barHalf)
		}
		fill := c
		if s.Rest {
			fill = ink
		}
		if width := max(at(s.Depart)-at(s.Begin), 1.5); !b.depot(s) || s.Rest {
			d.rect(fill, at(s.Begin), y-barHalf, width, 2*barHalf)
		}
		if s.Rest || b.p.Windows == nil {
			continue
		}
		for _, w := range b.p.Windows[s.Place] {
			if s.Begin >= w.From && s.Begin <= w.To && !b.depot(s) {
				d.line(faded, 0.5, vg.Point{X: at(w.From), Y: y + barHalf + 1}, vg.Point{X: at(w.To), Y: y + barHalf + 1})
			}
		}
	}
}

// ticks returns the ticks of the axis: for times of day at hours, or at fractions of an hour.
func (b *bars) ticks() []tick {
	if b.p.Clock == 0 {
		return ticks(b.within, false)
	}
	step := 5 * b.p.Clock
	for _, minutes := range []float64{10, 15, 30, 60, 120, 240, 480, 1440, 1e4, 1e5, 1e6} {
		if (b.within.max-b.within.min)/step > 9 {
			step = minutes * b.p.Clock
		}
	}
	var out []tick
	for t := math.Ceil(b.within.min/step) * step; t <= b.within.max && len(out) < 20; t += step {
		out = append(out, tick{t, b.p.TimeText(t)})
	}
	return out
}

func (b *bars) depot(s vrp.Stop) bool { return int(s.Place) < b.p.DepotCount() }
