package main

import (
	"fmt"
	"math"
	"strings"
)

// fn is one function under way: its text, its registers and its labels. Registers are taken and
// given back by hand; taking one that is not there ends the generator.
type fn struct {
	name   string
	doc    string
	params []param
	frame  int // bytes of arguments and results
	body   strings.Builder
	vecs   []V
	gens   []R
	labels int

	constants map[uint32]V
}

// param is an argument or a result at its offset in Go's frame.
type param struct {
	name, kind string
	offset     int
	result     bool
}

func (f *fn) line(format string, args ...any) {
	fmt.Fprintf(&f.body, "\t"+format+"\n", args...)
}

func (f *fn) label(name string) string {
	f.labels++
	return fmt.Sprintf("%s%d", name, f.labels)
}

func (f *fn) place(label string) { fmt.Fprintf(&f.body, "\n%s:\n", label) }

// sizes are those of Go's types in a frame.
var sizes = map[string][2]int{"[]float32": {24, 8}, "[]uint64": {24, 8}, "[]uint32": {24, 8}, "[]uint16": {24, 8}, "[]int32": {24, 8},
	"int": {8, 8}, "float32": {4, 4}, "float64": {8, 8}, "uint32": {4, 4}, "bool": {1, 1}, "*neonTile": {8, 8}, "*bf16Block": {8, 8}, "*uint16": {8, 8}, "*float32": {8, 8}}

// function begins a function: parameters as "kind: name name", results behind "->".
func function(name, doc string, groups ...string) *fn {
	f := &fn{name: name, doc: doc, constants: map[uint32]V{}}
	for v := V(31); ; v-- {
		f.vecs = append(f.vecs, v)
		if v == 0 {
			break
		}
	}
	// R16 to R18 and R26 on belong to the linker, the platform, the assembler and the runtime.
	for _, r := range []R{25, 24, 23, 22, 21, 20, 19, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0} {
		f.gens = append(f.gens, r)
	}
	at, result := 0, false
	for _, g := range groups {
		kind, names, _ := strings.Cut(g, ": ")
		if kind == "->" {
			kind, names, result = names, "ret", true
			at = (at + 7) &^ 7
		}
		s := sizes[kind]
		if s[0] == 0 {
			panic("no size for " + kind)
		}
		for _, n := range strings.Fields(names) {
			at = (at + s[1] - 1) / s[1] * s[1]
			f.params = append(f.params, param{n, kind, at, result})
			at += s[0]
		}
	}
	f.frame = at
	all = append(all, f)
	return f
}

// all are the functions in the order in which they are written.
var all []*fn

func (f *fn) v() V {
	if len(f.vecs) == 0 {
		panic(f.name + ": no vector register is left")
	}
	v := f.vecs[len(f.vecs)-1]
	f.vecs = f.vecs[:len(f.vecs)-1]
	return v
}

func (f *fn) vs(n int) (out []V) {
	for range n {
		out = append(out, f.v())
	}
	return out
}

func (f *fn) free(vs ...V) { f.vecs = append(f.vecs, vs...) }

func (f *fn) r() R {
	if len(f.gens) == 0 {
		panic(f.name + ": no general register is left")
	}
	r := f.gens[len(f.gens)-1]
	f.gens = f.gens[:len(f.gens)-1]
	return r
}

func (f *fn) freeR(rs ...R) { f.gens = append(f.gens, rs...) }

func (f *fn) param(name string) param {
	for _, p := range f.params {
		if p.name == name {
			return p
		}
	}
	panic(f.name + " has no parameter " + name)
}

// arg loads an argument: an integer, or the address that a slice starts at.
func (f *fn) arg(name string) R {
	p, r := f.param(name), f.r()
	switch {
	case strings.HasPrefix(p.kind, "[]"):
		f.line("MOVD %s_base+%d(FP), %s", name, p.offset, r)
	case p.kind == "uint32":
		f.line("MOVWU %s+%d(FP), %s", name, p.offset, r)
	case p.kind == "bool":
		f.line("MOVBU %s+%d(FP), %s", name, p.offset, r)
	default:
		f.line("MOVD %s+%d(FP), %s", name, p.offset, r)
	}
	return r
}

// length loads a slice's length.
func (f *fn) length(name string) R {
	p, r := f.param(name), f.r()
	f.line("MOVD %s_len+%d(FP), %s", name, p.offset+8, r)
	return r
}

// splatArg fills a vector with a float argument.
func (f *fn) splatArg(name string) V {
	p, v := f.param(name), f.v()
	f.line("FMOVS %s+%d(FP), F%d", name, p.offset, v)
	f.splatLane(v, v, 0)
	return v
}

// bits is a vector of one word, kept to the function's end.
func (f *fn) bits(u uint32) V {
	if v, ok := f.constants[u]; ok {
		return v
	}
	v, r := f.v(), f.r()
	f.line("MOVD $0x%08x, %s", u, r)
	f.splatWord(v, r)
	f.freeR(r)
	f.constants[u] = v
	return v
}

func (f *fn) float(x float64) V { return f.bits(math.Float32bits(float32(x))) }

// need makes the constants known before a loop, so that no loop loads one.
func (f *fn) need(xs ...float64) {
	for _, x := range xs {
		f.float(x)
	}
}

