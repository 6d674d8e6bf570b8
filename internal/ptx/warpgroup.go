package ptx

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// Products of a warpgroup, four warps beginning at a multiple of four: D[64×N] = A·B + D over 32
// bytes of terms. Each warp has 16 rows of A and of D and computes them itself. PTX does not define
// the order and rounding of sums: here products are exact and added in the order of k, with each
// sum rounded to float32, as in mma.
//
// A product is computed when it is issued, and its sums are stored separately. Until the warp waits
// for its group, the registers of D hold NaNs. The registers and the shared memory of its operands
// must not change until then: wait_group compares them.
// keep what they had: wait_group compares them.

// pendingNaN is the value of a register of sums in flight: a signalling NaN, which arithmetic
// changes.
const pendingNaN = 0xffbfbeef

// products holds the products of a warp that it has not waited for.
type products struct {
	committed int // number of groups
	sums      []*pendingSums
	operands  []*operands
	spareSums []*pendingSums
	spare     []*operands
}

// pendingSums holds sums in flight: for each eight columns the squares of rows 0 to 7 and 8 to 15.
type pendingSums struct {
	outs    []int32
	squares [][2]square
	group   int
	in      *inst
}

// operands holds a product's inputs as it read them.
type operands struct {
	in    *inst
	group int
	left  [4][lanes]uint32 // in registers
	a, b  []byte           // in shared memory, as gathered
	da    descriptor
	db    descriptor
}

func (p *products) begin() {
	p.committed = 0
	p.spareSums, p.spare = append(p.spareSums, p.sums...), append(p.spare, p.operands...)
	p.sums, p.operands = p.sums[:0], p.operands[:0]
}

// warpgroup holds the products that some of its four warps have issued: all four issue the same.
type warpgroup struct {
	first  int // number of issued[0]
	issued []issued
	of     [4]int // by warp: the number of products it has issued
}

type issued struct {
	in   *inst
	a, b uint64
	// B of the first warp, which is usually that of the others too: as gathered, and as squares of
	// eight terms and eight columns
	raw     []byte
	squares []square
}

// wgmma is a decoded shape. A row of an operand has 32 bytes of terms.
type wgmma struct {
	element                  element
	columns                  int
	left                     bool // A is in registers
	transposedA, transposedB bool // A or B is transposed: its rows are terms
}

var warpgroups = map[string]func(x *decoder) error{
	"wgmma": func(x *decoder) (err error) {
		in := x.in
		switch {
		case x.is("fence.sync.aligned"):
			in.f, in.sync = fenceProducts, true
			return x.count(0)
		case x.is("commit_group.sync.aligned"):
			in.f, in.sync = commitProducts, true
			return x.count(0)
		case x.is("wait_group.sync.aligned"):
			if err := x.count(1); err != nil {
				return err
			}
			if x.s.args[0].kind != number {
				return x.unknown()
			}
			in.f, in.imm, in.sync = awaitProducts, int64(x.s.args[0].bits), true
			return nil
		}
		if !x.has("mma_async") || !x.has("sync") || !x.has("aligned") || len(x.words) == 0 {
			return x.unknown()
		}
		var m wgmma
		shape := x.words[0]
		x.words = x.words[1:]
		k := ""
		switch x.typedPair() {
		case "f32.bf16.bf16":
			m.element, k = halfBF16, "k16"
		case "f32.tf32.tf32":
			m.element, k = wholeTF32, "k8"
		default:
			return x.unknown()
		}
		digits, ok := strings.CutPrefix(shape, "m64n")
		digits, same := strings.CutSuffix(digits, k)
		m.columns, err = strconv.Atoi(digits)
		if !ok || !same || err != nil || m.columns < 8 || m.columns > 256 || m.columns%8 != 0 || len(x.s.args) < 6 {
			return x.unknown()
		}
		m.left = x.s.args[1].kind == vector
		turns := 0
		if m.element == halfBF16 {
			turns = 2
			if m.left {
				turns = 1
			}
		}
		if err := x.count(6 + turns); err != nil {
			return err
		}
		for i, o := range x.s.args[4:] {
			if o.kind != number || o.bits > 1 || i < 2 && o.bits != 1 {
				return fmt.Errorf("scales other than 1, or turns that are no number")
			}
		}
		switch turns {
		case 1:
			m.transposedB = x.s.args[6].bits == 1
		case 2:
			m.transposedA, m.transposedB = x.s.args[6].bits == 1, x.s.args[7].bits == 1
		}
		if in.outs, err = x.writtenAll(x.s.args[0], m.columns/2, 4); err != nil {
			return err
		}
		if m.left {
			if in.ins, err = x.readAll(x.s.args[1], 4, 4); err != nil {
				return err
			}
		} else if in.a, err = x.from(1, 8); err != nil {
			return err
		}
		in.ins = append(in.ins, in.outs...)
		if in.b, err = x.from(2, 8); err != nil {
			return err
		}
		if in.pa, in.nota, err = x.pred(x.s.args[3]); err != nil {
			return err
		}
		x.c.p.async, in.sync = true, true
		in.f = m.multiply
		return nil
	},
}

