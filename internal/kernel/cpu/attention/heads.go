package attention

import (
	"math"

	"haul/internal/kernel"
	"haul/internal/kernel/cpu/isa"
	"haul/internal/kernel/cpu/run"
)

// Causal attention in bf16, where tiles do whole heads: the products of scores, of their gradient
// and of what both sum round their operands as products with weights do, and exponentials are good
// to a fiftieth of that. What a reader could break: rows of tiles past the last token are zero, as
// packing leaves them, because the assembly computes with whole blocks of sixteen.

// Panels of the gradient, in blocks: the scores of a block of queries and their gradient stay in
// L1, what a panel leaves for the keys in a quarter of L2. Keys come in whole groups of dropout
// bits.
const (
	panelQueries = 32
	panelKeys    = 16
)

// heads is what attention by tiles shares between both directions.
type heads struct {
	causal
	blocks, depth, pairs int // blocks of 16 tokens; tiles of 32 columns; tiles of 32 tokens
	queries, keys        int // blocks of a panel of the gradient
}

// attends tells whether tiles do attention of heads so wide.
func attends(b *run.Binder, d, heads int) bool {
	t := b.Runner.Device.Tiles
	return t != nil && t.Attend != nil && d/heads == isa.HeadWidth
}

func headsOf(b *run.Binder, instances, t, d, n int, drop kernel.Drop) heads {
	return newHeads(causalOf(b, instances, t, d, n, drop), panelQueries, panelKeys)
}

// newHeads cuts into panels of so many blocks of queries and keys; those of keys are even.
func newHeads(c causal, queries, keys int) heads {
	blocks := isa.Ceil(c.t, isa.TileLines)
	return heads{c, blocks, isa.Ceil(c.d, isa.TileDepth), isa.Ceil(c.t, isa.TileDepth), min(blocks, queries), min((blocks+1)&^1, keys)}
}

// rows is how many floats take the tokens as blocks of 16; columns, as tiles of a head each; panel,
// half a tile for each pair of a panel's blocks.
func (c *heads) rows() int    { return c.blocks * c.depth * isa.TileSlots }
func (c *heads) columns() int { return c.heads * c.pairs * isa.TileSlots }
func (c *heads) panel() int   { return c.queries * c.keys * isa.TileSlots / 2 }

// args is what all heads of an instance share.
func (c *heads) args(first []int32) isa.HeadArgs {
	a := isa.HeadArgs{Step: c.depth * isa.TileBytes, First: isa.Address(first), T: c.t, Blocks: c.blocks, Scale: c.scale, Keep: 1}
	a.Scale2 = float32(float64(c.scale) * math.Log2E)
	if c.drop != nil {
		a.Keep = c.drop.Scale
	}
	a.KeepScale = a.Keep * c.scale
	return a
}

// half is where head h begins among blocks of rows: two heads share a tile, so many bytes apart.
func half(tiles []float32, h, bytes int) uintptr {
	return isa.Address(tiles) + uintptr(h/2*isa.TileBytes+h%2*bytes)
}

// Two heads in a tile lie so far apart.
const (
	halfLine  = 32  // as rows of A: half of each line
	halfLines = 512 // as columns of B: half of the lines
)

// needForward and needGrad are the scratch of both directions, in floats: packed operands, then
// what the assembly asks for.
func (c *heads) needForward() int {
	return 2*c.rows() + c.columns() + c.blocks*(isa.TileSlots*3/2) + isa.TileSlots
}

func (c *heads) needGrad() int {
	return 4*c.rows() + 3*c.columns() + c.keys*(isa.TileSlots*5/2) + 2*c.panel() + (1+c.queries+2*c.blocks)*isa.TileSlots + c.t
}

// mask is where head h of an instance's dropout bits begins.
func (c *heads) mask(masks []uint16, h int) uintptr {
	if c.drop == nil {
		return 0
	}
	return isa.Address(masks[2*h*c.each:][:2*c.each])
}

// attendTiles is causalAttention by tiles.
func attendTiles(b *run.Binder, o *kernel.CausalAttention) func(*run.Worker) {
	y, logSum, qkv, first := b.Ref(o.Y), b.Ref(o.LogSum), b.Ref(o.QKV), b.Ref(o.First)
	instances, t, d := o.Dims()
	c := headsOf(b, instances, t, d, o.Heads, o.Drop)
	b.Need(c.needForward(), 0)
	return func(w *run.Worker) {
		yb, lb, qb, fb := y.Of(w), logSum.Of(w), qkv.Of(w), isa.Ints(first.Of(w))
		for i := range instances {
			c.forward(w, yb[i*t*d:][:t*d], lb[i*o.Heads*t:][:o.Heads*t], qb[i*t*3*d:][:t*3*d], fb[i*t:][:t], c.masks(w, i))
		}
	}
}

// forward attends in one instance.
func (c *heads) forward(w *run.Worker, y, logSum, qkv []float32, first []int32, masks []uint16) {
	t, d, free, a := c.t, c.d, run.Pieces(w.Scratch), &w.Head
	k, q, v := free.Take(c.rows()), free.Take(c.rows()), free.Take(c.columns())
	w.Tiles.Pack(isa.ColumnsOfB, q, qkv, 3*d, t, d)
	w.Tiles.Pack(isa.RowsOfA, k, qkv[d:], 3*d, t, d)
	w.Tiles.Pack(isa.ColumnsOfA, v, qkv[2*d:], 3*d, d, t)
	*a = c.args(first)
	a.LD, a.S, a.P = 4*d, isa.Address(free.Take(c.blocks*isa.TileSlots)), isa.Address(free.Take(c.blocks*isa.TileSlots/2))
	a.Out = isa.Address(free.Take(isa.TileSlots))
	for h := 0; h < c.heads && !w.Stopped(); h++ {
		a.K, a.Q, a.Turned = half(k, h, halfLine), half(q, h, halfLines), isa.Address(v[h*c.pairs*isa.TileSlots:])
		a.Mask, a.LogSum = c.mask(masks, h), isa.Address(logSum[h*t:][:t])
		a.Y = isa.Address(y[:t*d][h*isa.HeadWidth:])
		w.Tiles.Attend(a)
	}
}

