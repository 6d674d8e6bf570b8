package bench

import (
	"context"
	"fmt"
	"io"
	"math"

	"github.com/spf13/cobra"

	"haul/internal/vrp"
)

type costRow struct {
	Batch     int     `json:"batch"`
	Customers int     `json:"customers"`
	NS        float64 `json:"ns_per_batch"`
	LoopNS    float64 `json:"loop_ns_per_batch"`
	Speedup   float64 `json:"speedup"`
	Allocs    float64 `json:"allocs_per_batch"`
}

type costReport struct {
	Bench  string    `json:"bench"`
	Rounds int       `json:"rounds"`
	Rows   []costRow `json:"rows"`
}

// costShapes are a training step's batches: the five reports' 128 routes of ten customers, then
// Kool's.
var costShapes = []struct {
	batch, customers int
	capacity         int32
}{{128, 10, 30}, {512, 20, 30}, {512, 50, 40}, {512, 100, 50}}

var cost = benchmark{
	use:   "cost",
	short: "Time the cost of a batch of routes, against a plain loop",
	long: `The cost of a whole batch of routes is computed on one core, and compared with a plain loop that costs one route after another.
Both results are checked against each other first.`,
	example: "  haul bench cost --rounds 201",
	open:    openCost,
}

func openCost(a *app, cmd *cobra.Command) func(context.Context, []string) (report, error) {
	n, check := rounds(cmd, 101, medianText)
	return func(ctx context.Context, _ []string) (report, error) {
		if err := check(); err != nil {
			return nil, err
		}
		r := costReport{Bench: "cost", Rounds: *n}
		for _, shape := range costShapes {
			w, err := newCostWork(shape.batch, shape.customers, shape.capacity)
			if err != nil {
				return nil, err
			}
			t, err := race(ctx, *n, w.batched, w.looped)
			if err != nil {
				return nil, err
			}
			r.Rows = append(r.Rows, costRow{Batch: shape.batch, Customers: shape.customers, NS: t[0].ns, LoopNS: t[1].ns,
				Speedup: t[1].ns / t[0].ns, Allocs: math.Round(t[0].allocs*1e3) / 1e3})
		}
		return r, nil
	}
}

func (r costReport) print(w io.Writer, _ *app) {
	fmt.Fprintln(w, "routes\tcustomers\tbatched\tplain loop\tratio\tallocations")
	for _, row := range r.Rows {
		fmt.Fprintf(w, "%d\t%d\t%.2f µs\t%.2f µs\t%.2f\t%g\n", row.Batch, row.Customers, row.NS/1e3, row.LoopNS/1e3, row.Speedup, row.Allocs)
	}
}

// costWork is a batch with a feasible tour for each of its instances.
type costWork struct {
	batch     *vrp.Batch
	tours     []int32
	stride    int
	out, want []float32
}

func newCostWork(b, n int, capacity int32) (*costWork, error) {
	src := vrp.Source{Seed: 42, Distribution: vrp.Uniform, N: n, Capacity: capacity, DemandMin: 1, DemandMax: 9}
	if err := src.Check(); err != nil {
		return nil, err
	}
	w := &costWork{batch: vrp.NewBatch(b, n, capacity), out: make([]float32, b), want: make([]float32, b)}
	src.Fill(w.batch, 0)
	rows := make([][]int32, b)
	for i := range rows {
		rows[i] = inOrder(w.batch.Demand[i*(n+1):(i+1)*(n+1)], capacity)
		if err := w.batch.Validate(i, rows[i]); err != nil {
			return nil, err
		}
		w.stride = max(w.stride, len(rows[i]))
	}
	w.tours = make([]int32, b*w.stride)
	for i, row := range rows {
		copy(w.tours[i*w.stride:], row)
	}
	w.batched(1)
	w.looped(1)
	for i := range w.out {
		if d := math.Abs(float64(w.out[i] - w.want[i])); d > 1e-5*float64(w.want[i]) {
			return nil, fmt.Errorf("batched cost of route %d is %v, the plain loop says %v", i, w.out[i], w.want[i])
		}
	}
	return w, nil
}

// inOrder visits the customers as numbered, returning to the depot whenever the next does not fit.
// A generated instance's numbering is random, so this is a random tour.
func inOrder(demand []int32, capacity int32) []int32 {
	tour, left := []int32{0}, capacity
	for v := 1; v < len(demand); v++ {
		if demand[v] > left {
			tour, left = append(tour, 0), capacity
		}
		tour, left = append(tour, int32(v)), left-demand[v]
	}
	return append(tour, 0)
}

func (w *costWork) batched(n int) {
	for range n {
		w.batch.Costs(w.out, w.tours, w.stride)
	}
}

func (w *costWork) looped(n int) {
	nodes := w.batch.N + 1
	for range n {
		for i := range w.want {
			lo, hi := i*nodes, (i+1)*nodes
			w.want[i] = vrp.RouteCost(w.batch.X[lo:hi], w.batch.Y[lo:hi], w.tours[i*w.stride:(i+1)*w.stride])
		}
	}
}
