package cuda_test

import (
	"slices"
	"testing"

	"haul/internal/cu"
	"haul/internal/kernel"
	"haul/internal/kernel/cuda"
	"haul/internal/kernel/kerneltest"
)

// open opens the first card, or skips with the reason why there is none.
func open(t *testing.T, p cuda.Precision) *cuda.Device {
	t.Helper()
	if _, err := cu.Open(); err != nil {
		t.Skip("needs a GPU: ", err)
	}
	dev, err := cuda.Open(cuda.Options{Precision: p})
	if err != nil {
		t.Fatal(err)
	}
	return dev
}

// TestDevice runs the whole suite in fp32, the precision whose bounds are the CPU's.
func TestDevice(t *testing.T) {
	open(t, cuda.FP32).Close()
	kerneltest.Run(t, func(t *testing.T) kernel.Device { return open(t, cuda.FP32) })
}

// TestRounded runs what holds in any precision in tf32, and in bf16 with its compact tensors.
func TestRounded(t *testing.T) {
	for p, unit := range map[cuda.Precision]float64{cuda.TF32: 0x1p-11, cuda.BF16: 0x1p-8} {
		t.Run(string(p), func(t *testing.T) {
			open(t, p).Close()
			kerneltest.RunRounded(t, unit, func(t *testing.T) kernel.Device { return open(t, p) })
		})
	}
}

// TestTwoRunsAreBitEqual trains twice from the same state and compares every weight.
func TestTwoRunsAreBitEqual(t *testing.T) {
	for _, p := range []cuda.Precision{cuda.FP32, cuda.TF32, cuda.BF16} {
		t.Run(string(p), func(t *testing.T) {
			train := func() []float32 {
				dev := open(t, p)
				defer dev.Close()
				return kerneltest.Train(t, dev, 20)
			}
			a, b := train(), train()
			if !slices.Equal(a, b) {
				t.Error("weights differ between two runs of twenty steps")
			}
		})
	}
}
