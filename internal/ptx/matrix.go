package ptx

import "math"

// Products of small matrices by a warp. Lane l is in group g = l/4 at place t = l%4. PTX's tables
// define which elements a lane holds. Products are exact in float32 and added in the order of k,
// with each sum rounded to float32. The order of the hardware is not documented.

var matrices = map[string]func(x *decoder) error{
	"mma": func(x *decoder) (err error) {
		if !x.has("sync") || !x.has("aligned") {
			return x.unknown()
		}
		shape := x.any("m16n8k8", "m16n8k16")
		if !x.has("row") || !x.has("col") || shape == "" {
			return x.unknown()
		}
		var m mma
		switch name := x.typedPair(); name {
		case "f32.f16.f16.f32":
			m = mma{element: halfF16, k: 16, a: 4, b: 2, c: 4}
		case "f32.bf16.bf16.f32":
			m = mma{element: halfBF16, k: 16, a: 4, b: 2, c: 4}
		case "f16.f16.f16.f16":
			m = mma{element: halfF16, k: 16, a: 4, b: 2, c: 2}
		case "f32.tf32.tf32.f32":
			m = mma{element: wholeTF32, k: 8, a: 4, b: 2, c: 4}
		default:
			return x.unknown()
		}
		switch {
		case shape == "m16n8k16" && m.k == 8:
			return x.unknown()
		case shape == "m16n8k8" && m.k == 16:
			m.k, m.a, m.b = 8, 2, 1
		}
		if err := x.count(4); err != nil {
			return err
		}
		in := x.in
		if in.outs, err = x.writtenAll(x.s.args[0], m.c, 4); err != nil {
			return err
		}
		for i, n := range []int{m.a, m.b, m.c} {
			ins, err := x.readAll(x.s.args[1+i], n, 4)
			if err != nil {
				return err
			}
			in.ins = append(in.ins, ins...)
		}
		in.sync = true
		in.f = m.multiply
		return nil
	},
	"ldmatrix": func(x *decoder) (err error) {
		trans := false
		switch {
		case x.is("sync.aligned.m8n8.x4.shared.b16"):
		case x.is("sync.aligned.m8n8.x4.trans.shared.b16"):
			trans = true
		default:
			return x.unknown()
		}
		if err := x.count(2); err != nil {
			return err
		}
		if x.in.outs, err = x.writtenAll(x.s.args[0], 4, 4); err != nil {
			return err
		}
		x.in.sync, x.in.f = true, loadMatrix
		if trans {
			x.in.f = loadTransposed
		}
		return x.address(1, shared)
	},
	"movmatrix": func(x *decoder) error {
		if !x.is("sync.aligned.m8n8.trans.b16") {
			return x.unknown()
		}
		x.in.sync = true
		return x.simple(transpose, 4, 4)
	},
}

type element uint8

const (
	halfF16 element = iota
	halfBF16
	wholeTF32
)

// mma describes how many registers each operand of a product has.
type mma struct {
	element element
	k       int
	a, b, c int
}

// tf32 returns the value that the hardware reads from a register: it ignores the low bits.
func tf32(v uint32) float32 { return math.Float32frombits(v &^ 0x1fff) }

// square is a matrix of eight rows and eight columns. A register with two elements per lane holds
// one: lane l holds elements 2l and 2l+1.
type square [2 * lanes]float32

// tile is a product in progress: squares of a by rows, of b by rows of k, and of c.
type tile struct {
	a    [4]square
	b    [2]square
	c    [2]square
	turn square
}

// widen converts a register to a square.
func (e element) widen(d *square, r *[lanes]uint32) {
	switch {
	case e == halfBF16:
		for l, v := range r {
			d[2*l], d[2*l+1] = math.Float32frombits(v<<16), math.Float32frombits(v&0xffff0000)
		}
	case fast:
		widenHalves((*[2 * lanes]float32)(d), r)
	default:
		for l, v := range r {
			d[2*l], d[2*l+1] = fromF16(v&0xffff), fromF16(v>>16)
		}
	}
}