// descriptor is an operand in shared memory: rows of 128 bytes whose 16-byte vectors are swizzled,
// or blocks of eight rows of 16 bytes.
type descriptor struct {
	start, across, down int // bytes: the first row; the next 128 bytes of a row (16 without swizzling); the next eight rows
	rows                int // rows of the operand with 32 bytes of terms each; or its columns, if rows are terms
	transposed, plain   bool
}

func (w *warp) descriptor(in *inst, bits uint64, first, rows int, transposed bool) descriptor {
	field := func(at int) int { return int(bits>>at&0x3fff) << 4 }
	if bits>>62 > 1 || bits>>49&7 != 0 || bits>>62 == 0 && transposed {
		w.fail(in, "has an operand described by %#016x: rows of 128 bytes that begin at multiples of 1024, and plain ones, are known", bits)
	}
	d := descriptor{start: field(0), across: field(16), down: field(32), rows: rows, transposed: transposed, plain: bits>>62 == 0}
	if transposed {
		// the warp's part begins after `first` columns
		d.start += first / 64 * d.across
		d.start += first % 64 * 2
	} else {
		d.start += first / 8 * d.down
	}
	return d
}

// vectors calls f with the address of each 16 bytes of the operand, in the order of gather: by
// rows, two each; or by terms, if rows are terms.
func (d *descriptor) vectors(f func(at int)) {
	switch {
	case d.plain:
		for r := range d.rows {
			at := d.start + r/8*d.down + r%8*16
			f(at)
			f(at + d.across)
		}
		return
	case !d.transposed:
		for r := range d.rows {
			at := d.start + r/8*d.down + r%8*128
			f(swizzle(at))
			f(swizzle(at + 16))
		}
		return
	}
	// start may be within a row if a warp has a part of A
	row, within := d.start&^127, d.start&127
	for k := range 16 {
		for c := 0; c < d.rows; c += 8 {
			column := within/2 + c
			f(swizzle(row + k/8*d.down + k%8*128 + column/64*d.across + column%64*2))
		}
	}
}

// gather copies an operand from shared memory.
func (w *warp) gather(in *inst, d *descriptor, to []byte) []byte {
	to = to[:0]
	d.vectors(func(at int) {
		at -= sharedBase
		w.async(in, 0, at, 16, false)
		to = append(to, w.b.shared[at:at+16]...)
	})
	return to
}

