package isa

// What a reader could break: for m > 1 an element is one chain of FMAs in the order of l that
// starts from bias + R, in every tile shape and both AVX sets. Blocking over k keeps the chain by
// carrying it through C, which is why R enters first. So C's bits depend on its own row, column and
// k alone. For m = 1 an element is four chains, l mod 4, and the product is never blocked over k.
// SSE2 has one chain for any m, and rounds each product before it is added.

import (
	"runtime"
	"unsafe"
)

//go:generate go run -C _generate ./gemm -out ../gemm_amd64.s -stubs ../gemm_stubs_amd64.go -pkg isa

// tile is what the assembly reads: t.tiles tiles of t.rows rows, one below the other, over one
// strip of columns. Strides count bytes. The assembly moves a and r down as it goes, past the end
// of their matrices after the last tile, and b stands past its end where k is 0; they are not
// pointers, so that the collector never sees them there. The caller's GemmArgs keeps the matrices
// alive.
type tile struct {
	c                       unsafe.Pointer
	a                       uintptr
	b                       uintptr
	bias                    unsafe.Pointer
	r                       uintptr
	rows, tiles, k          int
	ldc, ars, aks, bks, ldr int
	mask                    uint64 // columns of the last vector: a bit each (512) or a byte each (256)
}

// The generator knows the fields by these offsets.
var _ = [1]struct{}{}[unsafe.Sizeof(tile{})-14*8|
	unsafe.Offsetof(tile{}.rows)-40|unsafe.Offsetof(tile{}.ldc)-64|unsafe.Offsetof(tile{}.mask)-104]

const (
	// rowBlock rows of A are taken through every panel before the next rows, so that they stay in L2.
	rowBlock = 192
	// depthBlock is the longest run of k taken at once: its panel of B about fills L1, and a shard's
	// rows, the k of a weight's gradient, are one run.
	depthBlock = 192
	// copyRows is how many rows of A it takes to pay for copying B's panels.
	copyRows = 256
)

func gemmAVX512(g *GemmArgs) {
	gemmStrips(g, Panel)
	runtime.KeepAlive(g)
}

func gemmAVX2(g *GemmArgs) {
	gemmStrips(g, 16)
	runtime.KeepAlive(g)
}

// strip128 is the columns of a tile by SSE2.
const strip128 = 8

func gemmSSE(g *GemmArgs) {
	gemmStrips(g, strip128)
	runtime.KeepAlive(g)
}

// peakFMAs is how many FMAs the generated peak loops run a round.
const peakFMAs = 12

func peakAVX512(rounds int) (flop float64) {
	peak512(rounds)
	return float64(rounds) * peakFMAs * 16 * 2
}

func peakAVX2(rounds int) (flop float64) {
	peak256(rounds)
	return float64(rounds) * peakFMAs * 8 * 2
}

// peakSSE counts products and sums, as those of the FMA sets.
func peakSSE(rounds int) (flop float64) {
	peak128(rounds)
	return float64(rounds) * 6 * 4 * 2
}

// gemmStrips walks the product in strips of columns: whole panels for AVX-512, sixteen for AVX2,
// eight for SSE2.
func gemmStrips(g *GemmArgs, width int) {
	if g.M == 1 {
		gemmBlock(g, width, 0, 1, 0, g.K)
		return
	}
	if g.Scratch != nil && g.M >= copyRows && g.N >= Panel && g.K > 0 {
		blocks := (g.K + copyDepth - 1) / copyDepth
		for d := range blocks {
			from, to := cut(g.K, d, blocks)
			gemmCopied(g, width, from, to)
		}
		return
	}
	for i := 0; i < g.M; i += rowBlock {
		rows := min(rowBlock, g.M-i)
		if g.K <= depthBlock {
			gemmBlock(g, width, i, rows, 0, g.K)
			continue
		}
		blocks := (g.K + depthBlock - 1) / depthBlock
		for d := range blocks {
			from, to := cut(g.K, d, blocks)
			gemmBlock(g, width, i, rows, from, to)
		}
	}
}

// cut is the d-th of even runs of k. Ends on multiples of four leave the unrolled loop no rest.
func cut(k, d, blocks int) (from, to int) {
	from, to = k*d/blocks&^3, k*(d+1)/blocks&^3
	if d == blocks-1 {
		to = k
	}
	return from, to
}

// gemmBlock adds the products of l in [from, to) to rows [i, i+rows) of C.
func gemmBlock(g *GemmArgs, width, i, rows, from, to int) {
	for j := 0; j < g.N; j += width {
		b := uintptr(g.B) + uintptr(j/Panel*g.BPS+from*g.BKS+j%Panel)*4
		gemmStrip(g, width, i, rows, from, to, j, b, g.BKS)
	}
}

// gemmCopied adds the products of l in [from, to) to all of C; whole panels of B are read from a
// copy.
func gemmCopied(g *GemmArgs, width, from, to int) {
	for p := 0; p < g.N; p += Panel {
		b, bks := unsafe.Add(g.B, (p/Panel*g.BPS+from*g.BKS)*4), g.BKS
		if g.N-p >= Panel {
			switch width {
			case Panel:
				copy512((*float32)(g.Scratch), (*float32)(b), bks*4, to-from)
			case strip128:
				copyPanel((*float32)(g.Scratch), (*float32)(b), bks, to-from)
			default:
				copy256((*float32)(g.Scratch), (*float32)(b), bks*4, to-from)
			}
			b, bks = g.Scratch, Panel
		}
		for j := p; j < min(p+Panel, g.N); j += width {
			gemmStrip(g, width, 0, g.M, from, to, j, uintptr(unsafe.Add(b, (j-p)*4)), bks)
		}
	}
}

