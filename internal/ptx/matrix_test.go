package ptx

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// fragment returns the element of a 16x8 or 8x16 operand that a lane has in half h of register j,
// by the tables of PTX's manual.
func fragment(operand string, k, width, lane, j, h int) (row, col int) {
	g, t := lane>>2, lane&3
	switch {
	case operand == "c":
		return g + 8*(j/2), t*2 + j%2
	case operand == "a" && width == 32:
		return g + 8*(j%2), t + 4*(j/2)
	case operand == "a":
		return g + 8*(j%2), t*2 + h + 8*(j/2)
	case width == 32:
		return t + 4*j, g
	}
	return t*2 + h + 8*j, g
}

// TestProducts compares every supported mma with three loops, with and without vector instructions.
func TestProducts(t *testing.T) {
	type shape struct {
		name     string
		k, width int
		a, b, c  int
		encode   func(float64) uint32
		halfSums int
	}
	f16 := func(v float64) uint32 { return toF16(v) }
	bf16 := func(v float64) uint32 { return toBF16(float32(v)) }
	for _, s := range []shape{
		{"m16n8k16.row.col.f32.f16.f16.f32", 16, 16, 4, 2, 4, f16, 0},
		{"m16n8k8.row.col.f32.f16.f16.f32", 8, 16, 2, 1, 4, f16, 0},
		{"m16n8k16.row.col.f32.bf16.bf16.f32", 16, 16, 4, 2, 4, bf16, 0},
		{"m16n8k8.row.col.f32.bf16.bf16.f32", 8, 16, 2, 1, 4, bf16, 0},
		{"m16n8k8.row.col.f32.tf32.tf32.f32", 8, 32, 4, 2, 4, func(v float64) uint32 { return f(float32(v)) | 0x1fff }, 0},
		{"m16n8k16.row.col.f16.f16.f16.f16", 16, 16, 4, 2, 2, f16, 1},
	} {
		for _, vectors := range []bool{false, true} {
			random := rand.New(rand.NewPCG(1, 2))
			var a, b, c [16][16]float64
			for i := range 16 {
				for j := range 16 {
					a[i][j], b[i][j], c[i][j] = float64(random.IntN(17)-8), float64(random.IntN(17)-8), float64(random.IntN(9)-4)
				}
			}
			registers := func(operand string, m *[16][16]float64, n, width, lane int) (out []uint32) {
				for j := range n {
					var v uint32
					for h := range 32 / width {
						row, col := fragment(operand, s.k, width, lane, j, h)
						if operand == "c" && width == 16 {
							row, col = lane>>2+8*j, lane&3*2+h
						}
						e := s.encode
						if operand == "c" && width == 32 {
							e = func(v float64) uint32 { return f(float32(v)) }
						}
						v |= e(m[row][col]) << (h * width)
					}
					out = append(out, v)
				}
				return out
			}
			sums := 32
			if s.halfSums > 0 {
				sums = 16
			}
			w := bench(t, vectors, func(lane int) []uint32 {
				return append(append(registers("a", &a, s.a, s.width, lane), registers("b", &b, s.b, s.width, lane)...), registers("c", &c, s.c, sums, lane)...)
			}, s.c, "mma.sync.aligned."+s.name, s.a, s.b, s.c)
			for lane := range 32 {
				for j := range s.c {
					for h := range 32 / sums {
						row, col := fragment("c", s.k, 32, lane, j, h)
						if sums == 16 {
							row, col = lane>>2+8*j, lane&3*2+h
						}
						want := c[row][col]
						for k := range s.k {
							want += a[row][k] * b[k][col]
						}
						got := float64(math.Float32frombits(w[lane][j]))
						if sums == 16 {
							got = float64(fromF16(w[lane][j] >> (16 * h) & 0xffff))
						}
						if got != want {
							t.Fatalf("%s, vectors %v: element %d, %d is %v, want %v", s.name, vectors, row, col, got, want)
						}
					}
				}
			}
		}
	}
}

