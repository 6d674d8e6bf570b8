package kernel

import (
	"fmt"

	"haul/internal/rng"
	"haul/internal/rules"
	"haul/internal/rules/eval"
)

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

// RuleSet is a set of rules: a comparable value. The zero value is CVRP.
type RuleSet struct{ of *ruleSet }

// ruleSet is what a rule set is.
type ruleSet struct {
	name string
	// the words of a node that the rules read, int32 or the bits of a float32. Words of the depot that
	// no customer's rule asks for hold what an instance has once.
	columns []string
	// what the encoder sees of a node
	features []string
	// what the decoder sees of a vehicle beside its node
	context []string
	further int
	// the rules of a problem file, of which the words of an instance's own follow those of its nodes;
	// nil: the set is one of this file
	problem *rules.Problem
	steps   func(n int) int // nil: 2n, and 1 more with further depots
}

// The rule sets whose rules stand in the devices.
var (
	// CVRP: a vehicle serves customers while its load lasts.
	CVRP = RuleSet{}
	// CVRPL: and no route is longer than its instance's limit, the way home included. A customer fits
	// if the vehicle could go there and then home. The depot's column "home" holds the limit.
	CVRPL = RuleSet{&ruleSet{name: "cvrpl", columns: []string{"demand", "x", "y", "home"}, features: []string{"x", "y", "demand", "depot"}, context: []string{"load", "length"}}}
	// VRP: each instance has attributes of its own (Drawing.Mix, rules_columns.go).
	VRP = RuleSet{&ruleSet{name: "vrp", columns: []string{"demand", "x", "y", "home", "early", "late", "service", "kind"},
		features: []string{"x", "y", "demand", "depot", "pickup", "early", "late", "service", "open", "mixed", "limit", "end"},
		context:  []string{"load", "room", "time", "length"}}}
	// TSP: one vehicle serves all customers in one tour, and goes home when all are served. There are
	// no demands, and the capacity is not asked; the column "share" is what one customer is of all.
	TSP = RuleSet{&ruleSet{name: "tsp", columns: []string{"share"}, features: []string{"x", "y", "share", "depot"}, context: []string{"left"}}}
	// MDVRP: VRP whose instances may have several depots (rules_columns.go).
	MDVRP = RuleSet{&ruleSet{name: "mdvrp", columns: []string{"demand", "x", "y", "home", "early", "late", "service", "kind", "home1", "home2"},
		features: []string{"x", "y", "demand", "depot", "pickup", "early", "late", "service", "open", "mixed", "limit", "end", "several"},
		context:  []string{"load", "room", "time", "length", "dx", "dy", "home"}, further: MostDepots - 1}}
)

var plainSet = ruleSet{name: "cvrp", columns: []string{"demand"}, features: []string{"x", "y", "demand", "depot"}, context: []string{"load"}}

// Compiled is the rule set of a problem file. Two calls return sets that are not equal.
func Compiled(p *rules.Problem) RuleSet {
	set := &ruleSet{name: p.Name, problem: p, further: p.File.Depots - 1, steps: func(n int) int { return p.Steps(eval.New(p), n) }}
	for _, f := range p.Node {
		set.columns = append(set.columns, f.Path)
	}
	for k := range p.File.Features {
		set.features = append(set.features, fmt.Sprintf("feature%d", k))
	}
	for k := range p.File.Context {
		set.context = append(set.context, fmt.Sprintf("context%d", k))
	}
	if len(set.context) == 1 {
		set.context[0] = "context" // what names its weights
	}
	return RuleSet{set}
}

// RuleSets are those whose rules stand in the devices.
func RuleSets() []RuleSet { return []RuleSet{CVRP, CVRPL, VRP, TSP, MDVRP} }

func (s RuleSet) set() *ruleSet {
	if s.of == nil {
		return &plainSet
	}
	return s.of
}

// Problem is the problem file that the rules are of; nil: the set is one of RuleSets.
func (s RuleSet) Problem() *rules.Problem { return s.set().problem }

// String is the set's name: of settings, checkpoints and the GPU's modules.
func (s RuleSet) String() string { return s.set().name }

// Columns are the words of a node in Instances.Nodes.
func (s RuleSet) Columns() []string { return s.set().columns }

// Words is how many words an instance of that many nodes has in Instances.Nodes: those of its
// nodes, and behind them those of the instance itself where the rules are a file's.
func (s RuleSet) Words(nodes int) int {
	words := nodes * len(s.Columns())
	if p := s.Problem(); p != nil {
		words += len(p.Instance)
	}
	return words
}

// Features are what an encoder sees of a node: x and y, the demand as a share of the capacity (TSP:
// a customer as one of all), 1 at the depot. rules_columns.go has VRP's.
func (s RuleSet) Features() []string { return s.set().features }

// Context is what a decoder sees of a vehicle beside its node: the shares of the load and of the
// route's length that are left, or of the customers (TSP).
func (s RuleSet) Context() []string { return s.set().context }

// Further is how many depots an instance has beyond the first: the last of its nodes, behind the
// customers.
func (s RuleSet) Further() int { return s.set().further }

// Nodes is how many nodes an instance of n customers has.
func (s RuleSet) Nodes(n int) int { return n + 1 + s.Further() }

// MaxSteps bounds the actions of a route through n customers: each customer, and a return after
// each; with several depots, the first vehicle's choice of one before. A problem file says so
// itself.
func (s RuleSet) MaxSteps(n int) int {
	if f := s.set().steps; f != nil {
		return f(n)
	}
	return 2*n + min(1, s.Further())
}

// Instances are routing instances in a device's memory.
type Instances struct {
	Rules
	PosX, PosY *Tensor // [B,N]; the depot is node 0, further ones are the last nodes
	Nodes      *Tensor // I32 [B,Set.Words(N)]
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
