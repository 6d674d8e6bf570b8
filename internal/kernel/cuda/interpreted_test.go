package cuda_test

import (
	"fmt"
	"math"
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

// TestInterpretedRounded runs a sixth of the shapes in tf32 and in bf16 on the interpreted GPU that
// the environment names.
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

// TestInterpretedSizes: each kernel of routes of a size and a rule set runs once.
func TestInterpretedSizes(t *testing.T) {
	if os.Getenv(cutest.Variable) == "" {
		t.Skip("takes minutes: " + cutest.Variable + "=sm_80 runs it")
	}
	for p, unit := range map[cuda.Precision]float64{cuda.FP32: 0, cuda.TF32: 0x1p-11} {
		t.Run(string(p), func(t *testing.T) {
			kerneltest.RunSizes(t, unit, func(t *testing.T) kernel.Device { return open(t, p) })
		})
	}
}

// TestInterpretedNear: gradients of few nodes, whose layers and heads have kernels for all of their
// ops, agree with those of kernels for each op, as TestGradientsAgree holds them.
func TestInterpretedNear(t *testing.T) {
	if os.Getenv(cutest.Variable) == "" {
		t.Skip("takes a minute: " + cutest.Variable + "=sm_80 runs it")
	}
	gradientsAgree(t, []gradientCase{{11, 5, 1}, {16, 3, 1}, {16, 2, 2}})
}

// TestInterpretedAgents: joined layers of the in-context agent, with the head that is joined and
// with another, and with streamed attention, have the gradients of the same GPU in fp32, by the
// bound of TestAgentOverManyTiles.
func TestInterpretedAgents(t *testing.T) {
	if os.Getenv(cutest.Variable) == "" {
		t.Skip("takes a minute: " + cutest.Variable + "=sm_90a runs it")
	}
	bound := 2 * math.Ldexp(1, -8) * math.Sqrt(2*9*2)
	rounded, exact := open(t, cuda.BF16), open(t, cuda.FP32)
	defer rounded.Close()
	defer exact.Close()
	defer func(n int) { agentActions = n }(agentActions)
	for _, c := range []struct {
		tokens, actions int
		compressed      bool
		streamed        bool
		drop            float32
	}{{164, 5, true, false, 0.1}, {164, 6, true, false, 0.5}, {197, 5, false, true, 0}} {
		restore := func() {}
		if c.streamed {
			restore = cuda.SetStreamed(1)
		}
		agentActions = c.actions
		got, _ := gradientsOf(t, rounded, c.tokens, 2, 8, c.compressed, 1, c.drop)
		restore()
		want, _ := gradientsOf(t, exact, c.tokens, 2, 8, c.compressed, 1, c.drop)
		holdApart(t, fmt.Sprintf("%+v", c), got, want, bound)
	}
}
