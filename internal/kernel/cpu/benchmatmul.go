package cpu

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"haul/internal/kernel/cpu/isa"
	"haul/internal/kernel/cpu/run"
)

// The products of a training step, timed against the peak of the unit they run on: the FMA units,
// or in bf16 the tiles. What a reader could break: a product and the peak must alternate in short
// slices on all workers at once, because the clock of a shared core wanders by tens of percent
// between seconds but little between neighbouring milliseconds.

// Products says which products to time: a step over Batch rows, in shards of Shard rows, through
// linear layers Layers[i] = {inputs, outputs}.
type Products struct {
	Batch, Shard int
	Layers       [][2]int
}

// TinyProducts are the products of the shipped tiny_1: 128 instances of 11 nodes, width 128, in
// shards of 16 instances. The layers: queries, keys and values; attention's output; the gated
// feed-forward's way in and its way out.
var TinyProducts = Products{
	Batch: 1408, Shard: 176,
	Layers: [][2]int{{128, 384}, {128, 128}, {128, 512}, {256, 128}},
}

// ProductTime is one product, measured. C is M×N, summed over K.
type ProductTime struct {
	Scope   string  `json:"scope"` // "batch": rows split over the workers; "shard": a shard each
	Kind    string  `json:"kind"`  // "forward", "dX" or "dW"
	M       int     `json:"m"`
	K       int     `json:"k"`
	N       int     `json:"n"`
	Seconds float64 `json:"seconds"` // for one product, median
	Rate    float64 `json:"gflops"`  // of all workers together, median
	Share   float64 `json:"share"`   // of the peak loop's rate beside it, median
	Quiet   float64 `json:"quiet"`   // the fastest tenth of its rates over the fastest tenth of the loop's
}

// ProductReport is the outcome of BenchProducts.
type ProductReport struct {
	Set       string        `json:"set"`
	Precision string        `json:"precision"`
	Workers   int           `json:"workers"`
	Peak      float64       `json:"peak_gflops"` // of all workers together, median
	Rows      []ProductTime `json:"rows"`
}

// BenchProducts times every product of the step, forward and both gradients, over the whole batch
// and as the shards run them, each in the given rounds of slices between two slices of the peak
// loop. Weights arrive packed, as the optimizer leaves them once per step; the gradients of weights
// read their operands where the step has them and add to what is there. In bf16 the packing of the
// other operands is part of a product's time.
func BenchProducts(ctx context.Context, precision, set string, workers, rounds int, p Products, progress func(done, total int)) (ProductReport, error) {
	prims, tiles, err := isa.PickFor(precision, set)
	if err != nil {
		return ProductReport{}, err
	}
	if workers < 1 || rounds < 1 || p.Shard < 1 || p.Batch < workers {
		return ProductReport{}, fmt.Errorf("bench products: workers %d, rounds %d, batch %d, shard %d: each must be positive, the batch no smaller than the workers",
			workers, rounds, p.Batch, p.Shard)
	}
	pool := run.NewBenchPool(workers)
	defer pool.Close()
	out := ProductReport{Set: isa.SetName(prims, tiles), Precision: isa.PrecisionOf(tiles), Workers: workers}
	var peaks []float64
	jobs := p.jobs(workers, prims, tiles)
	for i, j := range jobs {
		row, around, err := j.measure(ctx, pool, isa.PeakOf(prims, tiles), rounds)
		if err != nil {
			return ProductReport{}, err
		}
		out.Rows = append(out.Rows, row)
		peaks = append(peaks, around...)
		progress(i+1, len(jobs))
	}
	out.Peak = median(peaks) / 1e9
	return out, nil
}

// A benchJob is one product: what each worker computes, and how the whole is named.
type benchJob struct {
	row   ProductTime
	calls []layerCall // by worker
}

// jobs lists the products of the step, the batch's first.
func (p Products) jobs(workers int, prims *isa.Primitives, tiles *isa.TileSet) []benchJob {
	var jobs []benchJob
	for _, scope := range []string{"batch", "shard"} {
		for _, kind := range []string{"forward", "dX", "dW"} {
			for _, layer := range p.Layers {
				in, out := layer[0], layer[1]
				j := benchJob{calls: make([]layerCall, workers)}
				rows := p.Shard
				if scope == "batch" {
					rows = p.Batch
				}
				j.row = ProductTime{Scope: scope, Kind: kind}
				switch kind {
				case "forward":
					j.row.M, j.row.K, j.row.N = rows, in, out
				case "dX":
					j.row.M, j.row.K, j.row.N = rows, out, in
				case "dW":
					j.row.M, j.row.K, j.row.N = out, rows, in
				}
				for w := range j.calls {
					own := rows
					if scope == "batch" {
						own = rows*(w+1)/workers - rows*w/workers
					}
					j.calls[w] = newLayerCall(prims, tiles, kind, own, in, out)
				}
				jobs = append(jobs, j)
			}
		}
	}
	return jobs
}

