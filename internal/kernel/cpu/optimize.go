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
		r.squares[i] = w.p.sumSquares(sum)
	}
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
	lr := r.ctl.LearningRate
	if done := r.state.Step + 1; o.Warmup > 0 && done < uint64(o.Warmup) {
		lr *= float32(done) / float32(o.Warmup)
	}
	w.adam = adamArgs{lr: lr, beta1: float32(o.Beta1), beta2: float32(o.Beta2), eps: o.Eps, decay: o.Decay,
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

// count adds the step's results to the metrics, row by row.
func (r *runner) count() {
	o := r.tally
	if o == nil {
		return
	}
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
