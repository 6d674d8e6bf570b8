package run

import (
	"unsafe"

	"haul/internal/kernel"
	"haul/internal/kernel/cpu/isa"
	"haul/internal/kernel/host"
	"haul/internal/rng"
)

// Dropper makes the masks of one dropout, an instance at a time. Which calls of Philox an instance
// spends does not depend on the instance, so they are listed once. The masks, a bit an element,
// stay with the worker until its next shard, and what drops by them again, a gradient, reads them
// there.
type Dropper struct {
	draws, rounds []uint32 // a draw for each group of 32 columns, filled up to whole units
	threshold     uint32
	Scale         float32
	at            int  // where the masks of the shard's instances lie in the worker's bits
	drawn         bool // by an earlier op of the shard
}

// dropKey tells masks apart.
type dropKey struct {
	kernel.Drop
	rows, width int
	weights     bool // of attention: a query has those up to its own
}

// dropper lists the groups of an instance's rows.
func (b *Binder) dropper(d kernel.Drop, instances, rows, width int) *Dropper {
	return b.listed(dropKey{d, rows, width, false}, instances, func(row int) (draws []uint32) {
		for g := range (width + 31) / 32 {
			draws = append(draws, host.DropWord(d, row, g, width))
		}
		return draws
	})
}

// WeightDropper lists the groups of the weights of causal attention over t tokens: those that a
// query may look at.
func (b *Binder) WeightDropper(d kernel.Drop, instances, heads, t int) *Dropper {
	return b.listed(dropKey{d, heads * t, t, true}, instances, func(row int) (draws []uint32) {
		for g := range row%t/32 + 1 {
			draws = append(draws, host.DropWord(d, row, g, t))
		}
		return draws
	})
}

// listed is the dropper of a key, made once; draws are those of a row.
func (b *Binder) listed(key dropKey, instances int, draws func(row int) []uint32) *Dropper {
	if p, ok := b.drops[key]; ok {
		again := *p
		again.drawn = true
		return &again
	}
	p := &Dropper{rounds: isa.RoundKeys(key.Seed), threshold: key.Threshold(), Scale: key.Scale(), at: b.bits}
	for row := range key.rows {
		p.draws = append(p.draws, draws(row)...)
	}
	for len(p.draws)%isa.KeepUnit != 0 {
		p.draws = append(p.draws, 0)
	}
	b.bits += instances * len(p.draws)
	b.drops[key] = p
	return p
}

// Masks returns those of the shard's instance i.
func (p *Dropper) Masks(w *Worker, i int) []uint32 {
	m := w.bits[p.at+i*len(p.draws):][:len(p.draws)]
	if !p.drawn {
		index := w.First + uint64(w.Row+i)
		w.Prims.Keep(m, p.draws, p.rounds, uint32(index), uint32(index>>32), uint32(rng.Dropout), p.threshold)
	}
	return m
}

// rowDropper drops elements of rows that follow each other.
type rowDropper struct {
	*Dropper
	instances, nodes, cols, words int
}

func (b *Binder) RowDropper(d kernel.Drop, rows, cols int) rowDropper {
	instances := rows / d.Nodes
	return rowDropper{b.dropper(d, instances, d.Nodes, cols), instances, d.Nodes, cols, (cols + 31) / 32}
}

// Apply: y = residual + drop(x); residual may be nil, y may be x.
func (p *rowDropper) Apply(w *Worker, y, x, residual []float32) {
	each := p.nodes * p.cols
	for i := range p.instances {
		var r []float32
		if residual != nil {
			r = residual[i*each:][:each]
		}
		w.Prims.Drop(y[i*each:][:each], x[i*each:][:each], r, p.Masks(w, i), p.nodes, p.cols, p.words, p.Scale)
	}
}

// Halves views words as their 16-bit halves, low first.
func Halves(w []uint32) []uint16 {
	return unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(w))), 2*len(w))
}
