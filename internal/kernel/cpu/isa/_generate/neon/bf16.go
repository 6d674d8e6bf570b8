package main

// Products of bf16 by BFMMLA over the tiles of tiles.go, and the packing of such tiles.
//
// What a reader could break: a block is eight rows by eight columns, sixteen accumulators of two by
// two. BFMMLA wants four neighbouring l of two rows, and of two columns; a tile holds eight l of a
// row side by side, and pairs of l of four columns, so both are put together by a permutation each.
// An element's sum runs over l in order, four at a time, the same in every block: bits depend on
// its own row, column and k alone.

// Byte offsets into the Go type bf16Block; tiles_arm64.go holds the two to each other.
const (
	blockC = 8 * iota
	blockStart
	blockA
	blockB
	blockK
	blockLdc
	blockLds
)

const tileBytes, lineBytes = 1024, 64

func bf16Products() {
	bf16Block()
	bf16Rows()
	bf16Pairs()
	bf16Peak()
}

func bf16Block() {
	f := function("blockBF16NEON", "makes eight rows by eight columns of C; tiles_arm64.go has the loop.", "*bf16Block: t")
	args := f.arg("t")
	load := func(at int) R {
		r := f.r()
		f.line("MOVD %d(%s), %s", at, args, r)
		return r
	}
	c, start, a, b, left, ldc, lds := load(blockC), load(blockStart), load(blockA), load(blockB), load(blockK), load(blockLdc), load(blockLds)
	var acc [4][4]V // by pair of rows and pair of columns
	for i := range acc {
		for j := range acc[i] {
			acc[i][j] = f.v()
		}
	}
	none, begun := f.label("none"), f.label("begun")
	f.line("CBZ %s, %s", start, none)
	for i := range acc {
		t := f.vs(4)
		f.ldp(t[0], t[1], start, 0)
		f.line("ADD %s, %s, %s", lds, start, start)
		f.ldp(t[2], t[3], start, 0)
		f.line("ADD %s, %s, %s", lds, start, start)
		for h := range 2 {
			f.trn1Wide(acc[i][2*h], t[h], t[2+h])
			f.trn2Wide(acc[i][2*h+1], t[h], t[2+h])
		}
		f.free(t...)
	}
	f.line("B %s", begun)
	f.place(none)
	for i := range acc {
		for _, v := range acc[i] {
			f.clear(v)
		}
	}
	f.place(begun)
	f.rows(left, func() {
		for group := range uint32(4) { // eight l
			var low, high [4]V
			for i := range low {
				low[i], high[i] = f.v(), f.v()
				t := f.v()
				f.ldr(t, a, uint32(2*i)*lineBytes+16*group)
				f.ldr(high[i], a, uint32(2*i+1)*lineBytes+16*group)
				f.trn1Wide(low[i], t, high[i])
				f.trn2Wide(high[i], t, high[i])
				f.free(t)
			}
			for h, rows := range [][4]V{low, high} {
				line := (4*group + 2*uint32(h)) * lineBytes
				t, cols := f.vs(2), f.vs(4)
				f.ldp(cols[1], cols[3], b, line)
				f.ldp(t[0], t[1], b, line+lineBytes)
				for q := range 2 {
					f.zip1(cols[2*q], cols[2*q+1], t[q])
					f.zip2(cols[2*q+1], cols[2*q+1], t[q])
				}
				for i := range acc {
					for j := range acc[i] {
						f.bfmmla(acc[i][j], rows[i], cols[j])
					}
				}
				f.free(t...)
				f.free(cols...)
			}
			f.free(low[:]...)
			f.free(high[:]...)
		}
		f.line("ADD $%d, %s, %s", tileBytes, a, a)
		f.line("ADD $%d, %s, %s", tileBytes, b, b)
	})
	for i := range acc {
		t := f.vs(4)
		for h := range 2 {
			f.trn1Wide(t[h], acc[i][2*h], acc[i][2*h+1])
			f.trn2Wide(t[2+h], acc[i][2*h], acc[i][2*h+1])
		}
		for row := range 2 {
			f.str(t[2*row], c, 0)
			f.str(t[2*row+1], c, 16)
			f.line("ADD %s, %s, %s", ldc, c, c)
		}
		f.free(t...)
	}
	f.ret()
}

// rounded rounds eight floats at src to bf16, numbers below the normal ones to zero.
func (f *fn) rounded(src R, at uint32) V {
	exponent, sign := f.bits(0x7f800000), f.bits(0x80000000)
	out, x, t := f.v(), f.vs(2), f.v()
	f.ldp(x[0], x[1], src, at)
	for i := range x {
		f.cmtst(t, x[i], exponent)
		f.orr(t, t, sign)
		f.and(x[i], x[i], t)
	}
	f.bfcvtn(out, x[0])
	f.bfcvtn2(out, x[1])
	f.free(t, x[0], x[1])
	return out
}

func bf16Rows() {
	f := function("roundRowsNEON", "rounds rows of 32 floats, stride bytes apart, to bf16, one behind the other.", "*uint16: dst", "*float32: src", "int: stride rows")
	dst, src, stride, rows := f.arg("dst"), f.arg("src"), f.arg("stride"), f.arg("rows")
	f.bits(0x7f800000)
	f.bits(0x80000000)
	f.rows(rows, func() {
		for q := range uint32(4) {
			v := f.rounded(src, 32*q)
			f.str(v, dst, 16*q)
			f.free(v)
		}
		f.line("ADD $%d, %s, %s", lineBytes, dst, dst)
	}, f.by(stride, src))
	f.ret()
}

func bf16Pairs() {
	f := function("roundPairsNEON", "rounds pairs of rows of 16 floats, stride bytes apart, to words of two bf16, one pair behind the other.", "*uint16: dst", "*float32: src", "int: stride pairs")
	dst, src, stride, pairs := f.arg("dst"), f.arg("src"), f.arg("stride"), f.arg("pairs")
	f.bits(0x7f800000)
	f.bits(0x80000000)
	next := f.r()
	f.rows(pairs, func() {
		f.line("ADD %s, %s, %s", stride, src, next)
		for q := range uint32(2) {
			even, odd := f.rounded(src, 32*q), f.rounded(next, 32*q)
			t := f.v()
			f.zip1Halves(t, even, odd)
			f.zip2Halves(odd, even, odd)
			f.str(t, dst, 32*q)
			f.str(odd, dst, 32*q+16)
			f.free(even, odd, t)
		}
		f.line("ADD $%d, %s, %s", lineBytes, dst, dst)
	}, f.by(stride, src, src))
	f.ret()
}

// bf16Peak runs sixteen products per round that wait only on themselves.
func bf16Peak() {
	f := function("peakLoopBF16NEON", "runs rounds of sixteen products of two by four and four by two bf16 that wait only on themselves.", "int: rounds")
	rounds := f.arg("rounds")
	x := f.bits(0x3f003f00) // 0.5, 0.5
	acc := f.vs(16)
	for _, v := range acc {
		f.move(v, x)
	}
	f.rows(rounds, func() {
		for _, v := range acc {
			f.bfmmla(v, x, x)
		}
	})
	f.ret()
}
