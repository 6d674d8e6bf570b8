package routing

import (
	"slices"

	"haul/internal/kernel"
	"haul/internal/kernel/cpu/isa"
	"haul/internal/kernel/cpu/run"
)

// rollGrad is the rollout's gradient bound to memory: the recorded routes are walked again, every
// decision becomes a row of a block, and a full block is computed forward and backward in one go.
type rollGrad struct {
	decoder
	o                        *kernel.RolloutGrad
	dproj, dpointer, dgraph  run.Ref
	dpair                    run.Ref
	dcontext, dpairContext   run.GradRef
	actions, steps, adv      run.Ref
	instances, starts, limit int
	blocks                   []gradBlock // by worker
	bonus                    int         // place of the entropy's coefficient
}

func rolloutGrad(b *run.Binder, o *kernel.RolloutGrad) func(*run.Worker) {
	r := &rollGrad{decoder: newDecoder(b, &o.Decoder), o: o, dproj: b.Ref(o.DProj), dpointer: b.Ref(o.DPointer),
		dgraph: b.Ref(o.DGraph), dcontext: b.Grad(o.DContext), actions: b.Ref(o.Actions), steps: b.Ref(o.Steps),
		adv: b.Ref(o.Adv), bonus: slices.Index(b.Runner.Coefficients, o.Bonus)}
	if r.pairs {
		r.dpair, r.dpairContext = b.Ref(o.DPair), b.Grad(o.DPairContext)
	}
	r.instances, r.starts, r.limit = o.Actions.Shape[0], o.Actions.Shape[1], o.Actions.Shape[2]
	r.blocks = make([]gradBlock, b.Runner.Device.Workers)
	b.Need(r.blockFloats()+r.d*r.ld+DecodeRows*(2*r.d+r.ld+2)+r.pairFloats(), r.blockWords()+r.words)
	return r.run
}

// pairFloats is the scratch of the pairs' gradient.
func (r *rollGrad) pairFloats() int {
	if r.pairs {
		return (r.n + r.seen) * r.ld
	}
	return 0
}

// gradBlock adds what the way back needs.
type gradBlock struct {
	block
	vt     []float32 // [D][ld] values, a column a node
	dg, dq []float32 // [rows][D]
	ds     []float32 // [rows][ld]
	wa, we []float32 // [rows] weights of log-probability and entropy in the loss
	cur    [DecodeRows]int32
	act    [DecodeRows]int32
	rows   int

	// [N][ld]: gradients of dot products, summed over the decisions at a node; nil without pairs
	dbias        []float32
	dbiasContext []float32 // [seen][ld]: summed over all decisions, each times its context features

	dproj, dptr, dgraph, dcontext []float32
	dpair, dpairContext           []float32
}

func (r *rollGrad) run(w *run.Worker) {
	k := &r.blocks[w.ID]
	var rest []float32
	k.block, rest = r.carve(w)
	take := func(n int) []float32 {
		s := rest[:n:n]
		rest = rest[n:]
		return s
	}
	k.vt = take(r.d * r.ld)
	k.dg, k.dq, k.ds = take(DecodeRows*r.d), take(DecodeRows*r.d), take(DecodeRows*r.ld)
	k.wa, k.we = take(DecodeRows), take(DecodeRows)
	k.dcontext = r.dcontext.Start(w)
	if r.pairs {
		k.dbias, k.dbiasContext = take(r.n*r.ld), take(r.seen*r.ld)
		k.dpairContext = r.dpairContext.Start(w)
	}
	for i := range r.instances {
		k.dproj = r.dproj.Of(w)[i*r.n*r.dproj.Stride:]
		k.dptr = r.dpointer.Of(w)[i*r.n*r.d:][:r.n*r.d]
		k.dgraph = r.dgraph.Of(w)[i*r.d:][:r.d]
		for j := range r.n {
			clear(k.dproj[j*r.dproj.Stride:][:3*r.d])
		}
		clear(k.dptr)
		clear(k.dgraph)
		if r.pairs {
			k.dpair = r.dpair.Of(w)[i*r.n*r.dpair.Stride:]
			for j := range r.n {
				clear(k.dpair[j*r.dpair.Stride:][:2*r.d])
			}
			clear(k.dbias)
			clear(k.dbiasContext)
		}
		if i >= w.Active {
			continue
		}
		r.open(w, &k.block, i)
		w.Prims.Transpose(k.vt, r.ld, k.proj[2*r.d:], k.stride, r.n, r.d)
		for s := 0; s < r.starts && !w.Stopped(); s++ {
			r.walk(w, k, i, s)
		}
		r.flush(w, k)
		if r.pairs && !w.Stopped() {
			r.matchGrad(w, k)
		}
	}
}

