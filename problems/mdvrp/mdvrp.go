// Package mdvrp is vehicle routing with up to three depots (Tillman 1969,
// https://doi.org/10.1287/trsc.3.3.192) and any of the five attributes of vrp: with several depots
// or one, the 48 kinds of RouteFinder (Berto et al. 2024, https://arxiv.org/abs/2406.15007), whose
// draws are used. A vehicle returns to the depot that it left; minimise the distance driven.
//
// To go to depot d is to drive home and have the next vehicle leave from d: one decision, and the
// way is to the vehicle's own depot. The first vehicle stands nowhere yet: it may take its place at
// a depot, which costs nothing, or go to a customer at once, from the depot that is nearest. A
// vehicle at a depot may go to the customers whom it can serve from there; every customer can be
// served from the nearest depot.
package mdvrp

import "haul/problem"

// Depots are node 0 and the last two. Depots that an instance lacks lie where the first is.
const Depots = 3

// The attributes, as bits of a kind.
const (
	openBit = 1 << iota
	backhaulBit
	mixedBit
	limitedBit
	windowedBit
	kinds // with one depot; as many again with several
)

// Node is a customer or a depot.
type Node struct {
	problem.Place
	problem.Site
	Demand               int32           // what is delivered, or less than 0: what is picked up
	Homes                [Depots]float32 // distances to the depots, 0 if routes are open
	Early, Late, Service float32         // when service may begin, and how long it takes
	Serves               int32           // bit d is set if a vehicle could serve it alone from depot d
}

// Instance holds the words that all nodes share.
type Instance struct {
	Capacity           int32                 // of a vehicle, in the unit of demands
	Own                int32                 // capacity of this instance's vehicles if capacities differ, else 0
	Farthest           float32               // distance of the farthest customer from the first depot
	Apart              float32               // distance of the farthest depot from the first
	Places             [Depots]problem.Place // of the depots
	Limit              float32               // longest route, infinite if there is no limit
	End                float32               // when vehicles must be back, infinite if at any time
	Open, Mixed        bool                  // a route ends at its last customer; pickups in any order
	Backhaul, Windowed bool                  // what is drawn of customers
	Several            bool                  // there is more than one depot
	Served             [Depots]int32         // customers whom each depot can serve
}

// Vehicle is the state of the current vehicle.
type Vehicle struct {
	Most, Picked int32 // what it carries at its fullest, and what it has picked up
	Time, Length float32
	Home         int32         // its depot
	Left         [Depots]int32 // customers left whom each depot can serve
	Nowhere      bool          // the first vehicle, before it has a depot
}

// Settings configure what is drawn.
type Settings struct {
	Capacity    int32   `default:"30" min:"1" doc:"capacity of a vehicle"`
	DemandMin   int32   `default:"1" min:"0" doc:"least demand"`
	DemandMax   int32   `default:"10" min:"0" doc:"greatest demand"`
	CapacityMin int32   `default:"0" min:"0" doc:"least capacity, if capacities differ"`
	CapacityMax int32   `default:"0" min:"0" doc:"greatest capacity; 0 gives every instance Capacity"`
	Range       float32 `default:"2.8" min:"0" doc:"greatest limit"`
	Mix         int32   `default:"0" doc:"bit k is set if instances with one depot may have kind k"`
	MixSeveral  int32   `default:"1" doc:"bit k is set if instances with several depots may; all kinds that may be are as likely"`
}

// loadUnit is the capacity of vehicles whose own differ from instance to instance: demands are
// stated in parts of it.
const loadUnit = 1 << 20

const (
	end         = 4.6 // vehicles are back by then
	pickupShare = 0.2 // of customers with backhauls
)

// Before finds the farthest customer, and notes where depots are.
func (in *Instance) Before(n, depot *Node) {
	way := problem.Distance(n.Place, depot.Place)
	if n.Depot >= 0 {
		in.Places[n.Depot] = n.Place
		in.Apart = max(in.Apart, way)
	} else {
		in.Farthest = max(in.Farthest, way)
	}
}

