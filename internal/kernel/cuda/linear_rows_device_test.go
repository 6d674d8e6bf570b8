package cuda_test

import (
	"fmt"
	"testing"

	"haul/internal/kernel"
	"haul/internal/kernel/cuda"
)

// rowsCases are the products of the routing policy at sizes that go round the card, with rows that
// no tile divides, and pairs of ops that one kernel does.
func rowsCases() []bf16Case {
	var out []bf16Case
	sizes := [][4]int{{101, 101, 128, 384}, {131, 101, 128, 128}, {101, 101, 128, 512}, {131, 101, 256, 128}, {99, 87, 384, 128}, {99, 87, 512, 128}}
	if testing.Short() { // for a sanitizer, and an interpreter, whose few multiprocessors have two rounds
		sizes = [][4]int{{37, 11, 128, 384}, {29, 13, 384, 128}}
	}
	for _, s := range sizes {
		add := func(what string, record func(*bf16Plan)) {
			out = append(out, bf16Case{fmt.Sprintf("%s/M=%d,K=%d,N=%d", what, s[0]*s[1], s[2], s[3]), s[0], s[1], s[2], s[3], record})
		}
		add("linear", func(p *bf16Plan) {
			p.do(&kernel.Linear{Y: p.out("y", p.n, false), X: p.in("x", p.k, false), W: p.Weight(0, 0)})
		})
		add("linear with bias and residual", func(p *bf16Plan) {
			p.do(&kernel.Linear{Y: p.out("y", p.n, false), X: p.in("x", p.k, false), W: p.Weight(0, 0), Bias: p.Weight(0, 1),
				Residual: p.in("r", p.n, false)})
		})
		add("linear.dx", func(p *bf16Plan) {
			p.do(&kernel.LinearGradX{DX: p.out("dx", p.k, false), DY: p.in("dy", p.n, false), W: p.Weight(0, 0)})
		})
		add("linear.dx added", func(p *bf16Plan) {
			p.do(&kernel.LinearGradX{DX: p.in("dx", p.k, false), DY: p.in("dy", p.n, false), W: p.Weight(0, 0), Accumulate: true})
		})
		add("linear, glu", func(p *bf16Plan) {
			g := p.out("g", p.n, false)
			p.do(&kernel.Linear{Y: g, X: p.in("x", p.k, false), W: p.Weight(0, 0), Bias: p.Weight(0, 1)})
			p.do(&kernel.GLU{Y: p.out("u", p.n/2, false), G: g})
		})
		add("linear, glu alone", func(p *bf16Plan) {
			g := p.out("g", p.n, false)
			p.Append(&kernel.Linear{Y: g, X: p.in("x", p.k, false), W: p.Weight(0, 0), Bias: p.Weight(0, 1)})
			p.do(&kernel.GLU{Y: p.out("u", p.n/2, false), G: g})
		})
		add("linear.dx, glu.grad", func(p *bf16Plan) {
			du := p.out("du", p.k, false)
			p.Append(&kernel.LinearGradX{DX: du, DY: p.in("dy", p.n, false), W: p.Weight(0, 0)})
			p.do(&kernel.GLUGrad{DG: p.out("dg", 2*p.k, false), DY: du, G: p.in("g", 2*p.k, false)})
		})
	}
	return out
}

// TestRowsProducts compares products in tf32 with those of the same card in fp32: each element is
// of order one, and rounding is 2⁻¹¹ of that a few times over.
func TestRowsProducts(t *testing.T) {
	open(t, cuda.TF32).Close()
	for _, c := range rowsCases() {
		t.Run(c.name, func(t *testing.T) { c.compare(t, cuda.TF32, 0.004, 0.002) })
	}
}