// gemmStrip adds the products of l in [from, to) to rows [i, i+rows) of the strip of C at column j.
// b is that strip of B from row `from` on, its rows bks floats apart.
func gemmStrip(g *GemmArgs, width, i, rows, from, to, j int, b uintptr, bks int) {
	c := unsafe.Add(g.C, (i*g.LDC+j)*4)
	t := tile{
		c: c, a: uintptr(unsafe.Add(g.A, (i*g.ARS+from*g.AKS)*4)), b: b,
		k: to - from, ldc: g.LDC * 4, ars: g.ARS * 4, aks: g.AKS * 4, bks: bks * 4,
	}
	switch {
	case from > 0:
		t.r, t.ldr = uintptr(c), t.ldc
	default:
		if g.Bias != nil {
			t.bias = unsafe.Add(g.Bias, j*4)
		}
		if g.R != nil {
			t.r, t.ldr = uintptr(unsafe.Add(g.R, (i*g.LDR+j)*4)), g.LDR*4
		}
	}
	switch width {
	case Panel:
		t.run512(min(width, g.N-j), rows, g.M == 1)
	case strip128:
		t.run128(min(width, g.N-j), rows)
	default:
		t.run256(min(width, g.N-j), rows, g.M == 1)
	}
}

// copyPanel is copy512 in plain Go; strides count floats.
func copyPanel(dst, src *float32, stride, rows int) {
	to, from := unsafe.Slice(dst, rows*Panel), unsafe.Slice(src, (rows-1)*stride+Panel)
	for r := range rows {
		copy(to[r*Panel:][:Panel], from[r*stride:])
	}
}

// split shares rows evenly over the fewest tiles of at most `most` rows: big tiles of base+1 rows,
// then small ones of base rows.
func split(rows, most int) (base, big, small int) {
	tiles := (rows + most - 1) / most
	base, big = rows/tiles, rows%tiles
	return base, big, tiles - big
}

// The most rows of a tile by its vectors of columns, as the generator has them.
var most512, most256 = [5]int{1: 12, 2: 12, 3: 8, 4: 6}, [3]int{1: 6, 2: 6}

func (t *tile) run512(cols, rows int, single bool) {
	v := (cols + 15) / 16
	last := cols - (v-1)*16
	t.mask = 1<<last - 1
	if single {
		t.row512(v)
		return
	}
	base, big, small := split(rows, most512[v])
	if big > 0 {
		t.rows, t.tiles = base+1, big
		t.tiles512(v, last < 16)
		t.c = unsafe.Add(t.c, big*(base+1)*t.ldc)
	}
	t.rows, t.tiles = base, small
	t.tiles512(v, last < 16)
}

func (t *tile) run256(cols, rows int, single bool) {
	v := (cols + 7) / 8
	last := cols - (v-1)*8
	t.mask = ^uint64(0) >> (64 - 8*last)
	if single {
		t.row256(v)
		return
	}
	base, big, small := split(rows, most256[v])
	if big > 0 {
		t.rows, t.tiles = base+1, big
		t.tiles256(v, last < 8)
		t.c = unsafe.Add(t.c, big*(base+1)*t.ldc)
	}
	t.rows, t.tiles = base, small
	t.tiles256(v, last < 8)
}

// run128 takes eight columns at once, else four and then one by one.
func (t *tile) run128(cols, rows int) {
	base, big, small := split(rows, 6)
	for v := 2; cols > 0; {
		wide := 4 * v
		if cols < wide {
			v--
			continue
		}
		wide = max(1, wide)
		u := *t // the assembly moves what is in it
		if big > 0 {
			u.rows, u.tiles = base+1, big
			u.tiles128(v)
			u.c = unsafe.Add(u.c, big*(base+1)*u.ldc)
		}
		u.rows, u.tiles = base, small
		u.tiles128(v)
		if cols -= wide; cols > 0 {
			t.c, t.b = unsafe.Add(t.c, 4*wide), t.b+uintptr(4*wide)
			if t.bias != nil {
				t.bias = unsafe.Add(t.bias, 4*wide)
			}
			if t.r != 0 {
				t.r += uintptr(4 * wide)
			}
		}
	}
}

func (t *tile) tiles128(v int) {
	w := t.words()
	switch v {
	case 2:
		tiles128x2(w)
	case 1:
		tiles128x1(w)
	default:
		tiles128x0(w)
	}
}

func (t *tile) words() *[14]uintptr { return (*[14]uintptr)(unsafe.Pointer(t)) }

func (t *tile) tiles512(v int, masked bool) {
	w := t.words()
	switch {
	case v == 4 && !masked:
		tiles512x4(w)
	case v == 4:
		tiles512x4Masked(w)
	case v == 3 && !masked:
		tiles512x3(w)
	case v == 3:
		tiles512x3Masked(w)
	case v == 2 && !masked:
		tiles512x2(w)
	case v == 2:
		tiles512x2Masked(w)
	case !masked:
		tiles512x1(w)
	default:
		tiles512x1Masked(w)
	}
}

func (t *tile) tiles256(v int, masked bool) {
	w := t.words()
	switch {
	case v == 2 && !masked:
		tiles256x2(w)
	case v == 2:
		tiles256x2Masked(w)
	case !masked:
		tiles256x1(w)
	default:
		tiles256x1Masked(w)
	}
}

func (t *tile) row512(v int) {
	w := t.words()
	switch v {
	case 4:
		row512x4(w)
	case 3:
		row512x3(w)
	case 2:
		row512x2(w)
	default:
		row512x1(w)
	}
}

func (t *tile) row256(v int) {
	if v == 2 {
		row256x2(t.words())
	} else {
		row256x1(t.words())
	}
}
