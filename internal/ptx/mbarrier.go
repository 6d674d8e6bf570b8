package ptx

import "math/bits"

// mbarrier is a barrier in shared memory. A phase is over when all its arrivals have happened and
// all bytes that it expects have been copied; the next one then begins. Asynchronous copies and
// arrivals complete only when a warp queries the phase a second time: a thread that does not wait,
// or queries once and continues, reads old content.
type mbarrier struct {
	arrivals       int32  // per phase
	pending        int32  // arrivals that are missing
	bytes          int64  // expected bytes that are not copied; negative if copies precede the expectation
	phase          uint32 // number of phases that are over
	asked          uint32 // warps whose query of this phase returned false
	visible        bool   // to the copy engine: fence.mbarrier_init followed the init
	warp           int32  // the warp that initialized the barrier
	copies         []bulkCopy
	delayedArrival []delayedArrival
	clock          []uint32 // for race detection: the joint clock of all arrivals
}

// delayedArrival is an arrival that happens when a thread's earlier copies have completed.
type delayedArrival struct {
	warp, lane int32
	copies     uint64 // serial number of the first later copy
}

var mbarriers = map[string]func(x *decoder) error{
	"mbarrier": func(x *decoder) (err error) {
		in := x.in
		what := x.any("init", "arrive", "test_wait", "try_wait")
		parity := x.has("parity")
		expects := what == "arrive" && x.has("expect_tx")
		if x.any("shared", "shared::cta") == "" || x.typed() != "b64" || parity != (what == "test_wait" || what == "try_wait") {
			return x.unknown()
		}
		operand := func(i int) error {
			in.b, err = x.from(i, 4)
			return err
		}
		switch what {
		case "init":
			in.f = initBarrier
			if err := x.count(2); err != nil {
				return err
			}
			if err := operand(1); err != nil {
				return err
			}
			return x.address(0, shared)
		case "arrive": // its state could only be used by test_wait without parity, which is not supported
			n := 2
			if expects {
				n = 3
				if len(x.s.args) == n {
					if err := operand(2); err != nil {
						return err
					}
				}
			}
			if err := x.count(n); err != nil {
				return err
			}
			if x.s.args[0].kind != nothing {
				if in.d, err = x.to(0, 8); err != nil {
					return err
				}
				in.wide = 8
			}
			in.f = arriveBarrier
			return x.address(1, shared)
		case "test_wait", "try_wait":
			if err := x.count(3); err != nil {
				return err
			}
			if in.pd, _, err = x.pred(x.s.args[0]); err != nil {
				return err
			}
			if err := operand(2); err != nil {
				return err
			}
			in.f = askBarrier
			return x.address(1, shared)
		}
		return x.unknown()
	},
	"fence": func(x *decoder) error {
		switch {
		case x.is("proxy.async.shared::cta"):
			x.in.f = seal
		case x.is("mbarrier_init.release.cluster"):
			x.in.f = showBarriers
		default:
			return x.unknown()
		}
		return x.count(0)
	},
	"setmaxnreg": func(x *decoder) error {
		more := x.any("inc", "dec")
		if more == "" || !x.is("sync.aligned.u32") {
			return x.unknown()
		}
		if err := x.count(1); err != nil {
			return err
		}
		n := int64(x.s.args[0].bits)
		if x.s.args[0].kind != number || n < 24 || n > 256 || n%8 != 0 {
			return x.unknown()
		}
		x.in.imm, x.in.sync, x.in.f = n, true, setRegisters
		x.in.nota = more == "inc"
		return nil
	},
}

// barrierAt returns the offset of a lane's barrier in shared memory.
func (w *warp) barrierAt(in *inst, at uint64, lane int) int {
	if at&7 != 0 || at < sharedBase || at-sharedBase+8 > uint64(len(w.b.shared)) {
		w.failLane(in, lane, "names a barrier at %d of %d bytes of shared memory", int64(at-sharedBase), len(w.b.shared))
	}
	return int(at - sharedBase)
}

func (w *warp) barrier(in *inst, lane int) *mbarrier {
	at := w.barrierAt(in, w.address(in, lane), lane)
	m := w.b.mbarriers[at]
	if m == nil {
		w.failLane(in, lane, "names a barrier at %d that nobody has initialised", at)
	}
	return m
}

func initBarrier(w *warp, in *inst) {
	for m := w.mask; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m) & 31
		at := w.barrierAt(in, w.address(in, i), i)
		n := int32(reg[uint32](w, in.b)[i])
		if w.b.mbarriers[at] != nil || n < 1 || n >= 1<<20 {
			w.failLane(in, i, "initialises the barrier at %d for %d arrivals, where one is: %v", at, n, w.b.mbarriers[at] != nil)
		}
		b := &mbarrier{arrivals: n, pending: n, warp: int32(w.index)}
		if w.b.races != nil {
			b.clock = make([]uint32, w.b.l.warps)
		}
		w.b.mbarriers[at] = b
	}
}

