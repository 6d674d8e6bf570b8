package dense

import (
	"fmt"

	"haul/internal/kernel"
	"haul/internal/kernel/cuda/bind"
)

// Limits of src/bf16_rows.cu.
const (
	Bf16RowMost    = 512 // columns of a row that a warp normalises
	bf16NormRows   = 4   // rows a warp has at once, where they are short
	bf16NormBlocks = 3   // blocks of the gradient that a multiprocessor runs at once
)

// bf16Width is the suffix of the kernel that normalises rows of d elements, and how many rows its
// warps take.
func bf16Width(op kernel.Op, d int) (string, int, error) {
	switch {
	case d%4 != 0 || d > Bf16RowMost:
		return "", 0, fmt.Errorf("%s: rows of %d columns; in bf16 the GPU takes multiples of 4 up to %d (train in tf32 or fp32)", op.Kind(), d, Bf16RowMost)
	case d <= 128:
		return "128", bf16NormRows, nil
	}
	return "512", 1, nil
}

// mixed fails unless `branch` is in bf16 and the stream in fp32.
func mixed(b *bind.Binder, op kernel.Op, branch *kernel.Tensor, stream ...*kernel.Tensor) error {
	if !b.Compact(branch) {
		return fmt.Errorf("%s: %v is in fp32, others in bf16", op.Kind(), branch)
	}
	for _, t := range stream {
		if b.Compact(t) {
			return fmt.Errorf("%s: %v is in bf16, the residual stream is fp32", op.Kind(), t)
		}
	}
	return bind.Dense(op, append(stream, branch)...)
}

func Bf16Norm(b *bind.Binder, o *kernel.Norm) ([]bind.Launch, error) {
	if err := mixed(b, o, o.Y, o.X); err != nil {
		return nil, err
	}
	rows, d := o.X.Rows(), o.X.Cols()
	width, each, err := bf16Width(o, d)
	if err != nil {
		return nil, err
	}
	return []bind.Launch{{Module: "bf16_rows", Kernel: "bf16_norm_" + width, Grid: bind.Dim3{bind.Ceil(rows, each*normWarps), 1, 1}, Block: bind.Dim3{32 * normWarps, 1, 1},
		Args: []any{b.Addr(o.Y), b.Addr(o.Mean), b.Addr(o.Rstd), b.Addr(o.X), b.Addr(o.Gamma), b.Addr(o.Beta), bind.I32(rows), bind.I32(d), float32(kernel.NormEps)}}}, nil
}

func bf16NormGrad(b *bind.Binder, o *kernel.NormGrad) ([]bind.Launch, error) {
	if err := mixed(b, o, o.DY, o.DX, o.X); err != nil {
		return nil, err
	}
	rows, d := o.X.Rows(), o.X.Cols()
	width, _, err := bf16Width(o, d)
	if err != nil {
		return nil, err
	}
	chunk := bind.Ceil(rows, b.Lanes)
	// of a lane; no warp without a row
	blocks := max(1, min(bf16NormBlocks*b.SMs/b.Lanes, bind.Ceil(chunk, normWarps)))
	addGamma, addBeta := b.Adds(o.DGamma), b.Adds(o.DBeta)
	return []bind.Launch{{Module: "bf16_rows", Kernel: "bf16_norm_grad_" + width, Grid: bind.Dim3{blocks * b.Lanes, 1, 1}, Block: bind.Dim3{32 * normWarps, 1, 1},
		Args: []any{b.Addr(o.DX), b.Addr(o.DGamma), b.Addr(o.DBeta), b.Addr(o.DY), b.Addr(o.X), b.Addr(o.Mean), b.Addr(o.Rstd), b.Addr(o.Gamma),
			b.Scratch(4 * 2 * d * blocks * b.Lanes), b.Scratch(4 * b.Lanes), bind.I32(rows), bind.I32(d), bind.I32(chunk), bind.I32(bind.Ceil(chunk, blocks)), bind.I32(blocks), bind.I32(b.LaneSize),
			bind.Flag(o.Accumulate), addGamma, addBeta}}}, nil
}

// bf16Dropout is, behind a residual branch, the gradient of a dropped branch: from the stream in
// fp32 to what the products read. Other mixtures of types, and widths that are no multiple of 8,
// take a slower kernel.
func bf16Dropout(b *bind.Binder, o *kernel.Dropout) ([]bind.Launch, error) {
	rows, d := o.X.Rows(), o.X.Cols()
	grid := bind.Dim3{bind.Ceil(4*rows*bind.Ceil(d, 32), bf16DropThreads), 1, 1}
	block := bind.Dim3{bf16DropThreads, 1, 1}
	size := []any{bind.I32(rows), bind.I32(max(1, o.Nodes)), bind.I32(d)}
	if o.Residual == nil && d%8 == 0 && b.Compact(o.Y) && !b.Compact(o.X) {
		args := append([]any{b.Addr(o.Y), b.Addr(o.X)}, b.DropArgs(o.Drop)...)
		return []bind.Launch{{Module: "bf16_rows", Kernel: "bf16_dropout", Grid: grid, Block: block, Args: append(args, size...)}}, bind.Dense(o, o.Y, o.X)
	}
	inBF16 := uint32(0)
	for i, t := range []*kernel.Tensor{o.Y, o.X, o.Residual} {
		if t != nil && b.Compact(t) {
			inBF16 |= 1 << i
		}
	}
	args := append([]any{b.Addr(o.Y), b.Addr(o.X), b.Addr(o.Residual)}, b.DropArgs(o.Drop)...)
	return []bind.Launch{{Module: "bf16_rows", Kernel: "bf16_dropout_any", Grid: grid, Block: block, Args: append(append(args, size...), inBF16)}}, bind.Dense(o, o.Y, o.X, o.Residual)
}

const bf16DropThreads = 256
