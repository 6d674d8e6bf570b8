package routing

import (
	"fmt"
	"math"

	"haul/internal/kernel"
	"haul/internal/kernel/cuda/bind"
)

// What a reader could break: the sizes here are the layouts in src/half.cuh,
// starts_half.cu, half_walk.cu, half_rows.cu and half_nodes.cu, element by element. A number that
// those kernels multiply is fp16, which has tf32's bits: they serve tf32 and bf16 alike.

const (
	halfWidth    = 128     // WIDTH of src/half.cuh
	halfWarps    = 7       // of a rollout's block: two fit a multiprocessor
	farWarps     = 8       // the same past 128 nodes
	farNodeWarps = 5       // of a block of back_nodes past 128 nodes: three fit a multiprocessor
	fewWarps     = 8       // of a multiprocessor that rollout_few has registers for
	rowWarps     = 16      // of decide_rows on a multiprocessor: 128 registers a thread
	mostSlab     = 64      // SLAB of src/half_nodes.cu, at most
	fitLevels    = 16      // LEVELS of src/rules.cuh
	headPair     = 2       // PAIR
	halfFeatures = 8       // FEATURES of src/half.cuh
	listWarps    = 16      // of a block of walk_sorted where a warp follows a start
	biasParts    = 8       // blocks of bias_sorted per instance where the context has several features
	halfScratch  = 4 << 30 // bytes at most between the kernels of one chunk of instances
	log2e        = 1 / math.Ln2
)

// halfTiles is tilesOf where products of fp16 numbers serve the policy, else 0: CVRP, and VRP and
// MDVRP where something is added to scores.
func halfTiles(b *bind.Binder, p policy) int {
	if b.Precision == bind.FP32 || p.d != halfWidth || p.hd != 16 && p.hd != 32 {
		return 0
	}
	if set := p.rules.Set; set != kernel.CVRP && (set != kernel.VRP && set != kernel.MDVRP || !p.bias) {
		return 0
	}
	if p.rules.Set == kernel.CVRP && p.n > 128 && p.n <= 8*farTiles && p.aligned {
		return farTiles
	}
	return p.tilesOf()
}

// farTiles are tiles of eight nodes past nodeTiles, for CVRP alone.
const farTiles = 17

// presentNodes is PRESENT of src/choices.cuh.
func presentNodes(t int) int {
	if t == farTiles {
		return 144
	}
	return 128
}

// choiceBytes is sizeof(Choice), src/choices.cuh.
func (p policy) choiceBytes() int {
	if p.seen > 1 {
		return 48
	}
	return 32
}

// startsHalfShared is the shared memory of a rollout: keys, values and pointer keys, filled up,
// queries and the context's part of them, which is an operand where it has several features,
// positions, nodes' columns and what fits a vehicle of each level, or one that leaves.
func (p policy) startsHalfShared(t int) int {
	if t == farTiles { // queries lie in the card's caches
		return 8*t*(3*2*p.d+4*(2+p.columns)) + 2*p.d + 2*4*4*fitLevels
	}
	features := 1
	if p.seen > 1 {
		features = halfFeatures
	}
	return 8*t*(3*2*p.d+4*(2+p.columns)) + (p.n+features)*2*p.d + 4*4*fitLevels
}

// rolloutHalf decodes starts sixteen to a warp. args are those of rollout_starts up to how a start
// begins.
func rolloutHalf(b *bind.Binder, o *kernel.Rollout, p policy, t int, args []any) []bind.Launch {
	instances, starts := o.Actions.Shape[0], o.Actions.Shape[1]
	p.tiles = t
	biases, ls := biasTables(b, &o.Decoder, p, instances, pointUnit)
	warps := min(bind.Ceil(starts, 16), halfWarps)
	if t == farTiles {
		warps = bind.Ceil(bind.Ceil(starts, 16), bind.Ceil(starts, 16*farWarps))
	}
	args = append(args[:19:19], args[21:]...) // the module knows heads and their width
	blocks, kernel := bind.Ceil(starts, 16*warps), "rollout_half_"
	if instances*blocks <= b.SMs*(fewWarps/warps) {
		kernel = "rollout_few_"
	}
	args = append(args, p.scale, p.pointerScale, biases)
	if operands, made := contextOperands(b, p, biases, instances, p.biasWide()); operands != 0 {
		ls, args = append(ls, made...), append(args, operands)
	}
	if t == farTiles {
		args = append(args, b.Scratch(instances*blocks*p.n*2*p.d))
	}
	return append(ls, bind.Launch{Module: p.halfModule("starts_half", t), Kernel: fmt.Sprint(kernel, p.hd),
		Grid: bind.Dim3{instances, blocks, 1}, Block: bind.Dim3{32 * warps, 1, 1}, Shared: p.startsHalfShared(t), Args: args})
}

