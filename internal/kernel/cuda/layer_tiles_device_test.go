package cuda_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"haul/internal/kernel"
	"haul/internal/kernel/cuda"
	"haul/internal/model"
	"haul/internal/plan"
)

// gradients are those of one step of agentRun, by parameter.
func gradients(t *testing.T, dev kernel.Device, batch int) map[string][]float32 {
	t.Helper()
	out, _ := gradientsOf(t, dev, 164, batch, 8, true, 1, 0.1)
	return out
}

// gradientsOf are those of one step of agentRows, and its tally.
func gradientsOf(t *testing.T, dev kernel.Device, tokens, batch, heads int, compressed bool, steep, drop float32) (map[string][]float32, kernel.Metrics) {
	t.Helper()
	run, _, layout := agentRows(t, dev, tokens, batch, 2, 0, heads, compressed, steep, drop)
	defer run.Close()
	must(t, run.Run())
	all, out := make([]float32, layout.Len), map[string][]float32{}
	must(t, run.ReadGrad(all))
	for _, p := range layout.Params {
		out[p.Name] = all[p.Offset:][:p.Len()]
	}
	tally, err := run.TakeMetrics()
	must(t, err)
	return out, tally
}

// TestLongAgents: rows whose attention is streamed, or held forward, of one sequence and of
// several, whose heads have a block each or share several, have the same card's gradients and
// tally in fp32, by the bound of TestAgentOverManyTiles; with -short short rows alone. Half of
// attention's weights are dropped: with a tenth, other masks change a long row's gradients by less
// than the bound.
func TestLongAgents(t *testing.T) {
	bound := 2 * math.Ldexp(1, -8) * math.Sqrt(2*9*2)
	card, exact := open(t, cuda.BF16), open(t, cuda.FP32)
	defer card.Close()
	defer exact.Close()
	for _, c := range []struct {
		tokens, batch int
		compressed    bool
		blocks, heads int
		held          bool // forward
	}{{164, 5, true, 8, 8, false}, {193, 3, false, 0, 8, false}, {1000, 3, false, 8, 8, false}, {1023, 2, false, 0, 8, false}, {1300, 40, false, 8, 8, false},
		{700, 3, true, 0, 8, false}, {673, 3, false, 0, 4, false}, {331, 3, false, 0, 2, false}, {1001, 3, false, 0, 8, true}, {780, 3, true, 0, 8, true}, {769, 50, false, 0, 8, true}} {
		if testing.Short() && c.tokens > 200 {
			break
		}
		restore, blocks := func() {}, cuda.SetLongBlocks(c.blocks)
		if !c.held {
			restore = cuda.SetStreamed(1)
		}
		pieces := cuda.SetHeadPiece(48)
		got, tally := gradientsOf(t, card, c.tokens, c.batch, c.heads, c.compressed, 1, 0.5)
		restore()
		blocks()
		pieces()
		want, told := gradientsOf(t, exact, c.tokens, c.batch, c.heads, c.compressed, 1, 0.5)
		holdApart(t, fmt.Sprintf("%+v", c), got, want, bound)
		a, b := plan.HeadOf(tally, model.HeadAction), plan.HeadOf(told, model.HeadAction)
		if a.Labels != b.Labels || !(math.Abs(a.Loss-b.Loss) <= bound*b.Loss) {
			t.Errorf("%+v: tally %+v, want %+v", c, a, b)
		}
	}
}

// TestTenthAgents: kernels for one rate of dropout leave the bits of those for any, of short rows,
// of held and of streamed ones.
func TestTenthAgents(t *testing.T) {
	card := open(t, cuda.BF16)
	defer card.Close()
	for _, c := range []struct {
		tokens   int
		streamed bool
	}{{164, false}, {801, false}, {801, true}} {
		if c.streamed {
			defer cuda.SetStreamed(1)()
		}
		want, _ := gradientsOf(t, card, c.tokens, 2, 8, false, 1, 0.1)
		restore := cuda.SetPipedRate(0)
		got, _ := gradientsOf(t, card, c.tokens, 2, 8, false, 1, 0.1)
		restore()
		for name, w := range want {
			if !slices.Equal(got[name], w) {
				t.Errorf("%+v: %s differs", c, name)
			}
		}
	}
}

// TestPartsLeaveTheBits: a step in parts of its batch leaves the bits of one that is not.
func TestPartsLeaveTheBits(t *testing.T) {
	card := open(t, cuda.BF16)
	defer card.Close()
	got := gradients(t, card, 255)
	defer cuda.SetBatchParts(1)()
	for name, w := range gradients(t, card, 255) {
		if !slices.Equal(got[name], w) {
			t.Errorf("%s differs", name)
		}
	}
}

// holdApart holds every tensor to a share of its length, queries, keys and values each to that of
// their own: what values get is far more than what the other two get.
func holdApart(t *testing.T, what string, got, want map[string][]float32, bound float64) {
	t.Helper()
	worst := 0.0
	defer func() { t.Logf("%s: off by %.2g of a gradient's length at most, bound %.2g", what, worst, bound) }()
	for name, w := range want {
		parts := 1
		if strings.Contains(name, "qkv") {
			parts = 3
		}
		for part := range parts {
			var off, size float64
			for i := part * len(w) / parts; i < (part+1)*len(w)/parts; i++ {
				off += float64(got[name][i]-w[i]) * float64(got[name][i]-w[i])
				size += float64(w[i]) * float64(w[i])
			}
			worst = max(worst, math.Sqrt(off/size))
			if !(math.Sqrt(off) <= bound*math.Sqrt(size)) {
				t.Errorf("%s: %s, part %d: off by %.2g of its length, bound %.2g", what, name, part, math.Sqrt(off/size), bound)
			}
		}
	}
}

// TestSteepAgents: scores so far apart that sums relative to the first are more than fp32 holds
// leave numbers, held by tiles one at a time and two, and streamed.
func TestSteepAgents(t *testing.T) {
	card := open(t, cuda.BF16)
	defer card.Close()
	for _, c := range []struct {
		tokens   int
		streamed bool
	}{{300, false}, {800, false}, {300, true}} {
		restore := func() {}
		if c.streamed {
			restore = cuda.SetStreamed(1)
		}
		got, _ := gradientsOf(t, card, c.tokens, 3, 8, false, 40, 0.1)
		restore()
		for name, got := range got {
			for i, g := range got {
				if math.IsNaN(float64(g)) || math.IsInf(float64(g), 0) {
					t.Fatalf("%+v: %s: element %d is %v", c, name, i, g)
				}
			}
		}
	}
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
