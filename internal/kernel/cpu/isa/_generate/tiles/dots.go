package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

var vectors = []VecPhysical{Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7, Z8, Z9, Z10, Z11, Z12, Z13, Z14, Z15,
	Z16, Z17, Z18, Z19, Z20, Z21, Z22, Z23, Z24, Z25, Z26, Z27, Z28, Z29, Z30, Z31}

// dotsFunc writes the product of `rows` rows of a tile of A with nc tiles of B, for t.cols such
// blocks side by side. The last tile's columns are masked in every block, so a grid whose last tile
// is narrow is one of its own.
func dotsFunc(rows, nc int) {
	declare(fmt.Sprintf("dots%dx%d", rows, nc))
	Doc(fmt.Sprintf("C = start + A·B on %d rows by t.cols blocks of %d tiles, the last tile's columns by t.mask.", rows, nc))
	acc := func(i, j int) byte { return byte(i*nc + j) }
	b := func(j int) byte { return byte(rows*nc + j) }
	MOVQ(field(offLdc), ldc)
	MOVQ(field(offLds), lds)
	MOVQ(field(offDepth), depth)
	KMOVW(field(offMask), K1)
	MOVQ(field(offC), c)
	MOVQ(field(offStart), start)
	MOVQ(field(offB), b0)
	MOVQ(field(offCols), cols)

	Label("col")
	TESTQ(start, start)
	JEQ(LabelRef("zero"))
	MOVQ(start, tmp)
	for i := range rows {
		for j := range nc {
			at, to := Mem{Base: tmp, Disp: 64 * j}, vectors[acc(i, j)]
			if j == nc-1 {
				VMOVUPS_Z(at, K1, to)
			} else {
				VMOVUPS(at, to)
			}
		}
		ADDQ(lds, tmp)
	}
	ADDQ(U32(uint32(64*nc)), start)
	JMP(LabelRef("started"))
	Label("zero")
	for i := range rows * nc {
		VPXORD(vectors[i], vectors[i], vectors[i])
	}
	Label("started")
	MOVQ(field(offA), a0)
	if nc > 1 {
		LEAQ(Mem{Base: b0, Index: depth, Scale: 1}, b1)
	}
	MOVQ(field(offK), count)
	Label("depth")
	MOVQ(U32(16), unit)
	Label("pair")
	for j, p := range []GPPhysical{b0, b1}[:nc] {
		VMOVUPS(Mem{Base: p}, vectors[b(j)])
		ADDQ(U32(64), p)
	}
	for i := range rows {
		for j := range nc {
			dotBroadcast(acc(i, j), b(j), a0, 64*i)
		}
	}
	ADDQ(U8(4), a0)
	DECQ(unit)
	JNE(LabelRef("pair"))
	ADDQ(U32(tileBytes-64), a0)
	DECQ(count)
	JNE(LabelRef("depth"))

	MOVQ(c, tmp)
	for i := range rows {
		for j := range nc {
			at, from := Mem{Base: tmp, Disp: 64 * j}, vectors[acc(i, j)]
			if j == nc-1 {
				VMOVUPS(from, K1, at)
			} else {
				VMOVUPS(from, at)
			}
		}
		ADDQ(ldc, tmp)
	}
	ADDQ(U32(uint32(64*nc)), c)
	if nc > 1 {
		MOVQ(b1, b0)
	}
	DECQ(cols)
	JNE(LabelRef("col"))
	VZEROUPPER()
	RET()
}

// biasFunc writes c = r + bias, row by row: what a product with both starts from.
func biasFunc() {
	TEXT("biasRows", NOSPLIT, "func(c, r, bias *float32, rows, n, ldc, ldr int)")
	Pragma("noescape")
	Doc("c[i*ldc+j] = r[i*ldr+j] + bias[j] for i < rows, j < n; ldc and ldr count bytes.")
	Load(Param("c"), c)
	Load(Param("r"), start)
	Load(Param("bias"), b0)
	Load(Param("rows"), count)
	Load(Param("n"), depth)
	Load(Param("ldc"), ldc)
	Load(Param("ldr"), lds)
	MOVQ(depth, R8)
	ANDQ(U8(15), R8) // columns of the last vector
	MOVQ(depth, RBX)
	SHRQ(U8(4), RBX) // whole vectors
	MOVQ(count, R10)
	MOVQ(R8, RCX)
	MOVQ(U32(1), tmp)
	SHLQ(CL, tmp)
	DECQ(tmp)
	KMOVW(EAX, K1)
	Label("row")
	XORQ(R11, R11)
	MOVQ(RBX, R14)
	TESTQ(R14, R14)
	JEQ(LabelRef("tail"))
	Label("vector")
	VMOVUPS(Mem{Base: start, Index: R11, Scale: 1}, Z0)
	VADDPS(Mem{Base: b0, Index: R11, Scale: 1}, Z0, Z0)
	VMOVUPS(Z0, Mem{Base: c, Index: R11, Scale: 1})
	ADDQ(U8(64), R11)
	DECQ(R14)
	JNE(LabelRef("vector"))
	Label("tail")
	TESTQ(R8, R8)
	JEQ(LabelRef("done"))
	VMOVUPS_Z(Mem{Base: start, Index: R11, Scale: 1}, K1, Z0)
	VMOVUPS_Z(Mem{Base: b0, Index: R11, Scale: 1}, K1, Z1)
	VADDPS(Z1, Z0, Z0)
	VMOVUPS(Z0, K1, Mem{Base: c, Index: R11, Scale: 1})
	Label("done")
	ADDQ(ldc, c)
	ADDQ(lds, start)
	DECQ(R10)
	JNE(LabelRef("row"))
	VZEROUPPER()
	RET()
}
