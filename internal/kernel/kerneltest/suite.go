// Package kerneltest is the one suite that every device passes: each op alone, then whole training
// steps, compared with kernel/reference in float64; and routes, instances and lengths compared with
// cvrp.
//
// What a reader could break: a bound follows from the type and from how long the sums behind an
// element are, never from what a device happens to reach. With ε = 2⁻²⁴ and k terms,
//
//	|got - want| ≤ 8·ε·√(k+1)·S
//
// Rounding errors of k terms grow as √k when they are independent, and eight deviations leave room
// for k·ε growth of one long running sum up to k = 64 and for elementary functions good to a few
// units. S is
//
//   - Σ|a||b| of the element's own terms for an op linear in each operand: the reference run on
//     absolute values;
//   - otherwise the largest of 1 and the tensor's largest element (inputs are of order one), times
//     the op's amplification, which its trial states.
//
// Integers are compared exactly.
//
// A device that multiplies in fewer bits rounds each operand of a product by a unit u of its own:
// 2⁻¹¹ in tf32, 2⁻⁸ in bf16. A product of two such is off by 2u, and a result that is itself kept
// so by one more, whatever the number of terms: 3·u·S for a linear op. Behind a softmax or a GELU
// it is 8·u·S, as if each of a few roundings were the worst. Ops without products are held to fp32;
// the gradient of embeddings may be one.
package kerneltest

import (
	"math"
	"slices"
	"strings"
	"testing"

	"haul/internal/kernel"
	"haul/internal/kernel/reference"
)

const epsilon = 0x1p-24

// bound is the largest error of a sum of k terms of total size s.
func bound(k int, s float64) float64 { return 8 * epsilon * math.Sqrt(float64(k)+1) * s }

// part is one test of the suite.
type part struct {
	name string
	test func(t *testing.T, dev kernel.Device)
}

// routing are the parts that the graph transformer alone needs.
var routing = []part{
	{"glu", testGLU},
	{"mean", testMeanNodes},
	{"attention", testAttention},
	{"graph attention", testGraphAttention},
	{"generate", testGenerate},
	{"capacities", testCapacities},
	{"rollout", testRollout},
	{"rollout.extend", testExtend},
	{"rollout.grad", testRolloutGrad},
	{"advantage", testAdvantage},
	{"step", testStep},
	{"bad", testBadStep},
}

// shared are the parts that hold in any precision.
var shared = []part{
	{"linear", testLinear},
	{"gelu", testGELU},
	{"norm", testNorm},
	{"dropout", testDropout},
	{"embed", testEmbed},
	{"causal", testCausal},
	{"causality", testCausality},
	{"rotate", testRotate},
	{"spread", testSpread},
	{"cached", testCached},
	{"crossentropy", testCrossEntropy},
	{"implicitq", testImplicitQ},
	{"regions", testRegions},
	{"ppo", testPPO},
	{"gru", testGRU},
	{"adamw", testAdamW},
	{"muon", testMuon},
	{"parts", testParts},
	{"exchange", testExchange},
	{"tally", testTally},
	{"tally heads", testTallyHeads},
	{"agent", testAgent},
	{"agent causality", testAgentCausality},
	{"agent cached", testAgentCached},
	{"feeder", testFeeder},
}

// rounding are the parts that bound the rounding error of reduced-precision devices.
var rounding = []part{
	{"attention", testRoundedAttention},
	{"rollout", testRoundedRollout},
}

// Run runs the suite on devices that compute in fp32. Each subtest opens its own.
func Run(t *testing.T, open func(t *testing.T) kernel.Device) {
	run(t, append(slices.Clone(shared), routing...), open)
}

// RunSome runs the named parts alone, on devices whose products round by unit.
func RunSome(t *testing.T, unit float64, names []string, open func(t *testing.T) kernel.Device) {
	var some []part
	for _, p := range append(slices.Clone(shared), routing...) {
		if slices.Contains(names, p.name) {
			some = append(some, p)
		}
	}
	if len(some) != len(names) {
		t.Fatalf("of the parts %q %d are known", names, len(some))
	}
	run(t, some, func(t *testing.T) kernel.Device { return rounded{open(t), unit, false} })
}

// multiplying are the parts that multiply with weights, or attend causally, but for a product
// alone, which is held to a closer bound.
var multiplying = []string{"gelu", "causal", "causality", "adamw", "parts", "exchange", "agent", "agent causality", "agent cached", "feeder", "step", "bad"}

// twin is a device that differs from another, which is tried by all shapes, in its primitives or in
// its shards alone: one in four of the shapes of its ops is tried.
type twin struct {
	kernel.Device
	at, every int
}

// Twin is dev as a device that shares all but its primitives or its shards with one that is tried
// by every shape. Twins of different numbers are tried by different shapes. Primitives have tests
// of their own, at every small size.
func Twin(dev kernel.Device, number int) kernel.Device { return twin{dev, number, 4} }

// Sampled is dev as a device that is tried by one shape in so many, as an interpreter is.
func Sampled(dev kernel.Device, every int) kernel.Device { return twin{dev, 0, every} }

