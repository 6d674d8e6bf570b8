package optimizer

import (
	"fmt"
	"testing"

	"haul/internal/kernel"
	"haul/internal/kernel/cpu/isa"
	"haul/internal/kernel/cpu/run"
)

// BenchmarkMuon updates one block, as one worker does, in fp32 and where products in bf16 are
// faster by those; `quiet` is a block of which a column in eight has had no gradient for 3,000
// steps.
func BenchmarkMuon(b *testing.B) {
	for _, side := range []int{64, 128} {
		benchmarkMuon(b, fmt.Sprint(side), side, nil, 0)
		benchmarkMuon(b, fmt.Sprint(side, "/quiet"), side, nil, 3000)
		for _, t := range isa.TileTables {
			if t.Muon {
				benchmarkMuon(b, fmt.Sprint(side, "/", t.Name), side, t, 0)
			}
		}
	}
}

func benchmarkMuon(b *testing.B, name string, side int, tiles *isa.TileSet, quiet int) {
	b.Run(name, func(b *testing.B) {
		l := &kernel.Layout{}
		l.Add("w", kernel.InitUniform, side, side, side)
		flat := func(seed int) []float32 {
			v := make([]float32, l.Len)
			for i := range v {
				v[i] = 1e-3 * (float32((i*7919+seed*31)%257)/128 - 1) // as long as clipped gradients are
			}
			return v
		}
		grad := flat(1)
		r := &run.Runner{Sets: []*run.Store{{Weights: flat(2), M: flat(3)}}, Piece: run.Piece{Grad: grad}}
		u := &update{r: r, o: &kernel.AdamW{Layout: l, Side: side, Decay: 0.1}}
		w := &run.Worker{Prims: isa.Tables[0], Tiles: tiles, Scratch: make([]float32, needMuon(tiles, side)), Adam: isa.AdamArgs{LR: 1e-3, Scale: 1}}
		block := u.o.Blocks()[0]
		for i := range side * side {
			if quiet > 0 && i%8 == 0 {
				grad[i] = 0
			}
		}
		for range quiet {
			for r := range side {
				w.Prims.Momentum(w.Scratch[:side], u.r.Sets[0].M[r*side:][:side], grad[r*side:][:side], kernel.MuonMomentum, 1)
			}
		}
		b.ReportAllocs()
		for b.Loop() {
			u.muon(w, block)
		}
		b.ReportMetric(float64(u.o.Cost().FLOPs)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
	})
}
