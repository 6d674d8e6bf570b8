package ptx

import "math/bits"

// barrier is one of a block's sixteen barriers. A warp arrives with all its threads.
type barrier struct {
	threads, wanted int
	any             bool // disjunction of the predicates of bar.red.or
	results         []int32
	warps           []int
}

var barriers = map[string]func(x *decoder) error{
	"bar": func(x *decoder) (err error) {
		switch {
		case x.is("warp.sync"):
			if err := x.count(1); err != nil {
				return err
			}
			if x.s.args[0].kind != number || uint32(x.s.args[0].bits) != full {
				return x.unknown()
			}
			x.in.f, x.in.sync = warpSync, true
			return nil
		case x.is("sync"):
			x.in.f, x.in.sync = barSync, true
			if x.in.a, err = x.from(0, 4); err != nil {
				return err
			}
			if len(x.s.args) > 1 {
				x.in.b, err = x.from(1, 4)
			}
			return err
		case x.is("red.or.pred"):
			if err := x.count(3); err != nil {
				return err
			}
			x.in.f, x.in.sync = barOr, true
			if x.in.pd, _, err = x.pred(x.s.args[0]); err != nil {
				return err
			}
			if x.in.a, err = x.from(1, 4); err != nil {
				return err
			}
			x.in.pa, x.in.nota, err = x.pred(x.s.args[2])
			return err
		}
		return x.unknown()
	},
}

func warpSync(*warp, *inst) {}

func barSync(w *warp, in *inst) {
	number, wanted := int(reg[uint32](w, in.a)[bits.TrailingZeros32(w.mask)]), 0
	if in.b != none {
		wanted = int(reg[uint32](w, in.b)[bits.TrailingZeros32(w.mask)])
		if wanted%lanes != 0 || wanted == 0 {
			w.fail(in, "waits for %d threads, which is no multiple of a warp's", wanted)
		}
	}
	w.arrive(in, number, wanted)
}

func barOr(w *warp, in *inst) {
	number := int(reg[uint32](w, in.a)[bits.TrailingZeros32(w.mask)])
	if number < 16 {
		w.b.barriers[number].any = w.b.barriers[number].any || w.test(in.pa, in.nota)&w.mask != 0
		w.b.barriers[number].results = append(w.b.barriers[number].results, int32(w.index), in.pd)
	}
	w.arrive(in, number, 0)
}

// test returns the lanes in which a predicate is true.
func (w *warp) test(p int32, not bool) uint32 {
	m := w.pred[p]
	if not {
		return ^m
	}
	return m
}

// arrive parks the warp until all threads that the barrier counts have arrived.
func (w *warp) arrive(in *inst, number, wanted int) {
	if number >= 16 {
		w.fail(in, "names barrier %d of 16", number)
	}
	b := &w.b.barriers[number]
	if len(b.warps) > 0 && b.wanted != wanted {
		w.fail(in, "waits for %d threads at barrier %d, where warp %d waits for %d (0: all)", wanted, number, b.warps[0], b.wanted)
	}
	b.wanted = wanted
	b.threads += lanes
	b.warps = append(b.warps, w.index)
	w.state, w.waits = parked, waiting{number, in.line}
	w.b.release(number)
}

// release lets the warps at a barrier continue if all have arrived. Warps that have ended count.
func (r *threadBlock) release(number int) {
	b := &r.barriers[number]
	wanted := b.wanted
	if wanted == 0 {
		wanted = r.left * lanes
	}
	if len(b.warps) == 0 || b.threads < wanted {
		return
	}
	if b.threads > wanted {
		w := &r.warps[b.warps[len(b.warps)-1]]
		w.fail(&w.code[w.pc-1], "brings %d threads to barrier %d, which waits for %d", b.threads, number, wanted)
	}
	for i := 0; i < len(b.results); i += 2 {
		var m uint32
		if b.any {
			m = full
		}
		r.warps[b.results[i]].pred[b.results[i+1]] = m
	}
	if r.races != nil {
		r.races.meet(b.warps)
	}
	for _, i := range b.warps {
		if r.warps[i].state == parked {
			r.warps[i].state = ready
		}
	}
	*b = barrier{warps: b.warps[:0], results: b.results[:0]}
	r.events++
}

// ended removes a warp from the counts, for which barriers may be waiting.
func (r *threadBlock) ended() {
	r.left--
	r.events++
	for i := range r.barriers {
		if len(r.barriers[i].warps) > 0 {
			r.release(i)
		}
	}
}
