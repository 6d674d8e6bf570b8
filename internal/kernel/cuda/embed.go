package cuda

import (
	"fmt"

	"haul/internal/kernel"
)

const (
	embedTables = 8  // most tables of src/sequence/embed.cu
	embedStage  = 16 // its stage
	embedRing   = 4  // its ring
)

func (b *binder) embed(o *kernel.Embed) ([]launch, error) {
	if err := fits(o, o.Index); err != nil {
		return nil, err
	}
	rows, d := o.Y.Rows(), o.Y.Cols()
	name, n := "embed1", rows*d
	if b.vectors(append([]*kernel.Tensor{o.Y}, o.Tables...)...) {
		name, n = "embed4", n/4
	}
	args := append([]any{b.addr(o.Y), b.addr(o.Index)}, b.tables(o.Tables)...)
	l := each(name, n, append(args, i32(o.Index.Cols()), i32(rows), i32(d))...)
	l.module = "embed"
	return []launch{l}, dense(o, o.Y)
}

// fits refuses more fields than a kernel has parameters for tables. The last ones may have none.
func fits(op kernel.Op, index *kernel.Tensor) error {
	if n := index.Cols(); n > embedTables {
		return fmt.Errorf("%s: %d tables, the GPU sums at most %d", op.Kind(), n, embedTables)
	}
	return nil
}

// tables are the addresses of the tables, 0 for those that are not there.
func (b *binder) tables(ts []*kernel.Tensor) []any {
	out := make([]any, embedTables)
	for i := range out {
		out[i] = uint64(0)
		if i < len(ts) {
			out[i] = b.addr(ts[i])
		}
	}
	return out
}

// embedShape is how blocks share out the gradient of the tables.
type embedShape struct {
	vec          int // columns of a thread
	width, tiles int // columns of a tile, tiles
	keep, parts  int // rows of tables that a block keeps, parts of all rows
	blocks       int // a lane's
	shared       int // bytes
}

// embedShape keeps whole tables of 128 columns where they fit into shared memory, else fewer
// columns, else fewer rows.
func (b *binder) embedShape(rows, d, all, fields, vec int) embedShape {
	s := embedShape{vec: vec, width: 128}
	stages := func() int { return 4 * embedRing * embedStage * (s.width + fields) }
	for s.width > 32 && (s.width/2 >= d || 4*all*s.width+stages() > b.maxShared) {
		s.width /= 2
	}
	s.tiles = ceil(d, s.width)
	s.keep = min(all, (b.maxShared-stages())/(4*s.width))
	s.parts = ceil(all, s.keep)
	s.shared = 4*s.keep*s.width + stages()
	perSM := max(1, min(b.maxShared/s.shared, 2048/(fields*s.width/vec)))
	s.blocks = max(1, min(perSM*b.sms/(b.lanes*s.tiles*s.parts), ceil(ceil(rows, b.lanes), embedStage)))
	return s
}

// embedGrad makes tables of every block's tokens, then adds them up into the lanes. A table that
// wants no gradient has no rows there.
func (b *binder) embedGrad(o *kernel.EmbedGrad) ([]launch, error) {
	if err := fits(o, o.Index); err != nil {
		return nil, err
	}
	d, fields := o.DY.Cols(), o.Index.Cols()
	starts, all := make([]any, embedTables), 0
	var adds uint32
	for i := range starts {
		starts[i] = i32(all)
		if i < len(o.DTables) && o.DTables[i] != nil {
			all += o.DTables[i].Shape[0]
			adds |= b.adds(o.DTables[i]) << i
		}
	}
	if all == 0 {
		return nil, nil
	}
	tables := b.embedTables
	if b.embedsByProducts(o, all) {
		tables = b.embedProducts
	}
	pass, blocks := tables(o, starts, all)
	lanes := append(append(b.tables(o.DTables), starts...), pass.args[0])
	return []launch{pass, {module: "embed", kernel: "embed_grad_lanes", grid: dim3{ceil(all*d, 256), b.lanes, 1}, block: dim3{256, 1, 1},
		args: append(lanes, i32(fields), i32(d), i32(all), i32(blocks), i32(b.laneSize), adds)}}, dense(o, o.DY)
}

// embedTables keeps a block's tables in shared memory. It says how many blocks a lane has.
func (b *binder) embedTables(o *kernel.EmbedGrad, starts []any, all int) (launch, int) {
	rows, d, fields, vec := o.DY.Rows(), o.DY.Cols(), o.Index.Cols(), 1
	if b.vectors(o.DY) {
		vec = 4
	}
	s := b.embedShape(rows, d, all, fields, vec)
	chunk := ceil(rows, b.lanes)
	args := append([]any{b.scratch(4 * b.lanes * s.blocks * all * d), b.addr(o.DY), b.addr(o.Index)}, starts...)
	return launch{module: "embed", kernel: fmt.Sprintf("embed_grad%d", s.vec), grid: dim3{b.lanes * s.blocks, s.tiles, s.parts},
		block: dim3{fields * s.width / s.vec, 1, 1}, shared: s.shared,
		args: append(args, i32(fields), i32(rows), i32(d), i32(all), i32(s.keep), i32(s.width), i32(chunk), i32(ceil(chunk, s.blocks)),
			i32(s.blocks))}, s.blocks
}
