package kerneltest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"haul/internal/kernel"
)

// products are the shapes of a linear layer: small ones in full, then random ones, then the models'
// own.
func products() [][2]int {
	var out [][2]int
	for k := 1; k <= 9; k++ {
		for n := 1; n <= 9; n++ {
			out = append(out, [2]int{k, n})
		}
	}
	for k := 10; k <= 20; k++ {
		out = append(out, [2]int{k, 37 - k}, [2]int{37 - k, k})
	}
	random := rand.New(rand.NewPCG(11, 1))
	for range 12 {
		out = append(out, [2]int{1 + random.IntN(150), 1 + random.IntN(150)})
	}
	return append(out, [2]int{4, 128}, [2]int{128, 384}, [2]int{128, 512}, [2]int{256, 128})
}

// nodesFor walks through small instance sizes.
func nodesFor(i int) int { return 2 + i*7%19 }

func testLinear(t *testing.T, dev kernel.Device) {
	for i, s := range products() {
		if !tries(dev, i) {
			continue
		}
		k, n, nodes := s[0], s[1], nodesFor(i)
		c := trial{nodes: nodes, linear: true, rounds: true, batch: batchFor(dev, nodes)}
		if k*n > 1000 {
			c.batch = min(c.batch, dev.ShardSize(nodes)+1)
		}
		rows := c.batch * nodes
		name := func(what string) string { return fmt.Sprintf("%s M=%d K=%d N=%d", what, rows, k, n) }

		c.what, c.record = name("linear"), func(r *recording) {
			r.do(&kernel.Linear{Y: r.out("y", k, nodes, n), X: r.in("x", nodes, k), W: r.weight("w", n, k)})
		}
		c.try(t, dev)
		c.what, c.record = name("linear of a view, bias, residual"), func(r *recording) {
			r.do(&kernel.Linear{Y: r.out("y", k+2, nodes, n), X: columnsOf(r.in("x", nodes, k+5), 3, 3+k), W: r.weight("w", n, k),
				Bias: r.weight("bias", n), Residual: r.in("residual", nodes, n)})
		}
		c.try(t, dev)
		c.what, c.record = name("linear.dx"), func(r *recording) {
			r.do(&kernel.LinearGradX{DX: r.out("dx", n, nodes, k), DY: r.in("dy", nodes, n), W: r.weight("w", n, k)})
		}
		c.try(t, dev)
		c.what, c.record = name("linear.dx into a view"), func(r *recording) {
			dx := r.out("dx", n, nodes, 4*k)
			r.do(&kernel.LinearGradX{DX: columnsOf(dx, 3*k, 4*k), DY: r.in("dy", nodes, n), W: r.weight("w", n, k)})
		}
		c.try(t, dev)
		c.what, c.record = name("linear.dx added"), func(r *recording) {
			r.do(&kernel.LinearGradX{DX: r.out("dx", n+1, nodes, k), DY: r.in("dy", nodes, n), W: r.weight("w", n, k), Accumulate: true})
		}
		c.try(t, dev)
		c.what, c.record = name("linear.dw"), func(r *recording) {
			r.do(&kernel.LinearGradW{DW: r.grad(r.weight("w", n, k), rows), DBias: r.grad(r.weight("bias", n), rows),
				DY: r.in("dy", nodes, n), X: r.in("x", nodes, k)})
		}
		c.try(t, dev)
		c.what, c.record = name("linear.dw of a view, twice"), func(r *recording) {
			dw := r.grad(r.weight("w", n, k), 2*rows)
			x := columnsOf(r.in("x", nodes, k+3), 1, 1+k)
			r.do(&kernel.LinearGradW{DW: dw, DY: r.in("dy", nodes, n), X: x})
			r.do(&kernel.LinearGradW{DW: dw, DY: r.in("dz", nodes, n), X: x})
		}
		c.try(t, dev)
	}
}

// widths are row lengths for ops that work row by row.
func widths() []int {
	var out []int
	for d := 1; d <= 40; d++ {
		out = append(out, d)
	}
	return append(out, 47, 63, 64, 65, 100, 128, 129, 256, 300)
}

