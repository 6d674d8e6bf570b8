package plan

import (
	"fmt"

	"haul/internal/kernel"
	"haul/internal/rng"
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

// LinearGELU records y = GELU(x·wᵀ + bias). What reads y must be linear: its gradient goes on
// through the GELU in one op.
func (p *Plan) LinearGELU(name string, x, w, bias *kernel.Tensor) *kernel.Tensor {
	y, pre := Compact(p.dense(name, x, w)), Compact(p.dense(name+".pre", x, w))
	p.op(&kernel.Linear{Y: y, X: x, W: w, Bias: bias, Pre: pre})
	p.gelu[y] = pre
	p.reverse(func() {
		if p.ready[y] { // the gradient of pre by then: see reverseLinear
			p.reverseLinear(x, w, bias, p.Grad(y))
		}
	})
	return y
}

// dense is the result of x times a weight.
func (p *Plan) dense(name string, x, w *kernel.Tensor) *kernel.Tensor {
	if x.Cols() != w.Shape[1] {
		panic(fmt.Sprintf("plan: linear %s: input %v, weight %v", name, x, w))
	}
	shape := append([]int(nil), x.Shape...)
	shape[len(shape)-1] = w.Shape[0]
	return p.Shard(name, shape...)
}

// reverseLinear records the gradients of x·wᵀ + bias. Where x is a GELU its gradient buffer is
// given that of what the GELU was applied to.
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

// data reports whether x has no gradient: it comes from the host, or from an op that was appended
// as having none.
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
// The scores may be made of v: its gradient begins here.
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

// GLU records the gated unit: half the columns times the sigmoid of the other half.
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

// Routes are the results of a rollout.
type Routes struct {
	Actions, Steps, Length, LogProb, Entropy *kernel.Tensor
	op                                       *kernel.Rollout
}

// RolloutSpec says how routes are drawn.
type RolloutSpec struct {
	Choice  kernel.Choice
	Starts  int
	Forced  bool
	Viewed  bool
	MaxStep int // bound on decode steps
	Seed    uint64
	Keep    bool           // keep the actions for the host
	Actions *kernel.Tensor // with Replay: what to replay
}

// Drawn records the drawing of a shard's instances of n nodes.
func (p *Plan) Drawn(rules kernel.Rules, n int, d kernel.Drawing) kernel.Instances {
	in := kernel.Instances{Rules: rules, PosX: p.Shard("x", p.B(), n), PosY: p.Shard("y", p.B(), n),
		Nodes: p.ShardInts("nodes", p.B(), n*len(rules.Set.Columns())), Feature: p.Shard("feature", p.B(), n, len(rules.Set.Features()))}
	p.Append(&kernel.Generate{Instances: in, Drawing: d})
	return in
}

// Given are instances of n nodes that the host writes, features included.
func (p *Plan) Given(rules kernel.Rules, n int) kernel.Instances {
	return kernel.Instances{Rules: rules, PosX: p.Rows("x", p.B(), n), PosY: p.Rows("y", p.B(), n),
		Nodes: p.RowInts("nodes", p.B(), n*len(rules.Set.Columns())), Feature: p.Rows("feature", p.B(), n, len(rules.Set.Features()))}
}

// Rollout records the decoding of routes.
func (p *Plan) Rollout(name string, dec kernel.Decoder, s RolloutSpec, purpose rng.Purpose) *Routes {
	b := p.B()
	actions := s.Actions
	if actions == nil && s.Keep {
		actions = p.RowInts(name+".actions", b, s.Starts, s.MaxStep)
	} else if actions == nil {
		actions = p.ShardInts(name+".actions", b, s.Starts, s.MaxStep)
	}
	r := &Routes{Actions: actions, Steps: p.RowInts(name+".steps", b, s.Starts), Length: p.Rows(name+".length", b, s.Starts),
		LogProb: p.Rows(name+".logprob", b, s.Starts), Entropy: p.Rows(name+".entropy", b, s.Starts)}
	r.op = &kernel.Rollout{Decoder: dec, Actions: r.Actions, Steps: r.Steps, Length: r.Length, LogProb: r.LogProb,
		Entropy: r.Entropy, Choice: s.Choice, Forced: s.Forced, Viewed: s.Viewed, Seed: s.Seed, Purpose: purpose}
	p.op(r.op)
	return r
}

// EntropyBonus is the control block's coefficient of the entropy in PolicyGradient.
const EntropyBonus = "entropy"

// PolicyGradient records the gradient of mean(adv·log π) - EntropyBonus·entropy into the decoder's
// inputs, where reversing the tape starts.
func (p *Plan) PolicyGradient(r *Routes, adv *kernel.Tensor) {
	d := r.op.Decoder
	dproj, _ := p.contribute(d.Proj)
	dpointer, _ := p.contribute(d.Pointer)
	dgraph, _ := p.contribute(d.Graph)
	o := &kernel.RolloutGrad{Decoder: d, DProj: dproj, DPointer: dpointer, DGraph: dgraph, DContext: p.gradWeight(d.Context),
		Actions: r.Actions, Steps: r.Steps, Adv: adv, Weight: 1 / float32(p.prog.Total()*r.Length.Cols()), Bonus: EntropyBonus,
		Forced: r.op.Forced, Viewed: r.op.Viewed}
	if d.Pair != nil {
		o.DPair, _ = p.contribute(d.Pair)
		o.DPairContext = p.gradWeight(d.PairContext)
	}
	p.op(o)
}

// The scalars of a running baseline: the mean, and the batches in it.
const (
	MeanCost    = "mean_cost"
	MeanBatches = "mean_cost_batches"
)

// Comparison says how the routes of an instance are weighed against one another. All but By are
// kernel.Preference's.
type Comparison struct {
	By     kernel.Comparison
	Alpha  float64 // slope of the pairs' loss
	Leader float64 // further weight of pairs with the best route
	Alone  bool    // count it only if no other route ties with the best
	Margin float64 // scale it by the lead, in shares of the best length; 0: do not
	Group  int     // rows that are compared with one another (see Together)
}

// Advantage records what each route weighs, by its length and the baseline, over instances·starts.
// base is read with Given and otherwise made here. With Running the baseline is the mean length of
// the steps before, with that decay; otherwise decay means nothing.
func (p *Plan) Advantage(r *Routes, mode kernel.BaselineMode, base *kernel.Tensor, decay float64, c Comparison) (adv, used *kernel.Tensor) {
	if base == nil {
		base = p.Rows("baseline", p.B(), 1)
	}
	adv = p.Rows("advantage", p.B(), r.Length.Cols())
	o := &kernel.Advantage{Adv: adv, Length: r.Length, Base: base, Mode: mode, By: c.By, Weight: 1 / float32(p.prog.Total()*r.Length.Cols())}
	if c.By == kernel.Preference {
		o.LogProb, o.Alpha, o.Leader, o.Alone, o.Margin, o.Group = r.LogProb, float32(c.Alpha), float32(c.Leader), c.Alone, float32(c.Margin), c.Group
		if p.prog.Shard%o.Rows() != 0 || p.prog.Batch%o.Rows() != 0 {
			panic(fmt.Sprintf("plan: groups of %d in shards of %d of a batch of %d", o.Group, p.prog.Shard, p.prog.Batch))
		}
	}
	if mode == kernel.Running {
		o.Mean, o.Count = p.Scalar(MeanCost), p.Scalar(MeanBatches)
		p.Once(&kernel.RunningMean{Mean: o.Mean, Count: o.Count, X: r.Length, Decay: decay})
	}
	p.op(o)
	return adv, base
}

// The sums that TallyRoutes makes beside kernel.SumRows and kernel.SumDecodes.
const (
	SumCost     = "cost"     // Σ route length
	SumLogCost  = "log_cost" // Σ log of the route length, for the geometric mean
	SumBaseline = "baseline" // Σ baseline
	SumLoss     = "loss"     // Σ over steps of Σ adv·log π - EntropyBonus·mean of the entropy
	SumEntropy  = "entropy"  // Σ of the mean entropy of a row's decisions
)

// TallyRoutes records the sums of a step of policy gradient.
func (p *Plan) TallyRoutes(r *Routes, adv, base *kernel.Tensor) {
	p.Once(&kernel.Tally{Sums: []kernel.Sum{
		{Name: kernel.SumRows, Terms: []kernel.Term{{Weight: 1}}},
		kernel.NewSum(SumCost, r.Length, nil),
		{Name: SumLogCost, Terms: []kernel.Term{{X: r.Length, Log: true, Weight: 1}}},
		kernel.NewSum(SumBaseline, base, nil),
		{Name: SumLoss, Terms: []kernel.Term{{X: adv, Y: r.LogProb, Weight: 1}, {X: r.Entropy, Weight: -1, Coefficient: EntropyBonus, Mean: true}}},
		kernel.NewSum(SumEntropy, r.Entropy, nil),
		kernel.NewSum(kernel.SumDecodes, r.Steps, nil),
	}})
}
