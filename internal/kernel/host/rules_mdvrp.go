package host

import "haul/internal/kernel"

const mostDepots = kernel.MostDepots

// Columns of MDVRP behind VRP's.
const (
	mdHome1 = vrpColumns + iota
	mdHome2
	mdColumns
)

const mdServes = mdHome1 // at a depot

// homes are the columns of the ways to the depots.
var homes = [mostDepots]int{vrpHome, mdHome1, mdHome2}

// depotNode is the node of depot d of n nodes.
func depotNode(d, n int) int {
	if d == 0 {
		return 0
	}
	return n - mostDepots + d
}

// depotOf is the depot at node j of n; customers have none, -1.
func depotOf(j, n int) int {
	switch d := j - (n - mostDepots); {
	case j == 0:
		return 0
	case d > 0:
		return d
	}
	return -1
}

// drawMDVRP draws the attributes of an instance, and what they bring.
func drawMDVRP(d *kernel.Drawing, nodes []int32, x, y []float32, word uint32, index uint64) {
	a, n := pick(d, word), len(x)
	depots := mostDepots
	if a&kernel.Several == 0 {
		depots = 1
		for k := 1; k < mostDepots; k++ {
			x[depotNode(k, n)], y[depotNode(k, n)] = x[0], y[0]
		}
	}
	own := drawOwn(d, x, y, a, index)
	own.Depots = depots
	fillMDVRP(nodes, x, y, own)
	for j := 1; depotOf(j, n) < 0; j++ {
		drawCustomer(d, nodes[j*mdColumns:][:mdColumns], x, y, j, a, index)
	}
	serveMDVRP(nodes, x, y, own)
}

// completeMDVRP is RuleSet.Complete.
func completeMDVRP(nodes []int32, x, y []float32, own kernel.Own) {
	fillMDVRP(nodes, x, y, own)
	serveMDVRP(nodes, x, y, own)
}

// fillMDVRP fills in all but which depots can serve whom, for which windows must be known.
func fillMDVRP(nodes []int32, x, y []float32, own kernel.Own) {
	n := len(x)
	for j := range x {
		row := nodes[j*mdColumns:][:mdColumns]
		row[vrpX], row[vrpY], row[VRPKind] = word(x[j]), word(y[j]), 0
		if depotOf(j, n) >= 0 {
			row[VRPDemand], row[vrpHome], row[mdHome1], row[mdHome2] = 0, word(own.Limit), 0, 0
			row[VRPKind] = -int32(depotOf(j, n))
			window(row, kernel.Window{Late: own.End})
			continue
		}
		for d, column := range homes {
			home, at := float32(0), depotNode(d, n)
			if own.Attributes&kernel.Open == 0 {
				home = Leg(x[j], y[j], x[at], y[at])
			}
			row[column] = word(home)
		}
		window(row, kernel.Window{Late: infinite})
		if own.Windows != nil {
			window(row, own.Windows[j])
		}
	}
	nodes[VRPKind] = int32(own.Attributes)
}

// serveMDVRP fills in from which depots a vehicle of its own could serve each customer.
func serveMDVRP(nodes []int32, x, y []float32, own kernel.Own) {
	n := len(x)
	var serves [mostDepots]int32
	for j := 1; depotOf(j, n) < 0; j++ {
		row := nodes[j*mdColumns:][:mdColumns]
		bits := int32(1) << nearestDepot(nodes, row)
		for d := range max(1, own.Depots) {
			at := depotNode(d, n)
			way, home := Leg(x[at], y[at], x[j], y[j]), single(row[homes[d]])
			if way+home <= own.Limit && way <= single(row[vrpLate]) && max(way, single(row[vrpEarly]))+single(row[vrpService])+home <= own.End {
				bits |= 1 << d
			}
		}
		row[VRPKind] = bits
		for d := range serves {
			serves[d] += bits >> d & 1
		}
	}
	for d, count := range serves {
		nodes[depotNode(d, n)*mdColumns+mdServes] = count
	}
}

// nearestDepot is the depot that a customer is nearest to, the first of those that are as near.
func nearestDepot(nodes, customer []int32) (best int) {
	least, n := infinite, len(nodes)/mdColumns
	for d := range mostDepots {
		depot := nodes[depotNode(d, n)*mdColumns:][:mdColumns]
		if way := Leg(single(depot[vrpX]), single(depot[vrpY]), single(customer[vrpX]), single(customer[vrpY])); way < least {
			best, least = d, way
		}
	}
	return best
}

