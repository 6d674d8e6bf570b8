// Package vrp is vehicle routing with any of five attributes per instance: open routes, backhauls,
// mixed backhauls, limits of length, and time windows with service times. The 24 sensible kinds are
// RouteFinder's (Berto et al. 2024, https://arxiv.org/abs/2406.15007), whose draws are used.
// Minimise the distance driven; the way home of an open route costs nothing.
//
// An attribute that an instance lacks has a neutral value: limits and ends are infinite, windows
// always open. So the rules ask for no kind.
package vrp

import "haul/problem"

// The attributes, as bits of a kind.
const (
	openBit = 1 << iota
	backhaulBit
	mixedBit
	limitedBit
	windowedBit
	kinds
)

// Node is a customer or the depot.
type Node struct {
	problem.Place
	problem.Site
	Demand               int32   // what is delivered, or less than 0: what is picked up
	Home                 float32 // distance to the depot, 0 if routes are open
	Early, Late, Service float32 // when service may begin, and how long it takes
}

// Instance holds the words that all nodes share.
type Instance struct {
	Capacity           int32   // of a vehicle, in the unit of demands
	Own                int32   // capacity of this instance's vehicles if capacities differ, else 0
	Farthest           float32 // distance of the farthest customer from the depot
	Limit              float32 // longest route, infinite if there is no limit
	End                float32 // when vehicles must be back, infinite if at any time
	Open, Mixed        bool    // a route ends at its last customer; pickups in any order
	Backhaul, Windowed bool    // what is drawn of customers
}

// Vehicle is the state of the current vehicle.
type Vehicle struct {
	Most, Picked int32 // what it carries at its fullest, and what it has picked up
	Time, Length float32
}

// Settings configure what is drawn.
type Settings struct {
	Capacity    int32   `default:"30" min:"1" doc:"capacity of a vehicle"`
	DemandMin   int32   `default:"1" min:"0" doc:"least demand"`
	DemandMax   int32   `default:"10" min:"0" doc:"greatest demand"`
	CapacityMin int32   `default:"0" min:"0" doc:"least capacity, if capacities differ"`
	CapacityMax int32   `default:"0" min:"0" doc:"greatest capacity; 0 gives every instance Capacity"`
	Range       float32 `default:"2.8" min:"0" doc:"greatest limit"`
	Mix         int32   `default:"1" doc:"bit k is set if instances may have kind k; all that may be are as likely"`
}

// loadUnit is the capacity of vehicles whose own differ from instance to instance: demands are
// stated in parts of it.
const loadUnit = 1 << 20

const (
	end         = 4.6 // vehicles are back by then
	pickupShare = 0.2 // of customers with backhauls
)

// Before finds the farthest customer.
func (in *Instance) Before(n, depot *Node) {
	in.Farthest = max(in.Farthest, problem.Distance(n.Place, depot.Place))
}

// Draw draws the kind, the limit and the capacity.
func (in *Instance) Draw(r *problem.Random, s *Settings, n int32) {
	kind := s.pick(r.At(0).Below(s.several()))
	in.Open, in.Backhaul, in.Mixed = kind&openBit != 0, kind&backhaulBit != 0, kind&mixedBit != 0
	in.Windowed = kind&windowedBit != 0
	in.Limit, in.End = problem.Infinity(), problem.Infinity()
	if kind&limitedBit != 0 {
		low := float32(2 * in.Farthest)
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

// several returns the number of kinds that may be drawn.
func (s *Settings) several() (count int32) {
	for k := range kinds {
		count += s.Mix >> k & 1
	}
	return count
}

// pick returns the kind of that rank among the kinds that may be drawn.
func (s *Settings) pick(rank int32) (kind int32) {
	for k := range kinds {
		if s.Mix>>k&1 != 0 {
			if rank == 0 {
				kind = int32(k)
			}
			rank--
		}
	}
	return kind
}

// Draw draws a demand, whether it is picked up, and a window that can be reached in time and from
// where the depot can be reached.
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

// Derive fills in the way home, and the depot's window.
func (n *Node) Derive(in *Instance, depot *Node) {
	n.Home = 0
	if !in.Open {
		n.Home = problem.Distance(n.Place, depot.Place)
	}
	if n.Depot >= 0 {
		n.Late = in.End
	}
}

// carries reports whether there is room for what is delivered or picked up. Deliveries come before
// pickups unless they may be mixed.
func (v *Vehicle) carries(in *Instance, demand int32) bool {
	if demand >= 0 {
		return v.Most+demand <= in.Capacity && (v.Picked <= 0 || in.Mixed)
	}
	return v.Picked-demand <= in.Capacity
}

// Fits reports whether the vehicle may go to an unserved customer: there is room, it
// comes in time, and could then be home within the limit and in time. From the depot it may go to
// anybody whom it has room for: a vehicle can serve each customer alone.
func (v *Vehicle) Fits(in *Instance, at, to *Node) bool {
	if !v.carries(in, to.Demand) {
		return false
	}
	if at.Depot >= 0 {
		return true
	}
	way := problem.Distance(at.Place, to.Place)
	arrival := v.Time + way
	return v.Length+way+to.Home <= in.Limit && arrival <= to.Late &&
		max(arrival, to.Early)+to.Service+to.Home <= in.End
}

// Returns reports whether the vehicle may go to the depot: not from the depot while customers
// remain.
func (v *Vehicle) Returns(in *Instance, at, to *Node, unvisited int32) bool {
	return unvisited == 0 || at.Depot < 0
}

// Move drives to a node and returns the distance; the way home of an open route costs nothing.
func (v *Vehicle) Move(in *Instance, at, to *Node) float32 {
	way := problem.Distance(at.Place, to.Place)
	if to.Depot >= 0 {
		*v = Vehicle{}
		if in.Open {
			return 0
		}
		return way
	}
	v.Length += way
	v.Time = max(v.Time+way, to.Early) + to.Service
	if to.Demand >= 0 {
		v.Most += to.Demand
	} else {
		v.Picked -= to.Demand
		v.Most = max(v.Most, v.Picked)
	}
	return way
}

// Ended reports whether all customers are served and the last vehicle is back.
func (v *Vehicle) Ended(in *Instance, at *Node, unvisited int32) bool {
	return unvisited == 0 && at.Depot >= 0
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

// Features are the place; what is delivered and picked up as shares of the capacity, with 1 at the
// depot between them; the window and the service; and the instance's attributes. What an instance
// lacks is 0.
func (n *Node) Features(in *Instance) [12]float32 {
	capacity := float32(in.Capacity)
	return [12]float32{
		n.X, n.Y, float32(max(n.Demand, 0)) / capacity, one(n.Depot >= 0), float32(max(-n.Demand, 0)) / capacity,
		finite(n.Early), finite(n.Late), finite(n.Service),
		one(in.Open), one(in.Mixed), finite(in.Limit), finite(in.End),
	}
}

// Context is the shares that are left of the load that may be delivered, of the room for pickups,
// of the time and of the length.
func (v *Vehicle) Context(in *Instance, at *Node, unvisited int32) [4]float32 {
	capacity := float32(in.Capacity)
	return [4]float32{
		float32(in.Capacity-v.Most) / capacity, float32(in.Capacity-v.Picked) / capacity,
		1 - v.Time/in.End, 1 - v.Length/in.Limit,
	}
}
