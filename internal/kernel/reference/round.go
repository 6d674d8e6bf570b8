package reference

import (
	"math"

	"haul/internal/kernel"
)

// round is x to the nearest number of relative error at most unit, ties to even.
func round[F Float](x F, unit float64) F {
	m, e := math.Frexp(float64(x))
	return F(math.Ldexp(math.RoundToEven(m/unit)*unit, e))
}

// operand is matrix for what is multiplied.
func (r *Runner[F]) operand(t *kernel.Tensor) Matrix[F] {
	m := r.matrix(t)
	if r.device.unit == 0 {
		return m
	}
	out := Matrix[F]{make([]F, m.Rows*m.Cols), m.Rows, m.Cols, m.Cols}
	for i := range m.Rows {
		for c, v := range m.Row(i) {
			out.Row(i)[c] = round(v, r.device.unit)
		}
	}
	return out
}

// keep rounds what op wrote to Compact tensors.
func (r *Runner[F]) keep(op kernel.Op) {
	if r.device.unit == 0 {
		return
	}
	op.Args(func(t *kernel.Tensor, a kernel.Access) {
		if a == kernel.Read || !t.Root().Compact {
			return
		}
		m := r.matrix(t)
		for i := range m.Rows {
			for c, v := range m.Row(i) {
				m.Row(i)[c] = round(v, r.device.unit)
			}
		}
	})
}
