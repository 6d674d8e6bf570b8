package reference

import (
	"math"
	"slices"

	"haul/internal/kernel"
)

// The rules of a route, plainly: where a vehicle may go next, and what going there changes.
// kernel.Rollout states them; cpu/rules.go and cuda/routing/src/rules.cuh are the same in fast
// forms. The referee (vrp) judges finished routes and shares nothing with any of them.
//
// What a reader could break: other files ask a Tour and touch none of its fields (internal/lint
// checks).

// Tour is how far a vehicle has come: the rules of the problem and nothing else.
type Tour struct {
	rules    kernel.Rules
	nodes    []int32 // kernel.Instances.Nodes of one instance
	visited  []bool
	unserved int
	current  int
	// where the policy sees the vehicle: current, but before the first step of a start that is viewed
	seen int
	left int32 // load left
	done bool  // back at the depot with everyone served

	length float32 // of the route so far; CVRPL
	route  kernel.VehicleVRP
	depots kernel.VehicleMDVRP
}

// NewTour stands at the depot with a full load. nodes are kernel.Instances.Nodes of one instance.
func NewTour(rules kernel.Rules, nodes []int32) *Tour {
	n := len(nodes) / len(rules.Set.Columns())
	t := &Tour{rules: rules, nodes: nodes, visited: make([]bool, n), unserved: n - rules.Set.Nodes(0), left: rules.Capacity}
	if rules.Set == kernel.MDVRP {
		t.depots.Depart(nodes)
	}
	return t
}

// depot: node j is one.
func (t *Tour) depot(j int) bool { return j == 0 || j >= len(t.visited)-t.rules.Set.Further() }

// demand is what node j asks of the load, nothing in a single tour.
func (t *Tour) demand(j int) int32 {
	if t.rules.Set == kernel.TSP {
		return 0
	}
	return t.nodes[j*len(t.rules.Set.Columns())]
}

// Node is where the vehicle stands.
func (t *Tour) Node() int { return t.current }

// From is the node that the policy sees the vehicle at.
func (t *Tour) From() int { return t.seen }

// Done: it is back at the depot with everyone served.
func (t *Tour) Done() bool { return t.done }

// Same: both vehicles stand at one node, the policy sees the same of them, and the same customers
// are left, so that whatever one tour may do next, the other may, too.
func (t *Tour) Same(u *Tour) bool {
	return t.current == u.current && t.done == u.done && slices.Equal(t.visited, u.visited) && slices.Equal(ContextOf[float64](t), ContextOf[float64](u))
}

// View has the policy see the vehicle at a customer until it moves.
func (t *Tour) View(customer int) { t.seen = customer }

// ContextOf is what the policy sees of a vehicle beside its node (kernel.RuleSet.Context): the
// shares of the load and of the route's length that are left, or of the customers.
func ContextOf[F Float](t *Tour) []F {
	if t.rules.Set == kernel.VRP {
		out := make([]F, len(t.rules.Set.Context()))
		kernel.ContextVRP(out, &t.route, t.nodes, t.rules.Capacity)
		return out
	}
	if t.rules.Set == kernel.MDVRP {
		out := make([]F, len(t.rules.Set.Context()))
		kernel.ContextMDVRP(out, &t.depots, t.nodes, int32(t.current), t.rules.Capacity)
		return out
	}
	if t.rules.Set == kernel.TSP {
		return []F{F(t.unserved) * share[F](t.nodes)}
	}
	out := []F{F(t.left) / F(t.rules.Capacity)}
	if t.rules.Set == kernel.CVRPL {
		out = append(out, 1-F(t.length)/F(t.column(0, 3)))
	}
	return out
}

// share is TSP's column, the same of every node.
func share[F Float](nodes []int32) F { return F(math.Float32frombits(uint32(nodes[0]))) }

// column is a float column of node j, CVRPL's: 1 x, 2 y, 3 the way home, at the depot the limit.
// They are float32 numbers whatever else is computed in, so that every device has the same routes.
func (t *Tour) column(j, k int) float32 { return math.Float32frombits(uint32(t.nodes[4*j+k])) }

