package cuda_test

import (
	"slices"
	"testing"

	"haul/internal/kernel/cuda"
)

// TestMuonWritesTheCopy: in bf16, steps with Muon are the same, bit for bit, where the weights are
// read and written back in between, which makes their bf16 copy anew.
func TestMuonWritesTheCopy(t *testing.T) {
	train := func(again bool) []float32 {
		dev := open(t, cuda.BF16)
		defer dev.Close()
		run, store, layout := agentRun(t, dev, 37, 2, 128)
		defer run.Close()
		weights := make([]float32, layout.Len)
		for range 4 {
			must(t, run.Run())
			must(t, store.ReadWeights(weights))
			if again {
				must(t, store.WriteWeights(weights))
			}
		}
		return weights
	}
	if !slices.Equal(train(false), train(true)) {
		t.Error("the copy is not that of the weights")
	}
}
