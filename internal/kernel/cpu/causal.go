package cpu

import (
	"math"

	"haul/internal/kernel"
)

// Causal attention runs head by head over each instance, in blocks of rows. A block computes the
// columns from the first that its first row looks at, rounded down to a whole block, to its own
// last: what causality rules out is computed only within a block. What a reader could break: blocks
// begin at multiples of causalRows, which divides 32, so that the rows of a block have as many
// groups of dropout bits each.

const causalRows = 16

// causal is what both directions share.
type causal struct {
	t, d, heads, hd, ld int
	scale               float32
	drop                *dropper // nil: nothing is dropped
	each                int      // groups of bits of a head
	ones                []uint16 // the mask where nothing is dropped
}

func (b *binder) causal(instances, t, d, heads int, drop kernel.Drop) causal {
	c := causal{t: t, d: d, heads: heads, hd: d / heads, ld: (t + causalRows - 1) / causalRows * causalRows,
		scale: float32(1 / math.Sqrt(float64(d/heads)))}
	if drop.Rate > 0 {
		c.drop = b.dropper(drop, instances, heads*t, t, func(row int) int { return row%t/32 + 1 })
		c.each = groupsBefore(t)
	} else {
		c.ones = allOnes(c.ld)
	}
	return c
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

// causalBlock is one block of rows of a head.
type causalBlock struct {
	at, rows int // the first row; how many
	from, n  int // the first column; how many, of which the last may lie past the row's end
	k        int // columns that exist
	mask     []uint16
	words    int
	keep     float32
}

// block is the one whose first row is `at`, of head h.
func (c *causal) block(at, h int, first []int32, masks []uint16) causalBlock {
	k := causalBlock{at: at, rows: min(causalRows, c.t-at), from: int(first[at]) / causalRows * causalRows, mask: c.ones, keep: 1}
	k.n = at + causalRows - k.from
	k.k = min(k.n, c.t-k.from)
	if c.drop != nil {
		k.mask, k.words, k.keep = masks[2*(h*c.each+groupsBefore(at))+k.from/16:], 2*(at/32+1), c.drop.scale
	}
	return k
}

// scores multiplies the block's rows of x, `stride` apart, with the columns of turned, a transposed
// matrix of the head, into s.
func (c *causal) scores(w *worker, k *causalBlock, s, x []float32, stride int, turned []float32) {
	w.product(gemmArgs{c: ptr(s), a: ptr(x[k.at*stride:]), b: ptr(turned[k.from:]), m: k.rows, n: k.n, k: c.hd,
		ldc: c.ld, ars: stride, aks: 1, bks: c.ld, bps: panel})
}

func (b *binder) causalAttention(o *kernel.CausalAttention) func(*worker) {
	if b.attends(o.Y.Cols(), o.Heads) {
		return b.attendTiles(o)
	}
	y, logSum, qkv, first := newRef(b.r, o.Y), newRef(b.r, o.LogSum), newRef(b.r, o.QKV), newRef(b.r, o.First)
	instances, t, d := o.Dims()
	c := b.causal(instances, t, d, o.Heads, o.Drop)
	hd, ld := c.hd, c.ld
	b.need(d*ld+causalRows*ld, 0)
	return func(w *worker) {
		kt, s := w.scratch[:d*ld], w.scratch[d*ld:][:causalRows*ld]
		yb, lb, qb, fb := y.of(w), logSum.of(w), qkv.of(w), ints(first.of(w))
		for i := range instances {
			in, firsts, masks := qb[i*t*3*d:][:t*3*d], fb[i*t:][:t], c.masks(w, i)
			w.p.transpose(kt, ld, in[d:], 3*d, t, d)
			for h := range o.Heads {
				sums := lb[(i*o.Heads+h)*t:][:t]
				for at := 0; at < t && !w.stopped(); at += causalRows {
					k := c.block(at, h, firsts, masks)
					c.scores(w, &k, s, in[h*hd:], 3*d, kt[h*hd*ld:])
					w.p.softmaxCausal(s, sums[at:], firsts[at:], k.mask, k.rows, k.from, at-k.from+1, k.n, ld, k.words, c.scale, k.keep)
					w.product(gemmArgs{c: ptr(yb[(i*t+at)*d+h*hd:]), a: ptr(s), b: ptr(in[k.from*3*d+2*d+h*hd:]), m: k.rows, n: hd, k: k.k,
						ldc: d, ars: ld, aks: 1, bks: 3 * d, bps: panel})
				}
			}
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
	hd, ld := c.hd, c.ld
	square := (t + 1) * ld // rows are addressed from a column on, up to a whole row past it
	b.need(2*d*ld+2*square+t, 0)
	return func(w *worker) {
		kt, vt, rest := w.scratch[:d*ld], w.scratch[d*ld:][:d*ld], w.scratch[2*d*ld:]
		p, ds, dots := rest[:square], rest[square:][:square], rest[2*square:][:t]
		dqb, dyb, yb := dqkv.of(w), dy.of(w), y.of(w)
		lb, qb, fb := logSum.of(w), qkv.of(w), ints(first.of(w))
		for i := range instances {
			in, out := qb[i*t*3*d:][:t*3*d], dqb[i*t*3*d:][:t*3*d]
			firsts, masks := fb[i*t:][:t], c.masks(w, i)
			w.p.transpose(kt, ld, in[d:], 3*d, t, d)
			w.p.transpose(vt, ld, in[2*d:], 3*d, t, d)
			for h := range o.Heads {
				dyh, sums := dyb[i*t*d+h*hd:], lb[(i*o.Heads+h)*t:][:t]
				w.p.rowDots(dots, dyh, yb[i*t*d+h*hd:], t, hd, d)
				for at := 0; at < t && !w.stopped(); at += causalRows {
					k := c.block(at, h, firsts, masks)
					pb, db := p[at*ld+k.from:], ds[at*ld+k.from:]
					c.scores(w, &k, pb, in[h*hd:], 3*d, kt[h*hd*ld:])
					c.scores(w, &k, db, dyh, d, vt[h*hd*ld:])
					w.p.softmaxCausalGrad(db, pb, sums[at:], dots[at:], firsts[at:], k.mask, k.rows, k.from, at-k.from+1, k.n, ld, k.words, c.scale, k.keep)
					w.product(gemmArgs{c: ptr(out[at*3*d+h*hd:]), a: ptr(db), b: ptr(in[k.from*3*d+d+h*hd:]), m: k.rows, n: hd, k: k.k,
						ldc: 3 * d, ars: ld, aks: 1, bks: 3 * d, bps: panel})
				}
				for from := 0; from < t && !w.stopped(); from += causalRows {
					end := c.reached(from, firsts)
					columns := func(to, a, b []float32, stride int) {
						w.product(gemmArgs{c: ptr(to[from*3*d+h*hd:]), a: ptr(a[from*ld+from:]), b: ptr(b[from*stride:]), m: min(causalRows, t-from), n: hd, k: end - from,
							ldc: 3 * d, ars: 1, aks: ld, bks: stride, bps: panel})
					}
					columns(out[d:], ds, in[h*hd:], 3*d)
					columns(out[2*d:], p, dyh, d)
				}
			}
		}
	}
}

// reached is where the rows end whose blocks have columns at `from`.
func (c *causal) reached(from int, first []int32) int {
	end := from
	for end < c.t && int(first[end])/causalRows*causalRows <= from {
		end += causalRows
	}
	return min(end, c.t)
}
