package main

import "fmt"

// The matrix product. What a reader could break: an element is one chain of FMAs in the order of l
// that starts from bias + R, in every kernel. So its bits depend on its own row, column and k
// alone, and are those of the AVX sets for m > 1.
//
// A tile is up to four rows of sixteen columns: sixteen accumulators, which is what four units with
// a latency of four need. Behind the last sixteen columns come tiles of one vector, and one of one
// to three columns.

// Byte offsets into the Go type neonTile; gemm_arm64.go holds the two to each other at compile
// time.
const (
	offC = 8 * iota
	offA
	offB
	offBias
	offR
	offTiles
	offK
	offLdc
	offArs
	offAks
	offBks
	offLdr
	offCols
)

func products() {
	for rows := 1; rows <= 4; rows++ {
		tile(rows, wholeRows)
		tile(rows, anyRows)
		tile(rows, oneVector)
		tile(rows, fewColumns)
	}
	tile(4, turnedRows)
	peak()
}

type kind int

const (
	wholeRows  kind = iota // sixteen columns, A by rows (aks is one float)
	turnedRows             // sixteen columns, A by columns (ars is one float), four rows
	anyRows                // sixteen columns, any strides
	oneVector              // four columns, any strides
	fewColumns             // one to three columns, any strides
)

var kinds = []string{"Whole", "Turned", "Any", "Vector", "Few"}

func tile(rows int, k kind) {
	f := function(fmt.Sprintf("tiles%s%dNEON", kinds[k], rows), fmt.Sprintf("adds the products of tiles of %d rows; gemm_arm64.go has the loop.", rows), "*neonTile: t")
	args := f.arg("t")
	load := func(at int) R {
		r := f.r()
		f.line("MOVD %d(%s), %s", at, args, r)
		return r
	}
	c, a, bias, res := load(offC), load(offA), load(offBias), load(offR)
	tiles, ldc, ars, aks, bks, ldr := load(offTiles), load(offLdc), load(offArs), load(offAks), load(offBks), load(offLdr)
	cols := R(0)
	vectors := 4
	switch k {
	case fewColumns:
		cols = load(offCols)
		vectors = 1
	case oneVector:
		vectors = 1
	}
	pb, left, p := f.r(), f.r(), f.r()
	pa := make([]R, 1)
	pa[0] = f.r()
	if k != turnedRows {
		for len(pa) < rows {
			pa = append(pa, f.r())
		}
	}
	acc := make([][]V, rows)
	for i := range acc {
		acc[i] = f.vs(vectors)
	}
	// few reads or writes one to three columns at a pointer, which it moves.
	few := func(v V, at R, write bool) {
		done := f.label("few")
		if write {
			f.strLane(v, 0, at)
		} else {
			f.ldrFirst(v, at)
		}
		for lane := uint32(1); lane < 3; lane++ {
			f.line("CMP $%d, %s", lane+1, cols)
			f.line("BLT %s", done)
			if write {
				f.strLane(v, lane, at)
			} else {
				f.ldrLane(v, lane, at)
			}
		}
		f.place(done)
	}
	// read reads a row of the tile at r.
	read := func(vs []V, r R) {
		if k == fewColumns {
			f.line("MOVD %s, %s", r, p)
			few(vs[0], p, false)
			return
		}
		for i, v := range vs {
			f.ldr(v, r, uint32(16*i))
		}
	}
	f.rows(tiles, func() {
		// bias + R
		plain, begun := f.label("plain"), f.label("begun")
		f.line("CBZ %s, %s", bias, plain)
		read(acc[0], bias)
		for i := 1; i < rows; i++ {
			for j, v := range acc[i] {
				f.move(v, acc[0][j])
			}
		}
		f.line("B %s", begun)
		f.place(plain)
		for _, row := range acc {
			for _, v := range row {
				f.clear(v)
			}
		}
		f.place(begun)
		alone := f.label("alone")
		f.line("CBZ %s, %s", res, alone)
		from := f.r()
		f.line("MOVD %s, %s", res, from)
		for i := range rows {
			t := f.vs(vectors)
			read(t, from)
			for j, v := range acc[i] {
				f.fadd(v, v, t[j])
			}
			f.free(t...)
			if i < rows-1 {
				f.line("ADD %s, %s, %s", ldr, from, from)
			}
		}
		// the next tile's
		for range rows {
			f.line("ADD %s, %s, %s", ldr, res, res)
		}
		f.freeR(from)
		f.place(alone)
		f.line("MOVD %d(%s), %s", offB, args, pb)
		f.line("MOVD %d(%s), %s", offK, args, left)
		f.line("MOVD %s, %s", a, pa[0])
		for i := 1; i < len(pa); i++ {
			f.line("ADD %s, %s, %s", ars, pa[i-1], pa[i])
		}
		f.inner(k, rows, acc, pa, pb, aks, bks, left, read)
		// write C
		for i := range rows {
			f.line("MOVD %s, %s", c, p)
			if k == fewColumns {
				few(acc[i][0], p, true)
			} else {
				for j, v := range acc[i] {
					f.str(v, p, uint32(16*j))
				}
			}
			f.line("ADD %s, %s, %s", ldc, c, c)
		}
		for range rows {
			f.line("ADD %s, %s, %s", ars, a, a)
		}
	})
	f.ret()
}

