package host

import (
	"math"
	"math/bits"

	"haul/internal/kernel"
	"haul/internal/rng"
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
func pick(d *kernel.Drawing, word uint32) kernel.Attributes {
	mix := d.Mix
	for range rng.Below(word, uint32(bits.OnesCount64(mix))) {
		mix &= mix - 1
	}
	return kernel.Attributes(bits.TrailingZeros64(mix))
}

// drawVRP draws the attributes of an instance, and what they bring.
func drawVRP(d *kernel.Drawing, nodes []int32, x, y []float32, word uint32, index uint64) {
	own := drawOwn(d, x, y, pick(d, word), index)
	completeVRP(nodes, x, y, own)
	for j := 1; j < len(x); j++ {
		drawCustomer(d, nodes[j*vrpColumns:][:vrpColumns], x, y, j, own.Attributes, index)
	}
}

// drawOwn draws what an instance with these attributes has once.
func drawOwn(d *kernel.Drawing, x, y []float32, a kernel.Attributes, index uint64) kernel.Own {
	own := kernel.Own{Limit: infinite, End: infinite, Attributes: a}
	if a&kernel.Limited != 0 {
		own.Limit = limit(d, x, y, rng.At(d.Seed, index, secondBlock, d.Purpose)[0])
	}
	if a&kernel.Windowed != 0 {
		own.End = vrpEnd
	}
	return own
}

// drawCustomer draws whether customer j has goods picked up, and its window.
func drawCustomer(d *kernel.Drawing, row []int32, x, y []float32, j int, a kernel.Attributes, index uint64) {
	u := rng.At(d.Seed, index, secondBlock+uint32(j), d.Purpose)
	if a&kernel.Backhaul != 0 && rng.Float(u[3]) < pickupShare {
		row[VRPDemand] = -row[VRPDemand]
	}
	if a&kernel.Windowed != 0 {
		window(row, drawnWindow(u, Leg(x[j], y[j], x[0], y[0])))
	}
}

// drawnWindow is the window of a customer that far from the depot: it can be reached in time, and
// the depot from there.
func drawnWindow(u [4]uint32, way float32) kernel.Window {
	service, width := 0.15+float32(0.03*rng.Float(u[0])), 0.18+float32(0.02*rng.Float(u[1]))
	early := way + float32((vrpEnd-service-width-2*way)*rng.Float(u[2]))
	return kernel.Window{Early: early, Late: early + width, Service: service}
}

var infinite = float32(math.Inf(1))

func window(row []int32, w kernel.Window) {
	row[vrpEarly], row[vrpLate], row[vrpService] = word(w.Early), word(w.Late), word(w.Service)
}

// completeVRP is RuleSet.Complete.
func completeVRP(nodes []int32, x, y []float32, own kernel.Own) {
	for j := range x {
		row := nodes[j*vrpColumns:][:vrpColumns]
		home, end := Leg(x[j], y[j], x[0], y[0]), infinite
		if own.Attributes&kernel.Open != 0 {
			home = 0
		}
		row[VRPKind] = 0
		if j == 0 {
			home, end, row[VRPKind] = own.Limit, own.End, int32(own.Attributes)
		}
		row[vrpX], row[vrpY], row[vrpHome] = word(x[j]), word(y[j]), word(home)
		window(row, kernel.Window{Late: end})
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
	bit := func(a kernel.Attributes) F {
		if kernel.Attributes(nodes[VRPKind])&a != 0 {
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
	to[8], to[9], to[10], to[11] = bit(kernel.Open), bit(kernel.Mixed), at(0, vrpHome), at(0, vrpLate)
}

// VehicleVRP is how far a vehicle of VRP has come on its route, beside its node: what the plain and
// the fast rules of Go share, since float32 numbers decide where it may go and must be the same.
type VehicleVRP struct {
	most, picked int32 // what it carries at its fullest, and what it has picked up
	time, length float32
}

// carries: there is room for what is delivered, or picked up.
func (v *VehicleVRP) carries(demand, capacity int32, a kernel.Attributes) bool {
	if demand >= 0 {
		return v.most+demand <= capacity && (v.picked <= 0 || a&kernel.Mixed != 0)
	}
	return v.picked-demand <= capacity
}

// Fits: a vehicle at node `at` may go to customer j, whom nobody has served.
func (v *VehicleVRP) Fits(nodes []int32, at, j, capacity int32) bool {
	c, here := nodes[j*vrpColumns:][:vrpColumns], nodes[at*vrpColumns:][:vrpColumns]
	if !v.carries(c[VRPDemand], capacity, kernel.Attributes(nodes[VRPKind])) {
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
func OpenVRP(nodes []int32) bool { return kernel.Attributes(nodes[VRPKind])&kernel.Open != 0 }

func single(word int32) float32 { return math.Float32frombits(uint32(word)) }
