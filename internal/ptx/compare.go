package ptx

// Comparisons: setp writes a predicate, selp reads one. Comparisons other than <, <= and = swap the
// operands or negate the result.

type compare struct {
	f      func(w *warp, in *inst) uint32
	swap   bool
	invert bool
	and    bool // combined with another predicate
}

var comparisons = map[string]func(x *decoder) error{
	"setp": func(x *decoder) error {
		t := x.typed()
		kind := x.any("eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")
		less, lessEqual, equal, ordered := relations(t)
		if equal == nil || kind == "" {
			return x.unknown()
		}
		float := t == "f32" || t == "f64"
		var f func(w *warp, in *inst) uint32
		swap, invert := false, false
		switch kind {
		case "eq":
			f = equal
		case "ne":
			f, invert = equal, true
			if float {
				f, invert = func(w *warp, in *inst) uint32 { return ordered(w, in) &^ equal(w, in) }, false
			}
		case "lt":
			f = less
		case "le":
			f = lessEqual
		case "gt":
			f, swap = less, true
		case "ge":
			f, swap = lessEqual, true
		}
		if float && f == nil {
			switch kind {
			case "neu":
				f, invert = equal, true
			case "ltu": // not a >= b
				f, swap, invert = lessEqual, true, true
			case "leu":
				f, swap, invert = less, true, true
			case "gtu":
				f, invert = lessEqual, true
			case "geu":
				f, invert = less, true
			case "equ":
				f = func(w *warp, in *inst) uint32 { return ^ordered(w, in) | equal(w, in) }
			case "num":
				f = ordered
			case "nan":
				f, invert = ordered, true
			}
		}
		if f == nil || kind[0] != 'e' && kind[0] != 'n' && t[0] == 'b' {
			return x.unknown()
		}
		return x.setp(compare{f: f, swap: swap, invert: invert, and: x.has("and")}, bytesOf[t])
	},
	"selp": func(x *decoder) (err error) {
		t := x.typed()
		n := bytesOf[t]
		if n < 2 {
			return x.unknown()
		}
		if err := x.count(4); err != nil {
			return err
		}
		if x.in.pa, x.in.nota, err = x.pred(x.s.args[3]); err != nil {
			return err
		}
		x.s = &statement{args: x.s.args[:3]}
		if n == 8 {
			return x.simple(selp[uint64], 8, 8, 8)
		}
		return x.simple(selp[uint32], n, n, n)
	},
}

func (x *decoder) setp(how compare, bytes int) (err error) {
	n := 3
	if how.and {
		n = 4
	}
	if err := x.count(n); err != nil {
		return err
	}
	in := x.in
	if in.pd, _, err = x.pred(x.s.args[0]); err != nil {
		return err
	}
	i, j := 1, 2
	if how.swap {
		i, j = 2, 1
	}
	if in.a, err = x.from(i, bytes); err != nil {
		return err
	}
	if in.b, err = x.from(j, bytes); err != nil {
		return err
	}
	f := how.f
	switch {
	case how.and:
		if in.pa, in.nota, err = x.pred(x.s.args[3]); err != nil {
			return err
		}
		var flip uint32
		if how.invert {
			flip = full
		}
		in.f = func(w *warp, in *inst) { w.set(in, (f(w, in)^flip)&w.test(in.pa, in.nota)) }
	case how.invert:
		in.f = func(w *warp, in *inst) { w.set(in, ^f(w, in)) }
	default:
		in.f = func(w *warp, in *inst) { w.set(in, f(w, in)) }
	}
	return nil
}

// relations returns a type's comparisons: less, less or equal, equal, and for floats that neither
// is NaN.
func relations(t string) (less, lessEqual, equal, ordered func(w *warp, in *inst) uint32) {
	switch t {
	case "s16":
		return below16, notAbove16, same[uint32], nil
	case "u16", "b16", "u32", "b32":
		return below[uint32], notAbove[uint32], same[uint32], nil
	case "s32":
		return below[int32], notAbove[int32], same[uint32], nil
	case "u64", "b64":
		return below[uint64], notAbove[uint64], same[uint64], nil
	case "s64":
		return below[int64], notAbove[int64], same[uint64], nil
	case "f32":
		return below[float32], notAbove[float32], same[float32], numbers[float32]
	case "f64":
		return below[float64], notAbove[float64], same[float64], numbers[float64]
	}
	return nil, nil, nil, nil
}

func below[T numberLike](w *warp, in *inst) (m uint32) {
	a, b := reg[T](w, in.a), reg[T](w, in.b)
	for i := range a {
		var x uint32
		if a[i] < b[i] {
			x = 1
		}
		m |= x << (i & 31)
	}
	return m
}

func notAbove[T numberLike](w *warp, in *inst) (m uint32) {
	a, b := reg[T](w, in.a), reg[T](w, in.b)
	for i := range a {
		var x uint32
		if a[i] <= b[i] {
			x = 1
		}
		m |= x << (i & 31)
	}
	return m
}

func same[T numberLike](w *warp, in *inst) (m uint32) {
	a, b := reg[T](w, in.a), reg[T](w, in.b)
	for i := range a {
		var x uint32
		if a[i] == b[i] {
			x = 1
		}
		m |= x << (i & 31)
	}
	return m
}

func numbers[T numberLike](w *warp, in *inst) (m uint32) {
	a, b := reg[T](w, in.a), reg[T](w, in.b)
	for i := range a {
		var x uint32
		if a[i] == a[i] && b[i] == b[i] {
			x = 1
		}
		m |= x << (i & 31)
	}
	return m
}

func below16(w *warp, in *inst) (m uint32) {
	a, b := reg[uint32](w, in.a), reg[uint32](w, in.b)
	for i := range a {
		if int16(a[i]) < int16(b[i]) {
			m |= 1 << i
		}
	}
	return m
}

func notAbove16(w *warp, in *inst) (m uint32) {
	a, b := reg[uint32](w, in.a), reg[uint32](w, in.b)
	for i := range a {
		if int16(a[i]) <= int16(b[i]) {
			m |= 1 << i
		}
	}
	return m
}

func selp[T anyInteger](w *warp, in *inst) {
	a, b, d := reg[T](w, in.a), reg[T](w, in.b), result[T](w, in)
	p := w.test(in.pa, in.nota)
	switch p {
	case 0:
		*d = *b
		return
	case full:
		*d = *a
		return
	}
	for i := range d {
		if p>>i&1 != 0 {
			d[i] = a[i]
		} else {
			d[i] = b[i]
		}
	}
}
