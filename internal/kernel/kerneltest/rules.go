package kerneltest

import (
	"math"

	"haul/internal/kernel"
	"haul/internal/kernel/reference"
	"haul/internal/vrp"
)

// What every rule set is tested by: instances that are drawn, routes on instances whose rules bind
// here and there, and the same as a batch for the validator, which shares no code with the devices.

// ruled is what a fleet's rule set is drawn by.
type ruled struct {
	limit  float32 // where the limits of a route's length end; 0: CVRP
	mix    uint64  // kernel.Drawing's: VRP
	single bool    // TSP
	depots bool    // with mix: MDVRP
}

func (f fleet) rules() kernel.Rules {
	if f.depots {
		return kernel.Rules{Set: kernel.MDVRP, Capacity: f.capacity}
	}
	if f.mix != 0 {
		return kernel.Rules{Set: kernel.VRP, Capacity: f.capacity}
	}
	if f.limit > 0 {
		return kernel.Rules{Set: kernel.CVRPL, Capacity: f.capacity}
	}
	if f.single {
		return kernel.Rules{Set: kernel.TSP, Capacity: f.capacity}
	}
	return kernel.Rules{Capacity: f.capacity}
}

// ruledFleets are those of rule sets past CVRP.
func ruledFleets() []fleet {
	// limits between nothing to spare and some, and none
	short := fleet{shape: shape{14, 2, 4}, starts: 3, capacity: 40, temperature: 1, ruled: ruled{limit: 12}}
	long := fleet{shape: shape{40, 4, 8}, starts: 5, forced: true, capacity: 60, temperature: 1.5, ruled: ruled{limit: 25}, pairs: true, near: 0.3}
	endless := fleet{shape: shape{9, 1, 8}, starts: 8, capacity: 20, temperature: 1, ruled: ruled{limit: float32(math.Inf(1))}, pairs: true}
	// capacities that would hold one customer
	tour := fleet{shape: shape{17, 2, 4}, starts: 4, capacity: 1, temperature: 1, ruled: ruled{single: true}}
	forced := fleet{shape: shape{70, 4, 8}, starts: 6, forced: true, capacity: 1, temperature: 1.5, ruled: ruled{single: true}, pairs: true, near: 0.3}
	return append(append([]fleet{short, short.view(), long, endless, tour, tour.view(), forced}, variedFleets()...), depotFleets()...)
}

// largeRuled are fleets of rule sets past CVRP at sizes of RunLarge.
func largeRuled() []fleet {
	limited := fleet{shape: shape{40, 8, 16}, starts: 9, forced: true, capacity: 60, temperature: 1.5, ruled: ruled{limit: 25}, pairs: true, near: 0.3}
	far := fleet{shape: shape{150, 4, 32}, starts: 6, capacity: 60, temperature: 1, ruled: ruled{limit: 30}}
	alone := fleet{shape: shape{21, 4, 32}, starts: 1, capacity: 40, temperature: 1, ruled: ruled{limit: 20}, pairs: true}
	tour := fleet{shape: shape{51, 4, 32}, starts: 20, forced: true, capacity: 1, temperature: 1, ruled: ruled{single: true}, pairs: true}
	wide := fleet{shape: shape{150, 8, 16}, starts: 6, capacity: 1, temperature: 1, ruled: ruled{single: true}}
	only := fleet{shape: shape{21, 4, 32}, starts: 1, capacity: 1, temperature: 1, ruled: ruled{single: true}, near: 0.3}
	return append([]fleet{limited, limited.view(), far, alone, tour, tour.view(), wide, only}, append(largeVaried(), largeDepots()...)...)
}

// nodeWords are the columns that f's rules read.
func (r *recording) nodeWords(f fleet, most int32) *kernel.Tensor {
	b, set := r.batch(f), f.rules().Set
	b.Demand = r.demands(most)
	wide := len(set.Columns())
	words := wordsOf(set, b)
	for i := range b.B {
		lo, hi := i*f.nodes, (i+1)*f.nodes
		row := words[wide*lo : wide*hi]
		if math.IsInf(float64(f.limit), 1) {
			reference.Complete(set, row, b.X[lo:hi], b.Y[lo:hi], kernel.Own{Limit: f.limit})
		} else {
			reference.Draw(set, row, b.X[lo:hi], b.Y[lo:hi], &kernel.Drawing{Seed: 99, Range: max(f.limit, vrp.MixLongest), Mix: f.mix}, uint64(i))
		}
	}
	return r.givenInts("nodes", words, f.nodes*wide)
}

// batch has the places of f's instances.
func (r *recording) batch(f fleet) *vrp.Batch {
	further := f.rules().Set.Further()
	return &vrp.Batch{B: r.prog.Batch, N: f.nodes - 1 - further, Further: further, Capacity: f.capacity, X: value[float32](r, "x"), Y: value[float32](r, "y")}
}

// batch is f's instances as the validator reads them, by the columns that a device was given.
func (f fleet) batch(r *recording) *vrp.Batch {
	b, words, wide := r.batch(f), value[int32](r, "nodes"), len(f.rules().Set.Columns())
	b.Demand = make([]int32, len(words)/wide)
	for j := range b.Demand {
		b.Demand[j] = words[j*wide]
		if f.limit > 0 && j%f.nodes == 0 {
			b.Limit = append(b.Limit, math.Float32frombits(uint32(words[j*wide+3])))
		}
	}
	if f.mix != 0 {
		b.Varied = varied(words, wide, f.nodes, b)
	}
	if f.single { // the validator's form of it: one vehicle that can carry all
		b.Single, b.Capacity = true, int32(b.N)
		for j := range b.Demand {
			b.Demand[j] = int32(min(j%f.nodes, 1))
		}
	}
	return b
}

// wordsOf are the columns that a rule set reads of a batch.
func wordsOf(set kernel.RuleSet, b *vrp.Batch) []int32 {
	nodes, wide := b.Nodes(), len(set.Columns())
	words := make([]int32, wide*len(b.Demand))
	for j, d := range b.Demand {
		words[wide*j] = d
	}
	for i := range b.B {
		own := kernel.Own{Limit: float32(math.Inf(1)), End: float32(math.Inf(1))}
		if b.Limit != nil {
			own.Limit = b.Limit[i]
		}
		if b.Varied != nil {
			own = ownOf(words, wide, b, i)
		}
		lo, hi := i*nodes, (i+1)*nodes
		reference.Complete(set, words[wide*lo:wide*hi], b.X[lo:hi], b.Y[lo:hi], own)
	}
	return words
}

// drawnBy is the source with what the rule set draws.
func drawnBy(set kernel.RuleSet, src vrp.Source) vrp.Source {
	switch set {
	case kernel.CVRPL:
		src.MaxLength = 2.5
	case kernel.VRP:
		src.Mix = vrp.Mix(everyKind())
	case kernel.MDVRP:
		src.Mix = vrp.Mix(everyDepots())
	case kernel.TSP:
		src.Single = true
	}
	return src
}
