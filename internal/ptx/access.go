package ptx

import (
	"fmt"
	"math/bits"
	"unsafe"
)

var accesses = map[string]func(x *decoder) error{
	"ld": func(x *decoder) error { return x.access(false) },
	"st": func(x *decoder) error { return x.access(true) },
	"atom": func(x *decoder) (err error) {
		if !x.is("global.inc.u32") {
			return x.unknown()
		}
		if err := x.count(3); err != nil {
			return err
		}
		if x.in.d, err = x.to(0, 4); err != nil {
			return err
		}
		if x.in.b, err = x.from(2, 4); err != nil {
			return err
		}
		x.in.f = atomInc
		return x.address(1, global)
	},
	"red": func(x *decoder) (err error) {
		if !x.is("shared.or.b32") {
			return x.unknown()
		}
		if err := x.count(2); err != nil {
			return err
		}
		if x.in.b, err = x.from(1, 4); err != nil {
			return err
		}
		x.in.f = redOr
		return x.address(0, shared)
	},
}

var spaces = map[string]space{"global": global, "shared": shared, "shared::cta": shared, "local": local, "param": param}

// access decodes ld and st.
func (x *decoder) access(writes bool) (err error) {
	if err := x.count(2); err != nil {
		return err
	}
	t := x.typed()
	n := bytesOf[t]
	if n == 0 {
		return x.unknown()
	}
	x.has("volatile")
	sp := spaces[x.any("global", "shared", "shared::cta", "local", "param")]
	if !writes && sp == global {
		x.has("nc")
	}
	x.any("cs", "cg", "ca", "L1::no_allocate")
	elements := map[string]int{"": 1, "v2": 2, "v4": 4}[x.any("v2", "v4")]
	address, data := 1, 0
	if writes {
		address, data = 0, 1
	}
	if elements*n > 16 {
		return fmt.Errorf("more than 16 bytes")
	}
	x.in.size = int32(n)
	if err := x.address(address, sp); err != nil {
		return err
	}
	if x.in.space == param && (writes || x.in.a != none) {
		return x.unknown()
	}
	// a register may be wider than the access
	bytes := max(n, 2)
	if _, k, ok := x.c.reg(group(x.s.args[data])[0].name); ok && k == double {
		bytes = 8
	}
	if writes {
		x.in.ins, err = x.readAll(x.s.args[data], elements, bytes)
		x.in.f = stores[n][bytes]
		return err
	}
	x.in.outs, err = x.writtenAll(x.s.args[data], elements, bytes)
	signed := t[0] == 's'
	switch {
	case x.in.space != param && signed:
		x.in.f = signedLoads[n][bytes]
	case x.in.space != param:
		x.in.f = loads[n][bytes]
	default:
		x.in.f, x.in.b = loadParam, none
		x.in.notb = signed
		x.in.nota = bytes == 8
	}
	if err == nil && x.in.f == nil {
		return x.unknown()
	}
	return err
}

// loadParam gives all lanes the value of a parameter of the launch.
func loadParam(w *warp, in *inst) {
	for j, o := range in.outs {
		at := int(in.imm) + j*int(in.size)
		if at+int(in.size) > len(w.b.l.Params) {
			w.fail(in, "reads parameters at %d of %d bytes", at, len(w.b.l.Params))
		}
		var v uint64
		for i := range int(in.size) {
			v |= uint64(w.b.l.Params[at+i]) << (8 * i)
		}
		if in.notb { // sign-extended
			shift := 64 - 8*in.size
			v = uint64(int64(v<<shift) >> shift)
		}
		if in.nota { // a register of 64 bits
			d := reg[uint64](w, o)
			for i := range d {
				if w.mask>>i&1 != 0 {
					d[i] = v
				}
			}
			continue
		}
		d := reg[uint32](w, o)
		for i := range d {
			if w.mask>>i&1 != 0 {
				d[i] = uint32(v)
			}
		}
	}
}

