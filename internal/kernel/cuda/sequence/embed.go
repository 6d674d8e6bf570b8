package sequence

import (
	"fmt"
	"slices"

	"haul/internal/kernel"
	"haul/internal/kernel/cuda/bind"
)

const (
	EmbedTables = 8                    // tables of a launch of src/embed.cu
	embedFields = kernel.MaxFields + 2 // most tables: a token's fields, type and position
	embedStage  = 16                   // its stage
	embedRing   = 4                    // its ring
)

func Embed(b *bind.Binder, o *kernel.Embed) ([]bind.Launch, error) {
	if err := fits(o, o.Index); err != nil {
		return nil, err
	}
	rows, d := o.Y.Rows(), o.Y.Cols()
	name, n := "embed1", rows*d
	if b.Vectors(append([]*kernel.Tensor{o.Y}, o.Tables...)...) {
		name, n = "embed4", n/4
	}
	var out []bind.Launch
	for _, g := range groups(o.Index) {
		args := append([]any{b.Addr(o.Y), b.Addr(o.Index) + g.bytes()}, Tables(b, g.of(o.Tables))...)
		l := bind.Each(name, n, append(args, bind.I32(g.fields), bind.I32(o.Index.Cols()), bind.Flag(g.first > 0), bind.I32(rows), bind.I32(d))...)
		l.Module = "embed"
		out = append(out, l)
	}
	return out, bind.Dense(o, o.Y)
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
	for first, all := 0, index.Cols(); first < all; first += EmbedTables {
		out = append(out, embedGroup{first, min(EmbedTables, all-first)})
	}
	return out
}

// bytes is where a token's first field of the group lies, from the token's own first.
func (g embedGroup) bytes() uint64 { return uint64(4 * g.first) }

// of is the group's part of all fields' tables.
func (g embedGroup) of(ts []*kernel.Tensor) []*kernel.Tensor {
	return ts[min(g.first, len(ts)):min(g.first+g.fields, len(ts))]
}