func (m mma) multiply(w *warp, in *inst) {
	t := &w.tile
	if w.mask != full {
		w.fail(in, "is for 32 lanes, %08x are here", w.mask)
	}
	for j := range m.a {
		r := reg[uint32](w, in.ins[j])
		if m.element != wholeTF32 {
			m.element.widen(&t.a[j], r)
			continue
		}
		for l, v := range r {
			t.a[j%2][l/4*8+l%4+j/2*4] = tf32(v)
		}
	}
	for j := range m.b {
		r := reg[uint32](w, in.ins[m.a+j])
		if m.element == wholeTF32 {
			for l, v := range r {
				t.b[0][(l%4+j*4)*8+l/4] = tf32(v)
			}
			continue
		}
		m.element.widen(&t.turn, r) // by columns
		b := &t.b[j]
		for n := range 8 {
			from := (*[8]float32)(t.turn[8*n:])
			for k, v := range from {
				b[k*8+n] = v
			}
		}
	}
	for j := range 2 {
		if m.c == 2 {
			halfF16.widen(&t.c[j], reg[uint32](w, in.ins[m.a+m.b+j]))
			continue
		}
		pair(&t.c[j], reg[float32](w, in.ins[m.a+m.b+2*j]), reg[float32](w, in.ins[m.a+m.b+2*j+1]))
	}
	for k := range m.k / 8 {
		times(&t.c[0], &t.a[2*k], &t.b[k])
		times(&t.c[1], &t.a[2*k+1], &t.b[k])
	}
	for j := range 2 {
		if m.c == 2 {
			r := reg[uint32](w, in.outs[j])
			for l := range r {
				r[l] = toF16(float64(t.c[j][2*l])) | toF16(float64(t.c[j][2*l+1]))<<16
			}
			continue
		}
		part(&t.c[j], reg[float32](w, in.outs[2*j]), reg[float32](w, in.outs[2*j+1]))
	}
}

// pair and part convert between a square and the two registers that hold it.
func pair(to *square, a, b *[lanes]float32) {
	for l := range a {
		to[2*l], to[2*l+1] = a[l], b[l]
	}
}

func part(from *square, a, b *[lanes]float32) {
	for l := range a {
		a[l], b[l] = from[2*l], from[2*l+1]
	}
}

// times adds a·b to c.
func times(c, a, b *square) {
	if fast {
		blockProduct((*[2 * lanes]float32)(c), (*[2 * lanes]float32)(a), (*[2 * lanes]float32)(b))
		return
	}
	timesPlain(c, a, b)
}

func timesPlain(c, a, b *square) {
	for row := range 8 {
		sum := (*[8]float32)(c[8*row:])
		for i, v := range (*[8]float32)(a[8*row:]) {
			for n, x := range (*[8]float32)(b[8*i:]) {
				sum[n] += v * x
			}
		}
	}
}

// rows returns the eight rows of each of four matrices. Lane l has the address of row l%8 of matrix
// l/8.
func (w *warp) rows(in *inst) (all [lanes]*[8]uint16) {
	if w.mask != full {
		w.fail(in, "is for 32 lanes, %08x are here", w.mask)
	}
	for i := range all {
		at := w.address(in, i)
		all[i] = (*[8]uint16)(w.reach(in, shared, at, i, 16, false))
	}
	return all
}

func loadMatrix(w *warp, in *inst) {
	rows := w.rows(in)
	for j, o := range in.outs {
		d := reg[uint32](w, o)
		for l := range d {
			row := rows[(j*8+l/4)&31]
			d[l] = uint32(row[l%4*2]) | uint32(row[l%4*2+1])<<16
		}
	}
}

func loadTransposed(w *warp, in *inst) {
	rows := w.rows(in)
	for j, o := range in.outs {
		d := reg[uint32](w, o)
		for l := range d {
			d[l] = uint32(rows[(j*8+l%4*2)&31][l/4]) | uint32(rows[(j*8+l%4*2+1)&31][l/4])<<16
		}
	}
}

// transpose transposes a matrix of eight rows and columns.
func transpose(w *warp, in *inst) {
	a, d := *reg[uint32](w, in.a), result[uint32](w, in)
	at := func(row, col int) uint32 { return a[row*4+col/2] >> (col % 2 * 16) & 0xffff }
	for l := range d {
		d[l] = at(l%4*2, l/4) | at(l%4*2+1, l/4)<<16
	}
}
