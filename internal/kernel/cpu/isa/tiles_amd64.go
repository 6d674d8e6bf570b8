package isa

import (
	"math/rand/v2"
	"runtime"
	"unsafe"

	"golang.org/x/sys/cpu"
)

// The order of sums. By AMX an element is start, plus for every 32 l in turn the sum of two chains
// of FMAs from zero, one over the even l and one over the odd; by AVX512_BF16 it is one chain from
// start, in the order of pairs of l. Either treats numbers below the normal ones as zero. Neither
// knows a row's or a column's place, so cutting a product changes no bit.

//go:generate go run -C _generate ./tiles -out ../tiles_amd64.s -stubs ../tiles_stubs_amd64.go -pkg isa

// tileGrid is what the assembly reads: rows × cols blocks of tiles. The assembly moves c, a and
// start down as it goes, past the ends of their matrices after the last block; they are not
// pointers, so that the collector never sees them there. The caller's TileArgs keeps the matrices
// alive.
type tileGrid struct {
	config     *tileConfig
	c, a, b    uintptr
	start      uintptr // what the sums start from, 0: nothing
	rows, cols int
	k          int // tiles
	ldc, lds   int // bytes between rows of C and of start
	mask       uint64
	depth      int     // bytes between rows of tiles of A, and between columns of tiles of B
	strip      uintptr // the assembly's own
	shape      int     // of a block, by its place in the generator's list
}

// The generator knows the fields by these offsets.
var _ = [1]struct{}{}[unsafe.Sizeof(tileGrid{})-14*8|unsafe.Offsetof(tileGrid{}.start)-32|
	unsafe.Offsetof(tileGrid{}.k)-56|unsafe.Offsetof(tileGrid{}.mask)-80|unsafe.Offsetof(tileGrid{}.strip)-96|
	unsafe.Offsetof(tileGrid{}.shape)-104]

func (g *tileGrid) words() *[14]uintptr { return (*[14]uintptr)(unsafe.Pointer(g)) }

// tileConfig is the processor's table of tile shapes.
type tileConfig [64]byte

// tileConfigs are the configurations of blocks by rows and columns of tiles and by the rows of the
// lowest and the columns of the rightmost tile, each from 1.
var tileConfigs [2][2][TileLines][16]tileConfig

func makeTileConfigs() {
	for nr := range tileConfigs {
		for nc := range tileConfigs[nr] {
			for r := range TileLines {
				for c := range 16 {
					tileConfigs[nr][nc][r][c] = configure(nr+1, nc+1, r+1, c+1)
				}
			}
		}
	}
}

// configure is the table for a block of nr × nc tiles: accumulators in tiles 0 to 3, row by row,
// then two of A and two of B. Sums run over whole tiles of l.
func configure(nr, nc, lastRows, lastCols int) (t tileConfig) {
	t[0] = 1 // palette
	set := func(tile, rows, bytes int) { t[48+tile], t[16+2*tile] = byte(rows), byte(bytes) }
	rows, bytes := [2]int{16, 16}, [2]int{64, 64}
	rows[nr-1], bytes[nc-1] = lastRows, 4*lastCols
	for i := range nr {
		set(4+i, rows[i], 64)
		for j := range nc {
			set(2*i+j, rows[i], bytes[j])
			set(6+j, 16, bytes[j])
		}
	}
	return t
}

var amxTiles = TileSet{Name: "amx", set: avx512.Name, runs: vectorRuns, Product: productAMX, peak: peakAMX, Muon: true, Weave: weaveAMX,
	Attend: attendAMX, AttendGrad: attendGradAMX, GELU: geluNear, GELUGrad: geluGradNear}

var dotTiles = TileSet{Name: "avx512_bf16", set: avx512.Name, runs: vectorRuns, Product: productDots,
	GELU: geluNear, GELUGrad: geluGradNear}

// geluNear: y = gelu(x), off by at most 3e-4. y may be x.
func geluNear(y, x []float32) {
	Fits(atLeast(len(x), y))
	geluNearAVX512(y, x)
}

// geluGradNear: dx = dy·gelu'(x), the slope off by at most 8e-4.
func geluGradNear(dx, dy, x []float32) {
	Fits(atLeast(len(x), dx, dy))
	geluGradNearAVX512(dx, dy, x)
}

var vectorRuns = [4]packRun{RowsOfA: packRows, ColumnsOfA: packPairsTurned, RowsOfB: packPairs, ColumnsOfB: packRowsTurned}