// Tables are the addresses of the tables, 0 for those that are not there.
func Tables(b *bind.Binder, ts []*kernel.Tensor) []any {
	out := make([]any, EmbedTables)
	for i := range out {
		out[i] = uint64(0)
		if i < len(ts) {
			out[i] = b.Addr(ts[i])
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

// newEmbedShape keeps whole tables of 128 columns where they fit into shared memory, else fewer
// columns, else fewer rows.
func newEmbedShape(b *bind.Binder, rows, d, all, fields, vec int) embedShape {
	s := embedShape{vec: vec, width: 128}
	stages := func() int { return 4 * embedRing * embedStage * (s.width + fields) }
	for s.width > 32 && (s.width/2 >= d || 4*all*s.width+stages() > b.MaxShared) {
		s.width /= 2
	}
	s.tiles = bind.Ceil(d, s.width)
	s.keep = min(all, (b.MaxShared-stages())/(4*s.width))
	s.parts = bind.Ceil(all, s.keep)
	s.shared = 4*s.keep*s.width + stages()
	perSM := max(1, min(b.MaxShared/s.shared, 2048/(fields*s.width/vec)))
	s.blocks = max(1, min(perSM*b.SMs/(b.Lanes*s.tiles*s.parts), bind.Ceil(bind.Ceil(rows, b.Lanes), embedStage)))
	return s
}

// embedGrad makes tables of every block's tokens, then adds them up into the lanes. A large table
// of places is made apart from the others.
func embedGrad(b *bind.Binder, o *kernel.EmbedGrad) ([]bind.Launch, error) {
	if err := fits(o, o.Index); err != nil {
		return nil, err
	}
	adds := make([]bool, len(o.DTables))
	for i, t := range o.DTables {
		adds[i] = b.Adds(t) != 0
	}
	f, tokens := placesTable(b, o, adds)
	if f < 0 {
		return embedGradAll(b, o, adds, 0, 0), bind.Dense(o, o.DY)
	}
	others, places := *o, *o
	others.DTables, places.DTables = slices.Clone(o.DTables), make([]*kernel.Tensor, len(o.DTables))
	others.DTables[f], places.DTables[f] = nil, o.DTables[f]
	flags := b.Lanes * placesBlocks
	strays := b.Scratch(4 * flags)
	rows, d, table := o.DY.Rows(), o.DY.Cols(), o.DTables[f]
	first := bind.Launch{Module: "embed", Kernel: "embed_grad_places", Grid: bind.Dim3{placesBlocks, b.Lanes, 1}, Block: bind.Dim3{256, 1, 1},
		Args: []any{b.Addr(table), strays, b.Addr(o.DY), b.Addr(o.Index), bind.I32(f), bind.I32(o.Index.Cols()), bind.I32(rows), bind.I32(tokens),
			bind.I32(table.Shape[0]), bind.I32(d), bind.I32(bind.Ceil(rows, b.Lanes)), bind.I32(b.LaneSize)}}
	out := append([]bind.Launch{first}, embedGradAll(b, &places, adds, strays, flags)...)
	return append(out, embedGradAll(b, &others, adds, 0, 0)...), bind.Dense(o, o.DY)
}

// placesBlocks are the blocks of a lane of embed_grad_places, each with a flag.
const placesBlocks = 32

// placesTable is the table that embed_grad_places makes the gradient of, -1 where there is none,
// and how many tokens lie from one with its row to the next. It is larger than the tables that fit
// a few blocks, with a row for every place of an instance or for every token, and nothing else has
// written its gradient. Tokens that are elsewhere than their index says cost time, no more.
func placesTable(b *bind.Binder, o *kernel.EmbedGrad, adds []bool) (f, tokens int) {
	if len(o.Index.Shape) != 3 || !b.Vectors(o.DY) {
		return -1, 0
	}
	for _, tokens := range []int{o.Index.Shape[1], o.DY.Rows()} {
		for f, t := range o.DTables {
			if t != nil && t.Shape[0] > 2*EmbedRows && t.Shape[0] >= tokens && 2*tokens > t.Shape[0] && !adds[f] && b.Vectors(t) {
				return f, tokens
			}
		}
	}
	return -1, 0
}

// embedGradAll makes all tables that want a gradient, group by group, where any of the flags is set
// if there are flags.
func embedGradAll(b *bind.Binder, o *kernel.EmbedGrad, adds []bool, strays uint64, flags int) (out []bind.Launch) {
	for _, g := range groups(o.Index) {
		tables := g.of(o.DTables)
		starts, all, added := make([]any, EmbedTables), 0, uint32(0)
		for i := range starts {
			starts[i] = bind.I32(all)
			if i < len(tables) && tables[i] != nil {
				all += tables[i].Shape[0]
				added |= bind.Flag(adds[g.first+i]) << i
			}
		}
		if all == 0 {
			continue
		}
		var pass bind.Launch
		var blocks int
		if embedsByProducts(b, o, all) {
			pass, blocks = embedProducts(b, o, starts, all)
		} else {
			pass, blocks = embedTables(b, o, g, starts, all)
			pass.Args = append(pass.Args, strays, bind.I32(flags))
		}
		lanes := append(append(Tables(b, tables), starts...), pass.Args[0])
		out = append(out, pass, bind.Launch{Module: "embed", Kernel: "embed_grad_lanes", Grid: bind.Dim3{bind.Ceil(all*o.DY.Cols(), 256), b.Lanes, 1}, Block: bind.Dim3{256, 1, 1},
			Args: append(lanes, bind.I32(g.fields), bind.I32(o.DY.Cols()), bind.I32(all), bind.I32(blocks), bind.I32(b.LaneSize), added, strays, bind.I32(flags))})
	}
	return out
}

// embedTables keeps a block's tables in shared memory. It says how many blocks a lane has.
func embedTables(b *bind.Binder, o *kernel.EmbedGrad, g embedGroup, starts []any, all int) (bind.Launch, int) {
	rows, d, fields, vec := o.DY.Rows(), o.DY.Cols(), g.fields, 1
	if b.Vectors(o.DY) {
		vec = 4
	}
	s := newEmbedShape(b, rows, d, all, fields, vec)
	chunk := bind.Ceil(rows, b.Lanes)
	args := append([]any{b.Scratch(4 * b.Lanes * s.blocks * all * d), b.Addr(o.DY), b.Addr(o.Index) + g.bytes()}, starts...)
	return bind.Launch{Module: "embed", Kernel: fmt.Sprintf("embed_grad%d", s.vec), Grid: bind.Dim3{b.Lanes * s.blocks, s.tiles, s.parts},
		Block: bind.Dim3{fields * s.width / s.vec, 1, 1}, Shared: s.shared,
		Args: append(args, bind.I32(fields), bind.I32(o.Index.Cols()), bind.I32(rows), bind.I32(d), bind.I32(all), bind.I32(s.keep), bind.I32(s.width), bind.I32(chunk), bind.I32(bind.Ceil(chunk, s.blocks)),
			bind.I32(s.blocks))}, s.blocks
}