// places checks an access of all active lanes and stores the host's addresses in to.
func (w *warp) places(in *inst, to *[lanes]uint64, n uint64, writes bool) {
	if in.a != none && !in.narrow && (in.space == global || in.space == generic) {
		a := reg[uint64](w, in.a)
		from, size := w.near.from, w.near.to-w.near.from-n
		if w.near.to-w.near.from < n {
			from, size = 0, 0
		}
		for m := w.mask; m != 0; m &= m - 1 {
			i := bits.TrailingZeros32(m) & 31
			at := a[i] + uint64(in.imm)
			if at-from > size || at&(n-1) != 0 {
				at = uint64(uintptr(w.reach(in, in.space, at, i, n, writes)))
				from, size = w.near.from, w.near.to-w.near.from-n
				if w.near.to-w.near.from < n {
					from, size = 0, 0
				}
			}
			to[i] = at
		}
		return
	}
	if in.space == shared && w.b.races == nil && (w.b.proxy == nil || !writes) && in.a != none && len(w.b.shared) >= int(n) {
		base, size := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(w.b.shared)))), uint64(len(w.b.shared))-n
		for m := w.mask; m != 0; m &= m - 1 {
			i := bits.TrailingZeros32(m) & 31
			var at uint64
			if in.narrow {
				at = uint64(reg[uint32](w, in.a)[i])
			} else {
				at = reg[uint64](w, in.a)[i]
			}
			at += uint64(in.imm) - sharedBase
			if at > size || at&(n-1) != 0 {
				w.reach(in, shared, at+sharedBase, i, n, writes)
			}
			to[i] = base + at
		}
		return
	}
	for m := w.mask; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m) & 31
		to[i] = uint64(uintptr(w.reach(in, in.space, w.address(in, i), i, n, writes)))
	}
}

// cell returns element j at an address that was checked.
func cell[T any](at uint64, j int) *T {
	var v T
	return (*T)(pointer(at + uint64(j)*uint64(unsafe.Sizeof(v))))
}

type stored interface {
	uint8 | uint16 | uint32 | uint64 | int32
}

func load[T stored, U uint32 | uint64](w *warp, in *inst) {
	var at [lanes]uint64
	w.places(in, &at, uint64(in.size)*uint64(len(in.outs)), false)
	for j, o := range in.outs {
		if o == none {
			continue
		}
		d := reg[U](w, o)
		if w.mask == full {
			for i := range d {
				d[i] = U(*cell[T](at[i], j))
			}
			continue
		}
		for m := w.mask; m != 0; m &= m - 1 {
			i := bits.TrailingZeros32(m) & 31
			d[i] = U(*cell[T](at[i], j))
		}
	}
}

func store[T stored, U uint32 | uint64](w *warp, in *inst) {
	var at [lanes]uint64
	w.places(in, &at, uint64(in.size)*uint64(len(in.ins)), true)
	for j, o := range in.ins {
		d := reg[U](w, o)
		for m := w.mask; m != 0; m &= m - 1 {
			i := bits.TrailingZeros32(m) & 31
			*cell[T](at[i], j) = T(d[i])
		}
	}
}

// Functions by the bytes in memory and in the register; 16-bit values have registers of 32 bits.
type byWidth map[int]map[int]func(*warp, *inst)

var (
	loads = byWidth{1: {2: load[uint8, uint32], 8: load[uint8, uint64]}, 2: {2: load[uint16, uint32], 8: load[uint16, uint64]},
		4: {4: load[uint32, uint32], 8: load[uint32, uint64]}, 8: {8: load[uint64, uint64]}}
	signedLoads = byWidth{1: {2: loadS8}, 2: {2: load[uint16, uint32]}, 4: {4: load[uint32, uint32], 8: load[int32, uint64]}, 8: {8: load[uint64, uint64]}}
	stores      = byWidth{1: {2: store[uint8, uint32], 8: store[uint8, uint64]}, 2: {2: store[uint16, uint32], 8: store[uint16, uint64]},
		4: {4: store[uint32, uint32], 8: store[uint32, uint64]}, 8: {8: store[uint64, uint64]}}
)

func loadS8(w *warp, in *inst) {
	load[uint8, uint32](w, in)
	for _, o := range in.outs {
		d := reg[uint32](w, o)
		for m := w.mask; m != 0; m &= m - 1 {
			i := bits.TrailingZeros32(m) & 31
			d[i] = uint32(uint16(int8(d[i])))
		}
	}
}

// atomInc returns the old value; the new one is the old plus 1, or 0 after b.
func atomInc(w *warp, in *inst) {
	var at [lanes]uint64
	w.places(in, &at, 4, true)
	b, d := reg[uint32](w, in.b), reg[uint32](w, in.d)
	for m := w.mask; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m) & 31
		d[i] = increase(cell[uint32](at[i], 0), b[i])
	}
}

func redOr(w *warp, in *inst) {
	b := reg[uint32](w, in.b)
	for m := w.mask; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m) & 31
		before := w.b.races
		w.b.races = nil // atomic operations do not race with each other
		p := (*uint32)(w.reach(in, shared, w.address(in, i), i, 4, true))
		w.b.races = before
		*p |= b[i]
	}
}