// vectorTiles returns the sets that this processor and its operating system support.
func vectorTiles() (out []*TileSet) {
	if sets := vectorSets(); len(sets) == 0 || sets[0] != &avx512 || !cpu.X86.HasAVX512BF16 {
		return nil
	}
	if cpu.X86.HasAMXTile && cpu.X86.HasAMXBF16 && allowTiles() {
		makeTileConfigs()
		out = append(out, &amxTiles)
	}
	return append(out, &dotTiles)
}

const (
	// tileRun is the longest run of l, in tiles, that is taken at once: a block's tiles of A and B
	// stay in L1.
	tileRun = 6
	// tilePanel is how many bytes of B's tiles are taken through all rows before the next.
	tilePanel = 24 << 10
)

// begin is where the sums of the product start: R + bias is put into C first where there are both.
func (g *TileArgs) begin() (start unsafe.Pointer, lds int) {
	switch {
	case g.Bias != nil && g.R != nil:
		biasRows((*float32)(g.C), (*float32)(g.R), (*float32)(g.Bias), g.M, g.N, 4*g.LDC, 4*g.LDR)
		return g.C, 4 * g.LDC
	case g.R != nil:
		return g.R, 4 * g.LDR
	}
	return g.Bias, 0
}

func productAMX(_ *Primitives, g *TileArgs) {
	if g.M == 0 || g.N == 0 {
		return
	}
	start, lds := g.begin()
	depth := Ceil(g.K, TileDepth)
	if depth == 0 {
		productEmpty(g)
		return
	}
	p := amxProduct{g: g, depth: depth}
	runs := Ceil(depth, tileRun)
	wide := max(1, tilePanel/(2*TileBytes*Ceil(depth, runs)))
	whole, left := g.N/32, g.N%32
	for j := 0; j < whole; j += wide {
		for r := range runs {
			p.run(start, lds, depth*r/runs, depth*(r+1)/runs)
			p.strip(32*j, min(wide, whole-j), 2, 16)
		}
	}
	if nc := Ceil(left, 16); nc > 0 {
		for r := range runs {
			p.run(start, lds, depth*r/runs, depth*(r+1)/runs)
			p.strip(g.N-left, 1, nc, left-(nc-1)*16)
		}
	}
	p.flush()
	runtime.KeepAlive(g)
}

// amxProduct is a product under way: over a run of l, which begins with what the run before it left
// in C.
type amxProduct struct {
	g        *TileArgs
	depth    int // tiles of all l
	from, to int // the run's
	start    unsafe.Pointer
	lds      int
	grids    [8]tileGrid // waiting for the assembly
	n        int
}

// run turns to the tiles [from, to) of l.
func (p *amxProduct) run(start unsafe.Pointer, lds, from, to int) {
	p.from, p.to, p.start, p.lds = from, to, start, lds
	if from > 0 {
		p.start, p.lds = p.g.C, 4*p.g.LDC
	}
}

// strip computes the columns from j on, all rows: blocks of nc tiles, the last of them lastCols
// wide.
func (p *amxProduct) strip(j, cols, nc, lastCols int) {
	m := p.g.M
	if whole := m / 32; whole > 0 {
		p.blocks(0, j, whole, cols, 2, nc, 16, lastCols)
	}
	if left := m % 32; left > 0 {
		nr := Ceil(left, TileLines)
		p.blocks(m-left, j, 1, cols, nr, nc, left-(nr-1)*TileLines, lastCols)
	}
}

func (p *amxProduct) blocks(i, j, rows, cols, nr, nc, lastRows, lastCols int) {
	if p.n == len(p.grids) {
		p.flush()
	}
	g, size, t := p.g, p.depth*TileBytes, &p.grids[p.n]
	p.n++
	config := &tileConfigs[1][1][15][15] // of whole tiles, whatever the block
	if lastRows < 16 || lastCols < 16 {
		config = &tileConfigs[nr-1][nc-1][lastRows-1][lastCols-1]
	}
	*t = tileGrid{config: config, k: p.to - p.from, depth: size, shape: 2*(2-nr) + 2 - nc,
		rows: rows, cols: cols, ldc: 4 * g.LDC, lds: p.lds,
		c: uintptr(unsafe.Add(g.C, 4*(i*g.LDC+j))), a: uintptr(unsafe.Add(g.A, i/TileLines*size+p.from*TileBytes)),
		b: uintptr(unsafe.Add(g.B, j/TileLines*size+p.from*TileBytes))}
	if p.start != nil {
		t.start = uintptr(unsafe.Add(p.start, i*p.lds+4*j))
	}
}

