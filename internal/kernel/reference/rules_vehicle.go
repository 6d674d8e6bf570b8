package reference

import (
	"math"
	"slices"

	"haul/internal/kernel"
)

// VRP and MDVRP, from the meaning of their words (kernel/rules_columns.go) and by no shorter way:
// what a vehicle may do follows from the whole route that it has driven.

// site is a node of an instance as its words say it.
type site struct {
	x, y                 float32
	delivery, pickup     int32
	early, late, service float32
	ways                 []float32 // home to each depot, 0 where routes are open; at the depot the limit
	servable             int32     // bit d: a vehicle of depot d could serve it alone; MDVRP
}

// world is an instance of VRP or MDVRP.
type world struct {
	sites      []site
	attributes kernel.Attributes
	depots     []int // their nodes
	limit, end float32
}

func float(word int32) float32 { return math.Float32frombits(uint32(word)) }

// newWorld reads the words of an instance.
func newWorld(set kernel.RuleSet, nodes []int32) *world {
	columns := set.Columns()
	n := len(nodes) / len(columns)
	at := func(j int, column string) int32 { return nodes[j*len(columns)+slices.Index(columns, column)] }
	w := &world{depots: []int{0}, attributes: kernel.Attributes(at(0, "kind")), limit: float(at(0, "home")), end: float(at(0, "late"))}
	for d := range set.Further() {
		w.depots = append(w.depots, n-set.Further()+d)
	}
	for j := range n {
		s := site{x: float(at(j, "x")), y: float(at(j, "y")), early: float(at(j, "early")), late: float(at(j, "late")), service: float(at(j, "service")),
			ways: []float32{float(at(j, "home"))}}
		if demand := at(j, "demand"); demand >= 0 {
			s.delivery = demand
		} else {
			s.pickup = -demand
		}
		if set == kernel.MDVRP {
			s.ways = append(s.ways, float(at(j, "home1")), float(at(j, "home2")))
			s.servable = at(j, "kind")
		}
		w.sites = append(w.sites, s)
	}
	return w
}

// depotAt is the number of the depot at node j; -1: a customer is there.
func (w *world) depotAt(j int) int { return slices.Index(w.depots, j) }

// distance is in float32, each operation rounded, so that all devices have the same.
func distance32(x0, y0, x1, y1 float32) float32 {
	dx, dy := float32(x1-x0), float32(y1-y0)
	xx, yy := float32(dx*dx), float32(dy*dy)
	return float32(math.Sqrt(float64(xx + yy)))
}

func (w *world) way(i, j int) float32 {
	return distance32(w.sites[i].x, w.sites[i].y, w.sites[j].x, w.sites[j].y)
}

// nearest is the depot that is nearest to a node, the first of those that are as near.
func (w *world) nearest(j int) int {
	best := 0
	for d, node := range w.depots {
		if w.way(node, j) < w.way(w.depots[best], j) {
			best = d
		}
	}
	return best
}

// driven is a route so far: from a depot, through customers.
type driven struct {
	depot   int // its number; -1: the first vehicle of MDVRP, before it has one
	through []int
}

// load is the most that a vehicle has aboard at any time of its route, whose deliveries it takes
// along from the depot, and what it has picked up by the end.
func (w *world) load(through []int) (most, picked int32) {
	aboard := int32(0)
	for _, j := range through {
		aboard += w.sites[j].delivery
	}
	most = aboard
	for _, j := range through {
		aboard += w.sites[j].pickup - w.sites[j].delivery
		picked += w.sites[j].pickup
		most = max(most, aboard)
	}
	return most, picked
}

// clock is when the route's last service ends, and how long the route is.
func (w *world) clock(r driven) (time, length float32) {
	for k, j := range r.through {
		from := w.depots[max(0, r.depot)]
		if k > 0 {
			from = r.through[k-1]
		}
		way := w.way(from, j)
		length += way
		time = max(time+way, w.sites[j].early) + w.sites[j].service
	}
	return time, length
}

// fits: the vehicle may go to customer j next.
func (w *world) fits(r driven, j int, capacity int32) bool {
	switch {
	case r.depot < 0:
		return true
	case len(r.through) == 0 && len(w.depots) > 1:
		return w.sites[j].servable>>r.depot&1 != 0
	}
	to := w.sites[j]
	most, _ := w.load(append(slices.Clone(r.through), j))
	if _, before := w.load(r.through); most > capacity || to.pickup == 0 && before > 0 && w.attributes&kernel.Mixed == 0 {
		return false
	}
	if len(r.through) == 0 {
		return true
	}
	time, length := w.clock(r)
	way, home := w.way(r.through[len(r.through)-1], j), to.ways[r.depot]
	arrival := time + way
	return length+way+home <= w.limit && arrival <= to.late && max(arrival, to.early)+to.service+home <= w.end
}

// vehicleContext is what a decoder sees of a vehicle at node `at` (kernel.RuleSet.Context).
func vehicleContext[F Float](set kernel.RuleSet, w *world, r driven, at int, capacity int32) []F {
	most, picked := w.load(r.through)
	time, length := w.clock(r)
	out := []F{F(capacity-most) / F(capacity), F(capacity-picked) / F(capacity), 1 - F(time)/F(w.end), 1 - F(length)/F(w.limit)}
	if set == kernel.MDVRP {
		own, first := w.sites[w.depots[max(0, r.depot)]], w.sites[0]
		out = append(out, F(own.x)-F(first.x), F(own.y)-F(first.y), F(w.way(at, w.depots[max(0, r.depot)])))
	}
	return out
}

// siteFeatures fills in the encoder's features of node j (kernel.RuleSet.Features). Times and
// limits that an instance lacks are 0.
func siteFeatures[F Float](row []F, set kernel.RuleSet, w *world, x, y F, j int, capacity F) {
	s, finite := w.sites[j], func(v float32) F {
		if math.IsInf(float64(v), 1) {
			return 0
		}
		return F(v)
	}
	values := map[string]F{"x": x, "y": y, "demand": F(s.delivery) / capacity, "pickup": F(s.pickup) / capacity, "depot": 0,
		"early": finite(s.early), "late": finite(s.late), "service": finite(s.service), "limit": finite(w.limit), "end": finite(w.end)}
	if w.depotAt(j) >= 0 {
		values["depot"] = 1
	}
	for name, a := range map[string]kernel.Attributes{"open": kernel.Open, "mixed": kernel.Mixed, "several": kernel.Several} {
		if w.attributes&a != 0 {
			values[name] = 1
		}
	}
	for k, name := range set.Features() {
		row[k] = values[name]
	}
}
