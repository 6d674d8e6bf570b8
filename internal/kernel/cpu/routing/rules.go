package routing

import (
	"math"
	"math/bits"

	"haul/internal/kernel"
	"haul/internal/kernel/host"
	"haul/internal/rules/walk"
)

// The rules of a route: where a vehicle may go next, and what going there changes. The rollout and
// its gradient take them from here; kernel.Rollout states them, reference/rules.go is the plain
// form and cuda/src/routing/rules.cuh the GPU's.
//
// What a reader could break: nothing here knows attention or sampling, and nothing outside decides
// what is allowed. To other files an instance and a vehicle are opaque values: they ask allow, move
// and context, and touch no field (internal/lint checks).

// features is what the policy sees of every node (kernel.RuleSet.Features), instances of n nodes.
func features(f, x, y []float32, nodes []int32, n int, rules kernel.Rules) {
	wide, seen := len(rules.Set.Columns()), len(rules.Set.Features())
	for i := range x {
		depot := float32(0)
		if i%n == 0 {
			depot = 1
		}
		row := f[i*seen:][:seen]
		if rules.Set == kernel.VRP {
			host.FeaturesVRP(row, nodes[i/n*n*wide:], x[i], y[i], i%n, float32(rules.Capacity))
			continue
		}
		if rules.Set == kernel.MDVRP {
			host.FeaturesMDVRP(row, nodes[i/n*n*wide:], x[i], y[i], i%n, n, float32(rules.Capacity))
			continue
		}
		row[0], row[1], row[2], row[3] = x[i], y[i], float32(nodes[i*wide])/float32(rules.Capacity), depot
		if rules.Set == kernel.TSP {
			row[2] = math.Float32frombits(uint32(nodes[i]))
		}
	}
}

// instance is what the rules ask of a routing instance. It is passed by value, in registers.
type instance struct {
	words    []int32 // kernel.Instances.Nodes, `wide` for each node, the demand first
	capacity int32
	wide     int32
	limited  bool          // CVRPL
	various  bool          // VRP
	single   bool          // TSP, whose word of a node is a float, the share
	depots   bool          // MDVRP
	machine  *walk.Machine // holds the instance where the rules are a problem file's; else nil
}

// nodes is how many there are, the depot included.
func (in instance) nodes() int {
	if in.wide == 1 {
		return len(in.words)
	}
	return len(in.words) / int(in.wide)
}

// column is a float column of node j, CVRPL's: 1 x, 2 y, 3 the way home, at the depot the limit.
func (in instance) column(j, k int32) float32 { return math.Float32frombits(uint32(in.words[4*j+k])) }

// vehicle is the state of one route while it is built or replayed.
type vehicle struct {
	at, left int32 // node and load
	seen     int32 // where the policy sees it: at, but before the first step of a start that is viewed
	unserved int32
	served   []uint64
	length   float32 // of the route so far; CVRPL
	route    host.VehicleVRP
	several  host.VehicleMDVRP
	file     *walk.Route // where the rules are a problem file's
}

// newInstance is instance i of a batch whose instances have n nodes each.
func newInstance(nodes []int32, i, n int, rules kernel.Rules) instance {
	wide := len(rules.Set.Columns())
	in := instance{words: nodes[i*n*wide:][:n*wide], capacity: rules.Capacity, wide: int32(wide)}
	in.limited, in.various, in.single = rules.Set == kernel.CVRPL, rules.Set == kernel.VRP, rules.Set == kernel.TSP
	in.depots = rules.Set == kernel.MDVRP
	return in
}

// depart stands at the depot with a full load and nobody served; served has a bit for each node.
// The route is number `row` of those under way.
func (v *vehicle) depart(in instance, served []uint64, row int) {
	if in.machine != nil {
		v.at, v.seen, v.file = 0, 0, in.machine.Start(row)
		return
	}
	v.at, v.seen, v.left, v.unserved, v.served = 0, 0, in.capacity, int32(in.nodes()-1), served
	v.length, v.route = 0, host.VehicleVRP{}
	clear(served)
	if in.depots {
		v.unserved -= int32(kernel.MDVRP.Further())
		v.several.Depart(in.words)
	}
}

// view has the policy see the vehicle at a customer until it moves.
func (v *vehicle) view(customer int) { v.seen = int32(customer) }

// node is where the vehicle stands, and from where the policy sees it.
func (v *vehicle) node() int32 { return v.at }
func (v *vehicle) from() int32 { return v.seen }

// room is 1 where customer j, whom nobody has served, may be next, and else 0: without a branch,
// since who fits is as good as random.
func (v *vehicle) room(in instance, j int) uint64 {
	return uint64(int64(in.words[j])-int64(v.left)-1) >> 63
}

// way is how far it is from where the vehicle stands to node j.
func (v *vehicle) way(in instance, j int32) float32 {
	return host.Leg(in.column(v.at, 1), in.column(v.at, 2), in.column(j, 1), in.column(j, 2))
}

// within is room for sets with more columns. CVRPL's vehicle could also go there and then home
// within the limit.
func (v *vehicle) within(in instance, j int32) uint64 {
	if in.various {
		if v.route.Fits(in.words, v.at, j, in.capacity) {
			return 1
		}
		return 0
	}
	if in.words[j*in.wide] <= v.left && (!in.limited || v.length+v.way(in, j)+in.column(j, 3) <= in.column(0, 3)) {
		return 1
	}
	return 0
}

// home: the depot may be next. At the depot it may not while customers remain, in a single tour
// nowhere.
func (v *vehicle) home(in instance) bool { return v.unserved == 0 || v.at != 0 && !in.single }

