package routing

import (
	"fmt"
	"math"

	"haul/internal/kernel"
	"haul/internal/kernel/cuda/bind"
)

// What a reader could break: the sizes of shared memory here are the layouts in
// src/rollout.cu, src/starts.cu and src/grad.cu, element by element.

// policy is a decoder's shape with what kernels derive from it.
type policy struct {
	n, d, heads, hd, stride int
	aligned                 bool // rows of projections start at multiples of 16 bytes, heads are whole
	scale, pointerScale     float32
	bias                    bool // something is added to the pointer's scores
	rules                   kernel.Rules
	columns, seen           int // words of a node, context features
	tiles                   int // of eight nodes, where its kernels hold all of an instance; else 0
}

func policyOf(b *bind.Binder, o *kernel.Decoder) policy {
	n, d := o.Pointer.Shape[1], o.Pointer.Shape[2]
	p := policy{n: n, d: d, heads: o.Heads, hd: d / o.Heads, stride: o.Proj.Stride,
		scale: float32(1 / math.Sqrt(float64(d/o.Heads))), pointerScale: float32(1 / math.Sqrt(float64(d))),
		bias: biases(o), rules: o.Rules, columns: len(o.Set.Columns()), seen: len(o.Set.Context())}
	p.aligned = p.hd%4 == 0 && p.stride%4 == 0 && b.Address(o.Proj)%16 == 0 && b.Address(o.Pointer)%16 == 0
	return p
}

// NodeTiles are how many nodes, in eights, kernels on tensor cores are made for.
var NodeTiles = []int{2, 4, 7, 13, 16}

// tilesOf is the smallest of nodeTiles that holds the policy's nodes, 0 where none does.
func (p policy) tilesOf() int {
	for _, t := range NodeTiles {
		if p.n <= 8*t && p.aligned && p.hd%8 == 0 {
			return t
		}
	}
	return 0
}

// tilesFor is tilesOf for kernels on tensor cores that are made for CVRP alone; half.go's know VRP
// too.
func (p policy) tilesFor() int {
	if p.rules.Set != kernel.CVRP {
		return 0
	}
	return p.tilesOf()
}

// instanceShared is the shared memory of one instance on tensor cores, in bytes.
func (p policy) instanceShared(t int) int { return 4 * (3*8*t*p.d + 2*p.d) }

// startsShared adds positions and demands.
func (p policy) startsShared(t int) int { return p.instanceShared(t) + 4*3*8*t }

// rowPlan is how a block rolls out one row.
type rowPlan struct {
	kernel   string
	warps    int
	matrices int // in shared memory: keys, values, pointer keys and with 4 nodes too; 0: none
	shared   int
}

const maxNodes = 1024 // of one row's rollout: 32 per thread of a warp

// mostDecoded is the nodes of a streamed rollout: a block of a Hopper card holds a row of them, but
// for rule sets with many columns (rowRoom). Its gradient reads mostStreamed.
const mostDecoded = 6144

// decodes reports whether a rollout's decisions are streamed.
func decodes(b *bind.Binder, p policy, context *kernel.Tensor) (stream, bool) {
	near := p
	near.n = min(p.n, mostStreamed)
	_, yes := streamed(b, near, context)
	s := stream{p, bind.Ceil(p.n, streamBlock)}
	return s, yes && p.n <= mostDecoded && s.rowRoom(b) == nil
}

// rowRoom says why a block cannot hold a row of the nodes.
func (s stream) rowRoom(b *bind.Binder) error {
	if shared := s.rowShared(fewRowWarps); shared > b.MaxShared {
		return fmt.Errorf("rollout of %d nodes of %d columns: %d bytes of shared memory, the GPU has %d a block; use --device cpu", s.n, s.columns, shared, b.MaxShared)
	}
	return nil
}

// rowPlan places as much of an instance in shared memory as fits.
func (p policy) rowPlan(limit, maxShared int) (rowPlan, error) {
	if p.n > maxNodes {
		return rowPlan{}, fmt.Errorf("rollout of %d nodes: a GPU decodes at most %d in fp32 and %d in tf32 and bf16 at width %d; use --device cpu",
			p.n, maxNodes, mostDecoded, halfWidth)
	}
	r := rowPlan{warps: min(p.heads, 8)}
	each := 32 // nodes per thread of a warp
	name := "1024"
	switch {
	case p.n <= 32:
		each, name = 1, "32"
	case p.n <= 128:
		each, name = 4, "128"
	}
	four := func(n int) int { return (n + 3) &^ 3 }
	floats := func() int {
		np, wide := each*32, p.heads*four(p.hd)
		line := wide
		if wide/4%2 == 0 {
			line += 4
		}
		lists := 1
		if each > 1 {
			lists = 2
		}
		return (3+p.seen)*wide + 2*p.heads*np + lists*r.warps*np + four(limit) + (2+p.columns)*four(p.n) + r.matrices*p.n*line
	}
	for _, m := range []int{4, 3, 0} {
		r.matrices = m
		if m == 0 && p.n <= 32 {
			each, name = 4, "128"
		}
		if r.shared = 4 * floats(); r.shared <= maxShared {
			r.kernel = "rollout_row_" + name
			if m == 0 {
				r.kernel = "rollout_row_far_" + name
			}
			return r, nil
		}
	}
	return rowPlan{}, fmt.Errorf("rollout of %d nodes, width %d: %d bytes of shared memory, the GPU has %d a block", p.n, p.d, r.shared, maxShared)
}

