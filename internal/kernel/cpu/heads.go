package cpu

import (
	"math"
	"unsafe"

	"haul/internal/kernel"
)

// Causal attention in bf16, where tiles do whole heads: the products of scores, of their gradient
// and of what both sum round their operands as products with weights do, and exponentials are good
// to a fiftieth of that. What a reader could break: rows of tiles past the last token are zero, as
// packing leaves them, because the assembly computes with whole blocks of sixteen.

// headArgs is one head of one instance for the assembly, which knows it by its layout. What it
// points to is the worker's and the shard's memory.
type headArgs struct {
	config uintptr
	// blocks of 16 tokens × 16 columns: k and v as rows of A, q and dy as columns of B
	k, v, q, dy  uintptr
	step         int     // bytes between blocks
	turned       uintptr // 16 columns × all tokens as A: v forward, k for the gradient
	qPairs       uintptr // all tokens × 16 columns as B
	dyPairs      uintptr
	first        uintptr
	t, blocks    int
	mask         uintptr // 0: nothing is dropped
	logSum, dots uintptr
	y            uintptr // forward Y, for the gradient dQ
	ld           int     // bytes between its rows
	dk, dv       uintptr
	s, dp        uintptr // scratch from here on: a tile of floats for each block of keys
	p            uintptr // half a tile of pairs for each
	pa, sa       uintptr // half a tile for each pair of blocks
	out          uintptr // a tile of floats
	scale        float32
	scale2       float32 // times log2 e
	keep         float32
	keepScale    float32
	// The gradient's panel, in blocks, the ends excluded. What has a place for each of its blocks is
	// addressed as if it began with the first block of all.
	begin, end           int
	panel, panelEnd      int
	row                  int     // bytes between blocks of queries of pa and sa
	sumQ, sumK           uintptr // sums that a later panel goes on with: a tile, and two tiles
	reached, last, plain int     // the assembly's own
}

// Panels of the gradient, in blocks: the scores of a block of queries and their gradient stay in
// L1, what a panel leaves for the keys in a quarter of L2. Keys come in whole groups of dropout
// bits.
const (
	panelQueries = 32
	panelKeys    = 16
)

// headWidth is the one that attention by tiles is made for.
const headWidth = 16

// heads is what attention by tiles shares between both directions.
type heads struct {
	causal
	blocks, depth, pairs int // blocks of 16 tokens; tiles of 32 columns; tiles of 32 tokens
	queries, keys        int // blocks of a panel of the gradient
}

// attends tells whether tiles do attention of heads so wide.
func (b *binder) attends(d, heads int) bool {
	t := b.r.dev.tiles
	return t != nil && t.attend != nil && d/heads == headWidth
}

func (b *binder) heads(instances, t, d, n int, drop kernel.Drop) heads {
	return newHeads(b.causal(instances, t, d, n, drop), panelQueries, panelKeys)
}

// newHeads cuts into panels of so many blocks of queries and keys; those of keys are even.
func newHeads(c causal, queries, keys int) heads {
	blocks := ceil(c.t, tileLines)
	return heads{c, blocks, ceil(c.d, tileDepth), ceil(c.t, tileDepth), min(blocks, queries), min((blocks+1)&^1, keys)}
}

// rows is how many floats take the tokens as blocks of 16; columns, as tiles of a head each; panel,
// half a tile for each pair of a panel's blocks.
func (c *heads) rows() int    { return c.blocks * c.depth * tileSlots }
func (c *heads) columns() int { return c.heads * c.pairs * tileSlots }
func (c *heads) panel() int   { return c.queries * c.keys * tileSlots / 2 }

// args is what all heads of an instance share.
func (c *heads) args(first []int32) headArgs {
	a := headArgs{step: c.depth * tileBytes, first: address(first), t: c.t, blocks: c.blocks, scale: c.scale, keep: 1}
	a.scale2 = float32(float64(c.scale) * math.Log2E)
	if c.drop != nil {
		a.keep = c.drop.scale
	}
	a.keepScale = a.keep * c.scale
	return a
}

