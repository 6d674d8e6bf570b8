package isa

import (
	"math"
	"slices"
	"unsafe"
)

// A weight's gradient DYᵀ·X whose operands are packed between the products that read them. Sums are
// made in blocks of 32 × 32, row by row. While a row of blocks is multiplied, the 32 columns of DY
// that the next one reads are packed to the other half of a ring that stays in L1; X is packed
// during the first row, a block ahead. Rows are walked to and fro, so that each begins with the
// tiles of X that the one before left in L1. The order is worked out once, as a list of steps that
// the assembly walks.
//
// What a reader could break: half a tile of DY waits in registers for the other half, with no other
// tile of DY between; a block's products run in the order of l, which is that of every sum.

// weaveStep is one product of 2 × 2 tiles, what surrounds it, and what is packed after it. The
// generator knows its fields by their offsets.
type weaveStep struct {
	a, b   int32 // bytes into the ring and into the tiles of X
	c      int32 // bytes to the block of C
	fetch  int32 // bytes to the eight rows of C that are fetched
	ahead  int32 // the same of the next block, where sums are added to what is there
	src    int32 // bytes into DY or X: what is packed
	dst    int32 // bytes into the ring or the tiles of X: where to
	does   int16
	packed int16
}

// What a step does beside packing, in this order: nothing, or a product and more.
const (
	weaveStart    = 1 << iota // the block's sums begin
	weaveMultiply             // 2 × 2 tiles of depth 32
	weaveFetch                // rows of C into the second cache
	weaveStore                // the block's sums end
)

// What a step packs, plus what is there of its rows.
const (
	weaveNone  = iota
	weaveEven  // the even rows of a tile of DY, to registers
	weaveOdd   // the odd ones, and both to the tile
	weavePairs // two tiles of X, side by side

	weaveHalf  = 4 // the first sixteen rows; the others are zero
	weaveShort = 8 // those of weaveArgs.masks
)

const (
	blockLines = 2 * TileLines // rows and columns of a block of C
	fetchRows  = 8             // of C at once
)

// FarBytes of sums, or more, do not stay in the second cache from one step to the next.
const FarBytes = 1 << 20

// weaves tells whether a gradient of these sizes can be made so.
func (t *TileSet) weaves(run, out, in, dyStride, xStride int) bool {
	return t.Weave != nil && run > 0 && out > 0 && in > 0 && out%blockLines == 0 && in%blockLines == 0 &&
		4*max(out*in, run*dyStride, run*xStride) <= math.MaxInt32
}

// weaveRing is the floats of the ring.
func weaveRing(run int) int { return TileFloats(2*blockLines, run) }

// weaver plans the steps of a gradient.
type weaver struct {
	depth, down, across int // tiles of l, blocks of DY's columns, blocks of X's
	dyStride, xStride   int
	last                int16 // what is there of the last tile's rows
	packs               []weavePack
}

// weavePack is what to pack after a product; -1: before the first.
type weavePack struct {
	after    int
	src, dst int32
	packed   int16
}

// weaveOrder lists the steps of a gradient over `rows` rows; far: its sums are not in the second
// cache.
func weaveOrder(rows, out, in, dyStride, xStride int, far bool) []weaveStep {
	o := weaver{depth: Ceil(rows, TileDepth), down: out / blockLines, across: in / blockLines, dyStride: dyStride, xStride: xStride}
	switch rows % TileDepth {
	case 0:
	case TileLines: // sixteen instances of an odd number of nodes end so
		o.last = weaveHalf
	default:
		o.last = weaveShort
	}
	o.packFirst()
	for i := range o.down - 1 {
		o.packNext(i)
	}
	slices.SortStableFunc(o.packs, func(a, b weavePack) int { return a.after - b.after })

	var steps []weaveStep
	pack := func(product int) {
		for ; len(o.packs) > 0 && o.packs[0].after <= product; o.packs = o.packs[1:] {
			if n := len(steps); n == 0 || steps[n-1].packed != weaveNone {
				steps = append(steps, weaveStep{})
			}
			p, s := o.packs[0], &steps[len(steps)-1]
			s.src, s.dst, s.packed = p.src, p.dst, p.packed
		}
	}
	pack(-1)
	for n := range o.down * o.across {
		i, j := o.block(n)
		c := int32(4 * blockLines * (i*in + j))
		ni, nj := o.block(min(n+1, o.down*o.across-1))
		next := int32(4 * blockLines * (ni*in + nj))
		for l := range o.depth {
			s := weaveStep{a: o.ring(i, 0, l), b: o.columns(j, l), c: c, does: weaveMultiply}
			if l == 0 {
				s.does |= weaveStart
			}
			if rows := fetchRows * l; far && rows < blockLines {
				s.does |= weaveFetch
				s.fetch, s.ahead = c+int32(4*rows*in), next+int32(4*rows*in)
			}
			if l == o.depth-1 {
				s.does |= weaveStore
			}
			steps = append(steps, s)
			pack(n*o.depth + l)
		}
	}
	return steps
}