// flush computes the blocks that wait.
func (p *amxProduct) flush() {
	if p.n > 0 {
		tileGrids(p.grids[0].words(), p.n)
		p.n = 0
	}
}

func weaveAMX(g *weaveArgs) {
	g.config = unsafe.Pointer(&tileConfigs[1][1][15][15])
	weaveTiles((*[14]uintptr)(unsafe.Pointer(g)))
}

// The generator knows the fields of the woven product, and what they say, by these numbers.
var _ = [1]struct{}{}[unsafe.Sizeof(weaveArgs{})-14*8|unsafe.Offsetof(weaveArgs{}.c)-24|unsafe.Offsetof(weaveArgs{}.fromDY)-48|
	unsafe.Offsetof(weaveArgs{}.ldc)-64|unsafe.Offsetof(weaveArgs{}.depth)-88|unsafe.Offsetof(weaveArgs{}.add)-104|
	unsafe.Sizeof(weaveStep{})-32|unsafe.Offsetof(weaveStep{}.c)-8|unsafe.Offsetof(weaveStep{}.ahead)-16|unsafe.Offsetof(weaveStep{}.does)-28|
	weaveStart-1|weaveMultiply-2|weaveFetch-4|weaveStore-8|weaveEven-1|weaveOdd-2|weavePairs-3|weaveHalf-4|weaveShort-8|fetchRows-8]

// peakTileDots is how many products of tiles the generated peak loop runs a round.
const peakTileDots = 8

// peakOperands are two tiles of A and two of B for that loop, numbers between -1 and 1.
var peakOperands = func() (tiles [4 * tileElems]uint16) {
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range tiles {
		tiles[i] = toBF16(2*rng.Float32() - 1)
	}
	return tiles
}()

func peakAMX(rounds int) (flop float64) {
	peakTiles(&tileConfigs[1][1][15][15][0], &peakOperands[0], rounds)
	return float64(rounds) * peakTileDots * 16 * 16 * 32 * 2
}

func productDots(_ *Primitives, g *TileArgs) {
	if g.M == 0 || g.N == 0 {
		return
	}
	start, lds := g.begin()
	depth := Ceil(g.K, TileDepth)
	if depth == 0 {
		productEmpty(g)
		return
	}
	// strip computes the columns from j on, all rows: blocks of nc tiles, the last tile of each under
	// the mask.
	strip := func(j, cols, nc int, mask uint64) {
		for i := 0; i < g.M; {
			rows := 8
			switch left := min(g.M-i, TileLines-i%TileLines); {
			case left < 4:
				rows = 1
			case left < 8:
				rows = 4
			}
			t := tileGrid{k: depth, depth: depth * TileBytes, cols: cols, ldc: 4 * g.LDC, lds: lds, mask: mask,
				c: uintptr(unsafe.Add(g.C, 4*(i*g.LDC+j))),
				a: uintptr(unsafe.Add(g.A, i/TileLines*depth*TileBytes+i%TileLines*64)), b: uintptr(unsafe.Add(g.B, j/TileLines*depth*TileBytes))}
			if start != nil {
				t.start = uintptr(unsafe.Add(start, i*lds+4*j))
			}
			dots(&t, rows, nc)
			i += rows
		}
	}
	whole, wide := g.N/32, max(1, tilePanel/(2*TileBytes*depth))
	for j := 0; j < whole; j += wide {
		strip(32*j, min(wide, whole-j), 2, 0xffff)
	}
	if left := g.N % 32; left > 0 {
		nc := Ceil(left, 16)
		strip(g.N-left, 1, nc, 1<<(left-(nc-1)*16)-1)
	}
	runtime.KeepAlive(g)
}

func dots(t *tileGrid, rows, nc int) {
	w := t.words()
	switch {
	case rows == 8 && nc == 2:
		dots8x2(w)
	case rows == 8:
		dots8x1(w)
	case rows == 4 && nc == 2:
		dots4x2(w)
	case rows == 4:
		dots4x1(w)
	case nc == 2:
		dots1x2(w)
	default:
		dots1x1(w)
	}
}
