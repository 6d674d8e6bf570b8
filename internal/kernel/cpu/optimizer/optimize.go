package optimizer

import (
	"errors"
	"math"
	"slices"

	"haul/internal/kernel"
	"haul/internal/kernel/cpu/isa"
	"haul/internal/kernel/cpu/run"
)

// Phases of the update. Work is handed out in fixed chunks and every sum runs in a fixed order,
// so which worker takes a chunk changes nothing, nor does which process: those that share a step
// share its update by chunks too.

// reduce adds the lanes into lane 0 by the tree, chunk by chunk. Where an update has parts, lanes
// gather them all and are added up with the last.
func reduce(b *run.Binder, o *kernel.Reduce) ([]*run.Phase, error) {
	r := b.Runner
	if err := b.Covered(); err != nil {
		return nil, err
	}
	if len(r.Sets) == 0 || r.Sets[0].Lanes == nil {
		return nil, errors.New("weight set 0 was not made for training")
	}
	r.Squares = make([]float64, (r.Program.Layout.Len+run.Chunk-1)/run.Chunk)
	r.Piece = run.Piece{To: len(r.Squares), Grad: r.Sets[0].Lanes[0]}
	reduce := &run.Phase{Run: func(w *run.Worker, p *run.Phase) { sumLanes(r, w, p) }}
	if o.Every > 1 {
		r.Every, reduce.When = o.Every, r.Whole
		r.Done = append(r.Done, func() { r.Progress.Part = (r.Progress.Part + 1) % uint64(r.Every) })
	}
	return []*run.Phase{reduce}, nil
}

func sumLanes(r *run.Runner, w *run.Worker, p *run.Phase) {
	lanes := r.Sets[0].Lanes
	for i := p.Take(); i < len(r.Squares); i = p.Take() {
		at, end := i*run.Chunk, min((i+1)*run.Chunk, len(lanes[0]))
		addUp(w, r.Adds, lanes, at, end)
		if r.Piece.Peer == nil { // nobody will change it: its squares are added up while it is in cache
			r.Squares[i] = w.Prims.SumSquares(lanes[0][at:end])
		}
	}
}