// halfModule names a module for t tiles of nodes: those of CVRP that add biases are apart, since
// the others are a little faster.
func (p policy) halfModule(name string, t int) string {
	if p.bias && p.rules.Set == kernel.CVRP {
		name += "_bias"
	}
	return fmt.Sprint(Ruled(name, p.rules.Set), "_", 8*t)
}

// manyStarts is where sorting decisions by the node that they are made at begins to pay: its groups
// of eight fill up.
const manyStarts = 8

// halfGrad are the sizes of the gradient with products of fp16 numbers.
type halfGrad struct {
	policy
	t, tiles, wide           int // tiles of eight nodes; of sixteen, and their nodes
	instances, starts, limit int
	room                     int // decisions an instance may have, its groups and tiles filled up
}

func newHalfGrad(o *kernel.RolloutGrad, p policy, t int) halfGrad {
	g := halfGrad{policy: p, t: t, tiles: bind.Ceil(t, 2), instances: o.Actions.Shape[0], starts: o.Actions.Shape[1], limit: o.Actions.Shape[2]}
	g.wide = 16 * g.tiles
	g.room = bind.Ceil(g.starts*g.limit+8*p.n+8, mostSlab) * mostSlab
	return g
}

// rowBytes is what lies between decide_rows and back_nodes, per decision.
func (g halfGrad) rowBytes() int { return 2*8*g.t + 2*2*g.d + 2*4*g.heads }

func (g halfGrad) walkShared() int {
	if g.seen > 1 {
		further := g.rules.Set.Further() * (g.starts + 1)
		return 4 * (g.n*g.columns + 2*g.starts + further + 3*g.n + 3 + g.n*bind.Ceil(g.starts, 32))
	}
	level := 16
	if g.t == farTiles {
		level = 32
	}
	return level*fitLevels + 4*(g.starts+4*g.n+3+g.n*bind.Ceil(g.starts, 32))
}
func (g halfGrad) tableShared() int        { return 4 * (2*g.n + g.seen) * (g.hd + 4) }
func (g halfGrad) backTableShared() int    { return 4*(g.n+g.seen)*(g.wide+4) + g.tableShared() }
func (g halfGrad) rowShared(warps int) int { return (2*8*g.t + 16*warps) * 2 * g.d }
func (g halfGrad) nodeShared(slab int) int {
	line := 2*headPair*g.hd + 16
	return 2*slab*(g.choiceBytes()+2*line+headPair*2*4+32*g.nodeWarps()+16) + slab
}

// nodeWarps are the warps of a block of back_nodes, a tile of sixteen nodes each. Nine would leave
// them too few registers, so past 128 nodes two blocks share an instance's tiles.
func (g halfGrad) nodeWarps() int {
	if g.t == farTiles {
		return farNodeWarps
	}
	return g.tiles
}

// slab is how many decisions back_nodes has in shared memory at a time: registers leave room for
// sixteen warps, and so must they.
func (g halfGrad) slab() int {
	if g.tiles <= 4 {
		return 32
	}
	return mostSlab
}

// rowBlocks are the warps of a block of decide_rows and the blocks of an instance: no more than the
// card holds at once, so that a block goes through many decisions for the matrices that it brings.
// Blocks shrink for that only as far as shared memory holds as many warps of them.
func (g halfGrad) rowBlocks(instances, sms, maxShared int) (warps, splits int) {
	fits := func(warps int) bool { return rowWarps/warps*(g.rowShared(warps)+1024) <= maxShared }
	for warps = rowWarps; warps > 4 && instances*warps > rowWarps*sms && fits(warps/2); {
		warps /= 2
	}
	return warps, max(1, rowWarps*sms/(instances*warps))
}

