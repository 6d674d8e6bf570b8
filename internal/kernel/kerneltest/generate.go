package kerneltest

import (
	"fmt"
	"testing"

	"haul/internal/kernel"
	"haul/internal/rng"
	"haul/internal/vrp"
)

// instances are the Batch tensors of a generated batch.
func (r *recording) instances(o *kernel.Generate) {
	o.PosX, o.PosY = r.out("x", 0, r.nodes), r.out("y", 0, r.nodes)
	o.Nodes, o.Feature = r.outInts("nodes", r.nodes*len(o.Set.Columns())), r.out("feature", 1, r.nodes, len(o.Set.Features()))
	r.do(o)
}

// testGenerate compares with cvrp bit for bit, and symmetries with the reference bit for bit.
func testGenerate(t *testing.T, dev kernel.Device) {
	for nodes := 2; nodes <= 20; nodes++ {
		for _, grid := range []int32{0, 1, 100} {
			src := vrp.Source{Seed: 1<<35 + uint64(nodes), Purpose: rng.TrainInstances, Distribution: vrp.Uniform, N: nodes - 1, Capacity: 30, DemandMin: 2, DemandMax: 11}
			if grid > 0 {
				src.Distribution, src.CoordRange = vrp.Grid, grid
			}
			for _, symmetries := range []int{1, 8} {
				rules := kernel.Rules{Set: kernel.RuleSets()[nodes%len(kernel.RuleSets())], Capacity: src.Capacity}
				src := drawnBy(rules.Set, src)
				src.N = nodes - rules.Set.Nodes(0)
				c := trial{what: fmt.Sprintf("generate N=%d grid=%d symmetries=%d", nodes, grid, symmetries), nodes: nodes,
					batch: batchFor(dev, nodes), state: kernel.State{Instances: 1<<32 - 8}}
				c.record = func(r *recording) {
					r.instances(&kernel.Generate{Instances: kernel.Instances{Rules: rules},
						Drawing: kernel.Drawing{Range: max(src.MaxLength, reachOf(rules.Set)), Mix: uint64(src.Mix), Seed: src.Seed, Purpose: src.Purpose, Grid: grid, DemandMin: src.DemandMin, DemandMax: src.DemandMax, Symmetries: symmetries}})
				}
				c.try(t, dev)
				_, got := c.run(t, dev, false)
				_, want := c.run(t, reference64(), false)
				if symmetries == 1 {
					b := vrp.NewBatch(c.batch, src.N, src.Capacity)
					src.Fill(b, c.state.Instances)
					want.floats["x"], want.floats["y"], want.ints["nodes"] = widen(b.X), widen(b.Y), wordsOf(rules.Set, b)
				}
				exact := func(int) float64 { return 0 }
				compare(t, c.what+" x", got.floats["x"], want.floats["x"], exact)
				compare(t, c.what+" y", got.floats["y"], want.floats["y"], exact)
				compareInts(t, c.what+" demand", got.ints["nodes"], want.ints["nodes"])
			}
		}
	}
}

// testCapacities: every instance has its own capacity, by which its demands are stated. Which sets
// of customers fit is what it would be with the demands and the capacity as they were drawn.
func testCapacities(t *testing.T, dev kernel.Device) {
	const low, high, nodes = 12, 40, 12
	drawn := kernel.Generate{Instances: kernel.Instances{Rules: kernel.Rules{Capacity: 30}},
		Drawing: kernel.Drawing{Seed: 77, Purpose: rng.TrainInstances, DemandMin: 2, DemandMax: 11, Symmetries: 1}}
	varied := drawn
	varied.Capacity, varied.CapacityMin, varied.CapacityMax = kernel.LoadUnit, low, high
	run := func(what string, o kernel.Generate, on kernel.Device) outcome {
		c := trial{what: what, nodes: nodes, batch: batchFor(dev, nodes), state: kernel.State{Instances: 3}}
		c.record = func(r *recording) { r.instances(&o) }
		if on == dev {
			c.try(t, dev)
		}
		_, out := c.run(t, on, false)
		return out
	}
	plain, got := run("generate", drawn, reference64()), run("generate, capacities", varied, dev)
	compareInts(t, "demands by capacity", got.ints["nodes"], run("generate, capacities", varied, reference64()).ints["nodes"])
	turned := varied
	turned.Symmetries = 8 // an instance keeps its capacity under all of them
	run("generate, capacities under symmetries", turned, dev)
	seen := map[uint32]bool{}
	for i := range len(plain.ints["nodes"]) / nodes {
		own, scaled := plain.ints["nodes"][i*nodes:][:nodes], got.ints["nodes"][i*nodes:][:nodes]
		u := rng.At(drawn.Seed, 3+uint64(i), 0, drawn.Purpose)
		q := low + min(rng.Below(u[2], high-low+1), rng.Below(u[3], high-low+1))
		seen[q] = true
		for set := range 1 << (nodes - 1) {
			var is, by int64
			for j := range nodes - 1 {
				if set>>j&1 == 1 {
					is, by = is+int64(own[j+1]), by+int64(scaled[j+1])
				}
			}
			if (is <= int64(q)) != (by <= kernel.LoadUnit) {
				t.Fatalf("instance %d of capacity %d: a set of demand %d is stated as %d of %d", i, q, is, by, kernel.LoadUnit)
			}
		}
	}
	if len(seen) < 3 {
		t.Errorf("capacities are %v", seen)
	}
}
