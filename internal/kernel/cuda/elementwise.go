package cuda

import (
	"haul/internal/kernel"
	"haul/internal/rng"
)

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
	name, n := "glu_grad1", o.DY.Len()
	if b.vectors(o.DG, o.DY, o.G) {
		name, n = "glu_grad4", n/4
	}
	return []launch{each(name, n, b.addr(o.DG), b.addr(o.DY), b.addr(o.G), i32(o.DY.Rows()), i32(o.DY.Cols()))}, dense(o, o.DG, o.DY, o.G)
}

func (b *binder) dropout(o *kernel.Dropout) ([]launch, error) {
	size := o.Nodes * o.X.Cols()
	instances := o.X.Len() / size
	return []launch{each("dropout", instances*ceil(size, 4), b.addr(o.Y), b.addr(o.X), b.addr(o.Residual), b.state, o.Seed,
		i32(instances), i32(size), uint32(o.Site), uint32(rng.Dropout), o.Rate, 1/(1-o.Rate), flag(b.vectors(o.Y, o.X, o.Residual)))}, dense(o, o.Y, o.X, o.Residual)
}

func (b *binder) meanNodes(o *kernel.MeanNodes) ([]launch, error) {
	instances, n, d := o.X.Shape[0], o.X.Shape[1], o.X.Shape[2]
	return []launch{each("mean_nodes", instances*d, b.addr(o.Y), b.addr(o.X), i32(instances), i32(n), i32(d))}, dense(o, o.Y, o.X)
}

func (b *binder) meanNodesGrad(o *kernel.MeanNodesGrad) ([]launch, error) {
	instances, n, d := o.DX.Shape[0], o.DX.Shape[1], o.DX.Shape[2]
	return []launch{each("mean_nodes_grad", o.DX.Len(), b.addr(o.DX), b.addr(o.DY), i32(instances), i32(n), i32(d), flag(o.Accumulate))}, dense(o, o.DX, o.DY)
}
