package routing

import (
	"fmt"
	"math"

	"haul/internal/kernel"
	"haul/internal/kernel/cuda/bind"
)

// What a reader could break: the sizes here are the layouts in src/stream.cuh,
// stream_starts.cu, stream_row.cu, stream_walk.cu, stream_rows.cu and stream_nodes.cu, element by
// element. These kernels have no bound on nodes but shared memory's, and serve every rule set.

const (
	streamBlock    = 32       // BLOCK of src/stream.cuh
	packedBlock    = 8192     // PACKED_BLOCK
	pointersDown   = 3        // POINTERS_DOWN: rollouts hold what comes before it
	queries        = 4        // QUERIES: the gradient's rows hold what comes before it
	rowMatrices    = 4        // queries and what follows them: rows
	allMatrices    = 5        // what comes before KEY_ROWS
	startsTeam     = 4        // TEAM of rollout_team
	chunks         = 8        // CHUNKS
	startsWarps    = 16       // of rollout_stream on a multiprocessor
	rowsWarps      = 12       // of a block of rows_held or rows_ring, one to a multiprocessor
	ringBytes      = 3 * 8192 // RING_PARTS·RING_BYTES of src/stream.cuh
	aloneWarps     = 8        // of a block of walk_alone, at most
	fewRowWarps    = 16       // of a block of row_few
	sharedRows     = 3        // blocks of row_stream with all its warps on a multiprocessor
	sharedRowWarps = 8        // of a block of row_stream, at most
	walkWarps      = 32       // of a block of walk_stream, at most
	streamSlab     = 32       // SLAB of src/stream_nodes.cu
	nodeWarps      = 8        // of a block of nodes_stream, at most
	streamScratch  = 16 << 30 // bytes at most between the kernels of one chunk of instances
	mostStreamed   = 4096     // nodes: words of a mask that a warp holds
	pointerBytes   = 1 << 11  // of r that a warp keeps of a block of nodes
)

// stream is a policy whose matrices are read from the card's caches.
type stream struct {
	policy
	blocks int
}

// streamed reports whether the policy's decisions are streamed: by products of fp16 numbers where
// no kernel holds all nodes of an instance.
func streamed(b *bind.Binder, p policy, context *kernel.Tensor) (stream, bool) {
	s := stream{p, bind.Ceil(p.n, streamBlock)}
	return s, b.Precision != bind.FP32 && p.tilesFor() == 0 && p.d == halfWidth && (p.hd == 16 || p.hd == 32) && p.aligned &&
		p.n <= mostStreamed && b.Address(context)%16 == 0
}

// across is the nodes of all blocks.
func (s stream) across() int { return streamBlock * s.blocks }

// heldBytes is the shared memory of an instance's first matrices, in tiles of sixteen nodes.
func (s stream) heldBytes(held int) int { return held * bind.Ceil(s.n, 16) * packedBlock / 2 }

// startsShape is how rollout_stream works: so many warps follow a tile of sixteen starts, a block
// has so many tiles, and so many matrices of its instance in shared memory.
type startsShape struct{ team, tiles, held int }

func (f startsShape) warps() int { return f.team * f.tiles }

// kernel names what serves the shape, less the head's width: some are made for so many matrices.
func (f startsShape) kernel() string {
	switch {
	case f.team > 1 && f.held == 1:
		return "rollout_team_one_"
	case f.team > 1:
		return "rollout_team_"
	case f.held == 2:
		return "rollout_two_"
	case f.held == 3:
		return "rollout_three_"
	}
	return "rollout_stream_"
}

// startsShared is the shared memory of rollout_stream, rowShared that of row_stream, in bytes.
func (s stream) startsShared(f startsShape) int {
	words := (2+s.columns)*s.across() + s.seen*halfWidth/2 + 2*fitLevels*s.blocks + f.warps()*32*s.blocks + f.tiles*32*s.blocks
	if f.team > 1 {
		words += f.tiles * (128*chunks + 64*f.team)
	}
	return s.heldBytes(f.held) + 4*words
}

// StartsTeams are the sizes of a team that there are kernels for. A test narrows them, since few
// instances would always have the larger.
var StartsTeams = []int{1, startsTeam}

