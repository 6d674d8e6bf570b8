package plan

import (
	"fmt"

	"haul/internal/kernel"
)

// Linear records y = x·wᵀ + bias + residual; bias and residual may be nil.
func (p *Plan) Linear(name string, x, w, bias, residual *kernel.Tensor) *kernel.Tensor {
	return p.LinearDrop(name, x, w, bias, residual, kernel.Drop{})
}

// LinearDrop records y = residual + drop(x·wᵀ + bias); bias and residual may be nil.
func (p *Plan) LinearDrop(name string, x, w, bias, residual *kernel.Tensor, drop kernel.Drop) *kernel.Tensor {
	y := p.dense(name, x, w)
	p.op(&kernel.Linear{Y: y, X: x, W: w, Bias: bias, Residual: residual, Drop: drop})
	p.reverse(func() {
		if !p.ready[y] {
			return
		}
		dy := p.Grad(y)
		if drop.Rate > 0 {
			kept := Compact(p.Shard("d."+name+".kept", y.Shape...))
			p.op(&kernel.Dropout{Y: kept, X: dy, Drop: drop})
			dy = kept
		}
		p.reverseLinear(x, w, bias, dy)
		p.share(residual, y)
	})
	return y
}

// LinearGELU records y = GELU(x·wᵀ + bias). Only linear layers may read y, because their backward
// op also computes the gradient of the GELU.
func (p *Plan) LinearGELU(name string, x, w, bias *kernel.Tensor) *kernel.Tensor {
	y, pre := Compact(p.dense(name, x, w)), Compact(p.dense(name+".pre", x, w))
	p.op(&kernel.Linear{Y: y, X: x, W: w, Bias: bias, Pre: pre})
	p.gelu[y] = pre
	p.reverse(func() {
		if p.ready[y] { // it then holds the gradient of pre, see reverseLinear
			p.reverseLinear(x, w, bias, p.Grad(y))
		}
	})
	return y
}

// dense returns a tensor for the product of x and a weight.
func (p *Plan) dense(name string, x, w *kernel.Tensor) *kernel.Tensor {
	if x.Cols() != w.Shape[1] {
		panic(fmt.Sprintf("plan: linear %s: input %v, weight %v", name, x, w))
	}
	shape := append([]int(nil), x.Shape...)
	shape[len(shape)-1] = w.Shape[0]
	return p.Shard(name, shape...)
}

// reverseLinear records the gradients of x·wᵀ + bias. If x is a GELU, the gradient buffer of x
// receives the gradient of the GELU's input.
func (p *Plan) reverseLinear(x, w, bias, dy *kernel.Tensor) {
	if dw := p.gradWeight(w); dw != nil {
		p.op(&kernel.LinearGradW{DW: dw, DBias: p.gradWeight(bias), DY: dy, X: x})
	}
	if p.data(x) {
		return
	}
	dx, acc := p.contribute(x)
	if p.gelu[x] != nil && acc {
		panic("plan: the GELU " + x.Name + " is read twice")
	}
	p.op(&kernel.LinearGradX{DX: dx, DY: dy, W: w, Pre: p.gelu[x], Accumulate: acc})
}

// data reports whether x has no gradient, because the host wrote it or Append recorded its op.
func (p *Plan) data(x *kernel.Tensor) bool { return !p.made[x.Root()] }

// Norm records layer normalisation of x.
func (p *Plan) Norm(name string, x, gamma, beta *kernel.Tensor) *kernel.Tensor {
	y := p.Shard(name, x.Shape...)
	mean, rstd := p.Shard(name+".mean", x.Rows()), p.Shard(name+".rstd", x.Rows())
	p.op(&kernel.Norm{Y: y, Mean: mean, Rstd: rstd, X: x, Gamma: gamma, Beta: beta})
	p.reverse(func() {
		if !p.ready[y] {
			return
		}
		dx, acc := p.contribute(x)
		p.op(&kernel.NormGrad{DX: dx, DGamma: p.gradWeight(gamma), DBeta: p.gradWeight(beta), DY: p.Grad(y),
			X: x, Mean: mean, Rstd: rstd, Gamma: gamma, Accumulate: acc})
	})
	return y
}

