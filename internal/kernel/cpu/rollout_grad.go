package cpu

import (
	"slices"

	"haul/internal/kernel"
)

// rollGrad is the rollout's gradient bound to memory: the recorded routes are walked again, every
// decision becomes a row of a block, and a full block is computed forward and backward in one go.
type rollGrad struct {
	decoder
	o                        *kernel.RolloutGrad
	dproj, dpointer, dgraph  ref
	dpair                    ref
	dcontext, dpairContext   gradRef
	actions, steps, adv      ref
	instances, starts, limit int
	bonus                    int // place of the entropy's coefficient
}

func (b *binder) rolloutGrad(o *kernel.RolloutGrad) func(*worker) {
	r := &rollGrad{decoder: b.decoder(&o.Decoder), o: o, dproj: newRef(b.r, o.DProj), dpointer: newRef(b.r, o.DPointer),
		dgraph: newRef(b.r, o.DGraph), dcontext: b.grad(o.DContext), actions: newRef(b.r, o.Actions), steps: newRef(b.r, o.Steps),
		adv: newRef(b.r, o.Adv), bonus: slices.Index(b.r.coefs, o.Bonus)}
	if r.pairs {
		r.dpair, r.dpairContext = newRef(b.r, o.DPair), b.grad(o.DPairContext)
	}
	r.instances, r.starts, r.limit = o.Actions.Shape[0], o.Actions.Shape[1], o.Actions.Shape[2]
	b.need(r.blockFloats()+r.d*r.ld+decodeRows*(2*r.d+r.ld+2)+r.pairFloats(), r.blockWords()+r.words)
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
	cur    [decodeRows]int32
	act    [decodeRows]int32
	rows   int

	// [N][ld]: gradients of dot products, summed over the decisions at a node; nil without pairs
	dbias        []float32
	dbiasContext []float32 // [seen][ld]: summed over all decisions, each times its context features

	dproj, dptr, dgraph, dcontext []float32
	dpair, dpairContext           []float32
}

func (r *rollGrad) run(w *worker) {
	k := &w.steps
	var rest []float32
	k.block, rest = r.carve(w)
	take := func(n int) []float32 {
		s := rest[:n:n]
		rest = rest[n:]
		return s
	}
	k.vt = take(r.d * r.ld)
	k.dg, k.dq, k.ds = take(decodeRows*r.d), take(decodeRows*r.d), take(decodeRows*r.ld)
	k.wa, k.we = take(decodeRows), take(decodeRows)
	k.dcontext = r.dcontext.start(w)
	if r.pairs {
		k.dbias, k.dbiasContext = take(r.n*r.ld), take(r.seen*r.ld)
		k.dpairContext = r.dpairContext.start(w)
	}
	for i := range r.instances {
		k.dproj = r.dproj.of(w)[i*r.n*r.dproj.stride:]
		k.dptr = r.dpointer.of(w)[i*r.n*r.d:][:r.n*r.d]
		k.dgraph = r.dgraph.of(w)[i*r.d:][:r.d]
		for j := range r.n {
			clear(k.dproj[j*r.dproj.stride:][:3*r.d])
		}
		clear(k.dptr)
		clear(k.dgraph)
		if r.pairs {
			k.dpair = r.dpair.of(w)[i*r.n*r.dpair.stride:]
			for j := range r.n {
				clear(k.dpair[j*r.dpair.stride:][:2*r.d])
			}
			clear(k.dbias)
			clear(k.dbiasContext)
		}
		if i >= w.active {
			continue
		}
		r.open(w, &k.block, i)
		w.p.transpose(k.vt, r.ld, k.proj[2*r.d:], k.stride, r.n, r.d)
		for s := 0; s < r.starts && !w.stopped(); s++ {
			r.walk(w, k, i, s)
		}
		r.flush(w, k)
		if r.pairs && !w.stopped() {
			r.matchGrad(w, k)
		}
	}
}

// matchGrad turns the sums of an instance's decisions into the gradients of its pairs.
func (r *rollGrad) matchGrad(w *worker, k *gradBlock) {
	st, to := k.pairStride, r.dpair.stride
	key, dkey := k.pair[r.d:], k.dpair[r.d:]
	w.product(gemmArgs{c: ptr(k.dpair), a: ptr(k.dbias), b: ptr(key), m: r.n, n: r.d, k: r.n,
		ldc: to, ars: r.ld, aks: 1, bks: st, bps: panel})
	w.product(gemmArgs{c: ptr(dkey), a: ptr(k.dbias), b: ptr(k.pair), m: r.n, n: r.d, k: r.n,
		ldc: to, ars: 1, aks: r.ld, bks: st, bps: panel})
	w.product(gemmArgs{c: ptr(dkey), a: ptr(k.dbiasContext), b: ptr(k.pairContext), r: ptr(dkey), m: r.n, n: r.d, k: r.seen,
		ldc: to, ars: 1, aks: r.ld, bks: r.d, bps: panel, ldr: to})
	w.product(gemmArgs{c: ptr(k.dpairContext), a: ptr(k.dbiasContext), b: ptr(key), r: ptr(k.dpairContext), m: r.seen, n: r.d, k: r.n,
		ldc: r.d, ars: r.ld, aks: 1, bks: st, bps: panel, ldr: r.d})
}