// half is where head h begins among blocks of rows: two heads share a tile, so many bytes apart.
func half(tiles []float32, h, bytes int) uintptr {
	return address(tiles) + uintptr(h/2*tileBytes+h%2*bytes)
}

// Two heads in a tile lie so far apart.
const (
	halfLine  = 32  // as rows of A: half of each line
	halfLines = 512 // as columns of B: half of the lines
)

func address[T any](s []T) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(s))) }

// pieces hands out scratch.
type pieces []float32

func (p *pieces) take(n int) []float32 {
	s := (*p)[:n:n]
	*p = (*p)[n:]
	return s
}

// needForward and needGrad are the scratch of both directions, in floats: packed operands, then
// what the assembly asks for.
func (c *heads) needForward() int {
	return 2*c.rows() + c.columns() + c.blocks*(tileSlots*3/2) + tileSlots
}

func (c *heads) needGrad() int {
	return 4*c.rows() + 3*c.columns() + c.keys*(tileSlots*5/2) + 2*c.panel() + (1+c.queries+2*c.blocks)*tileSlots + c.t
}

// mask is where head h of an instance's dropout bits begins.
func (c *heads) mask(masks []uint16, h int) uintptr {
	if c.drop == nil {
		return 0
	}
	return address(masks[2*h*c.each:][:2*c.each])
}

// attendTiles is causalAttention by tiles.
func (b *binder) attendTiles(o *kernel.CausalAttention) func(*worker) {
	y, logSum, qkv, first := newRef(b.r, o.Y), newRef(b.r, o.LogSum), newRef(b.r, o.QKV), newRef(b.r, o.First)
	instances, t, d := o.Dims()
	c := b.heads(instances, t, d, o.Heads, o.Drop)
	b.need(c.needForward(), 0)
	return func(w *worker) {
		yb, lb, qb, fb := y.of(w), logSum.of(w), qkv.of(w), ints(first.of(w))
		for i := range instances {
			c.forward(w, yb[i*t*d:][:t*d], lb[i*o.Heads*t:][:o.Heads*t], qb[i*t*3*d:][:t*3*d], fb[i*t:][:t], c.masks(w, i))
		}
	}
}

// forward attends in one instance.
func (c *heads) forward(w *worker, y, logSum, qkv []float32, first []int32, masks []uint16) {
	t, d, free, a := c.t, c.d, pieces(w.scratch), &w.head
	k, q, v := free.take(c.rows()), free.take(c.rows()), free.take(c.columns())
	w.tiles.pack(columnsOfB, q, qkv, 3*d, t, d)
	w.tiles.pack(rowsOfA, k, qkv[d:], 3*d, t, d)
	w.tiles.pack(columnsOfA, v, qkv[2*d:], 3*d, d, t)
	*a = c.args(first)
	a.ld, a.s, a.p = 4*d, address(free.take(c.blocks*tileSlots)), address(free.take(c.blocks*tileSlots/2))
	a.out = address(free.take(tileSlots))
	for h := 0; h < c.heads && !w.stopped(); h++ {
		a.k, a.q, a.turned = half(k, h, halfLine), half(q, h, halfLines), address(v[h*c.pairs*tileSlots:])
		a.mask, a.logSum = c.mask(masks, h), address(logSum[h*t:][:t])
		a.y = address(y[:t*d][h*headWidth:])
		w.tiles.attend(a)
	}
}

