package dense

import (
	"haul/internal/kernel"
	"haul/internal/kernel/cuda/bind"
)

const normWarps = 8 // warps of src/norm.cu

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

func norm(b *bind.Binder, o *kernel.Norm) ([]bind.Launch, error) {
	rows, d := o.X.Rows(), o.X.Cols()
	width := normWidth(d, b.Vectors(o.Y, o.X, o.Gamma, o.Beta))
	return []bind.Launch{{Module: "norm", Kernel: "norm_" + width, Grid: bind.Dim3{bind.Ceil(rows, normWarps), 1, 1}, Block: bind.Dim3{32 * normWarps, 1, 1},
		Args: []any{b.Addr(o.Y), b.Addr(o.Mean), b.Addr(o.Rstd), b.Addr(o.X), b.Addr(o.Gamma), b.Addr(o.Beta),
			bind.I32(rows), bind.I32(d), float32(kernel.NormEps)}}}, bind.Dense(o, o.Y, o.X)
}

func normGrad(b *bind.Binder, o *kernel.NormGrad) ([]bind.Launch, error) {
	if err := bind.Dense(o, o.DX, o.DY, o.X); err != nil {
		return nil, err
	}
	rows, d := o.X.Rows(), o.X.Cols()
	chunk := bind.Ceil(rows, b.Lanes)
	addX, addGamma, addBeta := bind.Flag(o.Accumulate), b.Adds(o.DGamma), b.Adds(o.DBeta)
	width := normWidth(d, b.Vectors(o.DX, o.DY, o.X, o.Gamma))
	block := bind.Dim3{32 * normWarps, 1, 1}
	if width == "any" {
		return []bind.Launch{
			{Module: "norm", Kernel: "norm_grad_any", Grid: bind.Dim3{bind.Ceil(rows, normWarps), 1, 1}, Block: block,
				Args: []any{b.Addr(o.DX), b.Addr(o.DY), b.Addr(o.X), b.Addr(o.Mean), b.Addr(o.Rstd), b.Addr(o.Gamma), bind.I32(rows), bind.I32(d), addX}},
			{Module: "norm", Kernel: "norm_grad_sums", Grid: bind.Dim3{bind.Ceil(d, 32), b.Lanes, 1}, Block: block,
				Args: []any{b.Addr(o.DGamma), b.Addr(o.DBeta), b.Addr(o.DY), b.Addr(o.X), b.Addr(o.Mean), b.Addr(o.Rstd), bind.I32(rows), bind.I32(d),
					bind.I32(chunk), bind.I32(b.LaneSize), addGamma, addBeta}},
		}, nil
	}
	// Two blocks a multiprocessor, but no warp without a row.
	blocks := max(1, min(2*b.SMs/b.Lanes, bind.Ceil(chunk, normWarps)))
	partial := b.Scratch(4 * 2 * d * blocks * b.Lanes)
	return []bind.Launch{
		{Module: "norm", Kernel: "norm_grad_" + width, Grid: bind.Dim3{blocks * b.Lanes, 1, 1}, Block: block,
			Args: []any{b.Addr(o.DX), b.Addr(o.DY), b.Addr(o.X), b.Addr(o.Mean), b.Addr(o.Rstd), b.Addr(o.Gamma), partial, bind.I32(rows), bind.I32(d),
				bind.I32(chunk), bind.I32(bind.Ceil(chunk, blocks)), bind.I32(blocks), addX}},
		{Module: "norm", Kernel: "norm_grad_lanes", Grid: bind.Dim3{bind.Ceil(2*d, 32*normWarps), b.Lanes, 1}, Block: block, Aside: addGamma|addBeta == 0,
			Args: []any{b.Addr(o.DGamma), b.Addr(o.DBeta), partial, bind.I32(d), bind.I32(blocks), bind.I32(b.LaneSize), addGamma, addBeta}},
	}, nil
}