// layerCall is the product a linear layer of the step asks for on its rows.
type layerCall struct {
	run  func()
	flop float64
}

func newLayerCall(prims *isa.Primitives, tiles *isa.TileSet, kind string, rows, in, out int) layerCall {
	call := layerCall{flop: 2 * float64(rows) * float64(in) * float64(out)}
	if tiles != nil {
		call.run = tileCall(prims, tiles, kind, rows, in, out)
		return call
	}
	g := gemmCall(kind, rows, in, out)
	call.run = func() { prims.Gemm(g) }
	return call
}

func gemmCall(kind string, rows, in, out int) *isa.GemmArgs {
	x, y := isa.Ptr(matrix(rows*in)), isa.Ptr(matrix(rows*out))
	switch kind {
	case "forward":
		return &isa.GemmArgs{C: y, A: x, B: isa.Ptr(matrix(isa.PackedLen(out, in))), Bias: isa.Ptr(matrix(out)),
			M: rows, N: out, K: in, LDC: out, ARS: in, AKS: 1, BKS: isa.Panel, BPS: in * isa.Panel}
	case "dX":
		return &isa.GemmArgs{C: x, A: y, B: isa.Ptr(matrix(isa.PackedLen(in, out))),
			M: rows, N: in, K: out, LDC: in, ARS: out, AKS: 1, BKS: isa.Panel, BPS: out * isa.Panel}
	default:
		return &isa.GemmArgs{C: isa.Ptr(matrix(out * in)), A: y, B: x,
			M: out, N: in, K: rows, LDC: in, ARS: 1, AKS: out, BKS: in, BPS: isa.Panel, Scratch: isa.Ptr(matrix(isa.GemmScratch))}
	}
}

// tileCall is gemmCall in bf16, with the packing that the step does on the way.
func tileCall(prims *isa.Primitives, tiles *isa.TileSet, kind string, rows, in, out int) func() {
	x, y, w := matrix(rows*in), matrix(rows*out), matrix(out*in)
	g := new(isa.TileArgs)
	switch kind {
	case "forward":
		b, bias, scratch := matrix(isa.TileFloats(out, in)), matrix(out), matrix(tiles.NeedByWeight(rows, in))
		tiles.Pack(isa.ColumnsOfB, b, w, in, out, in)
		return func() {
			*g = isa.TileArgs{C: isa.Ptr(y), B: isa.Ptr(b), Bias: isa.Ptr(bias), M: rows, N: out, K: in, LDC: out}
			tiles.ByWeight(prims, g, x, in, scratch)
		}
	case "dX":
		b, scratch := matrix(isa.TileFloats(in, out)), matrix(tiles.NeedByWeight(rows, out))
		tiles.Pack(isa.RowsOfB, b, w, in, in, out)
		return func() {
			*g = isa.TileArgs{C: isa.Ptr(x), B: isa.Ptr(b), M: rows, N: in, K: out, LDC: in}
			tiles.ByWeight(prims, g, y, out, scratch)
		}
	default:
		sums := isa.NewRowSums(tiles, rows, out, in, out, in, 4*out*in >= isa.FarBytes)
		scratch := matrix(sums.Need())
		return func() { sums.Product(prims, g, w, y, x, false, scratch) }
	}
}

// matrix returns n floats between -1 and 1 that start at a cache line, as the step's buffers do.
func matrix(n int) []float32 {
	buf := run.Aligned(max(n, run.HugePage/4))[:n] // on large pages, as the step's are
	rng := rand.New(rand.NewPCG(uint64(n), 1))
	for i := range buf {
		buf[i] = 2*rng.Float32() - 1
	}
	return buf
}

// measure runs rounds of peak, product, peak, and returns the row with the peak rates beside it.
func (j benchJob) measure(ctx context.Context, pool *run.BenchPool, top func(rounds int) float64, rounds int) (ProductTime, []float64, error) {
	var flop float64 // of one product on every worker
	for _, c := range j.calls {
		flop += c.flop
	}
	product := func(w, n int) float64 {
		for range n {
			j.calls[w].run()
		}
		return float64(n) * j.calls[w].flop
	}
	peak := func(_, n int) float64 { return top(n) }
	repeats, spins := pool.Fill(product), pool.Fill(peak)

	var shares, rates, peaks []float64
	for range rounds {
		if err := ctx.Err(); err != nil {
			return ProductTime{}, nil, err
		}
		before := pool.Rate(peak, spins)
		rate := pool.Rate(product, repeats)
		after := pool.Rate(peak, spins)
		around := (before + after) / 2
		peaks = append(peaks, around)
		rates = append(rates, rate)
		shares = append(shares, rate/around)
	}
	row := j.row
	row.Share, row.Quiet = median(shares), fastTenth(rates)/fastTenth(peaks)
	rate := median(rates)
	row.Rate, row.Seconds = rate/1e9, flop/rate
	return row, peaks, nil
}

// fastTenth is the rate that one round in ten reaches.
func fastTenth(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)*9/10]
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}
