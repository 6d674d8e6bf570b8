package cuda

import "haul/internal/kernel"

// Sizes of src/sequence/layer_embed.cu.
const (
	layerEmbedWarps = 8
	layerEmbedRows  = 4 // of a warp
)

// layerEmbed is the sum of embeddings that the stream of a layer that follows no other begins with,
// and layerHat.
type layerEmbed struct {
	*layer
	embed *kernel.Embed
}

// findEmbed finds the embeddings before a layer; nil where they are of another shape.
func findEmbed(ops []kernel.Op, l *layer) *layerEmbed {
	for _, op := range ops {
		o, ok := op.(*kernel.Embed)
		if !ok || o.Y != l.norm1.X || len(o.Tables) > embedTables {
			continue
		}
		for _, t := range o.Tables {
			if !t.Dense() || t.Cols() != layerWidth {
				return nil
			}
		}
		return &layerEmbed{l, o}
	}
	return nil
}

func (o *layerEmbed) Kind() string { return "layer.embed" }

func (o *layerEmbed) Args(f func(*kernel.Tensor, kernel.Access)) {
	access(f, kernel.Read, append([]*kernel.Tensor{o.embed.Index}, o.embed.Tables...)...)
	access(f, kernel.Write, o.embed.Y, o.norm1.Y, o.norm1.Mean, o.norm1.Rstd)
}

func (o *layerEmbed) Cost() kernel.Cost { return costOf(o, o.embed, o.norm1) }

func (o *layerEmbed) bind(b *binder) ([]launch, error) {
	if !b.vectors(o.embed.Tables...) {
		first, err := b.embed(o.embed)
		if err != nil {
			return nil, err
		}
		second, err := (&layerHat{o.layer}).bind(b)
		return append(first, second...), err
	}
	rows := o.embed.Y.Rows()
	args := append([]any{b.address(o.embed.Y), b.address(o.norm1.Y), b.address(o.norm1.Rstd), b.address(o.embed.Index)},
		b.tables(o.embed.Tables)...)
	return []launch{{module: "layer_embed", kernel: "layer_embed", grid: dim3{ceil(rows, layerEmbedWarps*layerEmbedRows), 1, 1},
		block: dim3{32 * layerEmbedWarps, 1, 1}, args: append(args, i32(len(o.embed.Tables)), i32(rows), float32(kernel.NormEps))}}, nil
}