// startsShape chooses for instances that have so many tiles each. Warps hide one another's waits,
// matrices in shared memory make them shorter, and the warps of a team do some things twice.
func (s stream) startsShape(instances, tiles, sms, maxShared int) (shape startsShape) {
	best := 0
	for _, team := range StartsTeams {
		most := startsWarps / team
		wanted := min(startsWarps, team*bind.Ceil(instances*tiles, sms))
		for held := pointersDown; held >= 0; held-- {
			for parts := bind.Ceil(tiles, most); parts <= tiles; parts++ {
				f := startsShape{team, bind.Ceil(tiles, parts), held}
				shared := s.startsShared(f)
				if shared > maxShared {
					continue
				}
				score := min(wanted, f.warps()*min(startsWarps/f.warps(), maxShared/shared)) * (4 + held)
				if team == 1 {
					score += score / 4
				}
				if score > best || score == best && instances*parts <= sms { // a multiprocessor each
					best, shape = score, f
				}
			}
		}
	}
	return shape
}

func (s stream) rowShared(warps int) int {
	words := bind.Ceil(s.n, 32)
	return 4 * (halfWidth*(s.seen+1) + 96 + warps*(s.hd+2) + (s.n+3)&^3*s.columns + 3*s.n + 3*words)
}

// rowWarps are the warps of a block of row_stream and its kernel: all that a block may have where
// every multiprocessor has a row at most, else as few as a row needs, so that many share one, which
// with four warps a row leaves registers for twice the nodes under way.
func (s stream) rowWarps(rows, sms int) (warps int, kernel string) {
	switch {
	case rows <= sms:
		return fewRowWarps, fmt.Sprint("row_few_", s.hd)
	case rows <= sharedRows*sms:
		return sharedRowWarps, fmt.Sprint("row_stream_", s.hd)
	}
	if s.hd == 32 {
		return s.heads, "row_ahead_32"
	}
	return s.heads, fmt.Sprint("row_stream_", s.hd)
}

// pack lays matrices out, from the first of stream.cuh's list on; queries times ask.
func (s stream) pack(b *bind.Binder, o *kernel.Decoder, instances, first, matrices int, ask float64) (uint64, bind.Launch) {
	packed := b.Scratch(instances * matrices * s.blocks * packedBlock)
	return packed, bind.Launch{Module: "stream_pack", Kernel: "stream_pack", Grid: bind.Dim3{instances, s.blocks, matrices}, Block: bind.Dim3{256, 1, 1},
		Args: []any{packed, b.Addr(o.Proj), b.Addr(o.Pointer), b.Addr(o.Graph), bind.I32(s.n), bind.I32(s.stride), bind.I32(s.blocks), bind.I32(first), bind.I32(matrices),
			float32(pointUnit * float64(s.pointerScale)), float32(ask)}}
}

// askUnit is what queries are multiplied by where scores are to base 2.
func (s stream) askUnit() float64 { return math.Log2E * float64(s.scale) }

// streamStarts reports whether starts are decoded sixteen to a warp.
func (s stream) streamStarts(b *bind.Binder, o *kernel.Rollout) bool {
	return o.Actions.Shape[1] >= fewStarts && o.Choice != kernel.Extend && s.startsShared(startsShape{1, 1, 0}) <= b.MaxShared
}

