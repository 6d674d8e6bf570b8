package bind

import (
	"haul/internal/cu"
	"haul/internal/kernel"
)

// A joined layer's passes and its attention may be done in parts of the batch, each on its share of
// the multiprocessors: while one part's pass waits for memory, another's attention computes. What a
// reader could break: an op in parts touches rows of its own part alone, in every tensor that
// another op in parts writes or reads, so that it waits for that part of the op before it
// (endings).

// Rows of the passes over a joined layer.
const (
	LayerRows      = 128 // of a block
	LayerGroupRows = 64  // of a warpgroup
)

// BatchParts is how many there are.
var BatchParts = 2

// Portion is instances or rows of a batch, from one on: those of a part, counted from 1; 0: all.
type Portion struct{ Part, From, Count int }

// Portions are the parts of so many instances of so many tokens, where the program has joined
// layers and each part has at least two tiles for every block.
func (b *Binder) Portions(batch, tokens int) []Portion {
	if !b.Layered || BatchParts < 2 || batch < BatchParts || batch*tokens < 2*LayerRows*b.SMs {
		return []Portion{{0, 0, batch}}
	}
	var out []Portion
	for i := range BatchParts {
		from := i * batch / BatchParts
		out = append(out, Portion{i + 1, from, (i+1)*batch/BatchParts - from})
	}
	return out
}

// Grid is as many blocks as run at once beside those of other parts, each with a tile of rows at a
// time.
func (p Portion) Grid(b *Binder) Dim3 {
	blocks := b.SMs
	if p.Part != 0 {
		blocks = max(1, b.SMs/BatchParts)
	}
	return Dim3{min(blocks, Ceil(p.Count, LayerRows)), 1, 1}
}

// At is where its rows of a tensor begin, where their numbers do in one of a number a row, and
// where their masks do.
func (p Portion) At(b *Binder, t *kernel.Tensor) uint64 {
	if b.Compact(t) {
		return b.Address(t) + 2*uint64(p.From*t.Stride)
	}
	return b.Address(t) + 4*uint64(p.From*t.Stride)
}

func (p Portion) Numbers(b *Binder, t *kernel.Tensor) uint64 { return b.Address(t) + 4*uint64(p.From) }

func (p Portion) Masks(b *Binder, d kernel.Drop, masks *kernel.Tensor) uint64 {
	if d.Threshold() == 0 {
		return 0
	}
	return p.At(b, masks)
}

// Blocks is where its rows begin in the first block of a matrix that lies as blocks of columns.
func (p Portion) Blocks(b *Binder, t *kernel.Tensor) uint64 {
	return b.Address(t) + 2*cu.MatrixColumns*uint64(p.From)
}

// Stages describes its rows of a matrix, brought so many at a time; streamRows those of the
// stream's gradient, a warpgroup's at a time: in fp32 as pairs of 16-bit numbers, 32 columns of
// them.
func (p Portion) Stages(b *Binder, t *kernel.Tensor, rows int) uint64 {
	return b.Tiled(cu.Matrix{At: p.At(b, t), Rows: p.Count, Cols: t.Cols(), Stride: t.Stride, Box: rows})
}

func (p Portion) StreamRows(b *Binder, t *kernel.Tensor) uint64 {
	if b.Compact(t) {
		return p.Stages(b, t, LayerGroupRows)
	}
	return b.Tiled(cu.Matrix{At: p.At(b, t), Rows: p.Count, Cols: 2 * t.Cols(), Stride: 2 * t.Stride, Box: LayerGroupRows})
}