// ended: all are served and the vehicle is back.
func (v *vehicle) ended() bool {
	if v.file != nil {
		return v.file.Done
	}
	return v.unserved == 0 && v.at == 0
}

// allow writes the nodes that may be next into mask and returns how many there are, and one of
// them.
func (v *vehicle) allow(mask []uint64, in instance) (count int, last int32) {
	if in.machine != nil {
		return in.machine.Allowed(v.file, mask)
	}
	if v.unserved == 0 {
		clear(mask)
		mask[0] = 1
		return 1, 0
	}
	if in.depots {
		return v.allowDepots(mask, in)
	}
	n := in.nodes()
	for i := range mask {
		free := ^v.served[i]
		if rest := n - i*64; rest < 64 {
			free &= 1<<rest - 1
		}
		if i == 0 {
			free &^= 1
		}
		ok := uint64(0)
		if in.single {
			ok, free = free, 0
		}
		if in.wide > 1 {
			for ; free != 0; free &= free - 1 {
				j := bits.TrailingZeros64(free)
				ok |= v.within(in, int32(i*64+j)) << (j & 63)
			}
		}
		for ; free != 0; free &= free - 1 {
			j := bits.TrailingZeros64(free)
			ok |= v.room(in, i*64+j) << (j & 63)
		}
		mask[i] = ok
		if ok != 0 {
			count += bits.OnesCount64(ok)
			last = int32(i*64 + bits.Len64(ok) - 1)
		}
	}
	if v.home(in) {
		mask[0] |= 1
		count++
		if count == 1 {
			last = 0
		}
	}
	return count, last
}

// allowDepots is allow where instances have several depots, whose nodes are the first and the last,
// and customers are left.
func (v *vehicle) allowDepots(mask []uint64, in instance) (count int, last int32) {
	n := in.nodes()
	customers := n - kernel.MDVRP.Further() // and node 0 before them
	for i := range mask {
		free, ok := ^v.served[i], uint64(0)
		if rest := customers - i*64; rest < 64 {
			free &= 1<<max(0, rest) - 1
		}
		if i == 0 {
			free &^= 1
		}
		for ; free != 0; free &= free - 1 {
			if j := bits.TrailingZeros64(free); v.several.Fits(in.words, v.at, int32(i*64+j), in.capacity) {
				ok |= 1 << j
			}
		}
		mask[i] = ok
		if ok != 0 {
			count += bits.OnesCount64(ok)
			last = int32(i*64 + bits.Len64(ok) - 1)
		}
	}
	for k := customers; k <= n; k++ {
		j := int32(k % n) // the further depots, and the first
		if v.several.FitsDepot(in.words, v.at, j) {
			mask[j>>6] |= 1 << (j & 63)
			count, last = count+1, j
		}
	}
	return count, last
}

// depot: node j is one.
func (in instance) depot(j int32) bool {
	return j == 0 || in.depots && int(j) >= in.nodes()-kernel.MDVRP.Further()
}

// leg is the nodes between which the way to node a is driven: one node twice where it costs
// nothing, as the way home of an open route does.
func (v *vehicle) leg(a int32, in instance) (from, to int32) {
	if in.depots {
		return v.several.Leg(in.words, v.at, a)
	}
	if a == 0 && in.various && host.OpenVRP(in.words) {
		return v.at, v.at
	}
	return v.at, a
}

// drive takes the vehicle to node a and returns what its route then costs, which has cost that much
// so far.
func (v *vehicle) drive(a int32, in instance, x, y []float32, cost float32) float32 {
	if in.machine != nil {
		in.machine.Visit(v.file, int(a))
		v.at, v.seen = a, a
		return v.file.Cost
	}
	from, to := v.leg(a, in)
	v.move(a, in)
	return cost + leg(x, y, from, to)
}

// move takes the vehicle to node a.
func (v *vehicle) move(a int32, in instance) {
	if in.machine != nil {
		in.machine.Follow(v.file, int(a))
		v.at, v.seen = a, a
		return
	}
	if in.limited {
		v.length += v.way(in, a)
	}
	if in.various {
		v.route.Move(in.words, v.at, a)
	}
	if in.depots {
		v.several.Move(in.words, v.at, a)
	}
	v.at, v.seen = a, a
	if in.depot(a) {
		v.left, v.length = in.capacity, 0
		return
	}
	if !in.single {
		v.left -= in.words[a*in.wide]
	}
	v.served[a>>6] |= 1 << (a & 63)
	v.unserved--
}

// context writes what the policy sees of the vehicle beside its node (kernel.RuleSet.Context): the
// shares of the load and of the route's length that are left, or of the customers.
func (v *vehicle) context(to []float32, in instance) {
	if in.machine != nil {
		in.machine.Context(v.file, to)
		return
	}
	if in.single {
		to[0] = float32(v.unserved) * math.Float32frombits(uint32(in.words[0]))
		return
	}
	if in.depots {
		host.ContextMDVRP(to, &v.several, in.words, v.at, in.capacity)
		return
	}
	if in.various {
		host.ContextVRP(to, &v.route, in.words, in.capacity)
		return
	}
	to[0] = float32(v.left) / float32(in.capacity)
	if len(to) > 1 {
		to[1] = 1 - v.length/in.column(0, 3)
	}
}

// leg is the length of the way between two nodes.
func leg(x, y []float32, from, to int32) float32 {
	dx, dy := x[to]-x[from], y[to]-y[from]
	return float32(math.Sqrt(float64(dx*dx + dy*dy)))
}

// scored is how many of a route's steps the policy answers for, at least one.
func scored(steps int32, forced bool) int32 {
	if forced {
		steps--
	}
	return max(1, steps)
}
