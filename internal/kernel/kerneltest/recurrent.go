package kerneltest

import (
	"fmt"
	"testing"

	"haul/internal/kernel"
)

// testGRU lets units read rows of one token and of many, with their state carried and not, and goes
// back through them; widths that are no whole vectors are among them, and inputs that open and shut
// gates as far as fp32 can tell, and further.
func testGRU(t *testing.T, dev kernel.Device) {
	for i, s := range []struct{ tokens, width int }{{1, 1}, {1, 8}, {2, 3}, {3, 64}, {5, 4}, {7, 17}, {12, 32}, {16, 5}, {9, 100}} {
		if !tries(dev, i) {
			continue
		}
		n, d := s.tokens, s.width
		// An error of the units passes through every later token, scaled by weights of their own size.
		c := trial{what: fmt.Sprintf("gru T=%d D=%d", n, d), nodes: n, batch: few(dev, n), amplify: 16, rounds: true}
		c.record = func(r *recording) {
			w, bias := r.weight("w", 3*d, d), r.weight("bias", 3*d)
			for k := range r.weights {
				r.weights[k] /= float32(d)
			}
			x := r.round(r.normals("x", r.prog.Batch*n*3*d))
			if i%3 == 2 {
				for k := range x {
					x[k] *= 64
				}
			}
			o := &kernel.GRU{H: r.out("h", d, n, d), Prev: r.out("prev", d, n, d), Gates: r.out("gates", d, n, 4*d), X: r.given("x", x, n, 3*d), W: w, Bias: bias,
				State: r.out("state", d, d), Carry: i%2 == 1}
			r.do(o)
			r.do(&kernel.GRUGrad{DX: r.out("dx", d, n, 3*d), DH: r.out("dh", 3*d, n, d), Gates: o.Gates, Prev: o.Prev, W: w})
			r.do(&kernel.LinearGradW{DW: r.grad(w, n*c.batch), DBias: r.grad(bias, n*c.batch), DY: columnsOf(o.Gates, 0, 3*d), X: o.Prev})
		}
		c.try(t, dev)
	}
}
