package cuda

import "haul/internal/kernel"

// A recurrent layer is two launches a token: the product of all instances' units with the weights,
// over views of what keeps them, and the gates.

// token is columns [from, to) of token s of t [B,T,C], a row for each instance.
func token(t *kernel.Tensor, s, from, to int) *kernel.Tensor {
	v := *t
	v.Shape, v.Stride, v.Offset, v.Parent = []int{t.Shape[0], to - from}, t.Shape[1]*t.Stride, s*t.Stride+from, t
	return &v
}

// units launches a thread for each unit of each instance.
func units(kernel string, n int, args ...any) launch {
	l := each(kernel, n, args...)
	l.module = "gru"
	return l
}

func (b *binder) gru(o *kernel.GRU) ([]launch, error) {
	n, t, d := o.Dims()
	out := []launch{units("gru_begin", n*d, b.addr(o.Prev), b.addr(o.State), i32(n), i32(d), i32(t))}
	for s := range t {
		product, err := b.linear(&kernel.Linear{Y: token(o.Gates, s, 0, 3*d), X: token(o.Prev, s, 0, d), W: o.W, Bias: o.Bias})
		if err != nil {
			return nil, err
		}
		out = append(append(out, product...), units("gru_token", n*d, b.addr(o.H), b.addr(o.Prev), b.addr(o.Gates), b.addr(o.X), b.addr(o.State),
			i32(n), i32(d), i32(t), i32(s), flag(o.Carry)))
	}
	return out, dense(o, o.H, o.Prev, o.Gates, o.X, o.State)
}

func (b *binder) gruGrad(o *kernel.GRUGrad) (out []launch, err error) {
	n, t, d := o.Dims()
	for s := t - 1; s >= 0; s-- {
		out = append(out, units("gru_token_grad", n*d, b.addr(o.DX), b.addr(o.DH), b.addr(o.Gates), b.addr(o.Prev), i32(n), i32(d), i32(t), i32(s)))
		if s == 0 {
			break
		}
		product, err := b.linearGradX(&kernel.LinearGradX{DX: token(o.DH, s-1, 0, d), DY: token(o.Gates, s, 0, 3*d), W: o.W, Accumulate: true})
		if err != nil {
			return nil, err
		}
		out = append(out, product...)
	}
	return out, dense(o, o.DX, o.DH, o.Gates, o.Prev)
}