// rolloutStream decodes starts sixteen to a warp, or a row to a block.
func rolloutStream(b *bind.Binder, o *kernel.Rollout, s stream) []bind.Launch {
	instances, starts, limit := o.Actions.Shape[0], o.Actions.Shape[1], o.Actions.Shape[2]
	tables, ls := biasTables(b, &o.Decoder, s.policy, instances, pointUnit)
	args := func(packed uint64) []any {
		return []any{b.Addr(o.Actions), b.Addr(o.Steps), b.Addr(o.Length), b.Addr(o.LogProb), b.Addr(o.Entropy), packed, b.Addr(o.Context),
			b.Addr(o.PosX), b.Addr(o.PosY), b.Addr(o.Nodes), b.Control, b.State, o.Seed, uint32(o.Purpose), o.Capacity, bind.I32(s.n), bind.I32(s.blocks),
			bind.I32(starts), bind.I32(limit), bind.I32(int(o.Choice)), begins(o.Forced, o.Viewed), s.scale, tables, bind.I32(s.biasWide())}
	}
	if !s.streamStarts(b, o) {
		packed, pack := s.pack(b, &o.Decoder, instances, queries, rowMatrices, 1)
		warps, kernel := s.rowWarps(instances*starts, b.SMs)
		return append(ls, pack, bind.Launch{Module: Ruled("stream_row", s.rules.Set), Kernel: kernel, Grid: bind.Dim3{instances * starts, 1, 1},
			Block: bind.Dim3{32 * warps, 1, 1}, Shared: s.rowShared(warps), Args: args(packed)})
	}
	packed, pack := s.pack(b, &o.Decoder, instances, 0, allMatrices, s.askUnit())
	all := bind.Ceil(starts, 16)
	f := s.startsShape(instances, all, b.SMs, b.MaxShared)
	return append(ls, pack, bind.Launch{Module: Ruled("stream_starts", s.rules.Set), Kernel: fmt.Sprint(f.kernel(), s.hd), Grid: bind.Dim3{instances, bind.Ceil(all, f.tiles), 1},
		Block: bind.Dim3{32 * f.warps(), 1, 1}, Shared: s.startsShared(f),
		Args: append(args(packed), b.Scratch(instances*all*s.blocks*pointerBytes), bind.I32(f.held))})
}

// streamGrad are the sizes of the streamed gradient.
type streamGrad struct {
	stream
	instances, starts, limit int
	room                     int // decisions an instance may have, its last tile filled up
	ranges, per              int // blocks of threads that share a head's nodes, and blocks of nodes of each
}

func newStreamGrad(o *kernel.RolloutGrad, s stream) streamGrad {
	g := streamGrad{stream: s, instances: o.Actions.Shape[0], starts: o.Actions.Shape[1], limit: o.Actions.Shape[2]}
	g.room = bind.Ceil(g.starts*g.limit+16, mostSlab) * mostSlab
	g.ranges = bind.Ceil(s.blocks, nodeWarps/headPair)
	g.per = bind.Ceil(s.blocks, g.ranges)
	return g
}

func (g streamGrad) takenBytes() int { return 16 * bind.Ceil(g.seen+3, 4) }
func (g streamGrad) maskBytes() int  { return 16 * bind.Ceil(g.n, 128) }
func (g streamGrad) tableBytes() int { return 4 * g.heads * (g.n + g.seen) * g.across() }

// instanceBytes is what lies between the kernels, per instance.
func (g streamGrad) instanceBytes() int {
	return g.room*(g.takenBytes()+g.maskBytes()+4+2*g.across()+2*2*g.d+2*4*g.heads) + g.tableBytes()
}

func (g streamGrad) walkShared() int {
	depots := 1 + g.rules.Set.Further()
	return 4 * (g.n*g.columns + depots*(g.starts+1) + 3*g.n + 2 + g.n*bind.Ceil(g.starts, 32) + fitLevels*(bind.Ceil(g.n, 32)|1))
}

// rowsShared is the shared memory of rows_held, ringShared that of rows_ring, in bytes.
func (g streamGrad) rowsShared() int { return g.heldBytes(queries) + g.rowsOwn() }
func (g streamGrad) ringShared() int { return ringBytes + g.rowsOwn() }
func (g streamGrad) rowsOwn() int    { return 2*halfWidth*g.seen + rowsWarps*64*g.blocks }

// rowsBlock names the kernel of the rows, less the head's width, and its shared memory: an
// instance's matrices are held there, or pass through it for all warps of a block together.
func (g streamGrad) rowsBlock(maxShared int) (kernel string, shared int) {
	if shared = g.rowsShared(); shared <= maxShared {
		return "rows_held_", shared
	}
	return "rows_ring_", g.ringShared()
}

