package cuda

import (
	"fmt"
	"math"

	"haul/internal/kernel"
)

// What a reader could break: the sizes here are the layouts in src/routing/half.cuh,
// starts_half.cu, half_walk.cu, half_rows.cu and half_nodes.cu, element by element. A number that
// those kernels multiply is fp16, which has tf32's bits: they serve tf32 and bf16 alike.

const (
	halfWidth    = 128     // WIDTH of src/routing/half.cuh
	halfWarps    = 7       // of a rollout's block: two fit a multiprocessor
	farWarps     = 8       // the same past 128 nodes
	farNodeWarps = 5       // of a block of back_nodes past 128 nodes: three fit a multiprocessor
	fewWarps     = 8       // of a multiprocessor that rollout_few has registers for
	rowWarps     = 16      // of decide_rows on a multiprocessor: 128 registers a thread
	mostSlab     = 64      // SLAB of src/routing/half_nodes.cu, at most
	fitLevels    = 16      // LEVELS of src/routing/rules.cuh
	headPair     = 2       // PAIR
	halfFeatures = 8       // FEATURES of src/routing/half.cuh
	listWarps    = 16      // of a block of walk_sorted where a warp follows a start
	biasParts    = 8       // blocks of bias_sorted per instance where the context has several features
	halfScratch  = 4 << 30 // bytes at most between the kernels of one chunk of instances
	log2e        = 1 / math.Ln2
)