// attendTilesGrad is causalAttentionGrad by tiles.
func (b *binder) attendTilesGrad(o *kernel.CausalAttentionGrad) func(*worker) {
	dqkv, dy, y := newRef(b.r, o.DQKV), newRef(b.r, o.DY), newRef(b.r, o.Y)
	logSum, qkv, first := newRef(b.r, o.LogSum), newRef(b.r, o.QKV), newRef(b.r, o.First)
	instances, t, d := o.Dims()
	c := b.heads(instances, t, d, o.Heads, o.Drop)
	b.need(c.needGrad(), 0)
	return func(w *worker) {
		dqb, dyb, yb := dqkv.of(w), dy.of(w), y.of(w)
		lb, qb, fb := logSum.of(w), qkv.of(w), ints(first.of(w))
		for i := range instances {
			c.grad(w, dqb[i*t*3*d:][:t*3*d], dyb[i*t*d:][:t*d], yb[i*t*d:][:t*d], lb[i*o.Heads*t:][:o.Heads*t], qb[i*t*3*d:][:t*3*d], fb[i*t:][:t],
				c.masks(w, i))
		}
	}
}

// grad makes the gradient of one instance.
func (c *heads) grad(w *worker, dqkv, dy, y, logSum, qkv []float32, first []int32, masks []uint16) {
	t, d, free, a := c.t, c.d, pieces(w.scratch), &w.head
	k, v, q, g := free.take(c.rows()), free.take(c.rows()), free.take(c.rows()), free.take(c.rows())
	kt, qp, gp, dots := free.take(c.columns()), free.take(c.columns()), free.take(c.columns()), free.take(t)
	w.tiles.pack(columnsOfB, q, qkv, 3*d, t, d)
	w.tiles.pack(columnsOfB, g, dy, d, t, d)
	w.tiles.pack(rowsOfA, k, qkv[d:], 3*d, t, d)
	w.tiles.pack(rowsOfA, v, qkv[2*d:], 3*d, t, d)
	w.tiles.pack(columnsOfA, kt, qkv[d:], 3*d, d, t)
	w.tiles.pack(rowsOfB, qp, qkv, 3*d, d, t)
	w.tiles.pack(rowsOfB, gp, dy, d, d, t)
	*a = c.args(first)
	s, dp, p := free.take(c.keys*tileSlots), free.take(c.keys*tileSlots), free.take(c.keys*tileSlots/2)
	pa, sa, sumQ := free.take(c.panel()), free.take(c.panel()), free.take(c.queries*tileSlots)
	a.ld, a.dots, a.out, a.sumK = 12*d, address(dots), address(free.take(tileSlots)), address(free.take(2*c.blocks*tileSlots))
	a.row = c.keys * tileBytes / 2
	fits(len(dqkv) >= t*3*d)
	for h := range c.heads {
		column, tiles := h*headWidth, h*c.pairs*tileSlots
		w.p.rowDots(dots, dy[column:], y[column:], t, headWidth, d)
		a.k, a.v, a.q, a.dy = half(k, h, halfLine), half(v, h, halfLine), half(q, h, halfLines), half(g, h, halfLines)
		a.turned, a.qPairs, a.dyPairs = address(kt[tiles:]), address(qp[tiles:]), address(gp[tiles:])
		a.mask, a.logSum = c.mask(masks, h), address(logSum[h*t:][:t])
		a.y, a.dk, a.dv = address(dqkv[column:]), address(dqkv[d+column:]), address(dqkv[2*d+column:])
		for a.begin = 0; a.begin < c.blocks; a.begin = a.end {
			a.end = min(a.begin+c.queries, c.blocks)
			a.sumQ = before(sumQ, a.begin*tileBytes)
			reached := int(first[a.begin*tileLines]) / tileLines
			for a.panel = reached / c.keys * c.keys; a.panel < a.end && !w.stopped(); a.panel = a.panelEnd {
				a.panelEnd = min(a.panel+c.keys, a.end)
				a.s, a.dp, a.p = before(s, a.panel*tileBytes), before(dp, a.panel*tileBytes), before(p, a.panel*tileBytes/2)
				skipped := a.begin*a.row + a.panel*tileBytes/2
				a.pa, a.sa = before(pa, skipped), before(sa, skipped)
				w.tiles.attendGrad(a)
			}
		}
	}
}

// before is where memory would begin that s is a part of, so many bytes into it.
func before(s []float32, bytes int) uintptr { return address(s) - uintptr(bytes) }
