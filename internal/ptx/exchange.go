package ptx

import (
	"fmt"
	"math/bits"
	"sync/atomic"
)

// exchanges holds exchanges between the lanes of a warp. All live lanes must take part, as the
// masks of all shipped kernels say.
var exchanges = map[string]func(x *decoder) error{
	"shfl": func(x *decoder) (err error) {
		if !x.has("sync") {
			return x.unknown()
		}
		how := x.any("bfly", "up", "down", "idx")
		if how == "" || !x.is("b32") {
			return x.unknown()
		}
		if err := x.count(5); err != nil {
			return err
		}
		in := x.in
		in.d, err = x.to(0, 4)
		if err != nil {
			return err
		}
		for i, o := range []*int32{&in.a, &in.b, &in.c} {
			if *o, err = x.from(i+1, 4); err != nil {
				return err
			}
		}
		in.f, in.wide, in.sync = map[string]func(*warp, *inst){"bfly": shflBfly, "up": shflUp, "down": shflDown, "idx": shflIdx}[how], 4, true
		return x.everyone(4)
	},
	"vote": func(x *decoder) (err error) {
		if !x.is("sync.ballot.b32") {
			return x.unknown()
		}
		if err := x.count(3); err != nil {
			return err
		}
		if x.in.d, err = x.to(0, 4); err != nil {
			return err
		}
		x.in.f, x.in.wide, x.in.sync = ballot, 4, true
		if x.in.pa, x.in.nota, err = x.pred(x.s.args[1]); err != nil {
			return err
		}
		return x.everyone(2)
	},
	"redux": func(x *decoder) (err error) {
		how := x.typedPair()
		f := map[string]func(*warp, *inst){"sync.max.s32": reduxMax, "sync.add.s32": reduxAdd}[how]
		if f == nil {
			return x.unknown()
		}
		if err := x.count(3); err != nil {
			return err
		}
		if x.in.d, err = x.to(0, 4); err != nil {
			return err
		}
		x.in.f, x.in.wide, x.in.sync = f, 4, true
		if x.in.a, err = x.from(1, 4); err != nil {
			return err
		}
		return x.everyone(2)
	},
}

// typedPair consumes the rest of the name.
func (x *decoder) typedPair() string {
	name := ""
	for i, w := range x.words {
		if i > 0 {
			name += "."
		}
		name += w
	}
	x.words = nil
	return name
}

// everyone returns an error unless operand i is the mask of all lanes.
func (x *decoder) everyone(i int) error {
	if o := x.s.args[i]; o.kind != number || uint32(o.bits) != full {
		return fmt.Errorf("a mask that leaves lanes out")
	}
	return nil
}

// shuffle gives each lane the value of another one. from returns that lane, and whether it is in
// the same segment of the warp. The high bits of c define the segments.
func shuffle(w *warp, in *inst, from func(lane, b, cut, high int) (int, bool)) {
	a, b, c := *reg[uint32](w, in.a), reg[uint32](w, in.b), reg[uint32](w, in.c)
	d := result[uint32](w, in)
	for i := range d {
		clamp, cut := int(c[i]&31), int(c[i]>>8&31)
		high := i&cut | clamp&^cut
		j, ok := from(i, int(b[i]&31), cut, high)
		if !ok {
			j = i
		}
		if w.mask>>i&1 != 0 && w.mask>>(j&31)&1 == 0 {
			w.failLane(in, i, "takes a value of lane %d, which has ended", j)
		}
		d[i] = a[j&31]
	}
}

func shflBfly(w *warp, in *inst) {
	if in.b < 0 && in.b != none && in.c < 0 && w.mask == full && reg[uint32](w, in.c)[0] == 31 {
		a, b, d := *reg[uint32](w, in.a), int(reg[uint32](w, in.b)[0]), result[uint32](w, in)
		for i := range d {
			d[i] = a[(i^b)&31]
		}
		return
	}
	shuffle(w, in, func(lane, b, _, high int) (int, bool) { j := lane ^ b; return j, j <= high })
}

func shflUp(w *warp, in *inst) {
	shuffle(w, in, func(lane, b, _, high int) (int, bool) { j := lane - b; return j, j >= high })
}

func shflDown(w *warp, in *inst) {
	shuffle(w, in, func(lane, b, _, high int) (int, bool) { j := lane + b; return j, j <= high })
}

func shflIdx(w *warp, in *inst) {
	shuffle(w, in, func(lane, b, cut, high int) (int, bool) { j := lane&cut | b&^cut; return j, j <= high })
}

func ballot(w *warp, in *inst) {
	v := w.test(in.pa, in.nota) & w.mask
	d := result[uint32](w, in)
	for i := range d {
		d[i] = v
	}
}

func reduxMax(w *warp, in *inst) {
	a, d := reg[int32](w, in.a), result[int32](w, in)
	best := a[bits.TrailingZeros32(w.mask)]
	for i := range a {
		if w.mask>>i&1 != 0 {
			best = max(best, a[i])
		}
	}
	for i := range d {
		d[i] = best
	}
}

func reduxAdd(w *warp, in *inst) {
	a, d := reg[int32](w, in.a), result[int32](w, in)
	var sum int32
	for i := range a {
		if w.mask>>i&1 != 0 {
			sum += a[i]
		}
	}
	for i := range d {
		d[i] = sum
	}
}

// increase is atom.inc. It is atomic, because blocks run on several cores.
func increase(p *uint32, limit uint32) uint32 {
	for {
		v := atomic.LoadUint32(p)
		to := v + 1
		if v >= limit {
			to = 0
		}
		if atomic.CompareAndSwapUint32(p, v, to) {
			return v
		}
	}
}
