package cuda

import (
	"haul/internal/cu"
	"haul/internal/kernel"
)

// A joined layer's passes and its attention may be done in parts of the batch, each on its share of
// the multiprocessors: while one part's pass waits for memory, another's attention computes. What a
// reader could break: an op in parts touches rows of its own part alone, in every tensor that
// another op in parts writes or reads, so that it waits for that part of the op before it
// (endings).

// batchParts is how many there are.
var batchParts = 2

// portion is instances or rows of a batch, from one on: those of a part, counted from 1; 0: all.
type portion struct{ part, from, count int }

// portions are the parts of so many instances of so many tokens, where the program has joined
// layers and each part has at least two tiles for every block.
func (b *binder) portions(batch, tokens int) []portion {
	if !b.layered || batchParts < 2 || batch < batchParts || batch*tokens < 2*layerRows*b.sms {
		return []portion{{0, 0, batch}}
	}
	var out []portion
	for i := range batchParts {
		from := i * batch / batchParts
		out = append(out, portion{i + 1, from, (i+1)*batch/batchParts - from})
	}
	return out
}

// rowsOf are the parts of a layer's rows: all at once where its attention takes long rows, whose
// kernels know no parts.
func (b *binder) rowsOf(l *layer) (out []portion) {
	batch, tokens, d := l.attention.Dims()
	s, err := newBF16Head(l.attention, tokens, d, l.attention.Heads)
	if err != nil || !s.short() {
		return []portion{{0, 0, batch * tokens}}
	}
	for _, p := range b.portions(batch, tokens) {
		out = append(out, portion{p.part, p.from * tokens, p.count * tokens})
	}
	return out
}

// grid is as many blocks as run at once beside those of other parts, each with a tile of rows at a
// time.
func (p portion) grid(b *binder) dim3 {
	blocks := b.sms
	if p.part != 0 {
		blocks = max(1, b.sms/batchParts)
	}
	return dim3{min(blocks, ceil(p.count, layerRows)), 1, 1}
}

// at is where its rows of a tensor begin, where their numbers do in one of a number a row, and
// where their masks do.
func (p portion) at(b *binder, t *kernel.Tensor) uint64 {
	if b.compact(t) {
		return b.address(t) + 2*uint64(p.from*t.Stride)
	}
	return b.address(t) + 4*uint64(p.from*t.Stride)
}

func (p portion) numbers(b *binder, t *kernel.Tensor) uint64 { return b.address(t) + 4*uint64(p.from) }

func (p portion) masks(b *binder, d kernel.Drop, masks *kernel.Tensor) uint64 {
	if d.Threshold() == 0 {
		return 0
	}
	return p.at(b, masks)
}

// blocks is where its rows begin in the first block of a matrix that lies as blocks of columns.
func (p portion) blocks(b *binder, t *kernel.Tensor) uint64 {
	return b.address(t) + 2*cu.MatrixColumns*uint64(p.from)
}

// stages describes its rows of a matrix, brought so many at a time; streamRows those of the
// stream's gradient, a warpgroup's at a time: in fp32 as pairs of 16-bit numbers, 32 columns of
// them.
func (p portion) stages(b *binder, t *kernel.Tensor, rows int) uint64 {
	return b.tiled(cu.Matrix{At: p.at(b, t), Rows: p.count, Cols: t.Cols(), Stride: t.Stride, Box: rows})
}

func (p portion) streamRows(b *binder, t *kernel.Tensor) uint64 {
	if b.compact(t) {
		return p.stages(b, t, layerGroupRows)
	}
	return b.tiled(cu.Matrix{At: p.at(b, t), Rows: p.count, Cols: 2 * t.Cols(), Stride: 2 * t.Stride, Box: layerGroupRows})
}

// endings are, for every op, the nodes that its followers wait for, of all of it and, where it is
// done in parts, of each.
type endings[N comparable] struct {
	all   [][]N
	parts []map[int][]N
}

func newEndings[N comparable](ops int) *endings[N] {
	return &endings[N]{make([][]N, ops), make([]map[int][]N, ops)}
}

// set is for an op, or a part of one: parts add up.
func (e *endings[N]) set(op, part int, nodes []N) {
	if part == 0 {
		e.all[op] = nodes
		return
	}
	if e.parts[op] == nil {
		e.parts[op] = map[int][]N{}
	}
	e.parts[op][part] = nodes
	e.all[op] = append(e.all[op], nodes...)
}

// wait is what an op, or a part of one, waits for by these dependencies.
func (e *endings[N]) wait(deps []int, part int) []N {
	ends := make([][]N, len(e.all))
	for _, j := range deps {
		ends[j] = e.all[j]
		if own, ok := e.parts[j][part]; ok {
			ends[j] = own
		}
	}
	return waitFor(deps, ends)
}
