package cpu

import (
	"math"

	"haul/internal/kernel"
)

// regions draws every row of the shard, those past the batch's end too: what reads them needs valid
// tokens, and their loss counts nothing.
func (b *binder) regions(o *kernel.Regions) (func(*worker), error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	index, labels, first, records := newRef(b.r, o.Index), newRef(b.r, o.Labels), newRef(b.r, o.First), newRef(b.r, o.Records)
	rows, t, width := o.First.Shape[0], o.Tokens, o.Width()
	return func(w *worker) {
		ib, lb, fb, hb := ints(index.of(w)), ints(labels.of(w)), ints(first.of(w)), ints(records.of(w))
		for i := range rows {
			o.Row(ib[i*t*width:][:t*width], lb[i*t*2:][:t*2], fb[i*t:][:t], hb, w.first+uint64(w.row+i))
		}
	}, nil
}

func (b *binder) embed(o *kernel.Embed) func(*worker) {
	y, index := newRef(b.r, o.Y), newRef(b.r, o.Index)
	tables := make([]ref, len(o.Tables))
	for f, t := range o.Tables {
		tables[f] = newRef(b.r, t)
	}
	rows, d, fields := o.Y.Rows(), o.Y.Cols(), o.Index.Cols()
	return func(w *worker) {
		yb, ib := y.of(w), ints(index.of(w))
		for m := range rows {
			row, empty := yb[m*d:][:d], true
			for f, i := range ib[m*fields:][:len(tables)] {
				switch {
				case i < 0:
				case empty:
					copy(row, tables[f].of(w)[int(i)*d:][:d])
					empty = false
				default:
					w.p.add(row, tables[f].of(w)[int(i)*d:][:d])
				}
			}
			if empty {
				clear(row)
			}
		}
	}
}

// embedGrad leaves out the rows past the batch's end, which would add zeros.
func (b *binder) embedGrad(o *kernel.EmbedGrad) func(*worker) {
	dy, index := newRef(b.r, o.DY), newRef(b.r, o.Index)
	tables, into := make([]gradRef, len(o.DTables)), make([][]float32, len(o.DTables)*b.r.dev.workers)
	for f, t := range o.DTables {
		tables[f] = b.grad(t)
	}
	each, d, fields := o.DY.Rows()/o.DY.Shape[0], o.DY.Cols(), o.Index.Cols()
	return func(w *worker) {
		db, ib, sums := dy.of(w), ints(index.of(w)), into[w.id*len(tables):][:len(tables)]
		for f := range tables {
			sums[f] = tables[f].start(w)
		}
		for m := range w.active * each {
			for f, i := range ib[m*fields:][:len(tables)] {
				if i >= 0 && sums[f] != nil {
					w.p.add(sums[f][int(i)*d:][:d], db[m*d:][:d])
				}
			}
		}
	}
}

// rotate reads the turns of every position from a table: sines and cosines of a head's pairs.
func (b *binder) rotate(o *kernel.Rotate) func(*worker) {
	y, x, index := newRef(b.r, o.Y), newRef(b.r, o.X), newRef(b.r, o.Index)
	rows, columns, fields := o.X.Rows(), o.X.Cols(), o.Index.Cols()
	width, turned := o.Dims()
	half := width / 2
	turns := b.turns(o, width)
	sign := float32(1)
	if o.Back {
		sign = -1
	}
	return func(w *worker) {
		yb, xb, ib := y.of(w), x.of(w), ints(index.of(w))
		for m := range rows {
			from, to := xb[m*columns:][:columns], yb[m*columns:][:columns]
			position := int(ib[(m+1)*fields-1])
			if position < 0 {
				copy(to, from)
				continue
			}
			copy(to[turned:], from[turned:])
			cos, sin := turns[position*2*half:][:half], turns[(position*2+1)*half:][:half]
			for head := 0; head < turned; head += width {
				x1, x2 := from[head:][:half], from[head+half:][:half]
				y1, y2 := to[head:][:half], to[head+half:][:half]
				for j, c := range cos {
					s := sign * sin[j]
					y1[j], y2[j] = float32(x1[j]*c)-float32(x2[j]*s), float32(x2[j]*c)+float32(x1[j]*s)
				}
				if width%2 > 0 {
					to[head+width-1] = from[head+width-1]
				}
			}
		}
	}
}

// turns are the cosines of each position's angles, then the sines; ops of one shape share them.
func (b *binder) turns(o *kernel.Rotate, width int) []float32 {
	if t, ok := b.rotations[width]; ok && len(t) >= o.Positions*width/2*2 {
		return t
	}
	half := width / 2
	t := make([]float32, o.Positions*2*half)
	for position := range o.Positions {
		for j := range half {
			sin, cos := math.Sincos(o.Angle(position, j, width))
			t[position*2*half+j], t[(position*2+1)*half+j] = float32(cos), float32(sin)
		}
	}
	b.rotations[width] = t
	return t
}

// spread copies runs of columns: queries in one, then each head of keys and values once for every
// head of its group.
func (b *binder) spread(o *kernel.Spread) func(*worker) {
	y, x := newRef(b.r, o.Y), newRef(b.r, o.X)
	rows, wide, narrow := o.X.Rows(), o.Y.Cols(), o.X.Cols()
	d, group := wide/3, o.Heads/o.KVHeads
	width := d / o.Heads
	return func(w *worker) {
		yb, xb := y.of(w), x.of(w)
		for m := range rows {
			from, to := xb[m*narrow:][:narrow], yb[m*wide:][:wide]
			copy(to, from[:d])
			to = to[d:]
			for from = from[d:]; len(from) > 0; from = from[width:] {
				for range group {
					copy(to, from[:width])
					to = to[width:]
				}
			}
		}
	}
}

// spreadGrad adds up each group's copies in the order of its heads.
func (b *binder) spreadGrad(o *kernel.SpreadGrad) func(*worker) {
	dx, dy := newRef(b.r, o.DX), newRef(b.r, o.DY)
	rows, wide, narrow := o.DX.Rows(), o.DY.Cols(), o.DX.Cols()
	d, group := wide/3, o.Heads/o.KVHeads
	width := d / o.Heads
	return func(w *worker) {
		xb, yb := dx.of(w), dy.of(w)
		for m := range rows {
			to, from := xb[m*narrow:][:narrow], yb[m*wide:][:wide]
			copy(to, from[:d])
			from = from[d:]
			for to = to[d:]; len(to) > 0; to = to[width:] {
				copy(to[:width], from)
				for from = from[width:]; len(from)%(group*width) > 0; from = from[width:] {
					w.p.add(to[:width], from[:width])
				}
			}
		}
	}
}