// rowSplits is how many blocks an instance's rows are dealt to, at most `most`: where the card
// holds `slots` blocks at once, those whose rounds are soonest done.
func rowSplits(instances, slots, most int) int {
	best, rounds := 1, bind.Ceil(instances, slots)
	for s := 2; s <= min(max(8, bind.Ceil(slots, instances)), most); s++ {
		if r := bind.Ceil(instances*s, slots); r*best < rounds*s {
			best, rounds = s, r
		}
	}
	return best
}

// walker names the kernel that follows the recorded routes and the threads of its block: a thread a
// start where starts are many and the context is one number, else a warp.
func (g streamGrad) walker() (kernel string, threads int) {
	switch {
	case g.n > 1024:
		return "walk_stream_4096", 32 * min(g.starts, walkWarps)
	case g.seen > 1 || g.starts < manyStarts:
		return "walk_stream_1024", 32 * min(g.starts, walkWarps)
	}
	words := 256
	for words < g.n {
		words *= 2
	}
	return fmt.Sprint("walk_alone_", words), 32 * min(bind.Ceil(g.starts, 32), aloneWarps)
}

// even reports whether eight warps of a block of nodes_stream take turns at being idle: where at
// least six have something to do.
func (g streamGrad) even() bool {
	return g.per >= nodeWarps/headPair-1
}

// nodesWarps are the warps of a block of nodes_stream.
func (g streamGrad) nodesWarps() int {
	if g.even() {
		return nodeWarps
	}
	return headPair * g.per
}

func (g streamGrad) nodesShared() int {
	line := 2*headPair*g.hd + 16
	slab := streamSlab * (g.takenBytes() + 32 + 3*line + headPair*2*4 + 4 + 2*streamBlock*g.per + 16)
	return 2*slab + g.nodesWarps()*2*2*streamBlock*g.hd // and a warp's values and keys
}
func (g streamGrad) tablesShared() int { return 4 * 64 * (72 + g.hd + 8) }

// streamGradServes reports whether the gradient of the decisions is streamed.
func streamGradServes(b *bind.Binder, o *kernel.RolloutGrad, p policy) (streamGrad, bool) {
	s, yes := streamed(b, p, o.Context)
	if !yes || o.DProj.Stride%4 != 0 || b.Address(o.DProj)%16 != 0 {
		return streamGrad{}, false
	}
	g := newStreamGrad(o, s)
	return g, max(g.walkShared(), g.ringShared(), g.nodesShared(), g.tablesShared()) <= b.MaxShared
}