// matchGrad turns the sums of an instance's decisions into the gradients of its pairs.
func (r *rollGrad) matchGrad(w *run.Worker, k *gradBlock) {
	st, to := k.pairStride, r.dpair.Stride
	key, dkey := k.pair[r.d:], k.dpair[r.d:]
	w.Product(isa.GemmArgs{C: isa.Ptr(k.dpair), A: isa.Ptr(k.dbias), B: isa.Ptr(key), M: r.n, N: r.d, K: r.n,
		LDC: to, ARS: r.ld, AKS: 1, BKS: st, BPS: isa.Panel})
	w.Product(isa.GemmArgs{C: isa.Ptr(dkey), A: isa.Ptr(k.dbias), B: isa.Ptr(k.pair), M: r.n, N: r.d, K: r.n,
		LDC: to, ARS: 1, AKS: r.ld, BKS: st, BPS: isa.Panel})
	w.Product(isa.GemmArgs{C: isa.Ptr(dkey), A: isa.Ptr(k.dbiasContext), B: isa.Ptr(k.pairContext), R: isa.Ptr(dkey), M: r.n, N: r.d, K: r.seen,
		LDC: to, ARS: 1, AKS: r.ld, BKS: r.d, BPS: isa.Panel, LDR: to})
	w.Product(isa.GemmArgs{C: isa.Ptr(k.dpairContext), A: isa.Ptr(k.dbiasContext), B: isa.Ptr(key), R: isa.Ptr(k.dpairContext), M: r.seen, N: r.d, K: r.n,
		LDC: r.d, ARS: r.ld, AKS: 1, BKS: st, BPS: isa.Panel, LDR: r.d})
}

// walk replays the route of one start and queues its decisions.
func (r *rollGrad) walk(w *run.Worker, k *gradBlock, i, s int) {
	at := i*r.starts + s
	actions := isa.Ints(r.actions.Of(w))[at*r.limit:][:r.limit]
	steps := isa.Ints(r.steps.Of(w))[at]
	wa := r.adv.Of(w)[at]
	we := -w.Control.Coefficients[r.bonus] * r.o.Weight / float32(scored(steps, r.o.Forced))
	if wa == 0 && we == 0 {
		return
	}
	var v vehicle
	v.depart(k.in, w.Words[r.blockWords():][:r.words], 0)
	if r.o.Viewed {
		v.view(s + 1)
	}
	for t, a := range actions[:steps] {
		if !(r.o.Forced && t == 0) {
			mask := k.mask[k.rows*r.words:][:r.words]
			if n, _ := v.allow(mask, k.in); n > 1 {
				r.query(w, &k.block, k.rows, &v)
				k.cur[k.rows], k.act[k.rows], k.wa[k.rows], k.we[k.rows] = v.from(), a, wa, we
				k.rows++
				if k.rows == DecodeRows {
					r.flush(w, k)
				}
			}
		}
		v.move(a, k.in)
	}
}

