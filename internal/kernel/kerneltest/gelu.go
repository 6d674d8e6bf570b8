package kerneltest

import (
	"fmt"
	"testing"

	"haul/internal/kernel"
)

// testGELU tries the linear layers of a transformer over tokens: through a dropout, into a GELU,
// and back through both.
func testGELU(t *testing.T, dev kernel.Device) {
	for i, s := range products() {
		if i%3 != 0 && s[0]*s[1] < 1000 || !tries(dev, i/3) {
			continue
		}
		k, n, nodes := s[0], s[1], nodesFor(i)
		c := trial{nodes: nodes, linear: true, rounds: true, batch: few(dev, nodes), state: kernel.State{Instances: 1<<32 - 3}}
		name := func(what string) string { return fmt.Sprintf("%s M=%d K=%d N=%d", what, c.batch*nodes, k, n) }
		drop := kernel.Drop{Rate: 0.1, Site: 255 - i%256, Nodes: nodes, Seed: 1<<33 + 5}

		c.what, c.record = name("linear dropped"), func(r *recording) {
			r.do(&kernel.Linear{Y: r.out("y", k+1, nodes, n), X: r.in("x", nodes, k), W: r.weight("w", n, k), Bias: r.weight("bias", n), Drop: drop})
		}
		c.try(t, dev)
		c.what, c.record = name("linear dropped, residual"), func(r *recording) {
			r.do(&kernel.Linear{Y: r.out("y", k+2, nodes, n), X: r.in("x", nodes, k), W: r.weight("w", n, k), Bias: r.weight("bias", n),
				Residual: r.in("residual", nodes, n), Drop: drop})
		}
		c.try(t, dev)
		// GELU has a slope of at most 1.13 and is no smaller than half of a positive argument, which is
		// what S becomes.
		c.amplify = 3
		c.what, c.record = name("linear into GELU"), func(r *recording) {
			r.do(&kernel.Linear{Y: r.out("y", k+1, nodes, n), Pre: r.out("pre", k+1, nodes, n), X: r.in("x", nodes, k), W: r.weight("w", n, k), Bias: r.weight("bias", n)})
		}
		c.try(t, dev)
		c.what, c.record = name("linear.dx through GELU"), func(r *recording) {
			r.do(&kernel.LinearGradX{DX: r.out("dx", n+1, nodes, k), DY: r.in("dy", nodes, n), W: r.weight("w", n, k), Pre: r.in("pre", nodes, k)})
		}
		c.try(t, dev)
	}
}
