package ptx

import "fmt"

var moves = map[string]func(x *decoder) error{
	"mov": func(x *decoder) (err error) {
		t := x.typed()
		n := bytesOf[t]
		if err := x.count(2); err != nil {
			return err
		}
		to, from := x.s.args[0], x.s.args[1]
		switch {
		case t == "pred":
			return x.predicates(1, func(a, _ uint32) uint32 { return a })
		case n < 2:
			return x.unknown()
		case to.kind == vector:
			if len(to.list) != 2 || n < 4 {
				return x.unknown()
			}
			if x.in.outs, err = x.writtenAll(to, 2, n/2); err != nil {
				return err
			}
			x.in.a, err = x.from(1, n)
			x.in.f = split32
			if n == 8 {
				x.in.f = split64
			}
			return err
		case from.kind == vector:
			if len(from.list) != 2 || n < 4 {
				return x.unknown()
			}
			ins, err := x.readAll(from, 2, n/2)
			if err != nil {
				return err
			}
			x.in.a, x.in.b = ins[0], ins[1]
			x.in.d, err = x.to(0, n)
			x.in.f, x.in.wide = join32, uint8(n)
			if n == 8 {
				x.in.f = join64
			}
			return err
		}
		if v, ok := x.c.find(from.name); ok && from.kind == named && n != 8 && v.space != shared {
			return fmt.Errorf("the address of %s in %d bytes", from.name, n)
		}
		x.in.moves = true
		if n == 8 {
			return x.simple(copy64, 8, 8)
		}
		return x.simple(copy32, n, n)
	},
}

func copy32(w *warp, in *inst) { *result[uint32](w, in) = *reg[uint32](w, in.a) }
func copy64(w *warp, in *inst) { *result[uint64](w, in) = *reg[uint64](w, in.a) }

func split32(w *warp, in *inst) {
	a := *reg[uint32](w, in.a)
	for j, o := range in.outs {
		if o == none {
			continue
		}
		d := reg[uint32](w, o)
		for i := range d {
			if w.mask>>i&1 != 0 {
				d[i] = a[i] >> (16 * j) & 0xffff
			}
		}
	}
}

func split64(w *warp, in *inst) {
	a := reg[uint64](w, in.a)
	for j, o := range in.outs {
		if o == none {
			continue
		}
		d := reg[uint32](w, o)
		for i := range d {
			if w.mask>>i&1 != 0 {
				d[i] = uint32(a[i] >> (32 * j))
			}
		}
	}
}

func join32(w *warp, in *inst) {
	a, b, d := reg[uint32](w, in.a), reg[uint32](w, in.b), result[uint32](w, in)
	for i := range d {
		d[i] = a[i]&0xffff | b[i]<<16
	}
}

func join64(w *warp, in *inst) {
	a, b, d := reg[uint32](w, in.a), reg[uint32](w, in.b), result[uint64](w, in)
	for i := range d {
		d[i] = uint64(a[i]) | uint64(b[i])<<32
	}
}