// lanes is the vector 0, 1, 2, 3.
func (f *fn) lanes(shift bool) V {
	const laneKey, shiftKey = 0xfffffffe, 0xfffffffd
	key := uint32(laneKey)
	name := "neonLanes"
	if shift {
		key, name = shiftKey, "neonBits"
	}
	if v, ok := f.constants[key]; ok {
		return v
	}
	v, r := f.v(), f.r()
	f.line("MOVD $%s<>(SB), %s", name, r)
	f.ldr(v, r, 0)
	f.freeR(r)
	f.constants[key] = v
	return v
}

// sum adds the lanes of v into every lane; top is their largest.
func (f *fn) sum(v V) { f.faddp(v, v, v); f.faddp(v, v, v) }
func (f *fn) top(v V) { f.fmaxp(v, v, v); f.fmaxp(v, v, v) }

// rows repeats body for a number of rows and then moves pointers on by bytes.
func (f *fn) rows(count R, body func(), moves ...func()) {
	loop, done := f.label("row"), f.label("end")
	f.line("CMP $1, %s", count)
	f.line("BLT %s", done)
	f.place(loop)
	body()
	for _, m := range moves {
		m()
	}
	f.line("SUBS $1, %s, %s", count, count)
	f.line("BNE %s", loop)
	f.place(done)
}

// by moves pointers on by a register of bytes.
func (f *fn) by(bytes R, pointers ...R) func() {
	return func() {
		for _, p := range pointers {
			f.line("ADD %s, %s, %s", bytes, p, p)
		}
	}
}

// columns walks a row four floats at a time, and the last one to three with partial loads: index
// is the byte offset of the first.
type columns struct {
	f           *fn
	index       R
	whole, rest R // bytes in whole vectors, floats behind them
	pointer     R // for partial loads
	ends        V // all ones in the lanes of the last vector
	bytes       R // of the row
}

func (f *fn) columns(n R) *columns {
	c := &columns{f: f, index: f.r(), whole: f.r(), rest: f.r(), pointer: f.r(), bytes: f.r(), ends: f.v()}
	f.line("AND $3, %s, %s", n, c.rest)
	f.line("LSL $2, %s, %s", n, c.bytes)
	f.line("BIC $15, %s, %s", c.bytes, c.whole)
	lanes := f.lanes(false)
	f.splatWord(c.ends, c.rest)
	f.cmgt(c.ends, c.ends, lanes)
	return c
}

// part is where a body stands: in a whole vector or in the last one.
type part struct {
	*columns
	last bool
}

// each emits body for whole vectors and for the last.
func (c *columns) each(body func(p part)) {
	f := c.f
	loop, tail, done := f.label("columns"), f.label("rest"), f.label("done")
	f.line("MOVD $0, %s", c.index)
	f.line("CBZ %s, %s", c.whole, tail)
	f.place(loop)
	body(part{c, false})
	f.line("ADD $16, %s, %s", c.index, c.index)
	f.line("CMP %s, %s", c.whole, c.index)
	f.line("BLT %s", loop)
	f.place(tail)
	f.line("CBZ %s, %s", c.rest, done)
	body(part{c, true})
	f.place(done)
}

// load reads the vector at the index; lanes past the row's end are zero.
func (p part) load(base R) V {
	v := p.f.v()
	p.loadInto(v, base)
	return v
}

func (p part) loadInto(v V, base R) {
	f := p.f
	if !p.last {
		f.ldrAt(v, base, p.index)
		return
	}
	done := f.label("read")
	f.line("ADD %s, %s, %s", p.index, base, p.pointer)
	f.ldrFirst(v, p.pointer)
	f.line("CMP $2, %s", p.rest)
	f.line("BLT %s", done)
	f.ldrLane(v, 1, p.pointer)
	f.line("CMP $3, %s", p.rest)
	f.line("BLT %s", done)
	f.ldrLane(v, 2, p.pointer)
	f.place(done)
}

// store writes the lanes within the row.
func (p part) store(v V, base R) {
	f := p.f
	if !p.last {
		f.strAt(v, base, p.index)
		return
	}
	done := f.label("wrote")
	f.line("ADD %s, %s, %s", p.index, base, p.pointer)
	f.strLane(v, 0, p.pointer)
	f.line("CMP $2, %s", p.rest)
	f.line("BLT %s", done)
	f.strLane(v, 1, p.pointer)
	f.line("CMP $3, %s", p.rest)
	f.line("BLT %s", done)
	f.strLane(v, 2, p.pointer)
	f.place(done)
}

// inside makes zero of the lanes past the row's end.
func (p part) inside(v V) {
	if p.last {
		p.f.and(v, v, p.ends)
	}
}

// pad writes zeros from the row's end to a number of bytes.
func (c *columns) pad(base, bytes R) {
	f := c.f
	loop, done := f.label("pad"), f.label("padded")
	f.line("MOVD %s, %s", c.bytes, c.index)
	f.place(loop)
	f.line("CMP %s, %s", bytes, c.index)
	f.line("BGE %s", done)
	f.line("MOVW ZR, (%s)(%s)", base, c.index)
	f.line("ADD $4, %s, %s", c.index, c.index)
	f.line("B %s", loop)
	f.place(done)
}

// bytesOf is four times a register.
func (f *fn) bytesOf(n R) R {
	b := f.r()
	f.line("LSL $2, %s, %s", n, b)
	return b
}

func (f *fn) ret() { f.line("RET") }

// signature is the function's declaration in Go.
func (f *fn) signature() string {
	var args []string
	result := ""
	for _, p := range f.params {
		if p.result {
			result = " (ret " + p.kind + ")"
			continue
		}
		args = append(args, p.name+" "+p.kind)
	}
	return fmt.Sprintf("func %s(%s)%s", f.name, strings.Join(args, ", "), result)
}