// leg is the way from where the vehicle stands to node j.
func (t *Tour) leg(j int) float32 {
	return kernel.Leg(t.column(t.current, 1), t.column(t.current, 2), t.column(j, 1), t.column(j, 2))
}

// fits: customer j may be next.
func (t *Tour) fits(j int) bool {
	if t.rules.Set == kernel.MDVRP {
		return !t.visited[j] && t.depots.Fits(t.nodes, int32(t.current), int32(j), t.rules.Capacity)
	}
	if t.rules.Set == kernel.VRP {
		return !t.visited[j] && t.route.Fits(t.nodes, int32(t.current), int32(j), t.rules.Capacity)
	}
	return !t.visited[j] && t.demand(j) <= t.left && t.reaches(j)
}

// reaches: the vehicle could go to customer j and then home within the limit.
func (t *Tour) reaches(j int) bool {
	return t.rules.Set != kernel.CVRPL || t.length+t.leg(j)+t.column(j, 3) <= t.column(0, 3)
}

// home: the depot at node j may be next. At the depot it may not while customers remain, in a
// single tour nowhere.
func (t *Tour) home(j int) bool {
	switch {
	case t.unserved == 0:
		return j == 0
	case t.rules.Set == kernel.MDVRP:
		return t.depots.FitsDepot(t.nodes, int32(t.current), int32(j))
	}
	return t.current != 0 && t.rules.Set != kernel.TSP
}

// Allowed lists the nodes that may come next, in order.
func (t *Tour) Allowed() []int {
	var out []int
	for j := range t.visited {
		if t.depot(j) && t.home(j) || !t.depot(j) && t.fits(j) {
			out = append(out, j)
		}
	}
	return out
}

// Leg is the nodes between which the way to node j is driven, and paid for: one node twice where it
// is not.
func (t *Tour) Leg(j int) (from, to int) {
	if t.rules.Set == kernel.MDVRP {
		from, to := t.depots.Leg(t.nodes, int32(t.current), int32(j))
		return int(from), int(to)
	}
	if t.open() && j == 0 {
		return t.current, t.current
	}
	return t.current, j
}

// open: a route ends at its last customer, and the way home costs nothing.
func (t *Tour) open() bool { return t.rules.Set == kernel.VRP && kernel.OpenVRP(t.nodes) }

// Visit goes to node j.
func (t *Tour) Visit(j int) {
	if t.rules.Set == kernel.CVRPL {
		t.length += t.leg(j)
	}
	if t.rules.Set == kernel.VRP {
		t.route.Move(t.nodes, int32(t.current), int32(j))
	}
	if t.rules.Set == kernel.MDVRP {
		t.depots.Move(t.nodes, int32(t.current), int32(j))
	}
	t.current, t.seen = j, j
	if t.depot(j) {
		t.left, t.length = t.rules.Capacity, 0
		t.done = t.unserved == 0
		return
	}
	t.visited[j] = true
	t.unserved--
	t.left -= t.demand(j)
}

// Features is what the policy sees of each node of one instance (kernel.RuleSet.Features), demands
// as shares of that capacity.
func Features[F Float](feature Matrix[F], posX, posY []F, nodes []int32, set kernel.RuleSet, capacity F) {
	for j := range posX {
		row := feature.Row(j)
		if set == kernel.VRP {
			kernel.FeaturesVRP(row, nodes, posX[j], posY[j], j, capacity)
			continue
		}
		if set == kernel.MDVRP {
			kernel.FeaturesMDVRP(row, nodes, posX[j], posY[j], j, len(posX), capacity)
			continue
		}
		row[0], row[1], row[2], row[3] = posX[j], posY[j], F(nodes[j*len(set.Columns())])/capacity, 0
		if set == kernel.TSP {
			row[2] = share[F](nodes)
		}
	}
	feature.Row(0)[3] = 1
}

// Scored is how many of a row's actions the policy answers for.
func Scored(steps int32, forced bool) int {
	if forced {
		return int(steps) - 1
	}
	return int(steps)
}
