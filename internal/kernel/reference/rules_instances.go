package reference

import (
	"math"
	"math/bits"
	"slices"

	"haul/internal/kernel"
	"haul/internal/rng"
)

// Words of instances, as kernel.Drawing and kernel.Own state them.

// farBlock is the first of the further Philox blocks: block farBlock+j is customer j's, farBlock
// the depot's.
const farBlock = 1 << 20

var unlimited = float32(math.Inf(1))

// Draw draws what an instance has besides places and demands, and fills in its words. Word 3 of
// block 1 draws CVRPL's limit, and of VRP and MDVRP the attributes.
func Draw(set kernel.RuleSet, nodes []int32, x, y []float32, d *kernel.Drawing, index uint64) {
	word := rng.At(d.Seed, index, 1, d.Purpose)[3]
	own := kernel.Own{Limit: unlimited, End: unlimited}
	switch set {
	case kernel.CVRP:
		return
	case kernel.CVRPL:
		own.Limit = drawLimit(x, y, d.Range, word)
	case kernel.VRP, kernel.MDVRP:
		drawOwn(&own, set, nodes, x, y, d, word, index)
	}
	Complete(set, nodes, x, y, own)
}

// drawLimit is uniform from twice the way to the node farthest from the depot to the longest, where
// that is more.
func drawLimit(x, y []float32, longest float32, word uint32) float32 {
	least := float32(0)
	for j := range x {
		least = max(least, 2*distance32(x[j], y[j], x[0], y[0]))
	}
	return least + float32(rng.Float(word)*(max(longest, least)-least))
}

// drawOwn draws attributes, of which each set that Mix has a bit for is as likely, and then what
// they bring, as RouteFinder does (https://arxiv.org/abs/2406.15007).
func drawOwn(own *kernel.Own, set kernel.RuleSet, nodes []int32, x, y []float32, d *kernel.Drawing, word uint32, index uint64) {
	var kinds []kernel.Attributes
	for a := range 64 {
		if d.Mix>>a&1 != 0 {
			kinds = append(kinds, kernel.Attributes(a))
		}
	}
	if len(kinds) != bits.OnesCount64(d.Mix) {
		panic("more kinds than bits")
	}
	own.Attributes = kinds[rng.Below(word, uint32(len(kinds)))]
	wide, customers := len(set.Columns()), len(x)-1-set.Further()
	if set == kernel.MDVRP {
		own.Depots = 1 + set.Further()
		if own.Attributes&kernel.Several == 0 {
			own.Depots = 1
			for j := 1 + customers; j < len(x); j++ {
				x[j], y[j] = x[0], y[0]
			}
		}
	}
	if own.Attributes&kernel.Limited != 0 {
		own.Limit = drawLimit(x, y, d.Range, rng.At(d.Seed, index, farBlock, d.Purpose)[0])
	}
	const end = 4.6
	if own.Attributes&kernel.Windowed != 0 {
		own.End = end
		own.Windows = make([]kernel.Window, len(x))
	}
	for j := 1; j <= customers; j++ {
		u := rng.At(d.Seed, index, farBlock+uint32(j), d.Purpose)
		if own.Attributes&kernel.Backhaul != 0 && rng.Float(u[3]) < 0.2 { // a fifth are picked up
			nodes[j*wide] = -nodes[j*wide]
		}
		if own.Windows != nil {
			// service begins in a window that can be reached, and from which there is time to go home
			service, width := 0.15+float32(0.03*rng.Float(u[0])), 0.18+float32(0.02*rng.Float(u[1]))
			way := distance32(x[j], y[j], x[0], y[0])
			early := way + float32((end-service-width-2*way)*rng.Float(u[2]))
			own.Windows[j] = kernel.Window{Early: early, Late: early + width, Service: service}
		}
	}
}

// Complete fills in the words of an instance's nodes behind the demands (kernel/rules_columns.go).
func Complete(set kernel.RuleSet, nodes []int32, x, y []float32, own kernel.Own) {
	columns, further := set.Columns(), set.Further()
	put := func(j int, column string, v float32) {
		nodes[j*len(columns)+slices.Index(columns, column)] = int32(math.Float32bits(v))
	}
	count := func(j int, column string, v int32) { nodes[j*len(columns)+slices.Index(columns, column)] = v }
	customers := len(x) - 1 - further
	depot := func(j int) bool { return j == 0 || j > customers }
	ways := []string{"home", "home1", "home2"}[:1+further]
	if set == kernel.TSP {
		for j := range x {
			put(j, "share", 1/float32(max(1, customers)))
		}
	}
	if set == kernel.CVRP || set == kernel.TSP {
		return
	}
	for j := range x {
		put(j, "x", x[j])
		put(j, "y", y[j])
		for d, column := range ways {
			at := 0
			if d > 0 {
				at = customers + d
			}
			home := distance32(x[j], y[j], x[at], y[at])
			if own.Attributes&kernel.Open != 0 && set != kernel.CVRPL {
				home = 0
			}
			put(j, column, home)
		}
		if depot(j) {
			put(j, "home", own.Limit)
		}
		if set == kernel.CVRPL {
			continue
		}
		w := kernel.Window{Late: unlimited}
		if own.Windows != nil && !depot(j) {
			w = own.Windows[j]
		}
		if depot(j) {
			w = kernel.Window{Late: own.End}
		}
		put(j, "early", w.Early)
		put(j, "late", w.Late)
		put(j, "service", w.Service)
		count(j, "kind", 0)
	}
	if set == kernel.CVRPL {
		return
	}
	count(0, "kind", int32(own.Attributes))
	if set == kernel.MDVRP {
		serveFrom(nodes, x, y, customers, own, count)
	}
}

// serveFrom fills in from which depots a vehicle of its own could serve each customer, and how many
// customers each depot has.
func serveFrom(nodes []int32, x, y []float32, customers int, own kernel.Own, count func(j int, column string, v int32)) {
	for j := customers + 1; j < len(x); j++ {
		count(j, "demand", 0)
		count(j, "kind", -int32(j-customers))
	}
	count(0, "demand", 0)
	w := newWorld(kernel.MDVRP, nodes)
	served := make([]int32, len(w.depots))
	for j := 1; j <= customers; j++ {
		c, from := w.sites[j], int32(1)<<w.nearest(j)
		for d := range max(1, own.Depots) {
			way, home := w.way(w.depots[d], j), c.ways[d]
			if way+home <= own.Limit && way <= c.late && max(way, c.early)+c.service+home <= own.End {
				from |= 1 << d
			}
		}
		count(j, "kind", from)
		for d := range served {
			served[d] += from >> d & 1
		}
	}
	for d, node := range w.depots {
		count(node, "home1", served[d])
		count(node, "home2", 0)
	}
}