// Draw draws the kind, the limit and the capacity.
func (in *Instance) Draw(r *problem.Random, s *Settings, n int32) {
	one := bits(s.Mix)
	rank := r.At(0).Below(one + bits(s.MixSeveral))
	kind := pick(s.Mix, rank)
	if rank >= one {
		in.Several, kind = true, pick(s.MixSeveral, rank-one)
	}
	in.Open, in.Backhaul, in.Mixed = kind&openBit != 0, kind&backhaulBit != 0, kind&mixedBit != 0
	in.Windowed = kind&windowedBit != 0
	far := in.Farthest
	if in.Several {
		far = max(far, in.Apart)
	} else {
		in.Places[1], in.Places[2] = in.Places[0], in.Places[0]
	}
	in.Limit, in.End = problem.Infinity(), problem.Infinity()
	if kind&limitedBit != 0 {
		low := float32(2 * far)
		in.Limit = low + float32(r.At(3).Float()*(max(s.Range, low)-low))
	}
	if in.Windowed {
		in.End = end
	}
	in.Capacity, in.Own = s.Capacity, 0
	if s.CapacityMax > 0 {
		span := s.CapacityMax - s.CapacityMin + 1
		in.Capacity, in.Own = loadUnit, s.CapacityMin+min(r.At(1).Below(span), r.At(2).Below(span))
	}
}

// bits returns how many kinds a mix has.
func bits(mix int32) (count int32) {
	for k := range kinds {
		count += mix >> k & 1
	}
	return count
}

// pick returns the kind of that rank in a mix.
func pick(mix, rank int32) (kind int32) {
	for k := range kinds {
		if mix>>k&1 != 0 {
			if rank == 0 {
				kind = int32(k)
			}
			rank--
		}
	}
	return kind
}

// Draw draws a demand, whether it is picked up, and a window that can be reached in time from the
// first depot and from where that can be reached.
func (n *Node) Draw(r *problem.Random, s *Settings, in *Instance, depot *Node) {
	n.Demand = s.DemandMin + r.Below(s.DemandMax-s.DemandMin+1)
	if in.Own > 0 {
		n.Demand = problem.MulDiv(n.Demand, loadUnit, in.Own)
	}
	if in.Backhaul && r.At(4).Float() < pickupShare {
		n.Demand = -n.Demand
	}
	n.Early, n.Late, n.Service = 0, problem.Infinity(), 0
	if in.Windowed {
		way := problem.Distance(n.Place, depot.Place)
		width := 0.18 + float32(0.02*r.At(2).Float())
		n.Service = 0.15 + float32(0.03*r.At(1).Float())
		n.Early = way + float32((end-n.Service-width-float32(2*way))*r.At(3).Float())
		n.Late = n.Early + width
	}
}

// Derive fills in the ways home and from which depots a customer can be served; it puts the depots
// that an instance lacks where the first is, and fills in a depot's window.
func (n *Node) Derive(in *Instance, depot *Node) {
	if n.Depot >= 0 {
		n.Place, n.Late = in.Places[n.Depot], in.End
		return
	}
	n.Serves = 1 << in.nearest(n)
	for d, place := range in.Places {
		way := problem.Distance(place, n.Place)
		n.Homes[d] = 0
		if !in.Open {
			n.Homes[d] = problem.Distance(n.Place, place)
		}
		if d > 0 && !in.Several {
			continue
		}
		if way+n.Homes[d] <= in.Limit && way <= n.Late && max(way, n.Early)+n.Service+n.Homes[d] <= in.End {
			n.Serves |= 1 << d
		}
	}
}

// nearest returns the depot that a customer is nearest to, the first one of several.
func (in *Instance) nearest(n *Node) (best int32) {
	least := problem.Infinity()
	for d, place := range in.Places {
		if way := problem.Distance(place, n.Place); way < least {
			best, least = int32(d), way
		}
	}
	return best
}

// After counts whom each depot can serve.
func (in *Instance) After(n *Node) {
	if n.Depot >= 0 {
		return
	}
	for d := range in.Served {
		in.Served[d] += n.Serves >> d & 1
	}
}

// Start has the first vehicle nowhere.
func (v *Vehicle) Start(in *Instance) { v.Left, v.Nowhere = in.Served, true }