// squaresOf converts gathered bytes to squares of eight terms of eight rows, by rows if byRow, else
// by terms. Squares of the same rows are consecutive.
func (m *wgmma) squaresOf(raw []byte, rows int, transposed, byRow bool, to []square) []square {
	steps := 2
	if m.element == wholeTF32 {
		steps = 1
	}
	to = slices.Grow(to[:0], rows/8*steps)[:rows/8*steps]
	put := func(row, k int, v float32) {
		s := &to[row/8*steps+k/8]
		if byRow {
			s[row%8*8+k%8] = v
		} else {
			s[k%8*8+row%8] = v
		}
	}
	switch {
	case m.element == wholeTF32:
		for r := range rows {
			for k := range 8 {
				put(r, k, tf32(binary.LittleEndian.Uint32(raw[32*r+4*k:])))
			}
		}
	case transposed:
		for k := range 16 {
			for r := range rows {
				put(r, k, fromBF16(uint32(binary.LittleEndian.Uint16(raw[2*(k*rows+r):]))))
			}
		}
	default:
		for r := range rows {
			for k := range 16 {
				put(r, k, fromBF16(uint32(binary.LittleEndian.Uint16(raw[32*r+2*k:]))))
			}
		}
	}
	return to
}

// same fails unless the warps of a group issue the same products in the same order. It returns the
// product as the group's first warp has issued it.
func (w *warp) same(in *inst, a, b uint64) *issued {
	g := &w.b.groups[w.index/4]
	at := &g.of[w.index%4]
	i := *at - g.first
	if i == len(g.issued) {
		g.issued = append(g.issued, issued{in: in, a: a, b: b})
	}
	o := &g.issued[i]
	if o.in != in || o.a != a || o.b != b {
		w.fail(in, "is another product than the one at +%d that its warpgroup issues", o.in.line)
	}
	*at++
	if least := slices.Min(g.of[:]) - 1; least > g.first { // the last of the four warps is here: earlier products are removed
		g.issued = append(g.issued[:0], g.issued[least-g.first:]...)
		g.first = least
		return &g.issued[*at-1-g.first]
	}
	return o
}

func (m wgmma) multiply(w *warp, in *inst) {
	if w.mask != full {
		w.fail(in, "is for 32 lanes, %08x are here", w.mask)
	}
	p := &w.products
	o := &operands{}
	if n := len(p.spare); n > 0 {
		o, p.spare = p.spare[n-1], p.spare[:n-1]
	}
	o.in, o.group = in, p.committed
	db := reg[uint64](w, in.b)[0]
	var da uint64
	if !m.left {
		da = reg[uint64](w, in.a)[0]
	}
	shared := w.same(in, da, db)
	o.db = w.descriptor(in, db, 0, m.columns, m.transposedB)
	o.b = w.gather(in, &o.db, o.b)
	if !bytes.Equal(o.b, shared.raw) || shared.squares == nil {
		shared.raw = append(shared.raw[:0], o.b...)
		shared.squares = m.squaresOf(o.b, m.columns, m.transposedB, false, shared.squares)
	}
	// A by rows 0 to 7 and 8 to 15 of the warp
	var left [4]square
	steps := 2
	if m.element == wholeTF32 {
		steps = 1
	}
	if m.left {
		for j := range o.left {
			o.left[j] = *reg[uint32](w, in.ins[j])
			if m.element == halfBF16 {
				m.element.widen(&left[j%2*steps+j/2], &o.left[j])
				continue
			}
			for l, v := range o.left[j] {
				left[j%2][l/4*8+l%4+j/2*4] = tf32(v)
			}
		}
	} else {
		o.da = w.descriptor(in, da, w.index%4*16, 16, m.transposedA)
		o.a = w.gather(in, &o.da, o.a)
		m.squaresOf(o.a, 16, m.transposedA, true, left[:0])
	}
	p.operands = append(p.operands, o)
	sums := w.sumsOf(in, !m.fresh(w, in))
	for j := range sums.squares {
		for k := range steps {
			b := &shared.squares[j*steps+k]
			times(&sums.squares[j][0], &left[k], b)
			times(&sums.squares[j][1], &left[steps+k], b)
		}
	}
}

// fresh reports whether the product's sums begin at zero. The predicate is the same for all lanes.
func (m *wgmma) fresh(w *warp, in *inst) bool {
	p := w.test(in.pa, in.nota)
	if p != 0 && p != full {
		w.fail(in, "adds to the sums of lanes %08x alone", p)
	}
	return p == 0
}

