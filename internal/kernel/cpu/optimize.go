package cpu

import (
	"errors"
	"math"
	"slices"

	"haul/internal/kernel"
)

// The optimizer's phases. Work is handed out in fixed chunks and every sum runs in a fixed order,
// so which worker takes a chunk changes nothing, nor does which process: those that share a step
// share its update by chunks too.

// learns tells whether the program makes a gradient.
func (r *runner) learns() bool { return len(r.squares) > 0 }

// whole says that the step ends an update: always, unless updates have parts.
func (r *runner) whole() bool { return r.every == 1 || r.state.Part == uint64(r.every)-1 }

// reduce adds the lanes into lane 0 by the tree, chunk by chunk. Where an update has parts, lanes
// gather them all and are added up with the last.
func (b *binder) reduce(o *kernel.Reduce) ([]*phase, error) {
	r := b.r
	if err := b.covered(); err != nil {
		return nil, err
	}
	if len(r.sets) == 0 || r.sets[0].lanes == nil {
		return nil, errors.New("weight set 0 was not made for training")
	}
	r.squares = make([]float64, (r.prog.Layout.Len+chunk-1)/chunk)
	r.piece = piece{to: len(r.squares), grad: r.sets[0].lanes[0]}
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
		w.addUp(r.adds, lanes, at, end)
		if r.piece.peer == nil { // nobody will change it: its squares are added up while it is in cache
			r.squares[i] = w.p.sumSquares(lanes[0][at:end])
		}
	}
}

// addUp makes a list of additions between elements [at, end) of buffers.
func (w *worker) addUp(adds [][2]int, bufs [][]float32, at, end int) {
	for len(adds) > 0 {
		if a, ok := four(adds); ok {
			w.p.add4(bufs[a[0]][at:end], bufs[a[1]][at:end], bufs[a[2]][at:end], bufs[a[3]][at:end])
			adds = adds[3:]
			continue
		}
		w.p.add(bufs[adds[0][0]][at:end], bufs[adds[0][1]][at:end])
		adds = adds[1:]
	}
}

// four finds (a+b)+(c+d) at the front of a list of additions: one pass over four lanes, of which
// only the first is written.
func four(adds [][2]int) (lanes [4]int, ok bool) {
	if len(adds) < 3 || adds[2] != [2]int{adds[0][0], adds[1][0]} {
		return lanes, false
	}
	return [4]int{adds[0][0], adds[0][1], adds[1][0], adds[1][1]}, true
}

// piece is what of the update this process makes: chunks [from, to), all of them where it is alone.
type piece struct {
	from, to int
	grad     []float32     // everybody's sum; its first number is that of chunk `from`
	peer     kernel.Sharer // nil: alone
	adds     [][2]int      // gradients of processes to add up, into and from, in order
	op       int           // what its communication is booked on
}

// span is where chunk i lies in a buffer of the piece alone.
func (c *piece) span(i int) (at, end int) {
	at = (i - c.from) * chunk
	return at, min(at+chunk, len(c.grad))
}

// exchange gets what the other processes have for this one's piece, and adds up the sum and its
// squares, chunk by chunk while it is in cache. Then everybody has everybody's squares, in the
// order of one process.
func (b *binder) exchange(o *kernel.Exchange) ([]*phase, error) {
	r, c := b.r, &b.r.piece
	if b.inBlocks() {
		return b.exchangeAll(o), nil
	}
	var ok bool
	if c.peer, ok = o.Peer.(kernel.Sharer); !ok {
		return nil, errors.New("the other processes cannot share the update, as they must on a CPU")
	}
	c.from, c.to = o.Peer.Share().Piece(len(r.squares), 1)
	from, to := o.Peer.Share().Piece(r.prog.Layout.Len, chunk)
	c.grad = c.grad[from:to]
	kernel.Tree(o.Peer.Share().Parts(), nil, func(into, from int) { c.adds = append(c.adds, [2]int{into, from}) })
	var parts [][]float32 // set by one worker, read behind the next barrier
	return []*phase{
		{when: r.whole, run: func(w *worker, p *phase) {
			if w.id == 0 {
				if parts, p.err = c.peer.Scatter(r.sets[0].lanes[0], chunk); p.err == nil {
					c.grad = parts[0]
				}
			}
		}},
		{when: r.whole, run: func(w *worker, p *phase) {
			for i := c.from + p.take(); i < c.to; i = c.from + p.take() {
				at, end := c.span(i)
				w.addUp(c.adds, parts, at, end)
				r.squares[i] = w.p.sumSquares(c.grad[at:end])
			}
		}},
		{when: r.whole, run: func(w *worker, p *phase) {
			if w.id == 0 {
				p.err = c.peer.AllGatherSums(r.squares)
			}
		}},
	}, nil
}

