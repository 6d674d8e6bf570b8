package cuda_test

import (
	"math"
	"testing"

	"haul/internal/kernel"
	"haul/internal/kernel/cuda"
)

// gradients are those of one step of agentRun, by parameter.
func gradients(t *testing.T, dev kernel.Device, batch int) map[string][]float32 {
	t.Helper()
	run, _, layout := agentRun(t, dev, batch, 2, 0)
	defer run.Close()
	must(t, run.Run())
	all, out := make([]float32, layout.Len), map[string][]float32{}
	must(t, run.ReadGrad(all))
	for _, p := range layout.Params {
		out[p.Name] = all[p.Offset:][:p.Len()]
	}
	return out
}

// TestAgentOverManyTiles: 41,820 rows are more than two tiles for every multiprocessor, the last
// not whole, and fill a weight's stages many times over: what a block reuses between tiles and
// stages is right. Every gradient is held to the same card's in fp32, by the bound of kerneltest's
// agents of two layers: two units of bf16 for each of 2·9·2 roundings, whose squares add. With
// -short a step runs that a sanitizer is done with soon, and its gradients are numbers.
func TestAgentOverManyTiles(t *testing.T) {
	const batch = 255
	bound := 2 * math.Ldexp(1, -8) * math.Sqrt(2*9*2)
	card := open(t, cuda.BF16)
	defer card.Close()
	if testing.Short() {
		for name, got := range gradients(t, card, batch) {
			for i, g := range got {
				if math.IsNaN(float64(g)) || math.IsInf(float64(g), 0) {
					t.Fatalf("%s: element %d is %v", name, i, g)
				}
			}
		}
		return
	}
	exact := open(t, cuda.FP32)
	defer exact.Close()
	want := gradients(t, exact, batch)
	// what it described to the copy engine is gone, and its places are free for the next
	gradients(t, card, 3*batch)
	for name, got := range gradients(t, card, batch) {
		var off, size float64
		for i, w := range want[name] {
			off += float64(got[i]-w) * float64(got[i]-w)
			size += float64(w) * float64(w)
		}
		if !(math.Sqrt(off) <= bound*math.Sqrt(size)) {
			t.Errorf("%s: off by %.2g of its length, bound %.2g", name, math.Sqrt(off/size), bound)
		}
	}
}
