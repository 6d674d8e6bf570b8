package cpu

import "haul/internal/kernel"

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
	rows, d := o.Y.Rows(), o.Y.Cols()
	return func(w *worker) {
		yb, ib := y.of(w), ints(index.of(w))
		for m := range rows {
			row, empty := yb[m*d:][:d], true
			for f, i := range ib[m*len(tables):][:len(tables)] {
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
	each, d := o.DY.Rows()/o.DY.Shape[0], o.DY.Cols()
	return func(w *worker) {
		db, ib, sums := dy.of(w), ints(index.of(w)), into[w.id*len(tables):][:len(tables)]
		for f := range tables {
			sums[f] = tables[f].start(w)
		}
		for m := range w.active * each {
			for f, i := range ib[m*len(tables):][:len(tables)] {
				if i >= 0 && sums[f] != nil {
					w.p.add(sums[f][int(i)*d:][:d], db[m*d:][:d])
				}
			}
		}
	}
}
