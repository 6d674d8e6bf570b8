package cuda

import (
	"fmt"

	"haul/internal/kernel"
)

// Limits of src/dense/bf16_rows.cu.
const (
	bf16RowMost    = 512 // columns of a row that a warp normalises
	bf16NormRows   = 4   // rows a warp has at once, where they are short
	bf16NormBlocks = 3   // blocks of the gradient that a multiprocessor runs at once
)

// bf16Width is the suffix of the kernel that normalises rows of d elements, and how many rows its
// warps take.
func bf16Width(op kernel.Op, d int) (string, int, error) {
	switch {
	case d%4 != 0 || d > bf16RowMost:
		return "", 0, fmt.Errorf("%s: rows of %d columns; in bf16 the GPU takes multiples of 4 up to %d (train in tf32 or fp32)", op.Kind(), d, bf16RowMost)
	case d <= 128:
		return "128", bf16NormRows, nil
	}
	return "512", 1, nil
}

// mixed fails unless `branch` is in bf16 and the stream in fp32.
func (b *binder) mixed(op kernel.Op, branch *kernel.Tensor, stream ...*kernel.Tensor) error {
	if !b.compact(branch) {
		return fmt.Errorf("%s: %v is in fp32, others in bf16", op.Kind(), branch)
	}
	for _, t := range stream {
		if b.compact(t) {
			return fmt.Errorf("%s: %v is in bf16, the residual stream is fp32", op.Kind(), t)
		}
	}
	return dense(op, append(stream, branch)...)
}

func (b *binder) bf16Norm(o *kernel.Norm) ([]launch, error) {
	if err := b.mixed(o, o.Y, o.X); err != nil {
		return nil, err
	}
	rows, d := o.X.Rows(), o.X.Cols()
	width, each, err := bf16Width(o, d)
	if err != nil {
		return nil, err
	}
	return []launch{{module: "bf16_rows", kernel: "bf16_norm_" + width, grid: dim3{ceil(rows, each*normWarps), 1, 1}, block: dim3{32 * normWarps, 1, 1},
		args: []any{b.addr(o.Y), b.addr(o.Mean), b.addr(o.Rstd), b.addr(o.X), b.addr(o.Gamma), b.addr(o.Beta), i32(rows), i32(d), float32(kernel.NormEps)}}}, nil
}

func (b *binder) bf16NormGrad(o *kernel.NormGrad) ([]launch, error) {
	if err := b.mixed(o, o.DY, o.DX, o.X); err != nil {
		return nil, err
	}
	rows, d := o.X.Rows(), o.X.Cols()
	width, _, err := bf16Width(o, d)
	if err != nil {
		return nil, err
	}
	chunk := ceil(rows, b.lanes)
	// of a lane; no warp without a row
	blocks := max(1, min(bf16NormBlocks*b.sms/b.lanes, ceil(chunk, normWarps)))
	addGamma, addBeta := b.adds(o.DGamma), b.adds(o.DBeta)
	return []launch{{module: "bf16_rows", kernel: "bf16_norm_grad_" + width, grid: dim3{blocks * b.lanes, 1, 1}, block: dim3{32 * normWarps, 1, 1},
		args: []any{b.addr(o.DX), b.addr(o.DGamma), b.addr(o.DBeta), b.addr(o.DY), b.addr(o.X), b.addr(o.Mean), b.addr(o.Rstd), b.addr(o.Gamma),
			b.scratch(4 * 2 * d * blocks * b.lanes), b.scratch(4 * b.lanes), i32(rows), i32(d), i32(chunk), i32(ceil(chunk, blocks)), i32(blocks), i32(b.laneSize),
			flag(o.Accumulate), addGamma, addBeta}}}, nil
}

// bf16Dropout is, behind a residual branch, the gradient of a dropped branch: from the stream in
// fp32 to what the products read. Other mixtures of types, and widths that are no multiple of 8,
// take a slower kernel.
func (b *binder) bf16Dropout(o *kernel.Dropout) ([]launch, error) {
	rows, d := o.X.Rows(), o.X.Cols()
	grid := dim3{ceil(4*rows*ceil(d, 32), bf16DropThreads), 1, 1}
	block := dim3{bf16DropThreads, 1, 1}
	size := []any{i32(rows), i32(max(1, o.Nodes)), i32(d)}
	if o.Residual == nil && d%8 == 0 && b.compact(o.Y) && !b.compact(o.X) {
		args := append([]any{b.addr(o.Y), b.addr(o.X)}, b.dropArgs(o.Drop)...)
		return []launch{{module: "bf16_rows", kernel: "bf16_dropout", grid: grid, block: block, args: append(args, size...)}}, dense(o, o.Y, o.X)
	}
	inBF16 := uint32(0)
	for i, t := range []*kernel.Tensor{o.Y, o.X, o.Residual} {
		if t != nil && b.compact(t) {
			inBF16 |= 1 << i
		}
	}
	args := append([]any{b.addr(o.Y), b.addr(o.X), b.addr(o.Residual)}, b.dropArgs(o.Drop)...)
	return []launch{{module: "bf16_rows", kernel: "bf16_dropout_any", grid: grid, block: block, args: append(append(args, size...), inBF16)}}, dense(o, o.Y, o.X, o.Residual)
}

const bf16DropThreads = 256
