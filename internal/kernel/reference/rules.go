package reference

import (
	"math"
	"slices"

	"haul/internal/kernel"
	"haul/internal/rules"
)

// The rules of a route, plainly: where a vehicle may go next, and what going there changes.
// kernel.Rollout states them; cpu/routing/rules.go and cuda/routing/src/rules.cuh are the same in
// fast forms. The referee (vrp) judges finished routes and shares nothing with any of them.
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
	world  *world  // of VRP and MDVRP
	route  driven  // likewise

	file *rules.Route // where the rules are a problem file's
}

// NewTour stands at the depot with a full load. nodes are kernel.Instances.Nodes of one instance.
func NewTour(by kernel.Rules, nodes []int32) *Tour {
	if p := by.Set.Problem(); p != nil {
		return &Tour{rules: by, nodes: nodes, file: newRoute(p, nodes)}
	}
	n := len(nodes) / len(by.Set.Columns())
	t := &Tour{rules: by, nodes: nodes, visited: make([]bool, n), unserved: n - by.Set.Nodes(0), left: by.Capacity}
	if by.Set == kernel.VRP || by.Set == kernel.MDVRP {
		t.world = newWorld(by.Set, nodes)
	}
	if by.Set == kernel.MDVRP {
		t.route.depot = -1
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
func (t *Tour) Done() bool { return t.done || t.file != nil && t.file.Done }

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
	if t.file != nil {
		return fileContext[F](t)
	}
	if t.world != nil {
		return vehicleContext[F](t.rules.Set, t.world, t.route, t.current, t.rules.Capacity)
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
	return distance32(t.column(t.current, 1), t.column(t.current, 2), t.column(j, 1), t.column(j, 2))
}

// fits: customer j may be next.
func (t *Tour) fits(j int) bool {
	if t.world != nil {
		return !t.visited[j] && t.world.fits(t.route, j, t.rules.Capacity)
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
		return t.opens(j)
	}
	return t.current != 0 && t.rules.Set != kernel.TSP
}

// opens: the vehicle may drive home, or take its place, for the next one to leave from the depot at
// node j: somebody is left whom it can serve from there.
func (t *Tour) opens(j int) bool {
	first := t.route.depot < 0
	if first && t.world.attributes&kernel.Several == 0 || !first && t.depot(t.current) {
		return false
	}
	for c := range t.visited {
		if !t.depot(c) && !t.visited[c] && t.world.sites[c].servable>>t.world.depotAt(j)&1 != 0 {
			return true
		}
	}
	return false
}

// Allowed lists the nodes that may come next, in order.
func (t *Tour) Allowed() []int {
	if t.file != nil {
		return fileAllowed(t)
	}
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
	switch {
	case t.world == nil:
		return t.current, j
	case !t.depot(j) && t.route.depot < 0:
		return t.world.depots[t.world.nearest(j)], j
	case !t.depot(j):
		return t.current, j
	case t.route.depot < 0 || t.depot(t.current) || t.world.attributes&kernel.Open != 0:
		return t.current, t.current
	}
	return t.current, t.world.depots[t.route.depot]
}

// Visit goes to node j.
func (t *Tour) Visit(j int) {
	if t.file != nil {
		t.file.Visit(j)
		t.current, t.seen = j, j
		return
	}
	if t.rules.Set == kernel.CVRPL {
		t.length += t.leg(j)
	}
	switch {
	case t.world == nil:
	case t.depot(j):
		t.route = driven{depot: t.world.depotAt(j)}
	case t.route.depot < 0:
		t.route = driven{depot: t.world.nearest(j), through: []int{j}}
	default:
		t.route.through = append(slices.Clone(t.route.through), j)
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
	if set.Problem() != nil {
		fileFeatures(feature, nodes, set)
		return
	}
	var w *world
	if set == kernel.VRP || set == kernel.MDVRP {
		w = newWorld(set, nodes)
	}
	for j := range posX {
		row := feature.Row(j)
		if w != nil {
			siteFeatures(row, set, w, posX[j], posY[j], j, capacity)
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
