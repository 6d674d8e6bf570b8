package optimizer

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"haul/internal/kernel"
	"haul/internal/kernel/cpu/isa"
	"haul/internal/kernel/cpu/run"
)

// muonBlock is one block on one worker; its gradient is zero.
func muonBlock(p *isa.Primitives, tiles *isa.TileSet, side int) (*update, *run.Worker) {
	l := &kernel.Layout{}
	l.Add("w", kernel.InitUniform, side, side, side)
	r := &run.Runner{Sets: []*run.Store{{Weights: make([]float32, l.Len), M: make([]float32, l.Len)}}, Piece: run.Piece{Grad: make([]float32, l.Len)}}
	return &update{r: r, o: &kernel.AdamW{Layout: l, Side: side}},
		&run.Worker{Prims: p, Tiles: tiles, Scratch: make([]float32, needMuon(tiles, side)), Adam: isa.AdamArgs{LR: 1e-3, Scale: 1}}
}

// TestMomentumEnds: momentum whose gradient stays zero becomes zero, and what the rounds multiply
// is never so small that their products are subnormal: each would take a hundred cycles, in every
// step from then on. Numbers that move weights, and those that are none, stay, and all sets agree.
func TestMomentumEnds(t *testing.T) {
	const side = 24
	for _, p := range isa.Tables {
		u, w := muonBlock(p, nil, side)
		m := u.r.Sets[0].M
		for i := range m {
			m[i] = float32(math.Ldexp(float64(1-2*(i&1)), -i%40))
		}
		block := u.o.Blocks()[0]
		steps := 0
		for ; slices.ContainsFunc(m, func(v float32) bool { return v != 0 }); steps++ {
			if steps == 1000 {
				t.Fatalf("%s: after %d steps without a gradient momentum is not zero: %g", p.Name, steps, m[:4])
			}
			u.muon(w, block)
		}
		if steps < 700 { // 0.95^700 is 2.5e-16
			t.Errorf("%s: momentum of one is zero after %d steps", p.Name, steps)
		}
		nan := float32(math.NaN())
		given := []float32{1e-15, -1e-15, 1e-16, 1e-17, -1e-17, 1e-30, -1e-44, 0, nan, 1}
		x, got, want := make([]float32, len(given)), slices.Clone(given), slices.Clone(given)
		p.Momentum(x, got, make([]float32, len(given)), 1, 1)
		for i, v := range want {
			if v > -9.99e-17 && v < 9.99e-17 {
				want[i] = 0
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) || fmt.Sprint(x) != fmt.Sprint(want) {
			t.Errorf("%s: of %v is left %v and multiplied %v, want %v", p.Name, given, got, x, want)
		}
	}
}

// TestTiled holds the rounds by tiles to those in fp32, by every set's products, those too that no
// device takes for Muon since fp32 is faster there. The matrix has few large singular values and
// many small ones, which the rounds multiply by 485, with all that was rounded off X itself.
func TestTiled(t *testing.T) {
	for _, side := range []int{16, 40, 128} {
		rng := rand.New(rand.NewPCG(1, uint64(side)))
		x := make([]float32, side*side)
		for k, size := 0, 1.0; k < side; k, size = k+1, size*0.8 {
			a, b := make([]float64, side), make([]float64, side)
			for i := range side {
				a[i], b[i] = rng.NormFloat64(), rng.NormFloat64()
			}
			for i := range x {
				x[i] += float32(size * a[i/side] * b[i%side])
			}
		}
		isa.Plain.Scale(x, float32(muonGamma/math.Sqrt(isa.Plain.SumSquares(x))))
		w := &run.Worker{Prims: isa.Tables[0]}
		want := square(w, slices.Clone(x), side, make([]float32, 3*side*side+isa.GemmScratch))
		for _, set := range isa.TileTables {
			w := &run.Worker{Prims: isa.Tables[0], Tiles: set}
			got := slices.Clone(x)
			tiled(w, got, side, make([]float32, side*side+2*isa.TileFloats(side, side)+set.Scratch(side)))
			var off, all float64
			for i, v := range want {
				off, all = off+float64((got[i]-v)*(got[i]-v)), all+float64(v*v)
			}
			// each product rounds two operands by 2^-9 at most
			if r, most := math.Sqrt(off/all), 3*kernel.MuonRounds*2*0x1p-9; !(r < most) {
				t.Errorf("%s, side %d: X is off by %.4f of its length, want %.4f at most", set.Name, side, r, most)
			}
		}
	}
}

// TestMuonByTilesWhereItPays: sets whose products in bf16 take longer than fp32's leave them to
// fp32, whose bits these are then.
func TestMuonByTilesWhereItPays(t *testing.T) {
	const side = 32
	made := func(tiles *isa.TileSet) []float32 {
		u, w := muonBlock(isa.Tables[0], tiles, side)
		for i := range u.r.Piece.Grad {
			u.r.Piece.Grad[i] = float32((i*7919)%257)/128 - 1
		}
		u.muon(w, u.o.Blocks()[0])
		return u.r.Sets[0].Weights
	}
	want := made(nil)
	for _, set := range isa.TileTables {
		if same := slices.Equal(made(set), want); same == (set.Name == "amx") {
			t.Errorf("%s: products as in fp32: %v", set.Name, same)
		}
	}
}