// inBlocks tells whether Muon has a part in the update: its blocks do not end where pieces do, so
// that every process updates all weights itself.
func (b *binder) inBlocks() bool {
	return slices.ContainsFunc(b.r.prog.Once, func(op kernel.Op) bool { o, ok := op.(*kernel.AdamW); return ok && o.Side > 0 })
}

// exchangeAll gets everybody's whole gradient and adds up its squares.
func (b *binder) exchangeAll(o *kernel.Exchange) []*phase {
	r := b.r
	return []*phase{
		{when: r.whole, run: func(w *worker, p *phase) {
			if w.id == 0 {
				p.err = o.Peer.Exchange(r.piece.grad)
			}
		}},
		{when: r.whole, run: func(w *worker, p *phase) {
			for i := p.take(); i < len(r.squares); i = p.take() {
				at, end := r.piece.span(i)
				r.squares[i] = w.p.sumSquares(r.piece.grad[at:end])
			}
		}},
	}
}

// adamw clips and updates, then packs. Where processes share the update, each gets the others'
// weights in between.
func (b *binder) adamw(o *kernel.AdamW) []*phase {
	r := b.r
	u := &update{r: r, o: o, blocks: o.Blocks()}
	if o.Side > 0 {
		b.need(needMuon(r.dev.tiles, o.Side), 0)
		for _, run := range o.Rest() {
			for at := run[0]; at < run[1]; at += chunk {
				u.rest = append(u.rest, [2]int{at, min(at+chunk, run[1])})
			}
		}
	}
	r.done = append([]func(){u.finish}, r.done...) // before the parts are counted
	phases := []*phase{{when: r.whole, run: u.apply}}
	if c := &r.piece; c.peer != nil {
		phases = append(phases, &phase{op: c.op, when: r.whole, run: func(w *worker, p *phase) {
			if w.id == 0 && !u.skipped { // the same answer in every process: their norms are
				p.err = c.peer.AllGather(r.sets[0].weights, chunk)
			}
		}})
	}
	return append(phases, &phase{when: r.whole, run: r.packAll})
}

// update is AdamW, with Muon for blocks, over a runner's first weight set.
type update struct {
	r      *runner
	o      *kernel.AdamW
	blocks []kernel.Block // Muon's
	rest   [][2]int       // where Muon has blocks, what AdamW keeps, a chunk each at most
	// this step's gradient is not finite; set by one worker, read after the join
	badNow  bool
	skipped bool // this step changes no weight; likewise, or behind the next barrier
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
	first := p.take()
	if first == 0 {
		r.sums.gradNorm += norm
		u.skipped = bad || r.sums.badStep != 0
		// the other workers may still be reading badStep here, which is why the mark waits for finish
		u.badNow = bad
	}
	if bad || r.sums.badStep != 0 {
		return
	}
	scale := 1.0
	if o.MaxNorm > 0 && norm > float64(o.MaxNorm) {
		scale = float64(o.MaxNorm) / (norm + 1e-6)
	}
	w.adam = adamArgs{lr: rate(o, r.ctl.LearningRate, r.state.Step+1), beta1: float32(o.Beta1), beta2: float32(o.Beta2), eps: o.Eps, decay: o.Decay,
		correct1: float32(1 / (1 - r.state.Beta1T*o.Beta1)), correct2: float32(1 / (1 - r.state.Beta2T*o.Beta2)), scale: float32(scale)}
	st, c := r.sets[0], &r.piece
	if o.Side > 0 { // blocks first: they take longest
		for i := first; i < len(u.blocks)+len(u.rest); i = p.take() {
			if i < len(u.blocks) {
				u.muon(w, u.blocks[i])
				continue
			}
			at, end := u.rest[i-len(u.blocks)][0], u.rest[i-len(u.blocks)][1]
			w.p.adamw(st.weights[at:end], st.m[at:end], st.v[at:end], c.grad[at:end], &w.adam)
		}
		return
	}
	for i := c.from + first; i < c.to; i = c.from + p.take() {
		at, end := i*chunk, min((i+1)*chunk, len(st.weights))
		from, to := c.span(i)
		w.p.adamw(st.weights[at:end], st.m[at:end], st.v[at:end], c.grad[from:to], &w.adam)
	}
}

// finish advances the state after all workers are done. A first step that went wrong is recorded;
// later ones change nothing, so that it can be replayed.
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