// carries reports whether there is room for what is delivered or picked up. Deliveries come before
// pickups unless they may be mixed.
func (v *Vehicle) carries(in *Instance, demand int32) bool {
	if demand >= 0 {
		return v.Most+demand <= in.Capacity && (v.Picked <= 0 || in.Mixed)
	}
	return v.Picked-demand <= in.Capacity
}

// Fits reports whether the vehicle may go to an unserved customer: there is room, it
// comes in time, and could then be home within the limit and in time.
func (v *Vehicle) Fits(in *Instance, at, to *Node) bool {
	switch {
	case v.Nowhere:
		return true
	case at.Depot >= 0:
		return to.Serves>>v.Home&1 != 0
	case !v.carries(in, to.Demand):
		return false
	}
	way, home := problem.Distance(at.Place, to.Place), to.Homes[v.Home]
	arrival := v.Time + way
	return v.Length+way+home <= in.Limit && arrival <= to.Late &&
		max(arrival, to.Early)+to.Service+home <= in.End
}

// Returns reports whether the vehicle may go to a depot: while customers remain, from a customer to
// a depot that has customers left whom it can serve; at last to the first.
func (v *Vehicle) Returns(in *Instance, at, to *Node, unvisited int32) bool {
	if unvisited == 0 {
		return to.Depot == 0
	}
	if v.Nowhere && !in.Several || !v.Nowhere && at.Depot >= 0 {
		return false
	}
	return v.Left[to.Depot] > 0
}

// Move drives to a customer, or home, and returns the distance. The way home of an open route costs
// nothing.
func (v *Vehicle) Move(in *Instance, at, to *Node) float32 {
	if to.Depot >= 0 {
		way := problem.Distance(at.Place, in.Places[v.Home])
		if at.Depot >= 0 || in.Open {
			way = 0
		}
		*v = Vehicle{Home: to.Depot, Left: v.Left}
		return way
	}
	from := at.Place
	if v.Nowhere {
		v.Nowhere, v.Home = false, in.nearest(to)
		from = in.Places[v.Home]
	}
	way := problem.Distance(from, to.Place)
	v.Length += way
	v.Time = max(v.Time+way, to.Early) + to.Service
	if to.Demand >= 0 {
		v.Most += to.Demand
	} else {
		v.Picked -= to.Demand
		v.Most = max(v.Most, v.Picked)
	}
	for d := range v.Left {
		v.Left[d] -= to.Serves >> d & 1
	}
	return way
}

// Ended reports whether all customers are served and the last vehicle is back.
func (v *Vehicle) Ended(in *Instance, at *Node, unvisited int32) bool {
	return unvisited == 0 && at.Depot == 0
}

// finite returns 0 for infinity.
func finite(x float32) float32 {
	if x == problem.Infinity() {
		return 0
	}
	return x
}

func one(b bool) float32 {
	if b {
		return 1
	}
	return 0
}

// Features are the place; what is delivered and picked up as shares of the capacity, with 1 at
// depots between them; the window and the service; and the instance's attributes. What an instance
// lacks is 0.
func (n *Node) Features(in *Instance) [13]float32 {
	capacity := float32(in.Capacity)
	return [13]float32{
		n.X, n.Y, float32(max(n.Demand, 0)) / capacity, one(n.Depot >= 0), float32(max(-n.Demand, 0)) / capacity,
		finite(n.Early), finite(n.Late), finite(n.Service),
		one(in.Open), one(in.Mixed), finite(in.Limit), finite(in.End), one(in.Several),
	}
}

// Context is the shares that are left of the load that may be delivered, of the room for pickups,
// of the time and of the length; where the vehicle's depot lies seen from the first; and the way to
// it.
func (v *Vehicle) Context(in *Instance, at *Node, unvisited int32) [7]float32 {
	capacity, home := float32(in.Capacity), in.Places[v.Home]
	return [7]float32{
		float32(in.Capacity-v.Most) / capacity, float32(in.Capacity-v.Picked) / capacity,
		1 - v.Time/in.End, 1 - v.Length/in.Limit,
		home.X - in.Places[0].X, home.Y - in.Places[0].Y, problem.Distance(at.Place, home),
	}
}

// Steps is a visit of each customer, a return after each, and the first vehicle's choice of a
// depot.
func Steps(n int32) int32 { return 2*n + 1 }