// Attention records self-attention with distance bias over qkv [B,N,3D].
func (p *Plan) Attention(name string, qkv, posX, posY, slope *kernel.Tensor, heads int) *kernel.Tensor {
	b, n, d := qkv.Shape[0], qkv.Shape[1], qkv.Shape[2]/3
	y := p.Shard(name, b, n, d)
	prob := p.Shard(name+".p", b, heads, n, kernel.Pad(n))
	p.op(&kernel.Attention{Y: y, P: prob, QKV: qkv, PosX: posX, PosY: posY, Slope: slope, Heads: heads})
	p.reverse(func() {
		if !p.ready[y] {
			return
		}
		dqkv, acc := p.contribute(qkv)
		if acc {
			panic("plan: attention input used twice")
		}
		p.op(&kernel.AttentionGrad{DQKV: dqkv, DSlope: p.gradWeight(slope), DY: p.Grad(y), P: prob, QKV: qkv,
			PosX: posX, PosY: posY, Y: y, Slope: slope, Heads: heads})
	})
	return y
}

// GraphAttention records graph attention over values v [B,N,D], scores [B,N,2H] and far [B,N,H].
// The scores may be computed from v, whose gradient is first written here.
func (p *Plan) GraphAttention(name string, v, score, far, posX, posY *kernel.Tensor, leak float32) *kernel.Tensor {
	b, n, d, heads := v.Shape[0], v.Shape[1], v.Shape[2], far.Shape[2]
	y := p.Shard(name, b, n, d)
	prob := p.Shard(name+".p", b, heads, n, kernel.Pad(n))
	p.op(&kernel.GraphAttention{Y: y, P: prob, V: v, Score: score, Far: far, PosX: posX, PosY: posY, Heads: heads, Leak: leak})
	p.reverse(func() {
		if !p.ready[y] {
			return
		}
		dv, accV := p.contribute(v)
		dscore, accS := p.contribute(score)
		dfar, accF := p.contribute(far)
		if accV || accS || accF {
			panic("plan: graph attention input used twice")
		}
		p.op(&kernel.GraphAttentionGrad{DV: dv, DScore: dscore, DFar: dfar, DY: p.Grad(y), P: prob, V: v, Score: score, Far: far,
			PosX: posX, PosY: posY, Heads: heads, Leak: leak})
	})
	return y
}

// GLU records the gated linear unit: half of the columns times the sigmoid of the other half.
func (p *Plan) GLU(name string, g *kernel.Tensor) *kernel.Tensor {
	shape := append([]int(nil), g.Shape...)
	shape[len(shape)-1] /= 2
	y := p.Shard(name, shape...)
	p.op(&kernel.GLU{Y: y, G: g})
	p.reverse(func() {
		if !p.ready[y] {
			return
		}
		dg, acc := p.contribute(g)
		if acc {
			panic("plan: glu input used twice")
		}
		p.op(&kernel.GLUGrad{DG: dg, DY: p.Grad(y), G: g})
	})
	return y
}

// Dropout records y = residual + x·mask/(1-rate).
func (p *Plan) Dropout(name string, x, residual *kernel.Tensor, rate float32, site int, seed uint64) *kernel.Tensor {
	y := p.Shard(name, x.Shape...)
	nodes := x.Shape[1]
	drop := kernel.Drop{Rate: rate, Site: site, Nodes: nodes, Seed: seed}
	p.op(&kernel.Dropout{Y: y, X: x, Residual: residual, Drop: drop})
	p.reverse(func() {
		if !p.ready[y] {
			return
		}
		dx, acc := p.contribute(x)
		if acc {
			panic("plan: dropout input used twice")
		}
		p.op(&kernel.Dropout{Y: dx, X: p.Grad(y), Drop: drop})
		p.share(residual, y)
	})
	return y
}

// MeanNodes records the mean over the nodes of each instance.
func (p *Plan) MeanNodes(name string, x *kernel.Tensor) *kernel.Tensor {
	y := p.Shard(name, x.Shape[0], x.Cols())
	p.op(&kernel.MeanNodes{Y: y, X: x})
	p.reverse(func() {
		if !p.ready[y] {
			return
		}
		dx, acc := p.contribute(x)
		p.op(&kernel.MeanNodesGrad{DX: dx, DY: p.Grad(y), Accumulate: acc})
	})
	return y
}
