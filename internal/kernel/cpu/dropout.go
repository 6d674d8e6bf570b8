package cpu

import (
	"unsafe"

	"haul/internal/kernel"
	"haul/internal/rng"
)

// dropper makes the masks of one dropout, an instance at a time. Which calls of Philox an instance spends does not depend on the instance, so
// they are listed once; nothing else is kept, and a gradient draws the same mask again.
type dropper struct {
	draws, rounds []uint32 // a draw for each group of 32 columns, filled up to whole units
	threshold     uint32
	scale         float32
}

// dropper lists the groups of an instance's rows: groups(row) of each, from the left. The masks go to the worker's bits, in that order.
func (b *binder) dropper(d kernel.Drop, rows, width int, groups func(row int) int) *dropper {
	p := &dropper{rounds: roundKeys(d.Seed), threshold: d.Threshold(), scale: d.Scale()}
	for row := range rows {
		for g := range groups(row) {
			draw, _, _ := d.Call(row, 32*g, width)
			p.draws = append(p.draws, draw)
		}
	}
	for len(p.draws)%keepUnit != 0 {
		p.draws = append(p.draws, 0)
	}
	b.bits = max(b.bits, len(p.draws))
	return p
}

// masks draws those of the shard's instance i.
func (p *dropper) masks(w *worker, i int) []uint32 {
	index := w.first + uint64(w.row+i)
	w.p.keep(w.bits, p.draws, p.rounds, uint32(index), uint32(index>>32), uint32(rng.Dropout), p.threshold)
	return w.bits
}

// rowDropper drops elements of rows that follow each other.
type rowDropper struct {
	*dropper
	instances, nodes, cols, words int
}

func (b *binder) rowDropper(d kernel.Drop, rows, cols int) rowDropper {
	words := (cols + 31) / 32
	return rowDropper{b.dropper(d, d.Nodes, cols, func(int) int { return words }), rows / d.Nodes, d.Nodes, cols, words}
}

// apply: y = residual + drop(x); residual may be nil, y may be x.
func (p *rowDropper) apply(w *worker, y, x, residual []float32) {
	each := p.nodes * p.cols
	for i := range p.instances {
		var r []float32
		if residual != nil {
			r = residual[i*each:][:each]
		}
		w.p.drop(y[i*each:][:each], x[i*each:][:each], r, p.masks(w, i), p.nodes, p.cols, p.words, p.scale)
	}
}

func (b *binder) dropout(o *kernel.Dropout) func(*worker) {
	y, x, res := newRef(b.r, o.Y), newRef(b.r, o.X), newRef(b.r, o.Residual)
	if o.Rate == 0 {
		return func(w *worker) {
			yb := y.of(w)
			copy(yb, x.of(w))
			w.p.add(yb, res.of(w))
		}
	}
	drop := b.rowDropper(o.Drop, o.X.Rows(), o.X.Cols())
	return func(w *worker) { drop.apply(w, y.of(w), x.of(w), res.of(w)) }
}

// halves views words as their 16-bit halves, low first.
func halves(w []uint32) []uint16 {
	return unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(w))), 2*len(w))
}