// sumsOf returns the sums that a product adds to: sums in flight in the same registers, or the
// registers' values. It fills the registers with NaNs.
func (w *warp) sumsOf(in *inst, adds bool) *pendingSums {
	p := &w.products
	for _, s := range p.sums {
		if slices.Equal(s.outs, in.outs) {
			s.group, s.in = p.committed, in
			if !adds {
				clear(s.squares)
			}
			return s
		}
		for _, o := range in.outs {
			if slices.Contains(s.outs, o) {
				w.fail(in, "shares registers with the product in flight at +%d, which has other columns", s.in.line)
			}
		}
	}
	s := &pendingSums{}
	if n := len(p.spareSums); n > 0 {
		s, p.spareSums = p.spareSums[n-1], p.spareSums[:n-1]
	}
	s.outs, s.group, s.in = in.outs, p.committed, in
	s.squares = slices.Grow(s.squares[:0], len(in.outs)/4)[:len(in.outs)/4]
	clear(s.squares)
	for j := range s.squares {
		for h := range 2 {
			a, b := reg[float32](w, in.outs[4*j+2*h]), reg[float32](w, in.outs[4*j+2*h+1])
			if adds {
				pair(&s.squares[j][h], a, b)
			}
		}
	}
	for _, o := range in.outs {
		d := reg[uint32](w, o)
		for i := range d {
			d[i] = pendingNaN
		}
	}
	p.sums = append(p.sums, s)
	return s
}

func fenceProducts(w *warp, in *inst) { w.whole(in) }

func commitProducts(w *warp, in *inst) {
	w.whole(in)
	w.products.committed++
}

func (w *warp) whole(in *inst) {
	if w.mask != full {
		w.fail(in, "is for 32 lanes, %08x are here", w.mask)
	}
}

// awaitProducts completes all groups except for the last imm.
func awaitProducts(w *warp, in *inst) {
	w.whole(in)
	p := &w.products
	over := p.committed - int(in.imm)
	kept := p.operands[:0]
	for _, o := range p.operands {
		if o.group >= over {
			kept = append(kept, o)
			continue
		}
		w.unchanged(o)
		p.spare = append(p.spare, o)
	}
	p.operands = kept
	sums := p.sums[:0]
	for _, s := range p.sums {
		if s.group >= over {
			sums = append(sums, s)
			continue
		}
		for _, o := range s.outs {
			for _, v := range reg[uint32](w, o) {
				if v != pendingNaN {
					w.fail(s.in, "has sums that were written before +%d, where they are waited for", in.line)
				}
			}
		}
		for j := range s.squares {
			for h := range 2 {
				part(&s.squares[j][h], reg[float32](w, s.outs[4*j+2*h]), reg[float32](w, s.outs[4*j+2*h+1]))
			}
		}
		p.spareSums = append(p.spareSums, s)
	}
	p.sums = sums
}

// unchanged fails if an operand of the product has changed since the product was issued.
func (w *warp) unchanged(o *operands) {
	if len(o.in.ins) > len(o.in.outs) {
		for j := range o.left {
			if *reg[uint32](w, o.in.ins[j]) != o.left[j] {
				w.fail(o.in, "has an operand in registers that were written before it was waited for")
			}
		}
	} else {
		w.stays(o, &o.da, o.a)
	}
	w.stays(o, &o.db, o.b)
}

func (w *warp) stays(o *operands, d *descriptor, was []byte) {
	i := 0
	d.vectors(func(at int) {
		at -= sharedBase
		if w.b.races != nil {
			w.b.races.access(w, o.in, 0, at, 16, false)
		}
		if !bytes.Equal(was[i:i+16], w.b.shared[at:at+16]) {
			w.fail(o.in, "has an operand in shared memory at %d that was written before it was waited for", at)
		}
		i += 16
	})
}