// showBarriers makes the barriers that this warp has initialized visible to the copy engine.
func showBarriers(w *warp, _ *inst) {
	for _, b := range w.b.mbarriers {
		b.visible = b.visible || b.warp == int32(w.index)
	}
}

// arriveBarrier expects b more bytes, if there is a b, and then arrives.
func arriveBarrier(w *warp, in *inst) {
	for m := w.mask; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m) & 31
		b := w.barrier(in, i)
		if in.d != none {
			result[uint64](w, in)[i] = uint64(b.phase)
		}
		if in.b != none {
			b.bytes += int64(reg[uint32](w, in.b)[i])
		}
		w.b.inform(b, w.index)
		b.arrive(w, in, i)
	}
}

// inform records for race detection that the warp's accesses so far precede the phase's end.
func (r *threadBlock) inform(b *mbarrier, warp int) {
	if r.races == nil {
		return
	}
	for i, t := range r.races.clocks[warp] {
		b.clock[i] = max(b.clock[i], t)
	}
	r.races.clocks[warp][warp]++
}

func (b *mbarrier) arrive(w *warp, in *inst, lane int) {
	if b.pending == 0 {
		w.failLane(in, lane, "arrives at a barrier that has all %d arrivals of its phase", b.arrivals)
	}
	b.pending--
	b.turn(w.b)
}

// turn ends the phase if nothing is missing.
func (b *mbarrier) turn(r *threadBlock) bool {
	if b.pending > 0 || b.bytes != 0 {
		return false
	}
	b.phase++
	b.asked = 0
	b.pending = b.arrivals
	r.events++
	return true
}

// over reports whether the phase with that parity is over. If an earlier query of the warp returned
// false, it first completes the copies and arrivals of the barrier.
func (b *mbarrier) over(w *warp, in *inst, parity uint32) bool {
	if b.phase&1 != parity {
		return true
	}
	if b.asked>>w.index&1 == 0 {
		b.asked |= 1 << w.index
		w.b.events++
		return false
	}
	for _, a := range b.delayedArrival {
		from := &w.b.warps[a.warp]
		kept := from.copies[:0]
		for _, c := range from.copies {
			if c.lane == a.lane && c.serial < a.copies {
				from.land(&c)
			} else {
				kept = append(kept, c)
			}
		}
		from.copies = kept
		w.b.inform(b, int(a.warp))
		b.arrive(from, in, int(a.lane))
	}
	b.delayedArrival = b.delayedArrival[:0]
	copies := b.copies
	b.copies = b.copies[:0]
	for i := range copies {
		copies[i].land(w.b)
		b.bytes -= int64(copies[i].bytes())
	}
	if len(copies) > 0 {
		b.turn(w.b)
	}
	return b.phase&1 != parity
}

// askBarrier is test_wait and try_wait. If the result is false, other warps run before the next
// query.
func askBarrier(w *warp, in *inst) {
	var yes uint32
	var last *mbarrier // with the last answer: lanes query together
	var asked, over = uint32(2), false
	for m := w.mask; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m) & 31
		parity := reg[uint32](w, in.b)[i]
		if parity > 1 {
			w.failLane(in, i, "asks for parity %d", parity)
		}
		b := w.barrier(in, i)
		if b != last || parity != asked {
			last, asked, over = b, parity, b.over(w, in, parity)
		}
		if !over {
			continue
		}
		yes |= 1 << i
		if w.b.races != nil {
			for j, t := range b.clock {
				w.b.races.clocks[w.index][j] = max(w.b.races.clocks[w.index][j], t)
			}
		}
	}
	w.pred[in.pd] = w.pred[in.pd]&^w.mask | yes
	if yes != w.mask {
		w.state = yielded
	}
}

// registersOfBlock returns the number of registers per thread at the start of a block, a multiple
// of eight. setmaxnreg moves registers between warps.
func (l *boundLaunch) registersOfBlock() int { return min(1<<16/l.threads/8*8, 248) }

// setRegisters changes the number of registers per thread of a warp. An increase waits until other
// warps have released as many.
func setRegisters(w *warp, in *inst) {
	n, all := int32(in.imm), 0
	if more := n > w.registers; more != in.nota && n != w.registers {
		w.fail(in, "asks for %d registers, the warp has %d", n, w.registers)
	}
	for i := range w.b.warps {
		if i != w.index {
			all += int(w.b.warps[i].registers)
		}
	}
	if all+int(n) > w.b.l.registersOfBlock()*w.b.l.warps {
		w.pc--
		w.state = yielded
		return
	}
	w.registers = n
	w.b.events++
}
