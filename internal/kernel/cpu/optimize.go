package cpu

import (
	"math"

	"haul/internal/kernel"
)

// The phases after the shards. Work is handed out in fixed pieces and every sum runs in a fixed
// order, so which worker takes a piece changes nothing.

// sumLanes adds the lanes into lane 0, chunk by chunk, with each chunk's sum of squares; the
// worker that takes the piece past the last chunk tallies the step's results.
func (r *runner) sumLanes(w *worker) {
	chunks := len(r.squares)
	for i := int(r.nextTask[0].Add(1)) - 1; i <= chunks; i = int(r.nextTask[0].Add(1)) - 1 {
		if i == chunks {
			r.count()
			return
		}
		lanes := r.sets[0].lanes
		at, end := i*chunk, min((i+1)*chunk, len(lanes[0]))
		sum := lanes[0][at:end]
		for _, l := range lanes[1:r.lanes] {
			w.p.add(sum, l[at:end])
		}
		if r.state.Part > 0 {
			w.p.add(sum, r.parts[at:end])
		}
		if !r.whole() {
			copy(r.parts[at:end], sum)
			continue
		}
		r.squares[i] = w.p.sumSquares(sum)
	}
}

// whole says that the step ends an update: always, unless updates have parts.
func (r *runner) whole() bool { return r.parts == nil || r.state.Part == uint64(r.adam.Every)-1 }

// rate is the learning rate of step t, counted from 1.
func rate(o *kernel.AdamW, control float32, t uint64) float32 {
	warmup := uint64(max(0, o.Warmup))
	switch {
	case t < warmup:
		return control * float32(t) / float32(warmup)
	case o.Total > 0 && t > warmup:
		done := float64(min(t, uint64(o.Total))-min(warmup, uint64(o.Total))) / float64(max(1, o.Total-o.Warmup))
		return control * (o.Floor + (1-o.Floor)*float32(1+math.Cos(math.Pi*done))/2)
	}
	return control
}

// update clips and applies AdamW. Every worker adds up the norm itself: a few dozen numbers, in order.
func (r *runner) update(w *worker) {
	var total float64
	for _, s := range r.squares {
		total += s
	}
	norm := math.Sqrt(total)
	bad := math.IsNaN(norm) || math.IsInf(norm, 0)
	if bad || r.sums.BadStep != 0 {
		if r.nextTask[1].Add(1) == 1 {
			r.markBad(norm, bad)
		}
		return
	}
	o := r.adam
	scale := 1.0
	if o.MaxNorm > 0 && norm > float64(o.MaxNorm) {
		scale = float64(o.MaxNorm) / (norm + 1e-6)
	}
	w.adam = adamArgs{lr: rate(o, r.ctl.LearningRate, r.state.Step+1), beta1: float32(o.Beta1), beta2: float32(o.Beta2), eps: o.Eps, decay: o.Decay,
		correct1: float32(1 / (1 - r.state.Beta1T*o.Beta1)), correct2: float32(1 / (1 - r.state.Beta2T*o.Beta2)), scale: float32(scale)}
	st := r.sets[0]
	for i := int(r.nextTask[1].Add(1)) - 1; i < len(r.squares); i = int(r.nextTask[1].Add(1)) - 1 {
		at, end := i*chunk, min((i+1)*chunk, len(st.weights))
		w.p.adamw(st.weights[at:end], st.m[at:end], st.v[at:end], st.lanes[0][at:end], &w.adam)
		if i == 0 {
			r.sums.GradNorm += norm
		}
	}
}

// markBad records the first step that went wrong; later ones change nothing, so it can be replayed. The
// other workers may still be reading BadStep in update, which is why the mark waits for finish.
func (r *runner) markBad(norm float64, bad bool) {
	r.sums.GradNorm += norm
	if bad {
		r.badNow = true
	}
}

// packAll refreshes the packed forms of all matrices.
func (r *runner) packAll() {
	st := r.sets[0]
	for i := int(r.nextTask[2].Add(1)) - 1; i < len(st.packs); i = int(r.nextTask[2].Add(1)) - 1 {
		st.pack(i)
	}
}

// count adds the step's results to the metrics.
func (r *runner) count() {
	if r.tally != nil {
		r.countRoutes(r.tally)
	}
	if r.tokens != nil {
		r.countTokens(r.tokens)
	}
}

func (r *runner) countTokens(o *kernel.TallyTokens) {
	heads := o.Sums.Cols() / 3
	sums := r.batch[o.Sums]
	for b := range r.prog.Batch {
		for g := range heads {
			row, head := sums[(b*heads+g)*3:][:3], &r.sums.Heads[g]
			head.Loss += float64(row[0])
			head.Labels += int64(row[1])
			head.Hits += int64(row[2])
		}
	}
}

// countRoutes goes row by row.
func (r *runner) countRoutes(o *kernel.Tally) {
	starts := o.Length.Cols()
	rows := r.prog.Batch * starts
	length, logProb, entropy := r.batch[o.Length], r.batch[o.LogProb], r.batch[o.Entropy]
	steps, adv, base := ints(r.batch[o.Steps]), r.batch[o.Adv], r.batch[o.Base]
	var cost, ent, loss float64
	for i := range rows {
		c := float64(length[i])
		cost += c
		r.sums.LogCost += math.Log(c)
		r.sums.BaseCost += float64(base[i/starts])
		ent += float64(entropy[i])
		loss += float64(adv[i]) * float64(logProb[i])
		r.sums.Actions += int64(steps[i])
	}
	r.sums.Cost += cost
	r.sums.Entropy += ent
	r.sums.Loss += loss - float64(r.ctl.Entropy)*ent/float64(rows)
	r.sums.Steps++
	r.sums.Trajectory += int64(rows)
	if o.EMADecay > 0 {
		r.nextEMA = nextEMA(r.state, cost/float64(rows), o.EMADecay)
	}
}

// nextEMA is the running mean after one more batch; the first batch starts it.
func nextEMA(s kernel.State, mean, decay float64) float64 {
	if s.EMASteps == 0 {
		return mean
	}
	return decay*s.EMA + (1-decay)*mean
}
