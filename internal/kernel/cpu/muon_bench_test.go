package cpu

import (
	"fmt"
	"testing"

	"haul/internal/kernel"
)

// BenchmarkMuon updates one block, as one worker does, in fp32 and where products in bf16 are
// faster by those; `quiet` is a block of which a column in eight has had no gradient for 3,000
// steps.
func BenchmarkMuon(b *testing.B) {
	for _, side := range []int{64, 128} {
		benchmarkMuon(b, fmt.Sprint(side), side, nil, 0)
		benchmarkMuon(b, fmt.Sprint(side, "/quiet"), side, nil, 3000)
		for _, t := range tileSets {
			if t.muon {
				benchmarkMuon(b, fmt.Sprint(side, "/", t.name), side, t, 0)
			}
		}
	}
}

func benchmarkMuon(b *testing.B, name string, side int, tiles *tileSet, quiet int) {
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
		r := &runner{sets: []*store{{weights: flat(2), m: flat(3)}}, piece: piece{grad: grad}}
		u := &update{r: r, o: &kernel.AdamW{Layout: l, Side: side, Decay: 0.1}}
		w := &worker{p: sets[0], tiles: tiles, scratch: make([]float32, needMuon(tiles, side)), adam: adamArgs{lr: 1e-3, scale: 1}}
		block := u.o.Blocks()[0]
		for i := range side * side {
			if quiet > 0 && i%8 == 0 {
				grad[i] = 0
			}
		}
		for range quiet {
			for r := range side {
				w.p.momentum(w.scratch[:side], u.r.sets[0].m[r*side:][:side], grad[r*side:][:side], kernel.MuonMomentum, 1)
			}
		}
		b.ReportAllocs()
		for b.Loop() {
			u.muon(w, block)
		}
		b.ReportMetric(float64(u.o.Cost().FLOPs)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
	})
}