// gradStream walks and sorts, goes forward and back, some instances at a time so that what lies
// between fits the budget.
func gradStream(b *bind.Binder, o *kernel.RolloutGrad, g streamGrad, dcontext uint64) []bind.Launch {
	packed, pack := g.pack(b, &o.Decoder, g.instances, 0, allMatrices, g.askUnit())
	biases, ls := biasTables(b, &o.Decoder, g.policy, g.instances, pointUnit)
	ls = append(ls, pack)
	loads := g.seen
	if loads == 1 {
		loads = min(biasLoads, g.n)
	}
	pairs := newPairGrad(b, o, g.policy, loads)
	ups := b.Scratch(4 * g.instances)
	chunk := evenChunk(g.instances, g.instanceBytes(), budget(b, streamScratch))
	taken, masks, stands := b.Scratch(chunk*g.room*g.takenBytes()), b.Scratch(chunk*g.room*g.maskBytes()), b.Scratch(4*chunk*g.room)
	counts, present := b.Scratch(4*chunk), b.Scratch(4*chunk*g.n)
	dus, glimpses, dglimpses := b.Scratch(2*chunk*g.room*g.across()), b.Scratch(2*chunk*g.room*g.d), b.Scratch(2*chunk*g.room*g.d)
	lse, deltas := b.Scratch(4*chunk*g.room*g.heads), b.Scratch(4*chunk*g.room*g.heads)
	dtables := b.Scratch(chunk * g.tableBytes())
	rows, rowsShared := g.rowsBlock(b.MaxShared)
	splits := rowSplits(chunk, b.SMs, bind.Ceil(g.room, 16*rowsWarps))
	r := b.Scratch(chunk * splits * rowsWarps * g.blocks * pointerBytes)
	walk, walkers := g.walker()
	nodes, nodesKernel := Ruled("stream_nodes", g.rules.Set), "nodes_stream_"
	if g.even() {
		nodesKernel = "nodes_even_"
	}
	for first := 0; first < g.instances; first += chunk {
		count := min(chunk, g.instances-first)
		// of what every instance has, from the chunk's first on
		of := func(t *kernel.Tensor, each int) uint64 { return b.Address(t) + uint64(4*first*each) }
		proj, dproj := of(o.Proj, g.n*g.stride), of(o.DProj, g.n*o.DProj.Stride)
		own, up := packed+uint64(first*allMatrices*g.blocks*packedBlock), ups+uint64(4*first)
		near := biases
		if near != 0 {
			near += uint64(4 * first * (g.n + g.seen) * g.biasWide())
		}
		list := []any{taken, masks, stands, counts, up, own, b.Addr(o.Context)}
		ls = append(ls,
			bind.Launch{Module: Ruled("stream_walk", g.rules.Set), Kernel: walk, Grid: bind.Dim3{count, 1, 1}, Block: bind.Dim3{walkers, 1, 1},
				Shared: g.walkShared(),
				Args: []any{taken, masks, stands, counts, present, up, of(o.Actions, g.starts*g.limit), of(o.Steps, g.starts), of(o.Adv, g.starts),
					of(o.Nodes, g.n*g.columns), b.Control, bind.I32(g.n), bind.I32(g.starts), bind.I32(g.limit), bind.I32(g.room), o.Capacity, begins(o.Forced, o.Viewed),
					o.Weight, b.Coefficient(o.Bonus), g.pointerScale}},
			bind.Launch{Module: Ruled("stream_rows", g.rules.Set), Kernel: fmt.Sprint(rows, g.hd), Grid: bind.Dim3{count, splits, 1},
				Block: bind.Dim3{32 * rowsWarps, 1, 1}, Shared: rowsShared,
				Args: append(append([]any{dus, glimpses, dglimpses, lse, deltas}, list...), b.Control, bind.I32(g.n), bind.I32(g.blocks), bind.I32(g.room), bind.I32(splits),
					g.scale, near, bind.I32(g.biasWide()), r)},
			bind.Launch{Module: nodes, Kernel: fmt.Sprint(nodesKernel, g.hd), Grid: bind.Dim3{count, g.heads / headPair, g.ranges}, Block: bind.Dim3{32 * g.nodesWarps(), 1, 1},
				Shared: g.nodesShared(),
				Args: append(append([]any{dproj, of(o.DPointer, g.n*g.d), dtables, dus, glimpses, dglimpses, lse, deltas}, list...), proj, bind.I32(g.n),
					bind.I32(g.blocks), bind.I32(g.stride), bind.I32(o.DProj.Stride), bind.I32(g.heads), bind.I32(g.room), bind.I32(g.across()), g.scale, g.pointerScale)})
		if pairs.tables != 0 {
			ls = append(ls, bind.Launch{Module: nodes, Kernel: "biases_stream", Grid: bind.Dim3{count, pairs.loads, bind.Ceil(g.biasWide(), 128)}, Block: bind.Dim3{128, 1, 1},
				Shared: 4 * (g.n + 1), Args: []any{pairs.of(g.policy, first), dus, taken, present, bind.I32(g.n), bind.I32(g.blocks), bind.I32(g.room), bind.I32(g.biasWide()),
					bind.I32(pairs.loads)}})
		}
		ls = append(ls, bind.Launch{Module: nodes, Kernel: fmt.Sprint("tables_stream_", g.hd), Grid: bind.Dim3{count, g.heads, 1}, Block: bind.Dim3{256, 1, 1},
			Shared: g.tablesShared(),
			Args: []any{dproj, of(o.DGraph, g.d), dcontext + uint64(4*first*g.seen*g.d), dtables, present, up, proj, of(o.Graph, g.d), b.Addr(o.Context),
				bind.I32(g.n), bind.I32(g.stride), bind.I32(o.DProj.Stride), bind.I32(g.heads), bind.I32(g.across()), g.scale}})
	}
	return append(ls, backPairs(b, o, g.policy, pairs, ups, pointUnit*float64(g.pointerScale))...)
}