// attendTilesGrad is causalAttentionGrad by tiles.
func attendTilesGrad(b *run.Binder, o *kernel.CausalAttentionGrad) func(*run.Worker) {
	dqkv, dy, y := b.Ref(o.DQKV), b.Ref(o.DY), b.Ref(o.Y)
	logSum, qkv, first := b.Ref(o.LogSum), b.Ref(o.QKV), b.Ref(o.First)
	instances, t, d := o.Dims()
	c := headsOf(b, instances, t, d, o.Heads, o.Drop)
	b.Need(c.needGrad(), 0)
	return func(w *run.Worker) {
		dqb, dyb, yb := dqkv.Of(w), dy.Of(w), y.Of(w)
		lb, qb, fb := logSum.Of(w), qkv.Of(w), isa.Ints(first.Of(w))
		for i := range instances {
			c.grad(w, dqb[i*t*3*d:][:t*3*d], dyb[i*t*d:][:t*d], yb[i*t*d:][:t*d], lb[i*o.Heads*t:][:o.Heads*t], qb[i*t*3*d:][:t*3*d], fb[i*t:][:t],
				c.masks(w, i))
		}
	}
}

// grad makes the gradient of one instance.
func (c *heads) grad(w *run.Worker, dqkv, dy, y, logSum, qkv []float32, first []int32, masks []uint16) {
	t, d, free, a := c.t, c.d, run.Pieces(w.Scratch), &w.Head
	k, v, q, g := free.Take(c.rows()), free.Take(c.rows()), free.Take(c.rows()), free.Take(c.rows())
	kt, qp, gp, dots := free.Take(c.columns()), free.Take(c.columns()), free.Take(c.columns()), free.Take(t)
	w.Tiles.Pack(isa.ColumnsOfB, q, qkv, 3*d, t, d)
	w.Tiles.Pack(isa.ColumnsOfB, g, dy, d, t, d)
	w.Tiles.Pack(isa.RowsOfA, k, qkv[d:], 3*d, t, d)
	w.Tiles.Pack(isa.RowsOfA, v, qkv[2*d:], 3*d, t, d)
	w.Tiles.Pack(isa.ColumnsOfA, kt, qkv[d:], 3*d, d, t)
	w.Tiles.Pack(isa.RowsOfB, qp, qkv, 3*d, d, t)
	w.Tiles.Pack(isa.RowsOfB, gp, dy, d, d, t)
	*a = c.args(first)
	s, dp, p := free.Take(c.keys*isa.TileSlots), free.Take(c.keys*isa.TileSlots), free.Take(c.keys*isa.TileSlots/2)
	pa, sa, sumQ := free.Take(c.panel()), free.Take(c.panel()), free.Take(c.queries*isa.TileSlots)
	a.LD, a.Dots, a.Out, a.SumK = 12*d, isa.Address(dots), isa.Address(free.Take(isa.TileSlots)), isa.Address(free.Take(2*c.blocks*isa.TileSlots))
	a.Row = c.keys * isa.TileBytes / 2
	isa.Fits(len(dqkv) >= t*3*d)
	for h := range c.heads {
		column, tiles := h*isa.HeadWidth, h*c.pairs*isa.TileSlots
		w.Prims.RowDots(dots, dy[column:], y[column:], t, isa.HeadWidth, d)
		a.K, a.V, a.Q, a.DY = half(k, h, halfLine), half(v, h, halfLine), half(q, h, halfLines), half(g, h, halfLines)
		a.Turned, a.QPairs, a.DyPairs = isa.Address(kt[tiles:]), isa.Address(qp[tiles:]), isa.Address(gp[tiles:])
		a.Mask, a.LogSum = c.mask(masks, h), isa.Address(logSum[h*t:][:t])
		a.Y, a.DK, a.DV = isa.Address(dqkv[column:]), isa.Address(dqkv[d+column:]), isa.Address(dqkv[2*d+column:])
		for a.Begin = 0; a.Begin < c.blocks; a.Begin = a.End {
			a.End = min(a.Begin+c.queries, c.blocks)
			a.SumQ = before(sumQ, a.Begin*isa.TileBytes)
			reached := int(first[a.Begin*isa.TileLines]) / isa.TileLines
			for a.Panel = reached / c.keys * c.keys; a.Panel < a.End && !w.Stopped(); a.Panel = a.PanelEnd {
				a.PanelEnd = min(a.Panel+c.keys, a.End)
				a.S, a.DP, a.P = before(s, a.Panel*isa.TileBytes), before(dp, a.Panel*isa.TileBytes), before(p, a.Panel*isa.TileBytes/2)
				skipped := a.Begin*a.Row + a.Panel*isa.TileBytes/2
				a.PA, a.SA = before(pa, skipped), before(sa, skipped)
				w.Tiles.AttendGrad(a)
			}
		}
	}
}

// before is where memory would begin that s is a part of, so many bytes into it.
func before(s []float32, bytes int) uintptr { return isa.Address(s) - uintptr(bytes) }
