package cpu

import (
	"errors"
	"math"

	"haul/internal/kernel"
)

// The optimizer's phases. Work is handed out in fixed pieces and every sum runs in a fixed order, so which worker takes a piece
// changes nothing.

// learns tells whether the program makes a gradient.
func (r *runner) learns() bool { return len(r.squares) > 0 }

// whole says that the step ends an update: always, unless updates have parts.
func (r *runner) whole() bool { return r.every == 1 || r.state.Part == uint64(r.every)-1 }

// reduce adds the lanes into lane 0 by the tree, chunk by chunk. Where an update has parts, lanes gather them all and are added up with the
// last.
func (b *binder) reduce(o *kernel.Reduce) ([]*phase, error) {
	r := b.r
	if err := b.covered(); err != nil {
		return nil, err
	}
	if len(r.sets) == 0 || r.sets[0].lanes == nil {
		return nil, errors.New("weight set 0 was not made for training")
	}
	r.squares = make([]float64, (r.prog.Layout.Len+chunk-1)/chunk)
	reduce := &phase{run: r.sumLanes}
	if o.Every > 1 {
		r.every, reduce.when = o.Every, r.whole
		r.done = append(r.done, func() { r.state.Part = (r.state.Part + 1) % uint64(r.every) })
	}
	return []*phase{reduce}, nil
}

func (r *runner) sumLanes(w *worker, p *phase) {
	lanes := r.sets[0].lanes
	for i := p.take(); i < len(r.squares); i = p.take() {
		at, end := i*chunk, min((i+1)*chunk, len(lanes[0]))
		for adds := r.adds; len(adds) > 0; {
			if a, ok := four(adds); ok {
				w.p.add4(lanes[a[0]][at:end], lanes[a[1]][at:end], lanes[a[2]][at:end], lanes[a[3]][at:end])
				adds = adds[3:]
				continue
			}
			w.p.add(lanes[adds[0][0]][at:end], lanes[adds[0][1]][at:end])
			adds = adds[1:]
		}
		if !r.exchanges { // nobody will change it: its squares are added up while it is in cache
			r.squares[i] = w.p.sumSquares(lanes[0][at:end])
		}
	}
}

// four finds (a+b)+(c+d) at the front of a list of additions: one pass over four lanes, of which only the first is written.
func four(adds [][2]int) (lanes [4]int, ok bool) {
	if len(adds) < 3 || adds[2] != [2]int{adds[0][0], adds[1][0]} {
		return lanes, false
	}
	return [4]int{adds[0][0], adds[0][1], adds[1][0], adds[1][1]}, true
}

// exchange lets the peer replace the gradient, on the goroutine that drives the device, and then adds up the squares.
func (b *binder) exchange(o *kernel.Exchange) []*phase {
	r := b.r
	r.exchanges = true
	return []*phase{
		{when: r.whole, run: func(w *worker, p *phase) {
			if w.id == 0 {
				p.err = o.Peer.Exchange(r.sets[0].lanes[0])
			}
		}},
		{when: r.whole, run: func(w *worker, p *phase) {
			sum := r.sets[0].lanes[0]
			for i := p.take(); i < len(r.squares); i = p.take() {
				r.squares[i] = w.p.sumSquares(sum[i*chunk : min((i+1)*chunk, len(sum))])
			}
		}},
	}
}

// adamw clips and updates, then packs.
func (b *binder) adamw(o *kernel.AdamW) []*phase {
	r := b.r
	u := &update{r: r, o: o}
	r.done = append([]func(){u.finish}, r.done...) // before the parts are counted
	return []*phase{{when: r.whole, run: u.apply}, {when: r.whole, run: r.packAll}}
}

// update is AdamW over a runner's first weight set.
type update struct {
	r      *runner
	o      *kernel.AdamW
	badNow bool // this step's gradient is not finite; set by one worker, read after the join
}

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

// apply is a worker's part. Every worker adds up the norm itself: a few dozen numbers, in order.
func (u *update) apply(w *worker, p *phase) {
	r, o := u.r, u.o
	var total float64
	for _, s := range r.squares {
		total += s
	}
	norm := math.Sqrt(total)
	bad := math.IsNaN(norm) || math.IsInf(norm, 0)
	if bad || r.sums.badStep != 0 {
		if p.take() == 0 {
			u.refuse(norm, bad)
		}
		return
	}
	scale := 1.0
	if o.MaxNorm > 0 && norm > float64(o.MaxNorm) {
		scale = float64(o.MaxNorm) / (norm + 1e-6)
	}
	w.adam = adamArgs{lr: rate(o, r.ctl.LearningRate, r.state.Step+1), beta1: float32(o.Beta1), beta2: float32(o.Beta2), eps: o.Eps, decay: o.Decay,
		correct1: float32(1 / (1 - r.state.Beta1T*o.Beta1)), correct2: float32(1 / (1 - r.state.Beta2T*o.Beta2)), scale: float32(scale)}
	st := r.sets[0]
	for i := p.take(); i < len(r.squares); i = p.take() {
		at, end := i*chunk, min((i+1)*chunk, len(st.weights))
		w.p.adamw(st.weights[at:end], st.m[at:end], st.v[at:end], st.lanes[0][at:end], &w.adam)
		if i == 0 {
			r.sums.gradNorm += norm
		}
	}
}

// refuse records the first step that went wrong; later ones change nothing, so it can be replayed. The
// other workers may still be reading badStep in apply, which is why the mark waits for finish.
func (u *update) refuse(norm float64, bad bool) {
	u.r.sums.gradNorm += norm
	if bad {
		u.badNow = true
	}
}

// finish advances the state after all workers are done.
func (u *update) finish() {
	r := u.r
	if u.badNow {
		u.badNow, r.bad = false, r.state.Instances-r.state.Part*uint64(r.prog.Total())
		r.sums.badStep = int64(r.state.Step) + 1
	}
	if r.whole() && r.sums.badStep == 0 {
		r.state.Step++
		r.state.Beta1T *= u.o.Beta1
		r.state.Beta2T *= u.o.Beta2
	}
}

// packAll refreshes the packed forms of all matrices.
func (r *runner) packAll(_ *worker, p *phase) {
	st := r.sets[0]
	for i := p.take(); i < len(st.packs); i = p.take() {
		st.pack(i)
	}
}
