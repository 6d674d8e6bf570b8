package dense

import (
	"haul/internal/kernel"
	"haul/internal/kernel/cuda/bind"
)

func glu(b *bind.Binder, o *kernel.GLU) ([]bind.Launch, error) {
	name, n := "glu1", o.Y.Len()
	if b.Vectors(o.Y, o.G) {
		name, n = "glu4", n/4
	}
	return []bind.Launch{bind.Each(name, n, b.Addr(o.Y), b.Addr(o.G), bind.I32(o.Y.Rows()), bind.I32(o.Y.Cols()))}, bind.Dense(o, o.Y, o.G)
}

func gluGrad(b *bind.Binder, o *kernel.GLUGrad) ([]bind.Launch, error) {
	name, n := "glu_grad1", o.DY.Len()
	if b.Vectors(o.DG, o.DY, o.G) {
		name, n = "glu_grad4", n/4
	}
	return []bind.Launch{bind.Each(name, n, b.Addr(o.DG), b.Addr(o.DY), b.Addr(o.G), bind.I32(o.DY.Rows()), bind.I32(o.DY.Cols()))}, bind.Dense(o, o.DG, o.DY, o.G)
}

func dropout(b *bind.Binder, o *kernel.Dropout) ([]bind.Launch, error) {
	return []bind.Launch{drop(b, o.Y, o.X, o.Residual, o.Drop)}, bind.Dense(o, o.Y, o.X, o.Residual)
}

// drop is y = residual + drop(x), a thread for each eight columns; y may be x.
func drop(b *bind.Binder, y, x, residual *kernel.Tensor, d kernel.Drop) bind.Launch {
	rows, width := x.Rows(), x.Cols()
	args := []any{b.Addr(y), b.Addr(x), b.Addr(residual)}
	args = append(append(args, b.DropArgs(d)...), bind.I32(rows), bind.I32(max(1, d.Nodes)), bind.I32(width), bind.Flag(width%2 == 0))
	return bind.Each("dropout", rows*4*bind.Ceil(width, 32), args...)
}

// gelu is y = GELU(pre); geluGrad multiplies a gradient by GELU'(pre).
func gelu(b *bind.Binder, y, pre *kernel.Tensor) bind.Launch {
	return bind.Each("gelu_of", y.Len(), b.Addr(y), b.Addr(pre), uint32(y.Len()))
}

func geluGrad(b *bind.Binder, dx, pre *kernel.Tensor) bind.Launch {
	return bind.Each("gelu_grad", dx.Len(), b.Addr(dx), b.Addr(pre), uint32(dx.Len()))
}

func meanNodes(b *bind.Binder, o *kernel.MeanNodes) ([]bind.Launch, error) {
	instances, n, d := o.X.Shape[0], o.X.Shape[1], o.X.Shape[2]
	return []bind.Launch{bind.Each("mean_nodes", instances*d, b.Addr(o.Y), b.Addr(o.X), bind.I32(instances), bind.I32(n), bind.I32(d))}, bind.Dense(o, o.Y, o.X)
}

func meanNodesGrad(b *bind.Binder, o *kernel.MeanNodesGrad) ([]bind.Launch, error) {
	instances, n, d := o.DX.Shape[0], o.DX.Shape[1], o.DX.Shape[2]
	return []bind.Launch{bind.Each("mean_nodes_grad", o.DX.Len(), b.Addr(o.DX), b.Addr(o.DY), bind.I32(instances), bind.I32(n), bind.I32(d), bind.Flag(o.Accumulate))}, bind.Dense(o, o.DX, o.DY)
}