// bench runs one instruction on registers of a warp, without a launch.
func bench(t *testing.T, vectors bool, in func(lane int) []uint32, outs int, op string, groups ...int) [][]uint32 {
	t.Helper()
	if vectors && !fast {
		return bench(t, false, in, outs, op, groups...)
	}
	before := fast
	setFast(vectors)
	defer setFast(before)
	list := func(from, n int) string {
		var names []string
		for i := range n {
			names = append(names, fmt.Sprintf("%%r%d", from+i))
		}
		return "{" + strings.Join(names, ",") + "}"
	}
	text, at := op+" "+list(40, outs), 10
	for _, n := range groups {
		text += ", " + list(at, n)
		at += n
	}
	n := at - 10
	var save string
	for i := range outs {
		save += fmt.Sprintf("mov.b32 %%r%d, %%r%d;\n", 5+i, 40+i)
	}
	// twelve words of operands per thread
	var all []words
	for lane := range 32 {
		v := append(in(lane), make([]uint32, 12)...)
		all = append(all, words{v[0], v[1], v[2], v[3]}, words{v[4], v[5], v[6], v[7]}, words{v[8], v[9], v[10], v[11]})
	}
	code := "mul.wide.u32 %rd6, %r0, 48; add.s64 %rd7, %rd1, %rd6;\n"
	for i := range n {
		code += fmt.Sprintf("ld.global.u32 %%r%d, [%%rd7+%d];\n", 10+i, 4*i)
	}
	got, err := launchedOver(code+text+";\n"+save, all, 32)
	if err != nil {
		t.Fatal(err)
	}
	var out [][]uint32
	for _, w := range got[:32] {
		out = append(out, w[:outs])
	}
	return out
}

// launchedOver runs a body with fewer threads than words.
func launchedOver(body string, in []words, threads int) ([]words, error) {
	return launched(body, in, func(l *Launch) { l.Block[0], l.Dynamic = threads, 4096 })
}

// TestMatricesAreLoaded: each lane gets its two elements of four matrices, as stored and
// transposed.
func TestMatricesAreLoaded(t *testing.T) {
	// row r of matrix m is at 16·(8m+r) bytes; its element e is 64m+8r+e
	fill := `mul.lo.s32 %r9, %r1, 16; mov.u32 %r10, smem; add.s32 %r9, %r9, %r10;
	mul.lo.s32 %r11, %r1, 8; mul.lo.s32 %r11, %r11, 0x10001; add.s32 %r11, %r11, 0x10000;
	add.s32 %r12, %r11, 0x20002; add.s32 %r13, %r11, 0x40004; add.s32 %r14, %r11, 0x60006;
	st.shared.v4.u32 [%r9], {%r11, %r12, %r13, %r14}; bar.warp.sync 0xffffffff;
	`
	for _, transposed := range []bool{false, true} {
		op := "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r5,%r6,%r7,%r8}, [%r9];"
		if transposed {
			op = strings.Replace(op, ".x4", ".x4.trans", 1)
		}
		out, err := launched(fill+op, numbered(32), nil)
		if err != nil {
			t.Fatal(err)
		}
		for lane, w := range out {
			for m, v := range w {
				at := func(h int) uint32 {
					row, col := lane/4, lane%4*2+h
					if transposed {
						row, col = col, row
					}
					return uint32(64*m + 8*row + col)
				}
				if want := at(0) | at(1)<<16; v != want {
					t.Fatalf("turned %v: lane %d has %x of matrix %d, want %x", transposed, lane, v, m, want)
				}
			}
		}
	}
}

// TestVectorsAgree: products and sums with the host's vector instructions equal those of the Go
// loops, for numbers of all magnitudes.
func TestVectorsAgree(t *testing.T) {
	if !fast {
		t.Skip("the host has no AVX2")
	}
	random := rand.New(rand.NewPCG(3, 4))
	var a, b, c, d [lanes]float32
	for range 2000 {
		for i := range a {
			a[i], b[i], c[i] = math.Float32frombits(random.Uint32()), math.Float32frombits(random.Uint32()), math.Float32frombits(random.Uint32())
			if i%2 == 0 { // sums that cancel, and ties
				c[i] = -a[i] * b[i]
			}
		}
		fmaLanes(&d, &a, &b, &c)
		for i := range d {
			if want := fused(a[i], b[i], c[i]); f(d[i]) != f(want) && want == want {
				t.Fatalf("%g·%g+%g = %g, want %g", a[i], b[i], c[i], d[i], want)
			}
		}
	}
	var halves [lanes]uint32
	var wide [2 * lanes]float32
	for h := range uint32(1 << 15) {
		i := h % lanes
		if halves[i] = h<<1 | (h<<1|1)<<16; i != lanes-1 {
			continue
		}
		widenHalves(&wide, &halves)
		for j, v := range wide {
			if want := fromF16(halves[j/2] >> (16 * (j % 2)) & 0xffff); f(v) != f(want) && want == want {
				t.Fatalf("half %x is %g, want %g", halves[j/2]>>(16*(j%2))&0xffff, v, want)
			}
		}
	}
}
