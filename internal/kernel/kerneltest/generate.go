package kerneltest

import (
	"fmt"
	"testing"

	"haul/internal/env/cvrp"
	"haul/internal/kernel"
	"haul/internal/rng"
)

// instances are the Batch tensors of a generated batch.
func (r *recording) instances(o *kernel.Generate) {
	o.PosX, o.PosY = r.out("x", 0, r.nodes), r.out("y", 0, r.nodes)
	o.Demand, o.Feature = r.outInts("demand", r.nodes), r.out("feature", 1, r.nodes, 4)
	r.do(o)
}

// testGenerate compares with cvrp bit for bit, and symmetries with the judge bit for bit.
func testGenerate(t *testing.T, dev kernel.Device) {
	for nodes := 2; nodes <= 20; nodes++ {
		for _, grid := range []int32{0, 1, 100} {
			src := cvrp.Source{Seed: 1<<35 + uint64(nodes), Purpose: rng.TrainInstances, Distribution: cvrp.Uniform, N: nodes - 1, Capacity: 30, DemandMin: 2, DemandMax: 11}
			if grid > 0 {
				src.Distribution, src.CoordRange = cvrp.Grid, grid
			}
			for _, symmetries := range []int{1, 8} {
				c := trial{what: fmt.Sprintf("generate N=%d grid=%d symmetries=%d", nodes, grid, symmetries), nodes: nodes,
					batch: batchFor(dev, nodes), state: kernel.State{Instances: 1<<32 - 8}}
				c.record = func(r *recording) {
					r.instances(&kernel.Generate{Seed: src.Seed, Purpose: src.Purpose, Grid: grid, Capacity: src.Capacity,
						DemandMin: src.DemandMin, DemandMax: src.DemandMax, Symmetries: symmetries})
				}
				c.try(t, dev)
				_, got := c.run(t, dev, false)
				_, want := c.run(t, judge(), false)
				if symmetries == 1 {
					b := cvrp.NewBatch(c.batch, nodes-1, src.Capacity)
					src.Fill(b, c.state.Instances)
					want.floats["x"], want.floats["y"], want.ints["demand"] = widen(b.X), widen(b.Y), b.Demand
				}
				exact := func(int) float64 { return 0 }
				compare(t, c.what+" x", got.floats["x"], want.floats["x"], exact)
				compare(t, c.what+" y", got.floats["y"], want.floats["y"], exact)
				compareInts(t, c.what+" demand", got.ints["demand"], want.ints["demand"])
			}
		}
	}
}

func testFeature(t *testing.T, dev kernel.Device) {
	for nodes := 2; nodes <= 20; nodes++ {
		c := trial{what: fmt.Sprintf("feature N=%d", nodes), nodes: nodes}
		c.record = func(r *recording) {
			r.do(&kernel.Feature{Feature: r.out("feature", 1, nodes, 4), PosX: r.in("x", nodes), PosY: r.in("y", nodes),
				Demand: r.demands(9), Capacity: 13})
		}
		c.try(t, dev)
	}
}
