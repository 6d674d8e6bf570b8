package attention

import (
	"math"

	"haul/internal/kernel"
	"haul/internal/kernel/cpu/isa"
	"haul/internal/kernel/cpu/run"
)

// Causal attention runs head by head over each instance, in blocks of rows, and along a block by
// panels of columns, so that scores stay in cache however long a row is. A block computes the
// columns from the first that its first row looks at, rounded down to a whole block, to its own
// last: what causality rules out is computed only within a block. What a reader could break: blocks
// begin at multiples of CausalRows, which divides 32, so that the rows of a block have as many
// groups of dropout bits each.

const CausalRows = 16

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
	drop                *run.Dropper // nil: nothing is dropped
	each                int          // groups of bits of a head
	ones                []uint16     // the mask where nothing is dropped
	columns             int          // of a panel forward
	gradRows, gradCols  int          // of a panel of the gradient
}

func causalOf(b *run.Binder, instances, t, d, heads int, drop kernel.Drop) causal {
	c := newCausal(t, d, heads, causalColumns, gradRows, gradColumns)
	if drop.Rate > 0 {
		c.drop = b.WeightDropper(drop, instances, heads, t)
		c.each = groupsBefore(t)
	}
	return c
}

// newCausal cuts into panels of so many columns forward, and of so many rows and columns back:
// whole blocks all.
func newCausal(t, d, heads, columns, rows, cols int) causal {
	whole := (t + CausalRows - 1) / CausalRows * CausalRows
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
func (c *causal) masks(w *run.Worker, i int) []uint16 {
	if c.drop == nil {
		return nil
	}
	return run.Halves(c.drop.Masks(w, i))
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
	k := causalBlock{at: at, rows: min(CausalRows, c.t-at), from: max(low, reaches(first[at])), mask: c.ones, keep: 1}
	k.n = min(at+CausalRows, high) - k.from
	k.k = min(k.n, c.t-k.from)
	if c.drop != nil && k.n > 0 {
		k.mask, k.words, k.keep = masks[2*(h*c.each+groupsBefore(at))+k.from/16:], 2*(at/32+1), c.drop.Scale
	}
	return k
}

// reaches is the block of columns that a row looks at from its first on.
func reaches(first int32) int { return int(first) / CausalRows * CausalRows }

// scores multiplies the block's rows of x, `stride` apart, with the columns of turned, a transposed
// matrix of the head, into s, whose rows are ld apart.
func (c *causal) scores(w *run.Worker, k *causalBlock, s, x []float32, stride int, turned []float32, ld int) {
	w.Product(isa.GemmArgs{C: isa.Ptr(s), A: isa.Ptr(x[k.at*stride:]), B: isa.Ptr(turned[k.from:]), M: k.rows, N: k.n, K: c.hd,
		LDC: ld, ARS: stride, AKS: 1, BKS: c.ld, BPS: isa.Panel})
}

func causalAttention(b *run.Binder, o *kernel.CausalAttention) func(*run.Worker) {
	if attends(b, o.Y.Cols(), o.Heads) {
		return attendTiles(b, o)
	}
	y, logSum, qkv, first := b.Ref(o.Y), b.Ref(o.LogSum), b.Ref(o.QKV), b.Ref(o.First)
	instances, t, d := o.Dims()
	c := causalOf(b, instances, t, d, o.Heads, o.Drop)
	b.Need(c.needForward(), 0)
	return func(w *run.Worker) {
		yb, lb, qb, fb := y.Of(w), logSum.Of(w), qkv.Of(w), isa.Ints(first.Of(w))
		for i := range instances {
			c.forward(w, yb[i*t*d:][:t*d], lb[i*o.Heads*t:][:o.Heads*t], qb[i*t*3*d:][:t*3*d], fb[i*t:][:t], c.masks(w, i))
		}
	}
}

func (c *causal) needForward() int { return c.d*c.ld + CausalRows*(apart(c.columns)+c.hd+1) }

// forward attends in one instance.
func (c *causal) forward(w *run.Worker, y, logSum, qkv []float32, first []int32, masks []uint16) {
	t, d, hd, free := c.t, c.d, c.hd, run.Pieces(w.Scratch)
	ld := apart(c.columns)
	kt, s := free.Take(d*c.ld), free.Take(CausalRows*ld)
	part, partSums := free.Take(CausalRows*hd), free.Take(CausalRows)
	w.Prims.Transpose(kt, c.ld, qkv[d:], 3*d, t, d)
	for h := range c.heads {
		sums := logSum[h*t:][:t]
		for at := 0; at < t && !w.Stopped(); at += CausalRows {
			low := reaches(first[at]) / c.columns * c.columns
			for ; low < at+CausalRows; low += c.columns {
				k := c.block(at, h, low, low+c.columns, first, masks)
				to, stride, logs := y[at*d+h*hd:], d, sums[at:]
				more := int(first[at]) < k.from // the block has had a panel
				if more {
					to, stride, logs = part, hd, partSums
				}
				c.scores(w, &k, s, qkv[h*hd:], 3*d, kt[h*hd*c.ld:], ld)
				w.Prims.SoftmaxCausal(s, logs, first[at:], k.mask, k.rows, k.from, at-k.from+1, k.n, ld, k.words, c.scale, k.keep)
				w.Product(isa.GemmArgs{C: isa.Ptr(to), A: isa.Ptr(s), B: isa.Ptr(qkv[k.from*3*d+2*d+h*hd:]), M: k.rows, N: hd, K: k.k,
					LDC: stride, ARS: ld, AKS: 1, BKS: 3 * d, BPS: isa.Panel})
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

func causalAttentionGrad(b *run.Binder, o *kernel.CausalAttentionGrad) func(*run.Worker) {
	if attends(b, o.DY.Cols(), o.Heads) {
		return attendTilesGrad(b, o)
	}
	dqkv, dy, y := b.Ref(o.DQKV), b.Ref(o.DY), b.Ref(o.Y)
	logSum, qkv, first := b.Ref(o.LogSum), b.Ref(o.QKV), b.Ref(o.First)
	instances, t, d := o.Dims()
	c := causalOf(b, instances, t, d, o.Heads, o.Drop)
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

// square is a panel of the gradient, in floats: rows are addressed from a column on, up to a whole
// row past it.
func (c *causal) square() int { return (c.gradRows + 1) * apart(c.gradCols) }

func (c *causal) needGrad() int { return 2*c.d*c.ld + 2*c.square() + c.t }

// grad makes the gradient of one instance.
func (c *causal) grad(w *run.Worker, dqkv, dy, y, logSum, qkv []float32, first []int32, masks []uint16) {
	t, d, hd, free := c.t, c.d, c.hd, run.Pieces(w.Scratch)
	kt, vt, dots := free.Take(d*c.ld), free.Take(d*c.ld), free.Take(t)
	g := causalPanel{c: c, dqkv: dqkv, dy: dy, qkv: qkv, kt: kt, vt: vt, dots: dots, first: first, masks: masks,
		p: free.Take(c.square()), ds: free.Take(c.square()), ld: apart(c.gradCols)}
	w.Prims.Transpose(kt, c.ld, qkv[d:], 3*d, t, d)
	w.Prims.Transpose(vt, c.ld, qkv[2*d:], 3*d, t, d)
	for h := range c.heads {
		g.h, g.sums = h, logSum[h*t:][:t]
		w.Prims.RowDots(dots, dy[h*hd:], y[h*hd:], t, hd, d)
		for g.top = 0; g.top < t; g.top = g.bottom {
			g.bottom = min(g.top+c.gradRows, t)
			g.low = reaches(first[g.top]) / c.gradCols * c.gradCols
			for ; g.low < g.bottom && !w.Stopped(); g.low += c.gradCols {
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
func (g *causalPanel) rows(w *run.Worker) {
	c, d, hd := g.c, g.c.d, g.c.hd
	for at := g.top; at < g.bottom && !w.Stopped(); at += CausalRows {
		k := c.block(at, g.h, g.low, g.low+c.gradCols, g.first, g.masks)
		if k.n <= 0 {
			continue
		}
		begin := (at-g.top)*g.ld + k.from - g.low
		p, ds := g.p[begin:], g.ds[begin:]
		c.scores(w, &k, p, g.qkv[g.h*hd:], 3*d, g.kt[g.h*hd*c.ld:], g.ld)
		c.scores(w, &k, ds, g.dy[g.h*hd:], d, g.vt[g.h*hd*c.ld:], g.ld)
		w.Prims.SoftmaxCausalGrad(ds, p, g.sums[at:], g.dots[at:], g.first[at:], k.mask, k.rows, k.from, at-k.from+1, k.n, g.ld, k.words, c.scale, k.keep)
		a := isa.GemmArgs{C: isa.Ptr(g.dqkv[at*3*d+g.h*hd:]), A: isa.Ptr(ds), B: isa.Ptr(g.qkv[k.from*3*d+d+g.h*hd:]), M: k.rows, N: hd, K: k.k,
			LDC: 3 * d, ARS: g.ld, AKS: 1, BKS: 3 * d, BPS: isa.Panel}
		if int(g.first[at]) < k.from { // the block has had a panel
			a.R, a.LDR = a.C, a.LDC
		}
		w.Product(a)
	}
}

// columns adds to dK and dV what the panel's rows make of them. The first that look at a column are
// in the block of its own row.
func (g *causalPanel) columns(w *run.Worker) {
	c, d, hd := g.c, g.c.d, g.c.hd
	end := min(g.low+c.gradCols, g.bottom)
	for from := max(g.low, reaches(g.first[g.top])); from < end && !w.Stopped(); from += CausalRows {
		begin := max(from, g.top)
		depth := c.reached(begin, from, g.bottom, g.first) - begin
		at := (begin-g.top)*g.ld + from - g.low
		column := func(to, a, b []float32, stride int) {
			x := isa.GemmArgs{C: isa.Ptr(to[from*3*d+g.h*hd:]), A: isa.Ptr(a[at:]), B: isa.Ptr(b[begin*stride+g.h*hd:]), M: min(CausalRows, c.t-from), N: hd, K: depth,
				LDC: 3 * d, ARS: 1, AKS: g.ld, BKS: stride, BPS: isa.Panel}
			if from < g.top {
				x.R, x.LDR = x.C, x.LDC
			}
			w.Product(x)
		}
		column(g.dqkv[d:], g.ds, g.qkv, 3*d)
		column(g.dqkv[2*d:], g.p, g.dy, d)
	}
}

// reached is where the rows from begin on, short of end, stop whose blocks have columns at `from`.
func (c *causal) reached(begin, from, end int, first []int32) int {
	for begin < end && reaches(first[begin]) <= from {
		begin += CausalRows
	}
	return min(begin, end)
}
