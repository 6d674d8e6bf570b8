package cuda

import (
	"fmt"
	"slices"

	"haul/internal/kernel"
)

const (
	embedTables = 8                    // tables of a launch of src/sequence/embed.cu
	embedFields = kernel.MaxFields + 2 // most tables: a token's fields, type and position
	embedStage  = 16                   // its stage
	embedRing   = 4                    // its ring
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
	var out []launch
	for _, g := range groups(o.Index) {
		args := append([]any{b.addr(o.Y), b.addr(o.Index) + g.bytes()}, b.tables(g.of(o.Tables))...)
		l := each(name, n, append(args, i32(g.fields), i32(o.Index.Cols()), flag(g.first > 0), i32(rows), i32(d))...)
		l.module = "embed"
		out = append(out, l)
	}
	return out, dense(o, o.Y)
}

// fits refuses more fields than a token can have. The last ones may have no table.
func fits(op kernel.Op, index *kernel.Tensor) error {
	if n := index.Cols(); n > embedFields {
		return fmt.Errorf("%s: %d tables, the GPU sums at most %d", op.Kind(), n, embedFields)
	}
	return nil
}

// embedGroup is fields of a token that a launch takes: as many as a kernel has parameters for
// tables.
type embedGroup struct{ first, fields int }

func groups(index *kernel.Tensor) (out []embedGroup) {
	for first, all := 0, index.Cols(); first < all; first += embedTables {
		out = append(out, embedGroup{first, min(embedTables, all-first)})
	}
	return out
}

// bytes is where a token's first field of the group lies, from the token's own first.
func (g embedGroup) bytes() uint64 { return uint64(4 * g.first) }

// of is the group's part of all fields' tables.
func (g embedGroup) of(ts []*kernel.Tensor) []*kernel.Tensor {
	return ts[min(g.first, len(ts)):min(g.first+g.fields, len(ts))]
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

// embedGrad makes tables of every block's tokens, then adds them up into the lanes. A large table
// of places is made apart from the others.
func (b *binder) embedGrad(o *kernel.EmbedGrad) ([]launch, error) {
	if err := fits(o, o.Index); err != nil {
		return nil, err
	}
	adds := make([]bool, len(o.DTables))
	for i, t := range o.DTables {
		adds[i] = b.adds(t) != 0
	}
	f, tokens := b.placesTable(o, adds)
	if f < 0 {
		return b.embedGradAll(o, adds, 0, 0), dense(o, o.DY)
	}
	others, places := *o, *o
	others.DTables, places.DTables = slices.Clone(o.DTables), make([]*kernel.Tensor, len(o.DTables))
	others.DTables[f], places.DTables[f] = nil, o.DTables[f]
	flags := b.lanes * placesBlocks
	strays := b.scratch(4 * flags)
	rows, d, table := o.DY.Rows(), o.DY.Cols(), o.DTables[f]
	first := launch{module: "embed", kernel: "embed_grad_places", grid: dim3{placesBlocks, b.lanes, 1}, block: dim3{256, 1, 1},
		args: []any{b.addr(table), strays, b.addr(o.DY), b.addr(o.Index), i32(f), i32(o.Index.Cols()), i32(rows), i32(tokens),
			i32(table.Shape[0]), i32(d), i32(ceil(rows, b.lanes)), i32(b.laneSize)}}
	out := append([]launch{first}, b.embedGradAll(&places, adds, strays, flags)...)
	return append(out, b.embedGradAll(&others, adds, 0, 0)...), dense(o, o.DY)
}

// placesBlocks are the blocks of a lane of embed_grad_places, each with a flag.
const placesBlocks = 32

// placesTable is the table that embed_grad_places makes the gradient of, -1 where there is none,
// and how many tokens lie from one with its row to the next. It is larger than the tables that fit
// a few blocks, with a row for every place of an instance or for every token, and nothing else has
// written its gradient. Tokens that are elsewhere than their index says cost time, no more.
func (b *binder) placesTable(o *kernel.EmbedGrad, adds []bool) (f, tokens int) {
	if len(o.Index.Shape) != 3 || !b.vectors(o.DY) {
		return -1, 0
	}
	for _, tokens := range []int{o.Index.Shape[1], o.DY.Rows()} {
		for f, t := range o.DTables {
			if t != nil && t.Shape[0] > 2*embedRows && t.Shape[0] >= tokens && 2*tokens > t.Shape[0] && !adds[f] && b.vectors(t) {
				return f, tokens
			}
		}
	}
	return -1, 0
}

// embedGradAll makes all tables that want a gradient, group by group, where any of the flags is set
// if there are flags.
func (b *binder) embedGradAll(o *kernel.EmbedGrad, adds []bool, strays uint64, flags int) (out []launch) {
	for _, g := range groups(o.Index) {
		tables := g.of(o.DTables)
		starts, all, added := make([]any, embedTables), 0, uint32(0)
		for i := range starts {
			starts[i] = i32(all)
			if i < len(tables) && tables[i] != nil {
				all += tables[i].Shape[0]
				added |= flag(adds[g.first+i]) << i
			}
		}
		if all == 0 {
			continue
		}
		var pass launch
		var blocks int
		if b.embedsByProducts(o, all) {
			pass, blocks = b.embedProducts(o, starts, all)
		} else {
			pass, blocks = b.embedTables(o, g, starts, all)
			pass.args = append(pass.args, strays, i32(flags))
		}
		lanes := append(append(b.tables(tables), starts...), pass.args[0])
		out = append(out, pass, launch{module: "embed", kernel: "embed_grad_lanes", grid: dim3{ceil(all*o.DY.Cols(), 256), b.lanes, 1}, block: dim3{256, 1, 1},
			args: append(lanes, i32(g.fields), i32(o.DY.Cols()), i32(all), i32(blocks), i32(b.laneSize), added, strays, i32(flags))})
	}
	return out
}

// embedTables keeps a block's tables in shared memory. It says how many blocks a lane has.
func (b *binder) embedTables(o *kernel.EmbedGrad, g embedGroup, starts []any, all int) (launch, int) {
	rows, d, fields, vec := o.DY.Rows(), o.DY.Cols(), g.fields, 1
	if b.vectors(o.DY) {
		vec = 4
	}
	s := b.embedShape(rows, d, all, fields, vec)
	chunk := ceil(rows, b.lanes)
	args := append([]any{b.scratch(4 * b.lanes * s.blocks * all * d), b.addr(o.DY), b.addr(o.Index) + g.bytes()}, starts...)
	return launch{module: "embed", kernel: fmt.Sprintf("embed_grad%d", s.vec), grid: dim3{b.lanes * s.blocks, s.tiles, s.parts},
		block: dim3{fields * s.width / s.vec, 1, 1}, shared: s.shared,
		args: append(args, i32(fields), i32(o.Index.Cols()), i32(rows), i32(d), i32(all), i32(s.keep), i32(s.width), i32(chunk), i32(ceil(chunk, s.blocks)),
			i32(s.blocks))}, s.blocks
}
