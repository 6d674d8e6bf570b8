package ptx

import (
	"fmt"
	"math/bits"
)

var bitwise = map[string]func(x *decoder) error{
	"and": func(x *decoder) error {
		if x.is("pred") {
			return x.predicates(2, func(a, b uint32) uint32 { return a & b })
		}
		return x.byType(map[string]func(*warp, *inst){"b16": and[uint32], "b32": and[uint32], "b64": and[uint64]}, 2)
	},
	"or": func(x *decoder) error {
		if x.is("pred") {
			return x.predicates(2, func(a, b uint32) uint32 { return a | b })
		}
		return x.byType(map[string]func(*warp, *inst){"b16": or[uint32], "b32": or[uint32], "b64": or[uint64]}, 2)
	},
	"xor": func(x *decoder) error {
		if x.is("pred") {
			return x.predicates(2, func(a, b uint32) uint32 { return a ^ b })
		}
		return x.byType(map[string]func(*warp, *inst){"b16": xor[uint32], "b32": xor[uint32], "b64": xor[uint64]}, 2)
	},
	"not": func(x *decoder) error {
		if x.is("pred") {
			return x.predicates(1, func(a, _ uint32) uint32 { return ^a })
		}
		return x.byType(map[string]func(*warp, *inst){"b16": not16, "b32": not[uint32], "b64": not[uint64]}, 1)
	},
	"shl": func(x *decoder) error {
		return x.shift(map[string]func(*warp, *inst){"b16": shl16, "b32": shl[uint32], "b64": shl[uint64]})
	},
	"shr": func(x *decoder) error {
		return x.shift(map[string]func(*warp, *inst){"b16": shr[uint32], "u16": shr[uint32], "s16": shr16, "b32": shr[uint32], "u32": shr[uint32], "s32": shr[int32],
			"b64": shr[uint64], "u64": shr[uint64], "s64": shr[int64]})
	},
	"shf": func(x *decoder) error {
		switch {
		case x.is("l.wrap.b32"):
			return x.simple(funnelLeft, 4, 4, 4, 4)
		case x.is("r.wrap.b32"):
			return x.simple(funnelRight, 4, 4, 4, 4)
		}
		return x.unknown()
	},
	"bfe": func(x *decoder) error {
		switch {
		case x.is("u32"):
			return x.simple(fieldU32, 4, 4, 4, 4)
		case x.is("s32"):
			return x.simple(fieldS32, 4, 4, 4, 4)
		}
		return x.unknown()
	},
	"lop3": func(x *decoder) error {
		if !x.is("b32") || len(x.s.args) != 5 || x.s.args[4].kind != number {
			return x.unknown()
		}
		x.in.imm = int64(x.s.args[4].bits)
		x.s = &statement{args: x.s.args[:4]}
		return x.simple(lop3, 4, 4, 4, 4)
	},
	"prmt": func(x *decoder) error {
		if !x.is("b32") {
			return x.unknown()
		}
		return x.simple(permute, 4, 4, 4, 4)
	},
	"clz": func(x *decoder) error {
		if x.is("b64") {
			return x.simple(clz64, 4, 8)
		}
		if !x.is("b32") {
			return x.unknown()
		}
		return x.simple(clz32, 4, 4)
	},
	"popc": func(x *decoder) error {
		if x.is("b64") {
			return x.simple(popc64, 4, 8)
		}
		if !x.is("b32") {
			return x.unknown()
		}
		return x.simple(popc32, 4, 4)
	},
}

func (x *decoder) shift(all map[string]func(*warp, *inst)) error {
	t := x.typed()
	f := all[t]
	if f == nil {
		return x.unknown()
	}
	return x.simple(f, bytesOf[t], bytesOf[t], 4)
}

// predicates decodes an operation on predicates.
func (x *decoder) predicates(n int, f func(a, b uint32) uint32) (err error) {
	if err := x.count(1 + n); err != nil {
		return err
	}
	in := x.in
	if in.pd, _, err = x.pred(x.s.args[0]); err != nil {
		return err
	}
	if in.pa, in.nota, err = x.pred(x.s.args[1]); err != nil {
		return err
	}
	in.pb = in.pa
	if n == 2 {
		if in.pb, in.notb, err = x.pred(x.s.args[2]); err != nil {
			return err
		}
	}
	if in.pd < 2 {
		return fmt.Errorf("a constant is written")
	}
	in.f = func(w *warp, in *inst) { w.set(in, f(w.test(in.pa, in.nota), w.test(in.pb, in.notb))) }
	return nil
}

// set writes the predicate of an instruction.
func (w *warp) set(in *inst, m uint32) { w.pred[in.pd] = w.pred[in.pd]&^w.mask | m&w.mask }

func and[T anyInteger](w *warp, in *inst) {
	a, b, d := reg[T](w, in.a), reg[T](w, in.b), result[T](w, in)
	for i := range d {
		d[i] = a[i] & b[i]
	}
}

func or[T anyInteger](w *warp, in *inst) {
	a, b, d := reg[T](w, in.a), reg[T](w, in.b), result[T](w, in)
	for i := range d {
		d[i] = a[i] | b[i]
	}
}

func xor[T anyInteger](w *warp, in *inst) {
	a, b, d := reg[T](w, in.a), reg[T](w, in.b), result[T](w, in)
	for i := range d {
		d[i] = a[i] ^ b[i]
	}
}

