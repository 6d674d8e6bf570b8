package lab

import (
	"fmt"
	"math"

	"haul/internal/vrp"
)

// routes is a batch of instances like tiny_1's, each with a feasible tour and its distance matrix.
// It is the input of every implementation of route costs.
type routes struct {
	batch   *vrp.Batch
	nodes   int
	stride  int
	tours   []int32   // [B, stride], padded with the depot
	lengths []int32   // number of visits of each tour
	dist    []float32 // [B, nodes, nodes]
	want    []float32 // costs, summed edge by edge
}

func newRoutes(b, n int) (*routes, error) {
	src := vrp.Source{Seed: 42, Distribution: vrp.Grid, N: n, Capacity: 30, DemandMin: 1, DemandMax: 10, CoordRange: 100}
	if err := src.Check(); err != nil {
		return nil, err
	}
	r := &routes{batch: vrp.NewBatch(b, n, src.Capacity), nodes: n + 1, stride: 2*n + 1, lengths: make([]int32, b), want: make([]float32, b)}
	src.Fill(r.batch, 0)
	r.tours = make([]int32, b*r.stride)
	r.dist = make([]float32, b*r.nodes*r.nodes)
	longest := 0
	for i := range b {
		x, y, demand := r.row(i)
		tour := r.tours[i*r.stride:][:r.stride]
		at, left := 0, src.Capacity
		// a random tour: customers by number, with a return to the depot if the next demand does
		// not fit
		for v := 1; v < r.nodes; v++ {
			if demand[v] > left {
				at, left = at+1, src.Capacity
			}
			at, left = at+1, left-demand[v]
			tour[at] = int32(v)
		}
		r.lengths[i] = int32(at + 2)
		longest = max(longest, at+2)
		if err := r.batch.Validate(i, tour[:at+2]); err != nil {
			return nil, err
		}
		for u := range r.nodes {
			for v := range r.nodes {
				r.dist[(i*r.nodes+u)*r.nodes+v] = vrp.RouteCost(x, y, []int32{int32(u), int32(v)})
			}
		}
		r.want[i] = vrp.RouteCost(x, y, tour)
	}
	r.cut(longest)
	return r, nil
}

// cut shortens the rows to the longest tour.
func (r *routes) cut(stride int) {
	for i := range r.batch.B {
		copy(r.tours[i*stride:][:stride], r.tours[i*r.stride:][:stride])
	}
	r.stride, r.tours = stride, r.tours[:r.batch.B*stride]
}

func (r *routes) row(i int) (x, y []float32, demand []int32) {
	lo, hi := i*r.nodes, (i+1)*r.nodes
	return r.batch.X[lo:hi], r.batch.Y[lo:hi], r.batch.Demand[lo:hi]
}

// check compares a contender's costs with the plain ones. It allows a few units in the last place,
// because the order of sums differs.
func (r *routes) check(who string, got []float32) error {
	for i, w := range r.want {
		if d := math.Abs(float64(got[i] - w)); !(d <= 1e-5*float64(w)) {
			return fmt.Errorf("%s: route %d costs %v, leg by leg it is %v", who, i, got[i], w)
		}
	}
	return nil
}

// byMatrix is the simple version of the reports: a loop over routes and, for each, a loop over its
// distance matrix.
func (r *routes) byMatrix(out []float32) {
	for i := range out {
		dist := r.dist[i*r.nodes*r.nodes:][:r.nodes*r.nodes]
		tour := r.tours[i*r.stride:][:r.lengths[i]]
		var sum float32
		for t := 1; t < len(tour); t++ {
			sum += dist[int(tour[t-1])*r.nodes+int(tour[t])]
		}
		out[i] = sum
	}
}

// byOperations is the vectorised version of the reports: one operation at a time on whole tensors,
// each with a new result.
func (r *routes) byOperations(out []float32) {
	b, steps := r.batch.B, r.stride-1
	padded := make([]int32, b*r.stride)
	for i := range b {
		copy(padded[i*r.stride:], r.tours[i*r.stride:][:r.lengths[i]])
	}
	stacked := make([]float32, len(r.dist))
	copy(stacked, r.dist)
	index := make([]int32, b*steps)
	for i := range b {
		for t := range steps {
			index[i*steps+t] = (int32(i*r.nodes)+padded[i*r.stride+t])*int32(r.nodes) + padded[i*r.stride+t+1]
		}
	}
	mask := make([]float32, b*steps)
	for i := range b {
		for t := range int(r.lengths[i]) - 1 {
			mask[i*steps+t] = 1
		}
	}
	legs := make([]float32, b*steps)
	for i, at := range index {
		legs[i] = stacked[at]
	}
	masked := make([]float32, b*steps)
	for i := range masked {
		masked[i] = legs[i] * mask[i]
	}
	for i := range b {
		var sum float32
		for _, v := range masked[i*steps:][:steps] {
			sum += v
		}
		out[i] = sum
	}
}

// batched is Haul's version: all routes in one call, from coordinates, without allocations.
func (r *routes) batched(out []float32) { r.batch.Costs(out, r.tours, r.stride) }