// begins is how a start begins, as src/rules.cuh numbers it.
func begins(forced, viewed bool) uint32 {
	switch {
	case forced:
		return 1
	case viewed:
		return 2
	}
	return 0
}

// fewStarts is where sixteen starts a warp begin to pay.
const fewStarts = 4

// onTensorCores reports whether a rollout's starts are decoded sixteen at a time, with how many
// tiles of nodes, and whether by products of fp16 numbers.
func onTensorCores(b *bind.Binder, o *kernel.Rollout) (t int, half, yes bool) {
	p := policyOf(b, &o.Decoder)
	if o.Actions.Shape[1] < fewStarts {
		return 0, false, false
	}
	if t = halfTiles(b, p); t > 0 && p.startsHalfShared(t) <= b.MaxShared {
		return t, true, true
	}
	t = p.tilesFor()
	return t, false, t > 0 && p.startsShared(t) <= b.MaxShared
}

// RolloutPath says in a few words how the GPU decodes, for the start of a run.
func RolloutPath(b *bind.Binder, o *kernel.Rollout) string {
	if _, _, yes := onTensorCores(b, o); yes {
		return "starts on tensor cores, projections in shared memory"
	}
	if _, yes := held(b, o); yes {
		return "projections in registers, in fp16"
	}
	p := policyOf(b, &o.Decoder)
	if s, yes := decodes(b, p, o.Context); yes {
		if s.streamStarts(b, o) {
			return "starts on tensor cores, projections from the card's caches"
		}
		return "projections from the card's caches, in fp16"
	}
	r, err := p.rowPlan(o.Actions.Shape[2], b.MaxShared)
	switch {
	case err != nil:
		return err.Error()
	case r.matrices == 0:
		return fmt.Sprintf("projections of %d nodes do not fit %d KB of shared memory: read from L2 at each step", p.n, b.MaxShared>>10)
	}
	return "projections in shared memory"
}

func rollout(b *bind.Binder, o *kernel.Rollout) ([]bind.Launch, error) {
	p := policyOf(b, &o.Decoder)
	instances, starts, limit := o.Actions.Shape[0], o.Actions.Shape[1], o.Actions.Shape[2]
	args := []any{b.Addr(o.Actions), b.Addr(o.Steps), b.Addr(o.Length), b.Addr(o.LogProb), b.Addr(o.Entropy), b.Addr(o.Proj), b.Addr(o.Pointer),
		b.Addr(o.Graph), b.Addr(o.Context), b.Addr(o.PosX), b.Addr(o.PosY), b.Addr(o.Nodes), b.Control, b.State, o.Seed, uint32(o.Purpose),
		o.Capacity, bind.I32(p.n), bind.I32(p.stride), bind.I32(p.heads), bind.I32(p.hd), bind.I32(starts), bind.I32(limit), bind.I32(int(o.Choice)), begins(o.Forced, o.Viewed)}
	extend := o.Choice == kernel.Extend // only rollout_row takes actions over
	if t, half, yes := onTensorCores(b, o); half && !extend {
		return rolloutHalf(b, o, p, t, args), nil
	} else if yes && !extend {
		warps := min(bind.Ceil(starts, 16), 8)
		tables, ls := biasTables(b, &o.Decoder, p, instances, p.dotUnit())
		return append(ls, bind.Launch{Module: "starts_" + tensorPrecision(b), Kernel: fmt.Sprint("rollout_starts_", 8*t),
			Grid: bind.Dim3{instances, bind.Ceil(starts, 16*warps), 1}, Block: bind.Dim3{32 * warps, 1, 1}, Shared: p.startsShared(t),
			Args: append(args, p.scale, p.pointerScale, tables, bind.I32(p.biasWide()))}), nil
	}
	h, held := held(b, o)
	held = held && !extend
	if s, yes := decodes(b, p, o.Context); yes && !held {
		return rolloutStream(b, o, s), nil
	}
	r, err := p.rowPlan(limit, b.MaxShared)
	if err != nil && !held { // before tables are made for nodes that are too many
		if s, _ := decodes(b, p, o.Context); p.n <= mostDecoded && s.rowRoom(b) != nil {
			err = s.rowRoom(b)
		}
		return nil, err
	}
	tables, ls := biasTables(b, &o.Decoder, p, instances, 1)
	if held {
		return append(ls, h.launch(p, instances*starts, tables, args)), nil
	}
	return append(ls, bind.Launch{Module: Ruled("rollout", p.rules.Set), Kernel: r.kernel, Grid: bind.Dim3{instances * starts, 1, 1}, Block: bind.Dim3{32 * r.warps, 1, 1}, Shared: r.shared,
		Args: append(args, bind.Flag(p.aligned), bind.Flag(r.matrices == 4), p.scale, p.pointerScale, tables, bind.I32(p.biasWide()))}), nil
}

// tensorPrecision names the products of the routing kernels on tensor cores: fp32 is three tf32
// products, and tf32 serves bf16 too, since keys and values stay fp32 in shared memory.
func tensorPrecision(b *bind.Binder) string {
	if b.Precision == bind.FP32 {
		return "fp32"
	}
	return "tf32"
}
