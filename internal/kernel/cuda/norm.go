package cuda

import "haul/internal/kernel"

const normWarps = 8 // warps of src/dense/norm.cu

// normWidth is the suffix of the kernel that holds rows of d elements in registers, "any" where
// none does.
func normWidth(d int, vectors bool) string {
	switch {
	case vectors && d <= 128:
		return "128"
	case vectors && d <= 512:
		return "512"
	}
	return "any"
}

func (b *binder) norm(o *kernel.Norm) ([]launch, error) {
	if h, ok := b.joins.sublayers[o]; ok {
		return []launch{b.sublayer(h)}, nil
	}
	if h, ok := b.joins.heads[o]; ok {
		return []launch{b.head(h)}, nil
	}
	rows, d := o.X.Rows(), o.X.Cols()
	width := normWidth(d, b.vectors(o.Y, o.X, o.Gamma, o.Beta))
	return []launch{{module: "norm", kernel: "norm_" + width, grid: dim3{ceil(rows, normWarps), 1, 1}, block: dim3{32 * normWarps, 1, 1},
		args: []any{b.addr(o.Y), b.addr(o.Mean), b.addr(o.Rstd), b.addr(o.X), b.addr(o.Gamma), b.addr(o.Beta),
			i32(rows), i32(d), float32(kernel.NormEps)}}}, dense(o, o.Y, o.X)
}

func (b *binder) normGrad(o *kernel.NormGrad) ([]launch, error) {
	if err := dense(o, o.DX, o.DY, o.X); err != nil {
		return nil, err
	}
	rows, d := o.X.Rows(), o.X.Cols()
	chunk := ceil(rows, b.lanes)
	addX, addGamma, addBeta := flag(o.Accumulate), b.adds(o.DGamma), b.adds(o.DBeta)
	width := normWidth(d, b.vectors(o.DX, o.DY, o.X, o.Gamma))
	block := dim3{32 * normWarps, 1, 1}
	if width == "any" {
		return []launch{
			{module: "norm", kernel: "norm_grad_any", grid: dim3{ceil(rows, normWarps), 1, 1}, block: block,
				args: []any{b.addr(o.DX), b.addr(o.DY), b.addr(o.X), b.addr(o.Mean), b.addr(o.Rstd), b.addr(o.Gamma), i32(rows), i32(d), addX}},
			{module: "norm", kernel: "norm_grad_sums", grid: dim3{ceil(d, 32), b.lanes, 1}, block: block,
				args: []any{b.addr(o.DGamma), b.addr(o.DBeta), b.addr(o.DY), b.addr(o.X), b.addr(o.Mean), b.addr(o.Rstd), i32(rows), i32(d),
					i32(chunk), i32(b.laneSize), addGamma, addBeta}},
		}, nil
	}
	// Two blocks a multiprocessor, but no warp without a row.
	blocks := max(1, min(2*b.sms/b.lanes, ceil(chunk, normWarps)))
	partial := b.scratch(4 * 2 * d * blocks * b.lanes)
	return []launch{
		{module: "norm", kernel: "norm_grad_" + width, grid: dim3{blocks * b.lanes, 1, 1}, block: block,
			args: []any{b.addr(o.DX), b.addr(o.DY), b.addr(o.X), b.addr(o.Mean), b.addr(o.Rstd), b.addr(o.Gamma), partial, i32(rows), i32(d),
				i32(chunk), i32(ceil(chunk, blocks)), i32(blocks), addX}},
		{module: "norm", kernel: "norm_grad_lanes", grid: dim3{ceil(2*d, 32*normWarps), b.lanes, 1}, block: block, aside: addGamma|addBeta == 0,
			args: []any{b.addr(o.DGamma), b.addr(o.DBeta), partial, i32(d), i32(blocks), i32(b.laneSize), addGamma, addBeta}},
	}, nil
}
