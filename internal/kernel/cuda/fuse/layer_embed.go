package fuse

import (
	"haul/internal/kernel"
	"haul/internal/kernel/cuda/bind"
	"haul/internal/kernel/cuda/sequence"
)

// Sizes of sequence/src/layer_embed.cu.
const (
	layerEmbedWarps = 8
	layerEmbedRows  = 4 // of a warp
)

// LayerEmbed is the sum of embeddings that the stream of a layer that follows no other begins with,
// and layerHat.
type LayerEmbed struct {
	*layer
	Embed *kernel.Embed
}

// findEmbed finds the embeddings before a layer; nil where they are of another shape.
func findEmbed(ops []kernel.Op, l *layer) *LayerEmbed {
	for _, op := range ops {
		o, ok := op.(*kernel.Embed)
		if !ok || o.Y != l.norm1.X || len(o.Tables) > sequence.EmbedTables {
			continue
		}
		for _, t := range o.Tables {
			if !t.Dense() || t.Cols() != LayerWidth {
				return nil
			}
		}
		return &LayerEmbed{l, o}
	}
	return nil
}

func (o *LayerEmbed) Kind() string { return "layer.embed" }

func (o *LayerEmbed) Args(f func(*kernel.Tensor, kernel.Access)) {
	access(f, kernel.Read, append([]*kernel.Tensor{o.Embed.Index}, o.Embed.Tables...)...)
	access(f, kernel.Write, o.Embed.Y, o.norm1.Y, o.norm1.Mean, o.norm1.Rstd)
}

func (o *LayerEmbed) Cost() kernel.Cost { return costOf(o, o.Embed, o.norm1) }

func (o *LayerEmbed) Bind(b *bind.Binder) ([]bind.Launch, error) {
	if !b.Vectors(o.Embed.Tables...) {
		first, err := sequence.Embed(b, o.Embed)
		if err != nil {
			return nil, err
		}
		second, err := (&layerHat{o.layer}).Bind(b)
		return append(first, second...), err
	}
	rows := o.Embed.Y.Rows()
	args := append([]any{b.Address(o.Embed.Y), b.Address(o.norm1.Y), b.Address(o.norm1.Rstd), b.Address(o.Embed.Index)},
		sequence.Tables(b, o.Embed.Tables)...)
	return []bind.Launch{{Module: "layer_embed", Kernel: "layer_embed", Grid: bind.Dim3{bind.Ceil(rows, layerEmbedWarps*layerEmbedRows), 1, 1},
		Block: bind.Dim3{32 * layerEmbedWarps, 1, 1}, Args: append(args, bind.I32(len(o.Embed.Tables)), bind.I32(rows), float32(kernel.NormEps))}}, nil
}