// walk replays the route of one start and queues its decisions.
func (r *rollGrad) walk(w *worker, k *gradBlock, i, s int) {
	at := i*r.starts + s
	actions := ints(r.actions.of(w))[at*r.limit:][:r.limit]
	steps := ints(r.steps.of(w))[at]
	wa := r.adv.of(w)[at]
	we := -w.ctl.coefficients[r.bonus] * r.o.Weight / float32(scored(steps, r.o.Forced))
	if wa == 0 && we == 0 {
		return
	}
	var v vehicle
	v.depart(k.in, w.words[r.blockWords():][:r.words])
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
				if k.rows == decodeRows {
					r.flush(w, k)
				}
			}
		}
		v.move(a, k.in)
	}
}

// flush computes the queued decisions and adds their gradients.
func (r *rollGrad) flush(w *worker, k *gradBlock) {
	rows := k.rows
	k.rows = 0
	if rows == 0 || w.stopped() {
		return
	}
	mult := kernel.Clip / w.ctl.Temperature
	r.forward(w, &k.block, rows, mult)
	w.p.pointerGrad(k.p, k.p, k.lp, k.th, k.ent, k.wa, k.we, k.act[:rows], rows, r.n, r.ld, r.pointerScale, mult)
	du := k.p
	w.product(gemmArgs{c: ptr(k.dg), a: ptr(du), b: ptr(k.ptr), m: rows, n: r.d, k: r.n,
		ldc: r.d, ars: r.ld, aks: 1, bks: r.d, bps: panel})
	w.product(gemmArgs{c: ptr(k.dptr), a: ptr(du), b: ptr(k.g), r: ptr(k.dptr), m: r.n, n: r.d, k: rows,
		ldc: r.d, ars: 1, aks: r.ld, bks: r.d, bps: panel, ldr: r.d})
	if r.pairs {
		for j := range rows {
			w.p.add(k.dbias[int(k.cur[j])*r.ld:][:r.n], du[j*r.ld:][:r.n])
		}
		w.product(gemmArgs{c: ptr(k.dbiasContext), a: ptr(k.seen), b: ptr(du), r: ptr(k.dbiasContext), m: r.seen, n: r.n, k: rows,
			ldc: r.ld, ars: 1, aks: r.seen, bks: r.ld, bps: panel, ldr: r.ld})
	}
	st := r.dproj.stride
	for h := range r.heads {
		s, at := k.s[h*decodeRows*r.ld:], h*r.hd
		w.product(gemmArgs{c: ptr(k.ds), a: ptr(k.dg[at:]), b: ptr(k.vt[at*r.ld:]), m: rows, n: r.ld, k: r.hd,
			ldc: r.ld, ars: r.d, aks: 1, bks: r.ld, bps: panel})
		dv := k.dproj[2*r.d+at:]
		w.product(gemmArgs{c: ptr(dv), a: ptr(s), b: ptr(k.dg[at:]), r: ptr(dv), m: r.n, n: r.hd, k: rows,
			ldc: st, ars: 1, aks: r.ld, bks: r.d, bps: panel, ldr: st})
		w.p.softmaxGrad(k.ds, s, rows, r.n, r.ld, r.scale)
		w.product(gemmArgs{c: ptr(k.dq[at:]), a: ptr(k.ds), b: ptr(k.proj[r.d+at:]), m: rows, n: r.hd, k: r.n,
			ldc: r.d, ars: r.ld, aks: 1, bks: k.stride, bps: panel})
		dk := k.dproj[r.d+at:]
		w.product(gemmArgs{c: ptr(dk), a: ptr(k.ds), b: ptr(k.q[at:]), r: ptr(dk), m: r.n, n: r.hd, k: rows,
			ldc: st, ars: 1, aks: r.ld, bks: r.d, bps: panel, ldr: st})
	}
	for j := range rows {
		w.p.add(k.dproj[int(k.cur[j])*st:][:r.d], k.dq[j*r.d:][:r.d])
	}
	w.p.colSum(k.dgraph, k.dq, rows, r.d, r.d, true)
	w.product(gemmArgs{c: ptr(k.dcontext), a: ptr(k.seen), b: ptr(k.dq), r: ptr(k.dcontext), m: r.seen, n: r.d, k: rows,
		ldc: r.d, ars: 1, aks: r.seen, bks: r.d, bps: panel, ldr: r.d})
}
