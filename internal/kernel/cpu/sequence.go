package cpu

import (
	"math"

	"haul/internal/kernel"
	"haul/internal/kernel/host"
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
			host.Row(&o.RegionSpec, ib[i*t*width:][:t*width], lb[i*t*2:][:t*2], fb[i*t:][:t], hb, w.first+uint64(w.row+i))
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

// spread copies what heads share to every head of a group.
func (b *binder) spread(o *kernel.Spread) func(*worker) {
	return b.shared(o.Y, o.X, o.Heads, o.KVHeads, func(_ *worker, copies, own []float32) {
		for ; len(copies) > 0; copies = copies[len(own):] {
			copy(copies, own)
		}
	})
}

// spreadGrad adds up a group's copies in the order of its heads.
func (b *binder) spreadGrad(o *kernel.SpreadGrad) func(*worker) {
	return b.shared(o.DY, o.DX, o.Heads, o.KVHeads, func(w *worker, copies, own []float32) {
		copy(own, copies)
		for copies = copies[len(own):]; len(copies) > 0; copies = copies[len(own):] {
			w.p.add(own, copies[:len(own)])
		}
	})
}

// shared calls do for each head of keys and values of a row, with its own columns in narrow and its
// copies in wide, one after the other. A row's queries come first, all at once: they have one copy.
func (b *binder) shared(wide, narrow *kernel.Tensor, heads, kv int, do func(w *worker, copies, own []float32)) func(*worker) {
	y, x := newRef(b.r, wide), newRef(b.r, narrow)
	rows, columns, kept := wide.Rows(), wide.Cols(), narrow.Cols()
	d, group := columns/3, heads/kv
	width := d / heads
	return func(w *worker) {
		yb, xb := y.of(w), x.of(w)
		for m := range rows {
			copies, own := yb[m*columns:][:columns], xb[m*kept:][:kept]
			do(w, copies[:d], own[:d])
			copies, own = copies[d:], own[d:]
			for ; len(own) > 0; copies, own = copies[group*width:], own[width:] {
				do(w, copies[:group*width], own[:width])
			}
		}
	}
}
