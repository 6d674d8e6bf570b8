package reference

import (
	"math"

	"haul/internal/kernel"
)

// AdamW updates weights w and moments m, v from the summed gradient, and the parts of state and metrics
// that belong to the optimizer. Where the update has parts to come it counts this one and leaves the rest alone.
func AdamW[F Float](w, m, v, grad []F, o *kernel.AdamW, c kernel.Control, state *kernel.State, metrics *kernel.Metrics) {
	if o.Every > 1 {
		state.Part = (state.Part + 1) % uint64(o.Every)
		if state.Part != 0 {
			return
		}
	}
	var squares float64
	for _, g := range grad {
		squares += float64(g) * float64(g)
	}
	norm := math.Sqrt(squares)
	lr := float64(c.LearningRate) * schedule(o, float64(state.Step+1))
	metrics.GradNorm += norm
	if metrics.BadStep == 0 && (math.IsNaN(norm) || math.IsInf(norm, 0)) {
		metrics.BadStep = int64(state.Step) + 1
	}
	if metrics.BadStep != 0 {
		return
	}
	state.Step++
	state.Beta1T *= o.Beta1
	state.Beta2T *= o.Beta2
	scale := 1.0
	if o.MaxNorm > 0 && norm > float64(o.MaxNorm) {
		scale = float64(o.MaxNorm) / (norm + 1e-6)
	}
	beta1, beta2 := F(o.Beta1), F(o.Beta2)
	correct1, correct2 := F(1/(1-state.Beta1T)), F(1/(1-state.Beta2T))
	for i := range w {
		g := grad[i] * F(scale)
		m[i] = beta1*m[i] + (1-beta1)*g
		v[i] = beta2*v[i] + (1-beta2)*g*g
		w[i] -= F(lr) * (m[i]*correct1/(sqrt(v[i]*correct2)+F(o.Eps)) + F(o.Decay)*w[i])
	}
}

// schedule is what the control block's learning rate is multiplied by at step t, counted from 1.
func schedule(o *kernel.AdamW, t float64) float64 {
	warmup, total, floor := float64(o.Warmup), float64(o.Total), float64(o.Floor)
	switch {
	case t <= warmup:
		return t / warmup
	case total > 0:
		return floor + (1-floor)*(1+math.Cos(math.Pi*(min(t, total)-warmup)/(total-warmup)))/2
	default:
		return 1
	}
}

// Batch is what Tally reads: a row an instance, a column a start.
type Batch[F Float] struct {
	Length, LogProb, Entropy, Adv Matrix[F]
	Steps                         []int32
	Base                          []F
}

// Tally adds a step to the metrics and the running baseline.
func Tally[F Float](r Batch[F], decay float64, c kernel.Control, state *kernel.State, metrics *kernel.Metrics) {
	var cost, entropy float64
	for b := range r.Length.Rows {
		for s := range r.Length.Cols {
			length := float64(r.Length.Row(b)[s])
			cost += length
			entropy += float64(r.Entropy.Row(b)[s])
			metrics.LogCost += math.Log(length)
			metrics.BaseCost += float64(r.Base[b])
			metrics.Loss += float64(r.Adv.Row(b)[s]) * float64(r.LogProb.Row(b)[s])
			metrics.Actions += int64(r.Steps[b*r.Length.Cols+s])
		}
	}
	trajectories := r.Length.Rows * r.Length.Cols
	mean := 1 / float64(trajectories)
	metrics.Steps++
	metrics.Trajectory += int64(trajectories)
	metrics.Cost += cost
	metrics.Entropy += entropy
	metrics.Loss -= float64(c.Entropy) * entropy * mean
	if decay > 0 {
		if state.EMASteps == 0 {
			state.EMA = cost * mean
		} else {
			state.EMA = decay*state.EMA + (1-decay)*cost*mean
		}
		state.EMASteps++
	}
}

// TallyTokens adds classifiers' sums to the metrics: columns loss, labels, hits of each.
func TallyTokens[F Float](sums Matrix[F], metrics *kernel.Metrics) {
	for b := range sums.Rows {
		for g := range sums.Cols / 3 {
			row, head := sums.Row(b)[3*g:], &metrics.Heads[g]
			head.Loss += float64(row[0])
			head.Labels += int64(row[1])
			head.Hits += int64(row[2])
		}
	}
}