func testNorm(t *testing.T, dev kernel.Device) {
	for i, d := range widths() {
		if !tries(dev, i) {
			continue
		}
		nodes := nodesFor(i)
		c := trial{nodes: nodes, batch: batchFor(dev, nodes)}
		rows := c.batch * nodes
		// A row whose elements are nearly equal magnifies the rounding of x by rstd ≤ 1/√NormEps = 316;
		// rows of more than a few standard normal elements do not come near.
		c.amplify = 8
		if d < 8 {
			c.amplify = 1500
		}
		c.what, c.record = fmt.Sprintf("norm D=%d", d), func(r *recording) {
			r.do(&kernel.Norm{Y: r.out("y", d, nodes, d), Mean: r.out("mean", d, nodes), Rstd: r.out("rstd", d, nodes),
				X: r.in("x", nodes, d), Gamma: r.weight("gamma", d), Beta: r.weight("beta", d)})
		}
		c.try(t, dev)
		c.amplify = 1
		for _, add := range []bool{false, true} {
			c.what, c.record = fmt.Sprintf("norm.grad D=%d add=%v", d, add), func(r *recording) {
				gamma := r.weight("gamma", d)
				r.do(&kernel.NormGrad{DX: r.out("dx", d, nodes, d), DGamma: r.grad(gamma, rows), DBeta: r.grad(r.weight("beta", d), rows),
					DY: r.in("dy", nodes, d), X: r.in("x", nodes, d), Mean: r.in("mean", nodes), Rstd: r.in("rstd", nodes), Gamma: gamma, Accumulate: add})
			}
			c.try(t, dev)
		}
	}
}

func testGLU(t *testing.T, dev kernel.Device) {
	for i, w := range widths() {
		if !tries(dev, i) {
			continue
		}
		nodes := nodesFor(i)
		c := trial{nodes: nodes}
		c.what, c.record = fmt.Sprintf("glu W=%d", w), func(r *recording) {
			r.do(&kernel.GLU{Y: r.out("y", 1, nodes, w), G: r.in("g", nodes, 2*w)})
		}
		c.try(t, dev)
		c.what, c.record = fmt.Sprintf("glu.grad W=%d", w), func(r *recording) {
			r.do(&kernel.GLUGrad{DG: r.out("dg", 1, nodes, 2*w), DY: r.in("dy", nodes, w), G: r.in("g", nodes, 2*w)})
		}
		c.try(t, dev)
	}
}

func testDropout(t *testing.T, dev kernel.Device) {
	for i, d := range widths() {
		if !tries(dev, i) {
			continue
		}
		nodes := nodesFor(i)
		// the index passes 32 bits
		c := trial{nodes: nodes, linear: true, state: kernel.State{Instances: 1<<32 - 3}}
		for _, residual := range []bool{false, true} {
			c.what, c.record = fmt.Sprintf("dropout D=%d residual=%v", d, residual), func(r *recording) {
				o := &kernel.Dropout{Y: r.out("y", 2, nodes, d), X: r.in("x", nodes, d), Drop: kernel.Drop{Rate: 0.3, Site: i, Nodes: nodes, Seed: 1 << 40}}
				if residual {
					o.Residual = r.in("residual", nodes, d)
				}
				r.do(o)
			}
			c.try(t, dev)
		}
	}
}

func testMeanNodes(t *testing.T, dev kernel.Device) {
	for i, d := range widths() {
		if !tries(dev, i) {
			continue
		}
		nodes := nodesFor(i)
		c := trial{nodes: nodes, linear: true}
		c.what, c.record = fmt.Sprintf("mean N=%d D=%d", nodes, d), func(r *recording) {
			r.do(&kernel.MeanNodes{Y: r.out("y", nodes, d), X: r.in("x", nodes, d)})
		}
		c.try(t, dev)
		for _, add := range []bool{false, true} {
			c.what, c.record = fmt.Sprintf("mean.grad N=%d D=%d add=%v", nodes, d, add), func(r *recording) {
				r.do(&kernel.MeanNodesGrad{DX: r.out("dx", 2, nodes, d), DY: r.in("dy", d), Accumulate: add})
			}
			c.try(t, dev)
		}
	}
}