// halfGradTiles is halfTiles where the gradient of the decisions takes that path, else 0.
func halfGradTiles(b *bind.Binder, o *kernel.RolloutGrad, p policy) int {
	t := halfTiles(b, p)
	if t == 0 || o.Actions.Shape[1] < manyStarts || o.DProj.Stride%4 != 0 || b.Address(o.DProj)%16 != 0 {
		return 0
	}
	if g := newHalfGrad(o, p, t); max(g.walkShared(), g.backTableShared(), g.rowShared(rowWarps), g.nodeShared(g.slab())) > b.MaxShared {
		return 0
	}
	return t
}

// gradHalf walks and sorts, tables scores, and then goes forward and back, some instances at a time
// so that what lies between fits the budget.
func gradHalf(b *bind.Binder, o *kernel.RolloutGrad, p policy, t int, dcontext uint64) []bind.Launch {
	p.tiles = t
	g := newHalfGrad(o, p, t)
	n, choiceBytes := g.instances, g.choiceBytes()
	tables, dtables := b.Scratch(4*n*p.heads*(p.n+p.seen)*g.wide), b.Scratch(4*n*p.heads*(p.n+p.seen)*g.wide)
	choices := b.Scratch(choiceBytes * n * g.room)
	stands, counts, present, ups := b.Scratch(4*n*g.room/8), b.Scratch(4*n), b.Scratch(4*n*presentNodes(t)), b.Scratch(4*n)
	walk, sorted := Ruled("half_walk", p.rules.Set), Ruled("biases", p.rules.Set)
	if t == farTiles {
		walk, sorted = "half_walk_136", "biases_136"
	}
	warps, lists := min(bind.Ceil(g.starts, 32), 4), []any{choices}
	if p.seen > 1 {
		warps, lists = min(g.starts, listWarps), append(lists, b.Scratch(choiceBytes*n*g.starts*g.limit))
	}
	ls := []bind.Launch{
		{Module: walk, Kernel: "walk_sorted", Grid: bind.Dim3{n, 1, 1}, Block: bind.Dim3{32 * warps, 1, 1},
			Shared: g.walkShared(),
			Args: append(lists, stands, counts, present, ups, b.Addr(o.Actions), b.Addr(o.Steps), b.Addr(o.Adv), b.Addr(o.Nodes), b.Control,
				bind.I32(p.n), bind.I32(g.starts), bind.I32(g.limit), bind.I32(g.room), o.Capacity, begins(o.Forced, o.Viewed), o.Weight, b.Coefficient(o.Bonus), p.pointerScale)},
		{Module: walk, Kernel: "score_tables", Beside: true, Grid: bind.Dim3{n, p.heads, 1}, Block: bind.Dim3{256, 1, 1}, Shared: g.tableShared(),
			Args: []any{tables, b.Addr(o.Proj), b.Addr(o.Graph), b.Addr(o.Context), bind.I32(p.n), bind.I32(p.stride), bind.I32(p.heads), bind.I32(p.hd), bind.I32(g.wide),
				p.scale * log2e}},
	}
	biases, made := biasTables(b, &o.Decoder, p, n, pointUnit)
	for _, l := range made {
		l.Beside = true
		ls = append(ls, l)
	}
	operands, turned := contextOperands(b, p, tables, n*p.heads, g.wide)
	ls = append(ls, turned...)
	biasOperands, turned := contextOperands(b, p, biases, n, p.biasWide())
	for _, l := range turned {
		l.Beside = true
		ls = append(ls, l)
	}
	parts, loads := min(biasLoads, p.n), min(biasLoads, p.n)
	if p.seen > 1 {
		parts, loads = biasParts, biasParts*p.seen
	}
	pairs := newPairGrad(b, o, p, loads)
	most := halfScratch
	if t == farTiles {
		most = streamScratch
	}
	chunk := evenChunk(n, g.room*g.rowBytes(), budget(b, most))
	dus, glimpses, dglimpses := b.Scratch(2*chunk*g.room*8*t), b.Scratch(2*chunk*g.room*p.d), b.Scratch(2*chunk*g.room*p.d)
	lse, deltas := b.Scratch(4*chunk*g.room*p.heads), b.Scratch(4*chunk*g.room*p.heads)
	module := p.halfModule("half_rows", t)
	nodes := fmt.Sprint(Ruled("half_nodes", p.rules.Set), "_", g.slab())
	if t == farTiles {
		nodes = "half_nodes_136"
	}
	for first := 0; first < n; first += chunk {
		count := min(chunk, n-first)
		warps, splits := g.rowBlocks(count, b.SMs, b.MaxShared)
		// of what every instance has
		from := func(at uint64, each int) uint64 { return at + uint64(first*each) }
		table := 4 * p.heads * (p.n + p.seen) * g.wide
		var byContext, rowsByContext []any
		if operands != 0 {
			byContext = []any{from(operands, 8*p.heads*4*g.wide)}
			rowsByContext = append(byContext, biasOperands)
		}
		mine := []any{from(choices, choiceBytes*g.room), from(stands, 4*g.room/8), from(counts, 4), from(ups, 4), from(tables, table)}
		ls = append(ls,
			bind.Launch{Module: module, Kernel: fmt.Sprint("decide_rows_", p.hd), Grid: bind.Dim3{count, splits, 1}, Block: bind.Dim3{32 * warps, 1, 1},
				Shared: g.rowShared(warps), Args: append(append(append([]any{dus, glimpses, dglimpses, lse, deltas}, mine...),
					b.Addr(o.Proj), b.Addr(o.Pointer), b.Control, bind.I32(first), bind.I32(p.n), bind.I32(p.stride), bind.I32(g.room), bind.I32(splits), p.pointerScale,
					biases), rowsByContext...)},
			bind.Launch{Module: nodes, Kernel: fmt.Sprint("back_nodes_", p.hd), Grid: bind.Dim3{count, p.heads / headPair, bind.Ceil(g.tiles, g.nodeWarps())},
				Block: bind.Dim3{32 * g.nodeWarps(), 1, 1}, Shared: g.nodeShared(g.slab()),
				Args: append(append(append([]any{b.Addr(o.DProj), b.Addr(o.DPointer), from(dtables, table), dus, glimpses, dglimpses, lse, deltas}, mine...),
					b.Addr(o.Proj), bind.I32(first), bind.I32(p.n), bind.I32(p.stride), bind.I32(o.DProj.Stride), bind.I32(p.heads), bind.I32(g.room), bind.I32(8*t), p.pointerScale),
					byContext...)})
		if pairs.tables != 0 {
			ls = append(ls, bind.Launch{Module: sorted, Kernel: "bias_sorted", Beside: true, Grid: bind.Dim3{count, parts, 1}, Block: bind.Dim3{32 * bind.Ceil(presentNodes(t), 64), 1, 1}, Shared: 4 * (p.n + 1),
				Args: []any{pairs.of(p, first), dus, from(choices, choiceBytes*g.room), present, bind.I32(first), bind.I32(p.n), bind.I32(g.room), bind.I32(8 * t),
					bind.I32(p.biasWide()), bind.I32(parts)}})
		}
	}
	ls = append(ls, backPairs(b, o, p, pairs, ups, pointUnit*float64(p.pointerScale))...)
	return append(ls, bind.Launch{Module: nodes, Kernel: "back_tables", Grid: bind.Dim3{n, p.heads, 1}, Block: bind.Dim3{256, 1, 1},
		Shared: g.backTableShared(),
		Args: []any{b.Addr(o.DProj), b.Addr(o.DGraph), dcontext, dtables, present, ups, b.Addr(o.Proj), b.Addr(o.Graph),
			b.Addr(o.Context), bind.I32(p.n), bind.I32(p.stride), bind.I32(o.DProj.Stride), bind.I32(p.heads), bind.I32(p.hd), bind.I32(g.wide), p.scale}})
}

// budget is what may lie between the kernels of the gradient: an eighth of the card, and no more
// than `most`.
func budget(b *bind.Binder, most int) int {
	if b.Memory == 0 {
		return most
	}
	return min(most, b.Memory/8)
}

// evenChunk is how many instances of `each` bytes go together: all, or equal shares that fit.
func evenChunk(instances, each, budget int) int {
	fit := max(1, budget/each)
	return bind.Ceil(instances, bind.Ceil(instances, fit))
}