func not[T anyInteger](w *warp, in *inst) {
	a, d := reg[T](w, in.a), result[T](w, in)
	for i := range d {
		d[i] = ^a[i]
	}
}

func not16(w *warp, in *inst) {
	a, d := reg[uint32](w, in.a), result[uint32](w, in)
	for i := range d {
		d[i] = ^a[i] & 0xffff
	}
}

// Shifts by at least the width return 0, or the sign, as in Go.
func shl[T anyInteger](w *warp, in *inst) {
	a, b, d := reg[T](w, in.a), reg[uint32](w, in.b), result[T](w, in)
	for i := range d {
		d[i] = a[i] << b[i]
	}
}

func shl16(w *warp, in *inst) {
	a, b, d := reg[uint32](w, in.a), reg[uint32](w, in.b), result[uint32](w, in)
	for i := range d {
		d[i] = a[i] << b[i] & 0xffff
	}
}

func shr[T anyInteger](w *warp, in *inst) {
	a, b, d := reg[T](w, in.a), reg[uint32](w, in.b), result[T](w, in)
	for i := range d {
		d[i] = a[i] >> b[i]
	}
}

func shr16(w *warp, in *inst) {
	a, b, d := reg[uint32](w, in.a), reg[uint32](w, in.b), result[uint32](w, in)
	for i := range d {
		d[i] = uint32(uint16(int16(a[i]) >> b[i]))
	}
}

// funnelLeft returns the high word of b:a, shifted left by the low five bits of c.
func funnelLeft(w *warp, in *inst) {
	a, b, c, d := reg[uint32](w, in.a), reg[uint32](w, in.b), reg[uint32](w, in.c), result[uint32](w, in)
	for i := range d {
		d[i] = uint32((uint64(b[i])<<32 | uint64(a[i])) << (c[i] & 31) >> 32)
	}
}

func funnelRight(w *warp, in *inst) {
	a, b, c, d := reg[uint32](w, in.a), reg[uint32](w, in.b), reg[uint32](w, in.c), result[uint32](w, in)
	for i := range d {
		d[i] = uint32((uint64(b[i])<<32 | uint64(a[i])) >> (c[i] & 31))
	}
}

// Bit fields: position and length are the low bytes of b and c. Beyond bit 31 there are zeros, or
// the sign.
func fieldU32(w *warp, in *inst) {
	a, b, c, d := reg[uint32](w, in.a), reg[uint32](w, in.b), reg[uint32](w, in.c), result[uint32](w, in)
	for i := range d {
		d[i] = uint32(uint64(a[i])>>(b[i]&0xff)) & uint32(uint64(1)<<min(c[i]&0xff, 32)-1)
	}
}

func fieldS32(w *warp, in *inst) {
	a, b, c, d := reg[int32](w, in.a), reg[uint32](w, in.b), reg[uint32](w, in.c), result[int32](w, in)
	for i := range d {
		n := c[i] & 0xff
		v := int64(a[i]) >> (b[i] & 0xff)
		if n == 0 {
			v = 0
		} else if n < 64 {
			v = v << (64 - n) >> (64 - n)
		}
		d[i] = int32(v)
	}
}

func lop3(w *warp, in *inst) {
	a, b, c, d := reg[uint32](w, in.a), reg[uint32](w, in.b), reg[uint32](w, in.c), result[uint32](w, in)
	for i := range d {
		var v uint32
		for bit := range 8 {
			if in.imm>>bit&1 == 0 {
				continue
			}
			x, y, z := a[i], b[i], c[i]
			if bit&4 == 0 {
				x = ^x
			}
			if bit&2 == 0 {
				y = ^y
			}
			if bit&1 == 0 {
				z = ^z
			}
			v |= x & y & z
		}
		d[i] = v
	}
}

// permute selects four of the eight bytes of b:a. A selector's high bit repeats the byte's sign.
func permute(w *warp, in *inst) {
	a, b, c, d := reg[uint32](w, in.a), reg[uint32](w, in.b), reg[uint32](w, in.c), result[uint32](w, in)
	for i := range d {
		from, by := uint64(b[i])<<32|uint64(a[i]), c[i]
		var v uint32
		for j := range 4 {
			s := by >> (4 * j) & 15
			x := uint32(from>>(8*(s&7))) & 0xff
			if s&8 != 0 {
				x = uint32(int32(int8(x))>>7) & 0xff
			}
			v |= x << (8 * j)
		}
		d[i] = v
	}
}

func clz32(w *warp, in *inst) {
	a, d := reg[uint32](w, in.a), result[uint32](w, in)
	for i := range d {
		d[i] = uint32(bits.LeadingZeros32(a[i]))
	}
}

func popc32(w *warp, in *inst) {
	a, d := reg[uint32](w, in.a), result[uint32](w, in)
	for i := range d {
		d[i] = uint32(bits.OnesCount32(a[i]))
	}
}

func clz64(w *warp, in *inst) {
	a, d := reg[uint64](w, in.a), result[uint32](w, in)
	for i := range d {
		d[i] = uint32(bits.LeadingZeros64(a[i]))
	}
}

func popc64(w *warp, in *inst) {
	a, d := reg[uint64](w, in.a), result[uint32](w, in)
	for i := range d {
		d[i] = uint32(bits.OnesCount64(a[i]))
	}
}
