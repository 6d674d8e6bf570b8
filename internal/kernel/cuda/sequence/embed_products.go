package sequence

import (
	"haul/internal/kernel"
	"haul/internal/kernel/cuda/bind"
)

// Sizes of src/embed_products.cu.
const (
	EmbedWidth   = 128
	embedGroups  = 3
	EmbedRows    = 64 * embedGroups // of a block's tables
	embedTokens  = 64               // of a stage
	embedBuffers = 3
	embedThreads = 128 * embedGroups
)

// embedsByProducts reports whether a card has the instructions and the tables are of the shape:
// every block reads all tokens' columns, so more tables than two blocks keep are not worth it, and
// a launch has all fields of a token.
func embedsByProducts(b *bind.Binder, o *kernel.EmbedGrad, all int) bool {
	return b.Hopper && b.Precision == bind.BF16 && o.Index.Cols() <= EmbedTables && o.DY.Cols() == EmbedWidth && all <= 2*EmbedRows && b.Vectors(o.DY)
}

// embedProducts multiplies ones and zeros with what comes in. It says how many blocks a lane has.
func embedProducts(b *bind.Binder, o *kernel.EmbedGrad, starts []any, all int) (bind.Launch, int) {
	rows, fields, tiles := o.DY.Rows(), o.Index.Cols(), bind.Ceil(all, EmbedRows)
	chunk := bind.Ceil(rows, b.Lanes)
	blocks := max(1, min(b.SMs/(b.Lanes*tiles), bind.Ceil(chunk, embedTokens)))
	name := "embed_products"
	if b.Compact(o.DY) {
		name += "_compact"
	}
	return bind.Launch{Module: "embed_products", Kernel: name, Grid: bind.Dim3{b.Lanes * blocks, tiles, 1},
		Block: bind.Dim3{embedThreads, 1, 1}, Shared: embedBuffers * embedTokens * (2*EmbedWidth + 4*EmbedTables),
		Args: append(append([]any{b.Scratch(4 * b.Lanes * blocks * all * EmbedWidth), b.Addr(o.DY), b.Addr(o.Index)}, starts...),
			bind.I32(fields), bind.I32(rows), bind.I32(all), bind.I32(chunk), bind.I32(bind.Ceil(chunk, blocks)), bind.I32(blocks))}, blocks
}
