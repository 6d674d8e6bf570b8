package plan

import (
	"fmt"
	"haul/internal/kernel"
	"haul/internal/rng"
)

// Routes holds the results of a rollout.
type Routes struct {
	Actions, Steps, Length, LogProb, Entropy *kernel.Tensor
	op                                       *kernel.Rollout
}

// RolloutSpec configures a rollout.
type RolloutSpec struct {
	Choice  kernel.Choice
	Starts  int
	Forced  bool
	Viewed  bool
	MaxStep int // bound on the number of decode steps
	Seed    uint64
	Keep    bool           // the host reads the actions
	Actions *kernel.Tensor // with Replay: the actions to replay
}

// Drawn records the generation of a shard's instances of n nodes.
func (p *Plan) Drawn(rules kernel.Rules, n int, d kernel.Drawing) kernel.Instances {
	in := kernel.Instances{Rules: rules, PosX: p.Shard("x", p.B(), n), PosY: p.Shard("y", p.B(), n),
		Nodes: p.ShardInts("nodes", p.B(), rules.Set.Words(n)), Feature: p.Shard("feature", p.B(), n, len(rules.Set.Features()))}
	p.Append(&kernel.Generate{Instances: in, Drawing: d})
	return in
}

// Given returns instances of n nodes that the host writes, features included.
func (p *Plan) Given(rules kernel.Rules, n int) kernel.Instances {
	return kernel.Instances{Rules: rules, PosX: p.Rows("x", p.B(), n), PosY: p.Rows("y", p.B(), n),
		Nodes: p.RowInts("nodes", p.B(), rules.Set.Words(n)), Feature: p.Rows("feature", p.B(), n, len(rules.Set.Features()))}
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

// EntropyBonus is the name of PolicyGradient's entropy coefficient in the control block.
const EntropyBonus = "entropy"

// PolicyGradient records the gradient of mean(adv·log π) - EntropyBonus·entropy with respect to the
// decoder's inputs, and seeds the backward pass with it.
func (p *Plan) PolicyGradient(r *Routes, adv *kernel.Tensor) {
	d := r.op.Decoder
	dproj, _ := p.contribute(d.Proj)
	dpointer, _ := p.contribute(d.Pointer)
	dgraph, _ := p.contribute(d.Graph)
	o := &kernel.RolloutGrad{Decoder: d, DProj: dproj, DPointer: dpointer, DGraph: dgraph, DContext: p.gradWeight(d.Context),
		Actions: r.Actions, Steps: r.Steps, Adv: adv, Weight: 1 / float32(p.total()*r.Length.Cols()), Bonus: EntropyBonus,
		Forced: r.op.Forced, Viewed: r.op.Viewed}
	if d.Pair != nil {
		o.DPair, _ = p.contribute(d.Pair)
		o.DPairContext = p.gradWeight(d.PairContext)
	}
	p.op(o)
}

// The scalars of a running baseline: the mean, and the number of batches in it.
const (
	MeanCost    = "mean_cost"
	MeanBatches = "mean_cost_batches"
)

// Comparison configures how routes of one instance are weighted. The fields after By are those of
// kernel.Preference.
type Comparison struct {
	By     kernel.Comparison
	Alpha  float64 // slope of the loss of pairs
	Leader float64 // additional weight of pairs with the best route
	Alone  bool    // apply Leader only if no other route is as short as the best
	Margin float64 // scale Leader by the lead as a fraction of the best length; 0: no scaling
	Group  int     // rows that are compared with each other (see SetGroupSize)
}

// Advantage records the weight of each route, over instances·starts, by its length and the
// baseline. With Given the caller passes base; otherwise Advantage creates it. With Running the
// baseline is the mean length of earlier steps with this decay; decay is ignored otherwise.
func (p *Plan) Advantage(r *Routes, mode kernel.BaselineMode, base *kernel.Tensor, decay float64, c Comparison) (adv, used *kernel.Tensor) {
	if base == nil {
		base = p.Rows("baseline", p.B(), 1)
	}
	adv = p.Rows("advantage", p.B(), r.Length.Cols())
	o := &kernel.Advantage{Adv: adv, Length: r.Length, Base: base, Mode: mode, By: c.By, Weight: 1 / float32(p.total()*r.Length.Cols())}
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

// The sums that TallyRoutes accumulates besides kernel.SumRows and kernel.SumDecodes.
const (
	SumCost     = "cost"     // Σ route length
	SumLogCost  = "log_cost" // Σ log of the route length, for the geometric mean
	SumBaseline = "baseline" // Σ baseline
	SumLoss     = "loss"     // Σ over steps of Σ adv·log π - EntropyBonus·mean of the entropy
	SumEntropy  = "entropy"  // Σ of the mean entropy of a row's decisions
)

// TallyRoutes records the sums of a step of policy gradient. The costs of a problem file may be
// below 0, where they have no logarithm: its SumLogCost is 0.
func (p *Plan) TallyRoutes(r *Routes, adv, base *kernel.Tensor) {
	logs := kernel.Sum{Name: SumLogCost, Terms: []kernel.Term{{X: r.Length, Log: true, Weight: 1}}}
	if r.op.Set.Problem() != nil {
		logs = kernel.Sum{Name: SumLogCost, Terms: []kernel.Term{{X: r.Length}}}
	}
	p.Once(&kernel.Tally{Sums: []kernel.Sum{
		{Name: kernel.SumRows, Terms: []kernel.Term{{Weight: 1}}},
		kernel.NewSum(SumCost, r.Length, nil),
		logs,
		kernel.NewSum(SumBaseline, base, nil),
		{Name: SumLoss, Terms: []kernel.Term{{X: adv, Y: r.LogProb, Weight: 1}, {X: r.Entropy, Weight: -1, Coefficient: EntropyBonus, Mean: true}}},
		kernel.NewSum(SumEntropy, r.Entropy, nil),
		kernel.NewSum(kernel.SumDecodes, r.Steps, nil),
	}})
}