// halfTiles is tilesOf where products of fp16 numbers serve the policy, else 0: CVRP, and VRP and
// MDVRP where something is added to scores.
func (b *binder) halfTiles(p policy) int {
	if b.precision == FP32 || p.d != halfWidth || p.hd != 16 && p.hd != 32 {
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

// presentNodes is PRESENT of src/routing/choices.cuh.
func presentNodes(t int) int {
	if t == farTiles {
		return 144
	}
	return 128
}

// choiceBytes is sizeof(Choice), src/routing/choices.cuh.
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
func (b *binder) rolloutHalf(o *kernel.Rollout, p policy, t int, args []any) []launch {
	instances, starts := o.Actions.Shape[0], o.Actions.Shape[1]
	p.tiles = t
	biases, ls := b.biasTables(&o.Decoder, p, instances, pointUnit)
	warps := min(ceil(starts, 16), halfWarps)
	if t == farTiles {
		warps = ceil(ceil(starts, 16), ceil(starts, 16*farWarps))
	}
	args = append(args[:19:19], args[21:]...) // the module knows heads and their width
	blocks, kernel := ceil(starts, 16*warps), "rollout_half_"
	if instances*blocks <= b.sms*(fewWarps/warps) {
		kernel = "rollout_few_"
	}
	args = append(args, p.scale, p.pointerScale, biases)
	if operands, made := b.contextOperands(p, biases, instances, p.biasWide()); operands != 0 {
		ls, args = append(ls, made...), append(args, operands)
	}
	if t == farTiles {
		args = append(args, b.scratch(instances*blocks*p.n*2*p.d))
	}
	return append(ls, launch{module: p.halfModule("starts_half", t), kernel: fmt.Sprint(kernel, p.hd),
		grid: dim3{instances, blocks, 1}, block: dim3{32 * warps, 1, 1}, shared: p.startsHalfShared(t), args: args})
}

// halfModule names a module for t tiles of nodes: those of CVRP that add biases are apart, since
// the others are a little faster.
func (p policy) halfModule(name string, t int) string {
	if p.bias && p.rules.Set == kernel.CVRP {
		name += "_bias"
	}
	return fmt.Sprint(ruled(name, p.rules.Set), "_", 8*t)
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
	g := halfGrad{policy: p, t: t, tiles: ceil(t, 2), instances: o.Actions.Shape[0], starts: o.Actions.Shape[1], limit: o.Actions.Shape[2]}
	g.wide = 16 * g.tiles
	g.room = ceil(g.starts*g.limit+8*p.n+8, mostSlab) * mostSlab
	return g
}

// rowBytes is what lies between decide_rows and back_nodes, per decision.
func (g halfGrad) rowBytes() int { return 2*8*g.t + 2*2*g.d + 2*4*g.heads }

func (g halfGrad) walkShared() int {
	if g.seen > 1 {
		further := g.rules.Set.Further() * (g.starts + 1)
		return 4 * (g.n*g.columns + 2*g.starts + further + 3*g.n + 3 + g.n*ceil(g.starts, 32))
	}
	level := 16
	if g.t == farTiles {
		level = 32
	}
	return level*fitLevels + 4*(g.starts+4*g.n+3+g.n*ceil(g.starts, 32))
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
func (b *binder) halfGradTiles(o *kernel.RolloutGrad, p policy) int {
	t := b.halfTiles(p)
	if t == 0 || o.Actions.Shape[1] < manyStarts || o.DProj.Stride%4 != 0 || b.address(o.DProj)%16 != 0 {
		return 0
	}
	if g := newHalfGrad(o, p, t); max(g.walkShared(), g.backTableShared(), g.rowShared(rowWarps), g.nodeShared(g.slab())) > b.maxShared {
		return 0
	}
	return t
}

// gradHalf walks and sorts, tables scores, and then goes forward and back, some instances at a time
// so that what lies between fits the budget.
func (b *binder) gradHalf(o *kernel.RolloutGrad, p policy, t int, dcontext uint64) []launch {
	p.tiles = t
	g := newHalfGrad(o, p, t)
	n, choiceBytes := g.instances, g.choiceBytes()
	tables, dtables := b.scratch(4*n*p.heads*(p.n+p.seen)*g.wide), b.scratch(4*n*p.heads*(p.n+p.seen)*g.wide)
	choices := b.scratch(choiceBytes * n * g.room)
	stands, counts, present, ups := b.scratch(4*n*g.room/8), b.scratch(4*n), b.scratch(4*n*presentNodes(t)), b.scratch(4*n)
	walk, sorted := ruled("half_walk", p.rules.Set), ruled("biases", p.rules.Set)
	if t == farTiles {
		walk, sorted = "half_walk_136", "biases_136"
	}
	warps, lists := min(ceil(g.starts, 32), 4), []any{choices}
	if p.seen > 1 {
		warps, lists = min(g.starts, listWarps), append(lists, b.scratch(choiceBytes*n*g.starts*g.limit))
	}
	ls := []launch{
		{module: walk, kernel: "walk_sorted", grid: dim3{n, 1, 1}, block: dim3{32 * warps, 1, 1},
			shared: g.walkShared(),
			args: append(lists, stands, counts, present, ups, b.addr(o.Actions), b.addr(o.Steps), b.addr(o.Adv), b.addr(o.Nodes), b.control,
				i32(p.n), i32(g.starts), i32(g.limit), i32(g.room), o.Capacity, begins(o.Forced, o.Viewed), o.Weight, b.coefficient(o.Bonus), p.pointerScale)},
		{module: walk, kernel: "score_tables", beside: true, grid: dim3{n, p.heads, 1}, block: dim3{256, 1, 1}, shared: g.tableShared(),
			args: []any{tables, b.addr(o.Proj), b.addr(o.Graph), b.addr(o.Context), i32(p.n), i32(p.stride), i32(p.heads), i32(p.hd), i32(g.wide),
				p.scale * log2e}},
	}
	biases, made := b.biasTables(&o.Decoder, p, n, pointUnit)
	for _, l := range made {
		l.beside = true
		ls = append(ls, l)
	}
	operands, turned := b.contextOperands(p, tables, n*p.heads, g.wide)
	ls = append(ls, turned...)
	biasOperands, turned := b.contextOperands(p, biases, n, p.biasWide())
	for _, l := range turned {
		l.beside = true
		ls = append(ls, l)
	}
	parts, loads := min(biasLoads, p.n), min(biasLoads, p.n)
	if p.seen > 1 {
		parts, loads = biasParts, biasParts*p.seen
	}
	pairs := b.pairGrad(o, p, loads)
	most := halfScratch
	if t == farTiles {
		most = streamScratch
	}
	chunk := evenChunk(n, g.room*g.rowBytes(), b.budget(most))
	dus, glimpses, dglimpses := b.scratch(2*chunk*g.room*8*t), b.scratch(2*chunk*g.room*p.d), b.scratch(2*chunk*g.room*p.d)
	lse, deltas := b.scratch(4*chunk*g.room*p.heads), b.scratch(4*chunk*g.room*p.heads)
	module := p.halfModule("half_rows", t)
	nodes := fmt.Sprint(ruled("half_nodes", p.rules.Set), "_", g.slab())
	if t == farTiles {
		nodes = "half_nodes_136"
	}
	for first := 0; first < n; first += chunk {
		count := min(chunk, n-first)
		warps, splits := g.rowBlocks(count, b.sms, b.maxShared)
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
			launch{module: module, kernel: fmt.Sprint("decide_rows_", p.hd), grid: dim3{count, splits, 1}, block: dim3{32 * warps, 1, 1},
				shared: g.rowShared(warps), args: append(append(append([]any{dus, glimpses, dglimpses, lse, deltas}, mine...),
					b.addr(o.Proj), b.addr(o.Pointer), b.control, i32(first), i32(p.n), i32(p.stride), i32(g.room), i32(splits), p.pointerScale,
					biases), rowsByContext...)},
			launch{module: nodes, kernel: fmt.Sprint("back_nodes_", p.hd), grid: dim3{count, p.heads / headPair, ceil(g.tiles, g.nodeWarps())},
				block: dim3{32 * g.nodeWarps(), 1, 1}, shared: g.nodeShared(g.slab()),
				args: append(append(append([]any{b.addr(o.DProj), b.addr(o.DPointer), from(dtables, table), dus, glimpses, dglimpses, lse, deltas}, mine...),
					b.addr(o.Proj), i32(first), i32(p.n), i32(p.stride), i32(o.DProj.Stride), i32(p.heads), i32(g.room), i32(8*t), p.pointerScale),
					byContext...)})
		if pairs.tables != 0 {
			ls = append(ls, launch{module: sorted, kernel: "bias_sorted", beside: true, grid: dim3{count, parts, 1}, block: dim3{32 * ceil(presentNodes(t), 64), 1, 1}, shared: 4 * (p.n + 1),
				args: []any{pairs.of(p, first), dus, from(choices, choiceBytes*g.room), present, i32(first), i32(p.n), i32(g.room), i32(8 * t),
					i32(p.biasWide()), i32(parts)}})
		}
	}
	ls = append(ls, b.backPairs(o, p, pairs, ups, pointUnit*float64(p.pointerScale))...)
	return append(ls, launch{module: nodes, kernel: "back_tables", grid: dim3{n, p.heads, 1}, block: dim3{256, 1, 1},
		shared: g.backTableShared(),
		args: []any{b.addr(o.DProj), b.addr(o.DGraph), dcontext, dtables, present, ups, b.addr(o.Proj), b.addr(o.Graph),
			b.addr(o.Context), i32(p.n), i32(p.stride), i32(o.DProj.Stride), i32(p.heads), i32(p.hd), i32(g.wide), p.scale}})
}

// budget is what may lie between the kernels of the gradient: an eighth of the card, and no more
// than `most`.
func (b *binder) budget(most int) int {
	if b.memory == 0 {
		return most
	}
	return min(most, b.memory/8)
}

// evenChunk is how many instances of `each` bytes go together: all, or equal shares that fit.
func evenChunk(instances, each, budget int) int {
	fit := max(1, budget/each)
	return ceil(instances, ceil(instances, fit))
}