// finish fails if a warp ends before it has waited for its products.
func (w *warp) finish() {
	if n := len(w.products.operands); n > 0 {
		w.mask = 1
		w.fail(w.products.operands[0].in, "is not waited for, nor are %d more", n-1)
	}
}

// finish fails if a block ends with copies in flight, or if warps of a warpgroup have issued
// different numbers of products.
func (r *threadBlock) finish() {
	w := &r.warps[0]
	w.mask = 1
	in := &w.code[len(w.code)-1]
	for at, b := range r.mbarriers {
		if len(b.copies) > 0 {
			w.fail(in, "leaves %d copies in flight that the barrier at %d counts", len(b.copies), at)
		}
	}
	for i := range r.groups {
		if g := &r.groups[i]; slices.Min(g.of[:]) != slices.Max(g.of[:]) {
			w.fail(in, "leaves warps of warpgroup %d with %v products each", i, g.of)
		}
	}
}

// products analyses the registers of a warpgroup's products before slots are assigned. A register
// of a product in flight stays in use until the wait, which does not name it. A register that other
// instructions access needs a wgmma.fence before the next product uses it.
func (c *compiler) products() error {
	any := false
	for i := range c.p.code {
		any = any || isProduct(&c.p.code[i])
	}
	if !any {
		return nil
	}
	blocks := c.blocks()
	words := (len(c.classes) + 63) / 64
	before := make([][]int, len(blocks))
	for i := range blocks {
		for _, n := range blocks[i].next {
			before[n] = append(before[n], i)
		}
	}
	// touched: registers accessed since the last fence; flying: registers of products not waited
	// for
	type facts struct{ touched, flying []uint64 }
	out := make([]facts, len(blocks))
	for i := range out {
		out[i] = facts{make([]uint64, words), make([]uint64, words)}
	}
	waits := map[int][]uint64{}
	var bad error
	step := func(f *facts, at int) {
		in := &c.p.code[at]
		set := func(s []uint64) func(v int32) { return func(v int32) { s[v/64] |= 1 << (v % 64) } }
		switch {
		case isProduct(in):
			check := func(v int32) {
				if f.touched[v/64]>>(v%64)&1 != 0 && bad == nil {
					bad = fmt.Errorf("+%d: %s: takes registers that were accessed with no wgmma.fence between", in.line, in.op)
				}
			}
			for _, v := range append(slices.Clone(in.outs), in.ins...) {
				if v >= 0 {
					check(v)
					set(f.flying)(v)
				}
			}
		case strings.HasPrefix(in.op, "wgmma.fence"):
			clear(f.touched)
		case strings.HasPrefix(in.op, "wgmma.wait_group"):
			waits[at] = slices.Clone(f.flying)
			if in.imm == 0 {
				clear(f.flying)
			}
		case in.moves: // clang copies sums after the fence: ptxas gives both copies the same registers
		default:
			in.uses(set(f.touched))
			in.writes(set(f.touched))
		}
	}
	for changed := true; changed; {
		changed = false
		bad = nil
		for i := range blocks {
			f := facts{make([]uint64, words), make([]uint64, words)}
			if i == 0 {
				for j := range f.touched {
					f.touched[j] = math.MaxUint64
				}
			}
			for _, p := range before[i] {
				for j := range f.touched {
					f.touched[j] |= out[p].touched[j]
					f.flying[j] |= out[p].flying[j]
				}
			}
			for at := blocks[i].from; at < blocks[i].to; at++ {
				step(&f, at)
			}
			if !slices.Equal(f.touched, out[i].touched) || !slices.Equal(f.flying, out[i].flying) {
				out[i], changed = f, true
			}
		}
	}
	for at, flying := range waits {
		for j, m := range flying {
			for ; m != 0; m &= m - 1 {
				c.p.code[at].ins = append(c.p.code[at].ins, int32(64*j+bits.TrailingZeros64(m)))
			}
		}
	}
	return bad
}

func isProduct(in *inst) bool { return strings.HasPrefix(in.op, "wgmma.mma_async") }