// flush computes the queued decisions and adds their gradients.
func (r *rollGrad) flush(w *run.Worker, k *gradBlock) {
	rows := k.rows
	k.rows = 0
	if rows == 0 || w.Stopped() {
		return
	}
	mult := kernel.Clip / w.Control.Temperature
	r.forward(w, &k.block, rows, mult)
	w.Prims.PointerGrad(k.p, k.p, k.lp, k.th, k.ent, k.wa, k.we, k.act[:rows], rows, r.n, r.ld, r.pointerScale, mult)
	du := k.p
	w.Product(isa.GemmArgs{C: isa.Ptr(k.dg), A: isa.Ptr(du), B: isa.Ptr(k.ptr), M: rows, N: r.d, K: r.n,
		LDC: r.d, ARS: r.ld, AKS: 1, BKS: r.d, BPS: isa.Panel})
	w.Product(isa.GemmArgs{C: isa.Ptr(k.dptr), A: isa.Ptr(du), B: isa.Ptr(k.g), R: isa.Ptr(k.dptr), M: r.n, N: r.d, K: rows,
		LDC: r.d, ARS: 1, AKS: r.ld, BKS: r.d, BPS: isa.Panel, LDR: r.d})
	if r.pairs {
		for j := range rows {
			w.Prims.Add(k.dbias[int(k.cur[j])*r.ld:][:r.n], du[j*r.ld:][:r.n])
		}
		w.Product(isa.GemmArgs{C: isa.Ptr(k.dbiasContext), A: isa.Ptr(k.seen), B: isa.Ptr(du), R: isa.Ptr(k.dbiasContext), M: r.seen, N: r.n, K: rows,
			LDC: r.ld, ARS: 1, AKS: r.seen, BKS: r.ld, BPS: isa.Panel, LDR: r.ld})
	}
	st := r.dproj.Stride
	for h := range r.heads {
		s, at := k.s[h*DecodeRows*r.ld:], h*r.hd
		w.Product(isa.GemmArgs{C: isa.Ptr(k.ds), A: isa.Ptr(k.dg[at:]), B: isa.Ptr(k.vt[at*r.ld:]), M: rows, N: r.ld, K: r.hd,
			LDC: r.ld, ARS: r.d, AKS: 1, BKS: r.ld, BPS: isa.Panel})
		dv := k.dproj[2*r.d+at:]
		w.Product(isa.GemmArgs{C: isa.Ptr(dv), A: isa.Ptr(s), B: isa.Ptr(k.dg[at:]), R: isa.Ptr(dv), M: r.n, N: r.hd, K: rows,
			LDC: st, ARS: 1, AKS: r.ld, BKS: r.d, BPS: isa.Panel, LDR: st})
		w.Prims.SoftmaxGrad(k.ds, s, rows, r.n, r.ld, r.scale)
		w.Product(isa.GemmArgs{C: isa.Ptr(k.dq[at:]), A: isa.Ptr(k.ds), B: isa.Ptr(k.proj[r.d+at:]), M: rows, N: r.hd, K: r.n,
			LDC: r.d, ARS: r.ld, AKS: 1, BKS: k.stride, BPS: isa.Panel})
		dk := k.dproj[r.d+at:]
		w.Product(isa.GemmArgs{C: isa.Ptr(dk), A: isa.Ptr(k.ds), B: isa.Ptr(k.q[at:]), R: isa.Ptr(dk), M: r.n, N: r.hd, K: rows,
			LDC: st, ARS: 1, AKS: r.ld, BKS: r.d, BPS: isa.Panel, LDR: st})
	}
	for j := range rows {
		w.Prims.Add(k.dproj[int(k.cur[j])*st:][:r.d], k.dq[j*r.d:][:r.d])
	}
	w.Prims.ColSum(k.dgraph, k.dq, rows, r.d, r.d, true)
	w.Product(isa.GemmArgs{C: isa.Ptr(k.dcontext), A: isa.Ptr(k.seen), B: isa.Ptr(k.dq), R: isa.Ptr(k.dcontext), M: r.seen, N: r.d, K: rows,
		LDC: r.d, ARS: 1, AKS: r.seen, BKS: r.d, BPS: isa.Panel, LDR: r.d})
}