// inner is the loop over l.
func (f *fn) inner(k kind, rows int, acc [][]V, pa []R, pb, aks, bks, left R, read func([]V, R)) {
	vectors := len(acc[0])
	b := f.vs(vectors)
	readB := func() {
		if vectors == 4 {
			f.ldp(b[0], b[1], pb, 0)
			f.ldp(b[2], b[3], pb, 32)
		} else {
			read(b, pb)
		}
		f.line("ADD %s, %s, %s", bks, pb, pb)
	}
	done := f.label("summed")
	f.line("CBZ %s, %s", left, done)
	switch k {
	case wholeRows:
		quads, singles := f.label("quads"), f.label("singles")
		f.line("SUBS $4, %s, %s", left, left)
		f.line("BLT %s", singles)
		f.place(quads)
		av := f.vs(rows)
		for i := range rows {
			f.word(0x3cc10400|uint32(pa[i])<<5|uint32(av[i]), "ldr q%d, [x%d], #16", av[i], pa[i])
		}
		for l := range uint32(4) {
			readB()
			for j := range b {
				for i := range rows {
					f.element(acc[i][j], b[j], av[i], l)
				}
			}
		}
		f.free(av...)
		f.line("SUBS $4, %s, %s", left, left)
		f.line("BGE %s", quads)
		f.place(singles)
		f.line("ADDS $4, %s, %s", left, left)
		f.line("BEQ %s", done)
	case turnedRows:
		quads, singles := f.label("quads"), f.label("singles")
		one := func() {
			av := f.v()
			f.ldr(av, pa[0], 0)
			f.line("ADD %s, %s, %s", aks, pa[0], pa[0])
			readB()
			for j := range b {
				for i := range rows {
					f.element(acc[i][j], b[j], av, uint32(i))
				}
			}
			f.free(av)
		}
		f.line("SUBS $4, %s, %s", left, left)
		f.line("BLT %s", singles)
		f.place(quads)
		for range 4 {
			one()
		}
		f.line("SUBS $4, %s, %s", left, left)
		f.line("BGE %s", quads)
		f.place(singles)
		f.line("ADDS $4, %s, %s", left, left)
		f.line("BEQ %s", done)
		single := f.label("single")
		f.place(single)
		one()
		f.line("SUBS $1, %s, %s", left, left)
		f.line("BNE %s", single)
		f.place(done)
		f.free(b...)
		return
	}
	single := f.label("single")
	f.place(single)
	av := f.vs(rows)
	for i := range rows {
		f.splatFrom(av[i], pa[i], aks)
	}
	readB()
	for j := range b {
		for i := range rows {
			f.fmla(acc[i][j], b[j], av[i])
		}
	}
	f.free(av...)
	f.line("SUBS $1, %s, %s", left, left)
	f.line("BNE %s", single)
	f.place(done)
	f.free(b...)
}

// peak runs sixteen multiply-adds per round that wait only on themselves.
func peak() {
	f := function("peakLoopNEON", "runs rounds of sixteen multiply-adds of four floats that wait only on themselves.", "int: rounds")
	rounds := f.arg("rounds")
	x := f.float(0.5)
	acc := f.vs(16)
	for _, v := range acc {
		f.move(v, x)
	}
	f.rows(rounds, func() {
		for _, v := range acc {
			f.fmla(v, x, x)
		}
	})
	f.ret()
}
