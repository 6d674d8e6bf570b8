package kernel

import "haul/internal/rng"

// Rules are what decides where a vehicle may go: a rule set, and the constants that all instances
// of a program share.
//
// What a reader could break: a rule set's table is what host, ops, models and the PyTorch twin
// agree on. The order of its columns is the layout of Instances.Nodes, that of its features the
// columns of Instances.Feature, and that of its context the rows of Decoder.Context; all three are
// part of the checkpoint format. What the rules compute is in reference, in host and cpu, and in
// cuda/routing/src/rules.cuh.
type Rules struct {
	Set      RuleSet
	Capacity int32 // of a vehicle, in the unit that demands are stated in
}

// RuleSet names a set of rules.
type RuleSet uint8

// The rule sets.
const (
	// CVRP: a vehicle serves customers while its load lasts.
	CVRP RuleSet = iota
	// CVRPL: and no route is longer than its instance's limit, the way home included. A customer fits
	// if the vehicle could go there and then home. The depot's column "home" holds the limit.
	CVRPL
	// VRP: each instance has attributes of its own (Drawing.Mix, rules_columns.go).
	VRP
	// TSP: one vehicle serves all customers in one tour, and goes home when all are served. There are
	// no demands, and the capacity is not asked; the column "share" is what one customer is of all.
	TSP
	// MDVRP: VRP whose instances may have several depots (rules_columns.go).
	MDVRP
)

// ruleSets is the table of rule sets, by RuleSet.
var ruleSets = []struct {
	name string
	// the words of a node that the rules read, int32 or the bits of a float32. Words of the depot that
	// no customer's rule asks for hold what an instance has once.
	columns []string
	// what the encoder sees of a node
	features []string
	// what the decoder sees of a vehicle beside its node
	context []string
}{
	CVRP:  {"cvrp", []string{"demand"}, []string{"x", "y", "demand", "depot"}, []string{"load"}},
	CVRPL: {"cvrpl", []string{"demand", "x", "y", "home"}, []string{"x", "y", "demand", "depot"}, []string{"load", "length"}},
	VRP: {"vrp", []string{"demand", "x", "y", "home", "early", "late", "service", "kind"},
		[]string{"x", "y", "demand", "depot", "pickup", "early", "late", "service", "open", "mixed", "limit", "end"},
		[]string{"load", "room", "time", "length"}},
	TSP: {"tsp", []string{"share"}, []string{"x", "y", "share", "depot"}, []string{"left"}},
	MDVRP: {"mdvrp", []string{"demand", "x", "y", "home", "early", "late", "service", "kind", "home1", "home2"},
		[]string{"x", "y", "demand", "depot", "pickup", "early", "late", "service", "open", "mixed", "limit", "end", "several"},
		[]string{"load", "room", "time", "length", "dx", "dy", "home"}},
}

// RuleSets are all of them.
func RuleSets() []RuleSet {
	out := make([]RuleSet, len(ruleSets))
	for i := range out {
		out[i] = RuleSet(i)
	}
	return out
}

// String is the set's name: of settings, checkpoints and the GPU's modules.
func (s RuleSet) String() string { return ruleSets[s].name }

// Columns are the words of a node in Instances.Nodes.
func (s RuleSet) Columns() []string { return ruleSets[s].columns }

// Features are what an encoder sees of a node: x and y, the demand as a share of the capacity (TSP:
// a customer as one of all), 1 at the depot. rules_columns.go has VRP's.
func (s RuleSet) Features() []string { return ruleSets[s].features }

// Context is what a decoder sees of a vehicle beside its node: the shares of the load and of the
// route's length that are left, or of the customers (TSP).
func (s RuleSet) Context() []string { return ruleSets[s].context }

// Further is how many depots an instance has beyond the first: the last of its nodes, behind the
// customers.
func (s RuleSet) Further() int {
	if s == MDVRP {
		return MostDepots - 1
	}
	return 0
}

// Nodes is how many nodes an instance of n customers has.
func (s RuleSet) Nodes(n int) int { return n + 1 + s.Further() }

// MaxSteps bounds the actions of a route through n customers: each customer, and a return after
// each; with several depots, the first vehicle's choice of one before.
func (s RuleSet) MaxSteps(n int) int { return 2*n + min(1, s.Further()) }

// Instances are routing instances in a device's memory.
type Instances struct {
	Rules
	PosX, PosY *Tensor // [B,N]; the depot is node 0, further ones are the last nodes
	Nodes      *Tensor // I32 [B,N,len(Columns)]
	Feature    *Tensor // [B,N,len(Features)]
}

// Drawing says how instances are drawn.
type Drawing struct {
	Seed       uint64
	Purpose    rng.Purpose
	Grid       int32 // integer coordinates 0..Grid scaled to the unit square; 0: uniform floats
	DemandMin  int32
	DemandMax  int32
	Symmetries int // 1 or 8

	CapacityMin, CapacityMax int32 // the range; 0: every instance has Rules.Capacity

	Range float32 // where limits of a route's length end
	// of VRP and MDVRP: bit a is set where instances may have the Attributes a; all that may be are as
	// likely
	Mix uint64
}

// Own is what an instance has beside places and demands.
type Own struct {
	Limit float32 // of a route's length; +Inf: none
	// of VRP and MDVRP
	Attributes
	End     float32  // when vehicles must be back; +Inf: any time
	Windows []Window // by node; nil: none
	Depots  int      // of MDVRP: how many there are, the others lie where the first is; 0: one
}

// LoadUnit is the capacity of vehicles whose own differ from instance to instance.
const LoadUnit = 1 << 20

// Generate makes the shard's routing instances: row r of the step is instance g = State.Instances +
// r, a pure function of (Seed, Purpose, g). Node j spends Philox block j: word 0 x, word 1 y, word
// 2 demand. With Symmetries = 8 it is instance g/8 under symmetry k = g%8 of the unit square: bit 0
// of k turns x into 1-x, bit 1 y into 1-y, bit 2 then swaps them. All in float32, so that devices
// agree bit for bit.
//
// With a range of capacities every instance has its own, q: CapacityMin and the lesser of two draws
// below the range's size, words 2 and 3 of the depot's block, so that short routes are as usual as
// they are in CVRPLIB's X. Its demands are then stated in parts of LoadUnit, which Capacity must
// be: demand·LoadUnit/q, rounded down. The same sets of customers fit as long as N·q < LoadUnit: a
// set over q is over it by 1, that is by LoadUnit/q, and N roundings take away less.
type Generate struct {
	Instances
	Drawing
}

// Kind names the op.
func (o *Generate) Kind() string { return "generate" }

// Stage: it makes instances.
func (o *Generate) Stage() Stage { return StageGenerate }

// Args visits the tensors.
func (o *Generate) Args(f func(*Tensor, Access)) {
	visit(f, Write, o.PosX, o.PosY, o.Nodes, o.Feature)
}

// Cost counts no floating-point work worth the name.
func (o *Generate) Cost() Cost { return Cost{0, bytesOf(o)} }
