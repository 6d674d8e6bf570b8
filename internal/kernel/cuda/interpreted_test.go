package cuda_test

import (
	"os"
	"testing"

	"haul/internal/cu/cutest"
	"haul/internal/kernel"
	"haul/internal/kernel/cuda"
	"haul/internal/kernel/kerneltest"
)

// TestInterpreted runs a few shapes of each family of kernels on the interpreted card, everywhere
// and always. `.ci/run card` runs more of the suites than this.
func TestInterpreted(t *testing.T) {
	if os.Getenv(cutest.Variable) != "" {
		t.Skip("the whole suites run on the interpreted card here")
	}
	defer cutest.Install(cutest.Ampere.With(true, true))()
	names := []string{"linear", "dropout", "rotate", "spread", "cached", "crossentropy", "regions", "parts", "tally", "tally heads",
		"glu", "mean", "attention", "graph attention", "generate", "capacities", "advantage"}
	kerneltest.RunSome(t, 0, names, func(t *testing.T) kernel.Device { return kerneltest.Sampled(open(t, cuda.FP32), 16) })
	kerneltest.RunSome(t, 0, []string{"gru", "ppo"}, func(t *testing.T) kernel.Device { return kerneltest.Sampled(open(t, cuda.FP32), 5) })
	kerneltest.RunSome(t, 0, []string{"norm"}, func(t *testing.T) kernel.Device { return open(t, cuda.FP32) })
	t.Run("bf16", func(t *testing.T) {
		kerneltest.RunSome(t, 0x1p-8, []string{"linear", "norm", "spread", "agent cached"}, func(t *testing.T) kernel.Device { return kerneltest.Sampled(open(t, cuda.BF16), 40) })
	})
}

// TestInterpretedRounded runs a sixth of the shapes in tf32 and in bf16 on the card that the
// environment asks for.
func TestInterpretedRounded(t *testing.T) {
	if os.Getenv(cutest.Variable) == "" {
		t.Skip("takes minutes: " + cutest.Variable + "=sm_80 runs it")
	}
	for p, unit := range map[cuda.Precision]float64{cuda.TF32: 0x1p-11, cuda.BF16: 0x1p-8} {
		t.Run(string(p), func(t *testing.T) {
			kerneltest.RunRounded(t, unit, func(t *testing.T) kernel.Device { return kerneltest.Sampled(open(t, p), 6) })
		})
	}
}