// FeaturesMDVRP writes what an encoder sees of node j of an instance of n nodes: VRP's, and at
// every node whether there are several depots.
func FeaturesMDVRP[F float32 | float64](to []F, nodes []int32, x, y F, j, n int, capacity F) {
	featuresVRP(to, nodes, mdColumns, x, y, j, capacity)
	if depotOf(j, n) > 0 {
		to[3] = 1
	}
	to[12] = 0
	if kernel.Attributes(nodes[VRPKind])&kernel.Several != 0 {
		to[12] = 1
	}
}

// VehicleMDVRP is how far a vehicle of MDVRP has come on its route, beside its node.
type VehicleMDVRP struct {
	VehicleVRP
	home    int               // its depot
	serves  [mostDepots]int32 // customers left whom each depot can serve
	nowhere bool              // the first vehicle, before it has a depot
}

// Depart is the first vehicle, nowhere yet.
func (v *VehicleMDVRP) Depart(nodes []int32) {
	*v = VehicleMDVRP{nowhere: true}
	for d := range v.serves {
		v.serves[d] = nodes[depotNode(d, len(nodes)/mdColumns)*mdColumns+mdServes]
	}
}

// FitsDepot: a vehicle at node `at` may go to the depot at node j while customers are left.
func (v *VehicleMDVRP) FitsDepot(nodes []int32, at, j int32) bool {
	n := len(nodes) / mdColumns
	if v.nowhere && kernel.Attributes(nodes[VRPKind])&kernel.Several == 0 || !v.nowhere && depotOf(int(at), n) >= 0 {
		return false
	}
	return v.serves[depotOf(int(j), n)] > 0
}

// Fits: a vehicle at node `at` may go to customer j, whom nobody has served.
func (v *VehicleMDVRP) Fits(nodes []int32, at, j, capacity int32) bool {
	c, here := nodes[j*mdColumns:][:mdColumns], nodes[at*mdColumns:][:mdColumns]
	switch {
	case v.nowhere:
		return true
	case depotOf(int(at), len(nodes)/mdColumns) >= 0:
		return c[VRPKind]>>v.home&1 != 0
	case !v.carries(c[VRPDemand], capacity, kernel.Attributes(nodes[VRPKind])):
		return false
	}
	way, home := Leg(single(here[vrpX]), single(here[vrpY]), single(c[vrpX]), single(c[vrpY])), single(c[homes[v.home]])
	arrival := v.time + way
	return v.length+way+home <= single(nodes[vrpHome]) && arrival <= single(c[vrpLate]) &&
		max(arrival, single(c[vrpEarly]))+single(c[vrpService])+home <= single(nodes[vrpLate])
}

// Leg is the nodes between which a vehicle at node `at` drives to node j: one node twice where the
// way costs nothing.
func (v *VehicleMDVRP) Leg(nodes []int32, at, j int32) (from, to int32) {
	n := len(nodes) / mdColumns
	switch {
	case depotOf(int(j), n) < 0 && v.nowhere:
		return int32(depotNode(nearestDepot(nodes, nodes[j*mdColumns:][:mdColumns]), n)), j
	case depotOf(int(j), n) < 0:
		return at, j
	case depotOf(int(at), n) >= 0 || kernel.Attributes(nodes[VRPKind])&kernel.Open != 0:
		return at, at
	}
	return at, int32(depotNode(v.home, n))
}

// Move takes the vehicle from node `at` to node j, and at a depot the next one in its place.
func (v *VehicleMDVRP) Move(nodes []int32, at, j int32) {
	from, _ := v.Leg(nodes, at, j)
	n := len(nodes) / mdColumns
	v.nowhere = false
	if d := depotOf(int(j), n); d >= 0 {
		v.VehicleVRP, v.home = VehicleVRP{}, d
		return
	}
	c, here := nodes[j*mdColumns:][:mdColumns], nodes[from*mdColumns:][:mdColumns]
	if d := depotOf(int(from), n); d >= 0 {
		v.home = d
	}
	v.serve(c, Leg(single(here[vrpX]), single(here[vrpY]), single(c[vrpX]), single(c[vrpY])))
	for d := range v.serves {
		v.serves[d] -= c[VRPKind] >> d & 1
	}
}

// ContextMDVRP is what a decoder sees of a vehicle at node `at`.
func ContextMDVRP[F float32 | float64](to []F, v *VehicleMDVRP, nodes []int32, at, capacity int32) {
	ContextVRP(to, &v.VehicleVRP, nodes, capacity)
	own, here := nodes[depotNode(v.home, len(nodes)/mdColumns)*mdColumns:][:mdColumns], nodes[at*mdColumns:][:mdColumns]
	to[4], to[5] = F(single(own[vrpX])-single(nodes[vrpX])), F(single(own[vrpY])-single(nodes[vrpY]))
	to[6] = F(Leg(single(here[vrpX]), single(here[vrpY]), single(own[vrpX]), single(own[vrpY])))
}
