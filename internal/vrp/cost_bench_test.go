package vrp

import (
	"fmt"
	"testing"

	"haul/internal/rng"
)

// randomTours walks each instance in a random order and returns to the depot whenever the next
// customer does not fit. Rows are padded with the depot to the longest one.
func randomTours(b *Batch) (tours []int32, stride int) {
	rows := make([][]int32, b.B)
	for i := range rows {
		demand := b.Demand[i*(b.N+1):]
		order := make([]int32, b.N)
		for j := range order {
			k := int(rng.Below(rng.At(1, uint64(i), uint32(j), rng.Search)[0], uint32(j+1)))
			order[j], order[k] = order[k], int32(j+1)
		}
		row, left := []int32{0}, b.Capacity
		for _, c := range order {
			if demand[c] > left {
				row, left = append(row, 0), b.Capacity
			}
			row, left = append(row, c), left-demand[c]
		}
		rows[i] = append(row, 0)
		stride = max(stride, len(rows[i]))
	}
	tours = make([]int32, b.B*stride)
	for i, row := range rows {
		copy(tours[i*stride:], row)
	}
	return tours, stride
}

func BenchmarkCosts(b *testing.B) {
	for _, c := range []struct{ B, N int }{{128, 10}, {512, 20}, {512, 50}, {512, 100}} {
		batch := NewBatch(c.B, c.N, 30)
		gridSource(42, c.N).Fill(batch, 0)
		tours, stride := randomTours(batch)
		out := make([]float32, c.B)
		b.Run(fmt.Sprintf("batched/B=%d/N=%d", c.B, c.N), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				batch.Costs(out, tours, stride)
			}
		})
		b.Run(fmt.Sprintf("plain/B=%d/N=%d", c.B, c.N), func(b *testing.B) {
			for b.Loop() {
				for i := range c.B {
					lo, hi := i*(c.N+1), (i+1)*(c.N+1)
					out[i] = RouteCost(batch.X[lo:hi], batch.Y[lo:hi], tours[i*stride:(i+1)*stride])
				}
			}
		})
	}
}

// gridSource is the distribution of the published figures: capacity 30, demands 1 to 10, grid 100.
func gridSource(seed uint64, n int) Source {
	return Source{Seed: seed, Distribution: Grid, N: n, Capacity: 30, DemandMin: 1, DemandMax: 10, CoordRange: 100}
}
