package main

import (
	"fmt"
	"math"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// isa emits for one instruction set. Operands keep the Go assembler's order: the last is the
// destination, and in a subtraction, division or maximum the first is Intel's second source.
type isa struct {
	suffix string
	w      int // floats in a vector
	labels int
}

// wide says that vectors are 512 bits and masks live in opmask registers.
func (m *isa) wide() bool { return m.w == 16 }

// text opens a function; every emitter ends with ret.
func (m *isa) text(name, signature, doc string) {
	m.labels = 0
	TEXT(name+m.suffix, attr.NOSPLIT, signature)
	Pragma("noescape")
	Doc(name + m.suffix + " is " + name + "Go" + doc)
}

func ret() {
	VZEROUPPER()
	RET()
}

func (m *isa) label(name string) string {
	m.labels++
	return fmt.Sprintf("%s%d", name, m.labels)
}

func (m *isa) vec() VecVirtual {
	if m.wide() {
		return ZMM()
	}
	return YMM()
}

// ptr loads the address a slice argument starts at.
func ptr(name string) Register { return Load(Param(name).Base(), GP64()) }

func integer(name string) Register { return Load(Param(name), GP64()) }

func length(name string) Register { return Load(Param(name).Len(), GP64()) }

// splat loads a float argument into every lane.
func (m *isa) splat(name string) VecVirtual {
	a, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return m.broadcast(a.Addr)
}

func (m *isa) broadcast(from Op) VecVirtual {
	v := m.vec()
	VBROADCASTSS(from, v)
	return v
}

func (m *isa) zero() VecVirtual {
	v := m.vec()
	if m.wide() {
		VPXORD(v, v, v)
	} else {
		VXORPS(v, v, v)
	}
	return v
}

func (m *isa) move(from Op) VecVirtual {
	v := m.vec()
	VMOVUPS(from, v)
	return v
}

// constants holds one 32-byte symbol for each 32-bit pattern in use: AVX2 reads all of it, AVX-512
// broadcasts its first element.
var constants = map[uint32]Mem{}

func bits(u uint32) Mem {
	c, ok := constants[u]
	if !ok {
		c = GLOBL(fmt.Sprintf("rows_%08x", u), attr.RODATA|attr.NOPTR)
		for i := range 8 {
			DATA(4*i, U32(u))
		}
		constants[u] = c
	}
	return c
}

func float(x float32) Mem { return bits(math.Float32bits(x)) }

// constant loads a constant into every lane of a register.
func (m *isa) constant(x float32) VecVirtual { return m.broadcast(float(x)) }

type emit func(ops ...Op)

// with emits op with the constant c as its first operand.
func (m *isa) with(op, broadcastOp emit, c Mem, rest ...Op) {
	if m.wide() {
		op = broadcastOp
	}
	op(append([]Op{c}, rest...)...)
}

func (m *isa) mulC(x float32, a, dst Op) { m.with(VMULPS, VMULPS_BCST, float(x), a, dst) }
func (m *isa) addC(x float32, a, dst Op) { m.with(VADDPS, VADDPS_BCST, float(x), a, dst) }

// lanes selects lanes of a vector: an opmask, or a vector of all-ones and zero lanes. The zero
// value selects all of them.
type lanes struct{ reg Register }

func (l lanes) all() bool { return l.reg == nil }

// below selects the lanes under n, for 0 <= n <= w.
func (m *isa) below(n Register) lanes {
	if m.wide() {
		k, ones := K(), GP64()
		MOVQ(n, RCX)
		MOVQ(U32(1), ones)
		SHLQ(CL, ones)
		DECQ(ones)
		KMOVW(ones.As32(), k)
		return lanes{k}
	}
	v, table, i := YMM(), GP64(), GP64()
	LEAQ(stairs(), table)
	MOVQ(n, i)
	NEGQ(i)
	VMOVUPS(Mem{Base: table, Index: i, Scale: 4, Disp: 32}, v)
	return lanes{v}
}

var stairsData *Mem

// stairs holds eight lanes of ones, then eight of zero; a window that starts 8-n in selects n
// lanes.
func stairs() Mem {
	if stairsData == nil {
		t := GLOBL("rows_stairs", attr.RODATA|attr.NOPTR)
		for i := range 16 {
			DATA(4*i, U32(uint32(0)-uint32(1-i/8)))
		}
		stairsData = &t
	}
	return *stairsData
}

// load reads the selected lanes and sets the others to zero.
func (m *isa) load(from Mem, l lanes) VecVirtual {
	v := m.vec()
	switch {
	case l.all():
		VMOVUPS(from, v)
	case m.wide():
		VMOVUPS_Z(from, l.reg, v)
	default:
		VMASKMOVPS(from, l.reg, v)
	}
	return v
}

// store writes the selected lanes.
func (m *isa) store(v Register, to Mem, l lanes) {
	switch {
	case l.all():
		VMOVUPS(v, to)
	case m.wide():
		VMOVUPS(v, l.reg, to)
	default:
		VMASKMOVPS(v, l.reg, to)
	}
}

// keep sets the lanes of v that are not selected to zero.
func (m *isa) keep(v Register, l lanes) {
	switch {
	case l.all():
	case m.wide():
		VMOVAPS_Z(v, l.reg, v)
	default:
		VANDPS(v, l.reg, v)
	}
}

// maxInto: acc = max(acc, v) in the selected lanes; acc starts at minus infinity.
func (m *isa) maxInto(acc, v VecVirtual, l lanes) {
	switch {
	case l.all():
		VMAXPS(v, acc, acc)
	case m.wide():
		VMAXPS(v, acc, l.reg, acc)
	default:
		t := m.constant(float32(math.Inf(-1)))
		VBLENDVPS(l.reg, v, t, t)
		VMAXPS(t, acc, acc)
	}
}

// fold joins all lanes of each vector by op, in place, leaving the result in every lane. Lanes meet
// in the order of distance w/2, ..., 1, which is the same sum in every lane since op commutes.
func (m *isa) fold(op emit, vs ...VecVirtual) {
	swaps := []func(v, t VecVirtual){
		func(v, t VecVirtual) { VPERM2F128(U8(0x01), v, v, t) },
		func(v, t VecVirtual) { VPERMILPS(U8(0x4e), v, t) },
		func(v, t VecVirtual) { VPERMILPS(U8(0xb1), v, t) },
	}
	if m.wide() {
		swaps = append([]func(v, t VecVirtual){
			func(v, t VecVirtual) { VSHUFF32X4(U8(0x4e), v, v, t) },
			func(v, t VecVirtual) { VSHUFF32X4(U8(0xb1), v, v, t) },
		}, swaps[1:]...)
	}
	t := m.some(len(vs))
	for _, swap := range swaps {
		for i, v := range vs {
			swap(v, t[i])
		}
		for i, v := range vs {
			op(t[i], v, v)
		}
	}
}