// tries tells whether a device is tried by a shape of that place in its list. Under the race
// detector, where the reference takes many times as long, a few are: what workers share does not
// depend on a shape.
func tries(dev kernel.Device, place int) bool {
	w, ok := twinOf(dev)
	every := 1
	if ok {
		every = w.every
	}
	if raced {
		every = 12
	}
	return (place+w.at)%every == 0
}

func twinOf(dev kernel.Device) (twin, bool) {
	if r, ok := dev.(rounded); ok {
		dev = r.Device
	}
	w, ok := dev.(twin)
	return w, ok
}

// RunNearest runs the parts that multiply with weights on devices whose products with weights, and
// those for their gradients, round each operand to the nearest number of relative error at most
// unit, ties to even, and add up in fp32; causal attention may round its own likewise, and a GELU
// between two products be as near; all else is fp32. A product alone and a whole step are held to
// the reference that rounds likewise: the product to the bound of its sum.
func RunNearest(t *testing.T, unit float64, open func(t *testing.T) kernel.Device) {
	parts := []part{{"linear nearest", testLinear}}
	for _, p := range append(slices.Clone(shared), routing...) {
		if slices.Contains(multiplying, p.name) {
			parts = append(parts, p)
		}
	}
	run(t, parts, func(t *testing.T) kernel.Device {
		return rounded{open(t), unit, strings.HasSuffix(t.Name(), "/linear_nearest") || strings.HasSuffix(t.Name(), "/step")}
	})
}

// RunRounded runs the parts that hold in any precision on devices whose matrix products, and
// Compact tensors, round by unit.
func RunRounded(t *testing.T, unit float64, open func(t *testing.T) kernel.Device) {
	run(t, append(slices.Clone(shared), rounding...), func(t *testing.T) kernel.Device { return rounded{open(t), unit, false} })
}

// rounded is a device with what its products round by.
type rounded struct {
	kernel.Device
	unit    float64
	nearest bool // compared with a reference that rounds as it does
}

func unitOf(dev kernel.Device) float64 {
	if r, ok := dev.(rounded); ok {
		return r.unit
	}
	return 0
}

// flips is the share of a sum of k terms that operands near a tie may move, which device and
// reference round to different sides because what made them differs by fp32's own error: 2·unit
// each, and independent errors of k terms grow as √k.
func flips(dev kernel.Device, k int) float64 {
	if r, ok := dev.(rounded); ok && r.nearest {
		return 2 * r.unit / math.Sqrt(float64(k))
	}
	return 0
}

func run(t *testing.T, parts []part, open func(t *testing.T) kernel.Device) {
	for _, c := range parts {
		t.Run(c.name, func(t *testing.T) {
			dev := open(t)
			t.Cleanup(func() {
				if err := dev.Close(); err != nil {
					t.Error(err)
				}
			})
			c.test(t, dev)
		})
	}
}

// reference64 is the reference in float64 that devices are compared with. Its shard size is no
// device's, so that a result which depends on the shard size is noticed.
func reference64() kernel.Device { return newOracle(reference.New[float64](3), 0) }

// referenceFor is the reference for dev: one that rounds operands as dev does where that rounding
// itself is tested.
func referenceFor(dev kernel.Device) kernel.Device {
	if r, ok := dev.(rounded); ok && r.nearest {
		return newOracle(reference.NewRounded[float64](3, r.unit), r.unit)
	}
	return reference64()
}

// batchFor is a batch of several shards, the last partly idle; for a device that takes any batch in
// one shard, a few instances.
func batchFor(dev kernel.Device, nodes int) int {
	switch s := dev.ShardSize(nodes); {
	case s > 256:
		return 7
	case s > 4:
		return s + s/8 + 1
	case interprets(dev): // it has no lanes that a batch could outnumber
		return 2*s + (s+1)/2
	default:
		return 9*s + (s+1)/2
	}
}

// interprets reports whether dev is the reference on trial.
func interprets(dev kernel.Device) bool {
	if r, ok := dev.(rounded); ok {
		dev = r.Device
	}
	if w, ok := dev.(twin); ok {
		dev = w.Device
	}
	switch dev.(type) {
	case *reference.Device[float32], *reference.Device[float64]:
		return true
	}
	return false
}

// batchOf is batchFor of whole groups of rows, two at least.
func batchOf(dev kernel.Device, nodes, group int) int {
	return upTo(max(batchFor(dev, nodes), group+1), group)
}

// upTo is n, or the next multiple of unit.
func upTo(n, unit int) int { return (n + unit - 1) / unit * unit }

// largest is max(1, |v|...).
func largest(values []float64) float64 {
	m := 1.0
	for _, v := range values {
		m = max(m, math.Abs(v))
	}
	return m
}

// compare reports the first element that is further from want than allowed.
func compare(t *testing.T, what string, got, want []float64, allowed func(i int) float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d elements, want %d", what, len(got), len(want))
		return
	}
	for i, w := range want {
		if err := math.Abs(got[i] - w); !(err <= allowed(i)) {
			t.Errorf("%s[%d] = %.9g, want %.9g: off by %.2g, bound %.2g", what, i, got[i], w, err, allowed(i))
			return
		}
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
