package cpu

import (
	"math"

	"haul/internal/kernel"
)

// Causal attention runs head by head over each instance, in blocks of rows, and along a block by
// panels of columns, so that scores stay in cache however long a row is. A block computes the
// columns from the first that its first row looks at, rounded down to a whole block, to its own
// last: what causality rules out is computed only within a block. What a reader could break: blocks
// begin at multiples of causalRows, which divides 32, so that the rows of a block have as many
// groups of dropout bits each.

const causalRows = 16

// Panels, whole blocks of columns: a block's scores take 32 KiB forward, and as much with their
// gradient; what a panel of the gradient leaves for the columns' own takes a quarter of L2.
const (
	causalColumns = 512
	gradRows      = 256
	gradColumns   = 256
)

// causal is what both directions share.
type causal struct {
	t, d, heads, hd, ld int
	scale               float32
	drop                *dropper // nil: nothing is dropped
	each                int      // groups of bits of a head
	ones                []uint16 // the mask where nothing is dropped
	columns             int      // of a panel forward
	gradRows, gradCols  int      // of a panel of the gradient
}

func (b *binder) causal(instances, t, d, heads int, drop kernel.Drop) causal {
	c := newCausal(t, d, heads, causalColumns, gradRows, gradColumns)
	if drop.Rate > 0 {
		c.drop = b.weightDropper(drop, instances, heads, t)
		c.each = groupsBefore(t)
	}
	return c
}

// newCausal cuts into panels of so many columns forward, and of so many rows and columns back:
// whole blocks all.
func newCausal(t, d, heads, columns, rows, cols int) causal {
	whole := (t + causalRows - 1) / causalRows * causalRows
	return causal{t: t, d: d, heads: heads, hd: d / heads, ld: apart(whole), scale: float32(1 / math.Sqrt(float64(d/heads))), ones: allOnes(whole),
		columns: min(columns, whole), gradRows: min(rows, whole), gradCols: min(cols, whole)}
}

// apart is a distance of at least n floats, whole lines of cache, between rows that are read beside
// each other: sixteen of them a power of two apart would share a set of L1.
func apart(n int) int {
	if n >= 256 && n/16%2 == 0 {
		return n + 16
	}
	return n
}

// allOnes is a mask that keeps n columns.
func allOnes(n int) []uint16 {
	m := make([]uint16, (n+15)/16)
	for i := range m {
		m[i] = 0xffff
	}
	return m
}

// groupsBefore is how many groups of 32 columns the rows before `row` have, of which row i has i/32
// + 1.
func groupsBefore(row int) int {
	band := row / 32
	return 16*band*(band+1) + (row-32*band)*(band+1)
}

// masks draws the dropout bits of instance i.
func (c *causal) masks(w *worker, i int) []uint16 {
	if c.drop == nil {
		return nil
	}
	return halves(c.drop.masks(w, i))
}

// causalBlock is one block of rows of a head in a panel.
type causalBlock struct {
	at, rows int // the first row; how many
	from, n  int // the first column; how many, of which the last may lie past the row's end
	k        int // columns that exist
	mask     []uint16
	words    int
	keep     float32
}

// block is the one whose first row is `at`, of head h, in the panel of columns from low up to, not
// including, high. There are none where n is not positive.
func (c *causal) block(at, h, low, high int, first []int32, masks []uint16) causalBlock {
	k := causalBlock{at: at, rows: min(causalRows, c.t-at), from: max(low, reaches(first[at])), mask: c.ones, keep: 1}
	k.n = min(at+causalRows, high) - k.from
	k.k = min(k.n, c.t-k.from)
	if c.drop != nil && k.n > 0 {
		k.mask, k.words, k.keep = masks[2*(h*c.each+groupsBefore(at))+k.from/16:], 2*(at/32+1), c.drop.scale
	}
	return k
}

// reaches is the block of columns that a row looks at from its first on.
func reaches(first int32) int { return int(first) / causalRows * causalRows }

// scores multiplies the block's rows of x, `stride` apart, with the columns of turned, a transposed
// matrix of the head, into s, whose rows are ld apart.
func (c *causal) scores(w *worker, k *causalBlock, s, x []float32, stride int, turned []float32, ld int) {
	w.product(gemmArgs{c: ptr(s), a: ptr(x[k.at*stride:]), b: ptr(turned[k.from:]), m: k.rows, n: k.n, k: c.hd,
		ldc: ld, ars: stride, aks: 1, bks: c.ld, bps: panel})
}

