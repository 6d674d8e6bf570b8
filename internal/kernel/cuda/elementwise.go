package cuda

import "haul/internal/kernel"

// each launches one thread for each of n pieces of work.
func each(kernel string, n int, args ...any) launch {
	const threads = 256
	return launch{module: "elementwise", kernel: kernel, grid: dim3{ceil(n, threads), 1, 1}, block: dim3{threads, 1, 1}, args: args}
}

func (b *binder) glu(o *kernel.GLU) ([]launch, error) {
	name, n := "glu1", o.Y.Len()
	if b.vectors(o.Y, o.G) {
		name, n = "glu4", n/4
	}
	return []launch{each(name, n, b.addr(o.Y), b.addr(o.G), i32(o.Y.Rows()), i32(o.Y.Cols()))}, dense(o, o.Y, o.G)
}

func (b *binder) gluGrad(o *kernel.GLUGrad) ([]launch, error) {
	if l, ok := b.joins.with[o].(*kernel.LinearGradX); ok {
		return b.linearDXGLU(l, o), nil
	}
	name, n := "glu_grad1", o.DY.Len()
	if b.vectors(o.DG, o.DY, o.G) {
		name, n = "glu_grad4", n/4
	}
	return []launch{each(name, n, b.addr(o.DG), b.addr(o.DY), b.addr(o.G), i32(o.DY.Rows()), i32(o.DY.Cols()))}, dense(o, o.DG, o.DY, o.G)
}

func (b *binder) dropout(o *kernel.Dropout) ([]launch, error) {
	return []launch{b.drop(o.Y, o.X, o.Residual, o.Drop)}, dense(o, o.Y, o.X, o.Residual)
}

// drop is y = residual + drop(x), a thread for each eight columns; y may be x.
func (b *binder) drop(y, x, residual *kernel.Tensor, d kernel.Drop) launch {
	rows, width := x.Rows(), x.Cols()
	args := []any{b.addr(y), b.addr(x), b.addr(residual)}
	args = append(append(args, b.dropArgs(d)...), i32(rows), i32(max(1, d.Nodes)), i32(width), flag(width%2 == 0))
	return each("dropout", rows*4*ceil(width, 32), args...)
}

// dropArgs are what a kernel needs to make a mask: state, seed, site, threshold, scale.
func (b *binder) dropArgs(d kernel.Drop) []any {
	return []any{b.state, d.Seed, uint32(d.Site), d.Threshold(), d.Scale()}
}

// gelu is y = GELU(pre); geluGrad multiplies a gradient by GELU'(pre).
func (b *binder) gelu(y, pre *kernel.Tensor) launch {
	return each("gelu_of", y.Len(), b.addr(y), b.addr(pre), uint32(y.Len()))
}

func (b *binder) geluGrad(dx, pre *kernel.Tensor) launch {
	return each("gelu_grad", dx.Len(), b.addr(dx), b.addr(pre), uint32(dx.Len()))
}

func (b *binder) meanNodes(o *kernel.MeanNodes) ([]launch, error) {
	instances, n, d := o.X.Shape[0], o.X.Shape[1], o.X.Shape[2]
	return []launch{each("mean_nodes", instances*d, b.addr(o.Y), b.addr(o.X), i32(instances), i32(n), i32(d))}, dense(o, o.Y, o.X)
}

func (b *binder) meanNodesGrad(o *kernel.MeanNodesGrad) ([]launch, error) {
	instances, n, d := o.DX.Shape[0], o.DX.Shape[1], o.DX.Shape[2]
	return []launch{each("mean_nodes_grad", o.DX.Len(), b.addr(o.DX), b.addr(o.DY), i32(instances), i32(n), i32(d), flag(o.Accumulate))}, dense(o, o.DX, o.DY)
}