// addUp makes a list of additions between elements [at, end) of buffers.
func addUp(w *run.Worker, adds [][2]int, bufs [][]float32, at, end int) {
	for len(adds) > 0 {
		if a, ok := four(adds); ok {
			w.Prims.Add4(bufs[a[0]][at:end], bufs[a[1]][at:end], bufs[a[2]][at:end], bufs[a[3]][at:end])
			adds = adds[3:]
			continue
		}
		w.Prims.Add(bufs[adds[0][0]][at:end], bufs[adds[0][1]][at:end])
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

// exchange gets what the other processes have for this one's piece, and adds up the sum and its
// squares, chunk by chunk while it is in cache. Then everybody has everybody's squares, in the
// order of one process.
func exchange(b *run.Binder, o *kernel.Exchange) ([]*run.Phase, error) {
	r, c := b.Runner, &b.Runner.Piece
	if inBlocks(b) {
		return exchangeAll(b, o), nil
	}
	var ok bool
	if c.Peer, ok = o.Peer.(kernel.Sharer); !ok {
		return nil, errors.New("the other processes cannot share the update, as they must on a CPU")
	}
	c.From, c.To = o.Peer.Share().Piece(len(r.Squares), 1)
	from, to := o.Peer.Share().Piece(r.Program.Layout.Len, run.Chunk)
	c.Grad = c.Grad[from:to]
	kernel.Tree(o.Peer.Share().Parts(), nil, func(into, from int) { c.Adds = append(c.Adds, [2]int{into, from}) })
	var parts [][]float32 // set by one worker, read behind the next barrier
	return []*run.Phase{
		{When: r.Whole, Run: func(w *run.Worker, p *run.Phase) {
			if w.ID == 0 {
				if parts, p.Err = c.Peer.Scatter(r.Sets[0].Lanes[0], run.Chunk); p.Err == nil {
					c.Grad = parts[0]
				}
			}
		}},
		{When: r.Whole, Run: func(w *run.Worker, p *run.Phase) {
			for i := c.From + p.Take(); i < c.To; i = c.From + p.Take() {
				at, end := c.Span(i)
				addUp(w, c.Adds, parts, at, end)
				r.Squares[i] = w.Prims.SumSquares(c.Grad[at:end])
			}
		}},
		{When: r.Whole, Run: func(w *run.Worker, p *run.Phase) {
			if w.ID == 0 {
				p.Err = c.Peer.AllGatherSums(r.Squares)
			}
		}},
	}, nil
}

// inBlocks tells whether Muon has a part in the update: its blocks do not end where pieces do, so
// that every process updates all weights itself.
func inBlocks(b *run.Binder) bool {
	return slices.ContainsFunc(b.Runner.Program.Once, func(op kernel.Op) bool { o, ok := op.(*kernel.AdamW); return ok && o.Side > 0 })
}

// exchangeAll gets everybody's whole gradient and adds up its squares.
func exchangeAll(b *run.Binder, o *kernel.Exchange) []*run.Phase {
	r := b.Runner
	return []*run.Phase{
		{When: r.Whole, Run: func(w *run.Worker, p *run.Phase) {
			if w.ID == 0 {
				p.Err = o.Peer.Exchange(r.Piece.Grad)
			}
		}},
		{When: r.Whole, Run: func(w *run.Worker, p *run.Phase) {
			for i := p.Take(); i < len(r.Squares); i = p.Take() {
				at, end := r.Piece.Span(i)
				r.Squares[i] = w.Prims.SumSquares(r.Piece.Grad[at:end])
			}
		}},
	}
}

// adamw clips and updates, then packs. Where processes share the update, each gets the others'
// weights in between.
func adamw(b *run.Binder, o *kernel.AdamW) []*run.Phase {
	r := b.Runner
	u := &update{r: r, o: o, blocks: o.Blocks()}
	if o.Side > 0 {
		b.Need(needMuon(r.Device.Tiles, o.Side), 0)
		for _, part := range o.Rest() {
			for at := part[0]; at < part[1]; at += run.Chunk {
				u.rest = append(u.rest, [2]int{at, min(at+run.Chunk, part[1])})
			}
		}
	}
	r.Done = append([]func(){u.finish}, r.Done...) // before the parts are counted
	phases := []*run.Phase{{When: r.Whole, Run: u.apply}}
	if c := &r.Piece; c.Peer != nil {
		phases = append(phases, &run.Phase{Op: c.Op, When: r.Whole, Run: func(w *run.Worker, p *run.Phase) {
			if w.ID == 0 && !u.skipped { // the same answer in every process: their norms are
				p.Err = c.Peer.AllGather(r.Sets[0].Weights, run.Chunk)
			}
		}})
	}
	return append(phases, &run.Phase{When: r.Whole, Run: func(_ *run.Worker, p *run.Phase) { packAll(r.Sets[0], p) }})
}

// update is AdamW, with Muon for blocks, over a runner's first weight set.
type update struct {
	r      *run.Runner
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
func (u *update) apply(w *run.Worker, p *run.Phase) {
	r, o := u.r, u.o
	var total float64
	for _, s := range r.Squares {
		total += s
	}
	norm := math.Sqrt(total)
	bad := math.IsNaN(norm) || math.IsInf(norm, 0)
	first := p.Take()
	if first == 0 {
		r.Sums.GradNorm += norm
		u.skipped = bad || r.Sums.BadStep != 0
		// the other workers may still be reading BadStep here, which is why the mark waits for finish
		u.badNow = bad
	}
	if bad || r.Sums.BadStep != 0 {
		return
	}
	scale := 1.0
	if o.MaxNorm > 0 && norm > float64(o.MaxNorm) {
		scale = float64(o.MaxNorm) / (norm + 1e-6)
	}
	w.Adam = isa.AdamArgs{LR: rate(o, r.Control.LearningRate, r.Progress.Step+1), Beta1: float32(o.Beta1), Beta2: float32(o.Beta2), Eps: o.Eps, Decay: o.Decay,
		Correct1: float32(1 / (1 - r.Progress.Beta1T*o.Beta1)), Correct2: float32(1 / (1 - r.Progress.Beta2T*o.Beta2)), Scale: float32(scale)}
	st, c := r.Sets[0], &r.Piece
	if o.Side > 0 { // blocks first: they take longest
		for i := first; i < len(u.blocks)+len(u.rest); i = p.Take() {
			if i < len(u.blocks) {
				u.muon(w, u.blocks[i])
				continue
			}
			at, end := u.rest[i-len(u.blocks)][0], u.rest[i-len(u.blocks)][1]
			w.Prims.AdamW(st.Weights[at:end], st.M[at:end], st.V[at:end], c.Grad[at:end], &w.Adam)
		}
		return
	}
	for i := c.From + first; i < c.To; i = c.From + p.Take() {
		at, end := i*run.Chunk, min((i+1)*run.Chunk, len(st.Weights))
		from, to := c.Span(i)
		w.Prims.AdamW(st.Weights[at:end], st.M[at:end], st.V[at:end], c.Grad[from:to], &w.Adam)
	}
}

// finish advances the state after all workers are done. A first step that went wrong is recorded;
// later ones change nothing, so that it can be replayed.
func (u *update) finish() {
	r := u.r
	if u.badNow {
		u.badNow, r.Bad = false, r.Progress.Instances-r.Progress.Part*uint64(r.Program.Total())
		r.Sums.BadStep = int64(r.Progress.Step) + 1
	}
	if r.Whole() && r.Sums.BadStep == 0 {
		r.Progress.Step++
		r.Progress.Beta1T *= u.o.Beta1
		r.Progress.Beta2T *= u.o.Beta2
	}
}

// packAll refreshes the packed forms of all matrices.
func packAll(s *run.Store, p *run.Phase) {
	for i := p.Take(); i < len(s.Packs); i = p.Take() {
		s.Pack(i)
	}
}