func (b *binder) causalAttention(o *kernel.CausalAttention) func(*worker) {
	if b.attends(o.Y.Cols(), o.Heads) {
		return b.attendTiles(o)
	}
	y, logSum, qkv, first := newRef(b.r, o.Y), newRef(b.r, o.LogSum), newRef(b.r, o.QKV), newRef(b.r, o.First)
	instances, t, d := o.Dims()
	c := b.causal(instances, t, d, o.Heads, o.Drop)
	b.need(c.needForward(), 0)
	return func(w *worker) {
		yb, lb, qb, fb := y.of(w), logSum.of(w), qkv.of(w), ints(first.of(w))
		for i := range instances {
			c.forward(w, yb[i*t*d:][:t*d], lb[i*o.Heads*t:][:o.Heads*t], qb[i*t*3*d:][:t*3*d], fb[i*t:][:t], c.masks(w, i))
		}
	}
}

func (c *causal) needForward() int { return c.d*c.ld + causalRows*(apart(c.columns)+c.hd+1) }

// forward attends in one instance.
func (c *causal) forward(w *worker, y, logSum, qkv []float32, first []int32, masks []uint16) {
	t, d, hd, free := c.t, c.d, c.hd, pieces(w.scratch)
	ld := apart(c.columns)
	kt, s := free.take(d*c.ld), free.take(causalRows*ld)
	part, partSums := free.take(causalRows*hd), free.take(causalRows)
	w.p.transpose(kt, c.ld, qkv[d:], 3*d, t, d)
	for h := range c.heads {
		sums := logSum[h*t:][:t]
		for at := 0; at < t && !w.stopped(); at += causalRows {
			low := reaches(first[at]) / c.columns * c.columns
			for ; low < at+causalRows; low += c.columns {
				k := c.block(at, h, low, low+c.columns, first, masks)
				to, stride, logs := y[at*d+h*hd:], d, sums[at:]
				more := int(first[at]) < k.from // the block has had a panel
				if more {
					to, stride, logs = part, hd, partSums
				}
				c.scores(w, &k, s, qkv[h*hd:], 3*d, kt[h*hd*c.ld:], ld)
				w.p.softmaxCausal(s, logs, first[at:], k.mask, k.rows, k.from, at-k.from+1, k.n, ld, k.words, c.scale, k.keep)
				w.product(gemmArgs{c: ptr(to), a: ptr(s), b: ptr(qkv[k.from*3*d+2*d+h*hd:]), m: k.rows, n: hd, k: k.k,
					ldc: stride, ars: ld, aks: 1, bks: 3 * d, bps: panel})
				if more {
					c.join(y[at*d+h*hd:], sums[at:], part, partSums, first[at:], &k)
				}
			}
		}
	}
}

// join adds what a further panel gave to a block's results: both are weighted by their shares of
// the sum. A row that begins in the panel, or past it, had nothing before.
func (c *causal) join(y, sums, part, partSums []float32, first []int32, k *causalBlock) {
	for r := range k.rows {
		row, add := y[r*c.d:][:c.hd], part[r*c.hd:][:c.hd]
		if int(first[r]) >= k.from {
			copy(row, add)
			sums[r] = partSums[r]
			continue
		}
		was, now := float64(sums[r]), float64(partSums[r])
		top := max(was, now)
		a, b := math.Exp(was-top), math.Exp(now-top)
		sums[r] = float32(top + math.Log(a+b))
		wa, wb := float32(a/(a+b)), float32(b/(a+b))
		for j, v := range add {
			row[j] = float32(wa*row[j]) + float32(wb*v)
		}
	}
}

