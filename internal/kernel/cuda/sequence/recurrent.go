package sequence

import (
	"haul/internal/kernel"
	"haul/internal/kernel/cuda/bind"
	"haul/internal/kernel/cuda/dense"
)

// A recurrent layer is two launches a token: the product of all instances' units with the weights,
// over views of what keeps them, and the gates.

// token is columns [from, to) of token s of t [B,T,C], a row for each instance.
func token(t *kernel.Tensor, s, from, to int) *kernel.Tensor {
	v := *t
	v.Shape, v.Stride, v.Offset, v.Parent = []int{t.Shape[0], to - from}, t.Shape[1]*t.Stride, s*t.Stride+from, t
	return &v
}

// units launches a thread for each unit of each instance.
func units(kernel string, n int, args ...any) bind.Launch {
	l := bind.Each(kernel, n, args...)
	l.Module = "gru"
	return l
}

func gru(b *bind.Binder, o *kernel.GRU) ([]bind.Launch, error) {
	n, t, d := o.Dims()
	out := []bind.Launch{units("gru_begin", n*d, b.Addr(o.Prev), b.Addr(o.State), bind.I32(n), bind.I32(d), bind.I32(t))}
	for s := range t {
		product, err := dense.Linear(b, &kernel.Linear{Y: token(o.Gates, s, 0, 3*d), X: token(o.Prev, s, 0, d), W: o.W, Bias: o.Bias})
		if err != nil {
			return nil, err
		}
		out = append(append(out, product...), units("gru_token", n*d, b.Addr(o.H), b.Addr(o.Prev), b.Addr(o.Gates), b.Addr(o.X), b.Addr(o.State),
			bind.I32(n), bind.I32(d), bind.I32(t), bind.I32(s), bind.Flag(o.Carry)))
	}
	return out, bind.Dense(o, o.H, o.Prev, o.Gates, o.X, o.State)
}

func gruGrad(b *bind.Binder, o *kernel.GRUGrad) (out []bind.Launch, err error) {
	n, t, d := o.Dims()
	for s := t - 1; s >= 0; s-- {
		out = append(out, units("gru_token_grad", n*d, b.Addr(o.DX), b.Addr(o.DH), b.Addr(o.Gates), b.Addr(o.Prev), bind.I32(n), bind.I32(d), bind.I32(t), bind.I32(s)))
		if s == 0 {
			break
		}
		product, err := dense.LinearGradX(b, &kernel.LinearGradX{DX: token(o.DH, s-1, 0, d), DY: token(o.Gates, s, 0, 3*d), W: o.W, Accumulate: true})
		if err != nil {
			return nil, err
		}
		out = append(out, product...)
	}
	return out, bind.Dense(o, o.DX, o.DH, o.Gates, o.Prev)
}
