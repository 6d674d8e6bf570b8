package kernel

import (
	"math"
	"math/bits"

	"haul/internal/rng"
)

// VRP: problems of several kinds in one batch, each instance with attributes of its own. An
// attribute that an instance lacks is a column with a neutral value, so that the rules know no
// kinds.
//
// What a reader could break: the words of a node, by column:
//
//	demand   what is delivered, or less than 0: what is picked up
//	x, y     the place
//	home     the way to the depot, 0 where routes are open; at the depot the limit of its length
//	early, late, service   when service may begin, and how long it takes; at the depot late is when
//	         vehicles must be back
//	kind     at the depot the Attributes, else 0
//
// Limits and times of an instance without them are +Inf; in the features they are 0.
//
// A vehicle may go to a customer if
//   - it delivers: what the vehicle carries at its fullest would stay within the capacity, and it
//     has picked nothing up yet, or may mix;
//   - it picks up: there is room for it;
//   - it comes before the customer's late, and could then be home by the limit and in time. A
//     vehicle at the depot goes to any customer: each can be served by a vehicle of its own.
//
// The context is the load that it may still deliver, the room for what it picks up, and the time
// and the length that are left, as shares.

// Attributes are what an instance of VRP has beyond capacities, as a set of bits.
type Attributes uint8

// The attributes.
const (
	Open     Attributes = 1 << iota // a route ends at its last customer: the way home costs nothing
	Backhaul                        // some customers have goods picked up, after all deliveries of their route
	Mixed                           // with Backhaul: in any order
	Limited                         // routes have a limit of length
	Windowed                        // customers have windows of time and service
	Several                         // of MDVRP: there are several depots
)

// Columns of VRP.
const (
	VRPDemand = iota
	vrpX
	vrpY
	vrpHome
	vrpEarly
	vrpLate
	vrpService
	VRPKind
	vrpColumns
)

// Window is when service of a node may begin, and how long it takes.
type Window struct{ Early, Late, Service float32 }

// How RouteFinder draws (https://arxiv.org/abs/2406.15007).
const (
	vrpEnd      = 4.6 // vehicles are back by then
	pickupShare = 0.2
)

// secondBlock is where the second Philox blocks of nodes begin. A customer's words are its service,
// the width of its window, where it begins, and whether it is one of pickups; of the depot's the
// first is the limit.
const secondBlock = 1 << 20

// pick picks the attributes of an instance.
func (d *Drawing) pick(word uint32) Attributes {
	mix := d.Mix
	for range rng.Below(word, uint32(bits.OnesCount64(mix))) {
		mix &= mix - 1
	}
	return Attributes(bits.TrailingZeros64(mix))
}

// drawVRP draws the attributes of an instance, and what they bring.
func (d *Drawing) drawVRP(nodes []int32, x, y []float32, word uint32, index uint64) {
	own := d.drawOwn(x, y, d.pick(word), index)
	completeVRP(nodes, x, y, own)
	for j := 1; j < len(x); j++ {
		d.drawCustomer(nodes[j*vrpColumns:][:vrpColumns], x, y, j, own.Attributes, index)
	}
}

// drawOwn draws what an instance with these attributes has once.
func (d *Drawing) drawOwn(x, y []float32, a Attributes, index uint64) Own {
	own := Own{Limit: infinite, End: infinite, Attributes: a}
	if a&Limited != 0 {
		own.Limit = d.limit(x, y, rng.At(d.Seed, index, secondBlock, d.Purpose)[0])
	}
	if a&Windowed != 0 {
		own.End = vrpEnd
	}
	return own
}

// drawCustomer draws whether customer j has goods picked up, and its window.
func (d *Drawing) drawCustomer(row []int32, x, y []float32, j int, a Attributes, index uint64) {
	u := rng.At(d.Seed, index, secondBlock+uint32(j), d.Purpose)
	if a&Backhaul != 0 && rng.Float(u[3]) < pickupShare {
		row[VRPDemand] = -row[VRPDemand]
	}
	if a&Windowed != 0 {
		window(row, drawnWindow(u, Leg(x[j], y[j], x[0], y[0])))
	}
}

// drawnWindow is the window of a customer that far from the depot: it can be reached in time, and
// the depot from there.
func drawnWindow(u [4]uint32, way float32) Window {
	service, width := 0.15+float32(0.03*rng.Float(u[0])), 0.18+float32(0.02*rng.Float(u[1]))
	early := way + float32((vrpEnd-service-width-2*way)*rng.Float(u[2]))
	return Window{early, early + width, service}
}

var infinite = float32(math.Inf(1))

func window(row []int32, w Window) {
	row[vrpEarly], row[vrpLate], row[vrpService] = word(w.Early), word(w.Late), word(w.Service)
}