func (b *binder) causalAttentionGrad(o *kernel.CausalAttentionGrad) func(*worker) {
	if b.attends(o.DY.Cols(), o.Heads) {
		return b.attendTilesGrad(o)
	}
	dqkv, dy, y := newRef(b.r, o.DQKV), newRef(b.r, o.DY), newRef(b.r, o.Y)
	logSum, qkv, first := newRef(b.r, o.LogSum), newRef(b.r, o.QKV), newRef(b.r, o.First)
	instances, t, d := o.Dims()
	c := b.causal(instances, t, d, o.Heads, o.Drop)
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

// square is a panel of the gradient, in floats: rows are addressed from a column on, up to a whole
// row past it.
func (c *causal) square() int { return (c.gradRows + 1) * apart(c.gradCols) }

func (c *causal) needGrad() int { return 2*c.d*c.ld + 2*c.square() + c.t }

// grad makes the gradient of one instance.
func (c *causal) grad(w *worker, dqkv, dy, y, logSum, qkv []float32, first []int32, masks []uint16) {
	t, d, hd, free := c.t, c.d, c.hd, pieces(w.scratch)
	kt, vt, dots := free.take(d*c.ld), free.take(d*c.ld), free.take(t)
	g := causalPanel{c: c, dqkv: dqkv, dy: dy, qkv: qkv, kt: kt, vt: vt, dots: dots, first: first, masks: masks,
		p: free.take(c.square()), ds: free.take(c.square()), ld: apart(c.gradCols)}
	w.p.transpose(kt, c.ld, qkv[d:], 3*d, t, d)
	w.p.transpose(vt, c.ld, qkv[2*d:], 3*d, t, d)
	for h := range c.heads {
		g.h, g.sums = h, logSum[h*t:][:t]
		w.p.rowDots(dots, dy[h*hd:], y[h*hd:], t, hd, d)
		for g.top = 0; g.top < t; g.top = g.bottom {
			g.bottom = min(g.top+c.gradRows, t)
			g.low = reaches(first[g.top]) / c.gradCols * c.gradCols
			for ; g.low < g.bottom && !w.stopped(); g.low += c.gradCols {
				g.rows(w)
				g.columns(w)
			}
		}
	}
}

// causalPanel is a panel of the gradient of a head: rows from top to bottom, gradCols columns from
// low on.
type causalPanel struct {
	c                       *causal
	dqkv, dy, qkv, kt, vt   []float32
	dots, sums, p, ds       []float32
	first                   []int32
	masks                   []uint16
	ld, h, top, bottom, low int
}

// rows makes probabilities and gradients of scores of the panel, and adds to dQ.
func (g *causalPanel) rows(w *worker) {
	c, d, hd := g.c, g.c.d, g.c.hd
	for at := g.top; at < g.bottom && !w.stopped(); at += causalRows {
		k := c.block(at, g.h, g.low, g.low+c.gradCols, g.first, g.masks)
		if k.n <= 0 {
			continue
		}
		begin := (at-g.top)*g.ld + k.from - g.low
		p, ds := g.p[begin:], g.ds[begin:]
		c.scores(w, &k, p, g.qkv[g.h*hd:], 3*d, g.kt[g.h*hd*c.ld:], g.ld)
		c.scores(w, &k, ds, g.dy[g.h*hd:], d, g.vt[g.h*hd*c.ld:], g.ld)
		w.p.softmaxCausalGrad(ds, p, g.sums[at:], g.dots[at:], g.first[at:], k.mask, k.rows, k.from, at-k.from+1, k.n, g.ld, k.words, c.scale, k.keep)
		a := gemmArgs{c: ptr(g.dqkv[at*3*d+g.h*hd:]), a: ptr(ds), b: ptr(g.qkv[k.from*3*d+d+g.h*hd:]), m: k.rows, n: hd, k: k.k,
			ldc: 3 * d, ars: g.ld, aks: 1, bks: 3 * d, bps: panel}
		if int(g.first[at]) < k.from { // the block has had a panel
			a.r, a.ldr = a.c, a.ldc
		}
		w.product(a)
	}
}

// columns adds to dK and dV what the panel's rows make of them. The first that look at a column are
// in the block of its own row.
func (g *causalPanel) columns(w *worker) {
	c, d, hd := g.c, g.c.d, g.c.hd
	end := min(g.low+c.gradCols, g.bottom)
	for from := max(g.low, reaches(g.first[g.top])); from < end && !w.stopped(); from += causalRows {
		begin := max(from, g.top)
		depth := c.reached(begin, from, g.bottom, g.first) - begin
		at := (begin-g.top)*g.ld + from - g.low
		column := func(to, a, b []float32, stride int) {
			x := gemmArgs{c: ptr(to[from*3*d+g.h*hd:]), a: ptr(a[at:]), b: ptr(b[begin*stride+g.h*hd:]), m: min(causalRows, c.t-from), n: hd, k: depth,
				ldc: 3 * d, ars: 1, aks: g.ld, bks: stride, bps: panel}
			if from < g.top {
				x.r, x.ldr = x.c, x.ldc
			}
			w.product(x)
		}
		column(g.dqkv[d:], g.ds, g.qkv, 3*d)
		column(g.dqkv[2*d:], g.p, g.dy, d)
	}
}

// reached is where the rows from begin on, short of end, stop whose blocks have columns at `from`.
func (c *causal) reached(begin, from, end int, first []int32) int {
	for begin < end && reaches(first[begin]) <= from {
		begin += causalRows
	}
	return min(begin, end)
}