// block is the n-th block of C: its place among DY's columns and among X's.
func (o *weaver) block(n int) (i, j int) {
	i, j = n/o.across, n%o.across
	if i%2 != 0 {
		j = o.across - 1 - j
	}
	return i, j
}

// ring is where a tile of DY is packed to, columns where two of X are.
func (o *weaver) ring(i, half, l int) int32 { return int32(TileBytes * ((i%2*2+half)*o.depth + l)) }
func (o *weaver) columns(j, l int) int32    { return int32(TileBytes * (2*j*o.depth + l)) }

func (o *weaver) packDY(after, i, half, l int, rows int16) {
	o.pack(weavePack{after: after, packed: rows, src: int32(4 * (l*TileDepth*o.dyStride + i*blockLines + half*TileLines)), dst: o.ring(i, half, l)}, l)
}

func (o *weaver) packX(after, j, l int) {
	o.pack(weavePack{after: after, packed: weavePairs, src: int32(4 * (l*TileDepth*o.xStride + j*blockLines)), dst: o.columns(j, l)}, l)
}

func (o *weaver) pack(p weavePack, l int) {
	if l == o.depth-1 {
		p.packed += o.last
	}
	o.packs = append(o.packs, p)
}

// packFirst plans what the first row of blocks needs: just before the products of its first block,
// and a block ahead of the others.
func (o *weaver) packFirst() {
	for l := range o.depth {
		o.packX(l-1, 0, l)
		for half := range 2 {
			o.packDY(l-1, 0, half, l, weaveEven)
			o.packDY(l-1, 0, half, l, weaveOdd)
		}
	}
	for j := 1; j < o.across; j++ {
		for l := range o.depth {
			o.packX((j-1)*o.depth+l, j, l)
		}
	}
}

// packNext spreads the packing for the row of blocks after row i over it; the first row's first
// block has enough to do.
func (o *weaver) packNext(i int) {
	from, n := i*o.across*o.depth, o.across*o.depth
	if i == 0 && o.across > 1 {
		from, n = o.depth, n-o.depth
	}
	for l := range o.depth {
		for half := range 2 {
			for odd := range 2 {
				k := (l*2+half)*2 + odd
				o.packDY(from+k*n/(4*o.depth), i+1, half, l, weaveEven+int16(odd))
			}
		}
	}
}

// weaveArgs is what the assembly reads.
type weaveArgs struct {
	config            unsafe.Pointer // of the tiles: the assembly's own
	steps             *weaveStep
	n                 int
	c, ring, x        unsafe.Pointer // the sums, the ring, the tiles of X
	fromDY, fromX     *float32
	ldc               int // bytes between rows of C
	dyStride, xStride int // bytes
	depth             int // bytes between rows of tiles
	masks             *uint16
	add               int // 1: to what is in C
}

// rowMasks are a tile's rows that are there, then as many that are not.
var rowMasks = func() (m [2 * TileDepth]uint16) {
	for i := range TileDepth {
		m[i] = 0xffff
	}
	return m
}()