// completeVRP is RuleSet.Complete.
func completeVRP(nodes []int32, x, y []float32, own Own) {
	for j := range x {
		row := nodes[j*vrpColumns:][:vrpColumns]
		home, end := Leg(x[j], y[j], x[0], y[0]), infinite
		if own.Attributes&Open != 0 {
			home = 0
		}
		row[VRPKind] = 0
		if j == 0 {
			home, end, row[VRPKind] = own.Limit, own.End, int32(own.Attributes)
		}
		row[vrpX], row[vrpY], row[vrpHome] = word(x[j]), word(y[j]), word(home)
		window(row, Window{0, end, 0})
		if j > 0 && own.Windows != nil {
			window(row, own.Windows[j])
		}
	}
}

// FeaturesVRP writes what an encoder sees of node j of an instance; capacity is what demands are
// divided by.
func FeaturesVRP[F float32 | float64](to []F, nodes []int32, x, y F, j int, capacity F) {
	featuresVRP(to, nodes, vrpColumns, x, y, j, capacity)
}

// featuresVRP is FeaturesVRP for nodes whose words begin with VRP's and lie `wide` apart.
func featuresVRP[F float32 | float64](to []F, nodes []int32, wide int, x, y F, j int, capacity F) {
	at := func(j, column int) F {
		v := math.Float32frombits(uint32(nodes[j*wide+column]))
		if v == infinite {
			return 0
		}
		return F(v)
	}
	bit := func(a Attributes) F {
		if Attributes(nodes[VRPKind])&a != 0 {
			return 1
		}
		return 0
	}
	demand := nodes[j*wide]
	to[0], to[1], to[2], to[3], to[4] = x, y, F(max(demand, 0))/capacity, 0, F(max(-demand, 0))/capacity
	if j == 0 {
		to[3] = 1
	}
	to[5], to[6], to[7] = at(j, vrpEarly), at(j, vrpLate), at(j, vrpService)
	to[8], to[9], to[10], to[11] = bit(Open), bit(Mixed), at(0, vrpHome), at(0, vrpLate)
}

// VehicleVRP is how far a vehicle of VRP has come on its route, beside its node: what the plain and
// the fast rules of Go share, since float32 numbers decide where it may go and must be the same.
type VehicleVRP struct {
	most, picked int32 // what it carries at its fullest, and what it has picked up
	time, length float32
}

// carries: there is room for what is delivered, or picked up.
func (v *VehicleVRP) carries(demand, capacity int32, a Attributes) bool {
	if demand >= 0 {
		return v.most+demand <= capacity && (v.picked <= 0 || a&Mixed != 0)
	}
	return v.picked-demand <= capacity
}

// Fits: a vehicle at node `at` may go to customer j, whom nobody has served.
func (v *VehicleVRP) Fits(nodes []int32, at, j, capacity int32) bool {
	c, here := nodes[j*vrpColumns:][:vrpColumns], nodes[at*vrpColumns:][:vrpColumns]
	if !v.carries(c[VRPDemand], capacity, Attributes(nodes[VRPKind])) {
		return false
	}
	if at == 0 {
		return true
	}
	way := Leg(single(here[vrpX]), single(here[vrpY]), single(c[vrpX]), single(c[vrpY]))
	arrival := v.time + way
	return v.length+way+single(c[vrpHome]) <= single(nodes[vrpHome]) && arrival <= single(c[vrpLate]) &&
		max(arrival, single(c[vrpEarly]))+single(c[vrpService])+single(c[vrpHome]) <= single(nodes[vrpLate])
}

// Move takes the vehicle from node `at` to node j.
func (v *VehicleVRP) Move(nodes []int32, at, j int32) {
	if j == 0 {
		*v = VehicleVRP{}
		return
	}
	c, here := nodes[j*vrpColumns:][:vrpColumns], nodes[at*vrpColumns:][:vrpColumns]
	v.serve(c, Leg(single(here[vrpX]), single(here[vrpY]), single(c[vrpX]), single(c[vrpY])))
}

// serve takes the vehicle to a customer by a way of that length.
func (v *VehicleVRP) serve(c []int32, way float32) {
	v.length += way
	v.time = max(v.time+way, single(c[vrpEarly])) + single(c[vrpService])
	if demand := c[VRPDemand]; demand >= 0 {
		v.most += demand
	} else {
		v.picked -= demand
		v.most = max(v.most, v.picked)
	}
}

// ContextVRP is what a decoder sees of the vehicle.
func ContextVRP[F float32 | float64](to []F, v *VehicleVRP, nodes []int32, capacity int32) {
	to[0], to[1] = F(capacity-v.most)/F(capacity), F(capacity-v.picked)/F(capacity)
	to[2], to[3] = 1-F(v.time)/F(single(nodes[vrpLate])), 1-F(v.length)/F(single(nodes[vrpHome]))
}

// OpenVRP: the way home costs nothing.
func OpenVRP(nodes []int32) bool { return Attributes(nodes[VRPKind])&Open != 0 }

func single(word int32) float32 { return math.Float32frombits(uint32(word)) }
