package rule

import (
	"fmt"
	"strings"

	"haul/internal/doctor/analysis"
	"haul/internal/doctor/phrase"
	"haul/internal/doctor/trace"
)

// Hints replace a general remedy by specific advice. Each returns nothing if the trace does not
// show its subject.

const (
	zeroedTensors   = 32 // per step, from which clearing them separately is mentioned
	updateOperators = 64 // per step inside an optimizer's step
	smallCollective = 1 << 20
	manyCollectives = 64 // per step
	perMachine      = 8  // largest number of GPUs for which the links inside a machine decide
)

// optimizerHints are about the optimizer: parameters that are updated, or gradients that are
// cleared, one at a time.
func optimizerHints(a *analysis.Analysis) []string {
	zeros, visits, fused := 0, 0, false
	a.EachOp(func(_ *trace.Thread, _, _ int, o *trace.Op) {
		name := a.Names.List[o.Name].Text
		if name == "aten::zero_" {
			zeros++
		}
		if trace.Covered(a.Updates, trace.Span{Start: o.Start, End: o.Start + 1}) > 0 {
			visits++
			fused = fused || strings.Contains(name, "_foreach_") || strings.Contains(name, "_fused_")
		}
	})
	var out []string
	if n := a.PerStep(float64(visits)); n >= updateOperators && !fused {
		out = append(out, fmt.Sprintf("the optimizer visits parameters one by one, %s operators per step: give it fused=True, or foreach=True", phrase.PerStepCount(n)))
	}
	if n := a.PerStep(float64(zeros)); n >= zeroedTensors {
		out = append(out, fmt.Sprintf("%s tensors are zeroed one by one per step: zero_grad(set_to_none=True) does without", phrase.PerStepCount(n)))
	}
	return out
}

// batchHint describes the size of the batch, if most of the kernels' time leaves the GPU unfilled.
func batchHint(a *analysis.Analysis) string {
	short, fill := underfilled(a)
	if short < 0.5 {
		return ""
	}
	batch := leading(a)
	if batch == 0 {
		return fmt.Sprintf("%s of the kernels' time fills %s of the card: a larger batch is nearly free", phrase.Percent(short), phrase.Percent(fill))
	}
	return fmt.Sprintf("batch %s: %s of the kernels' time fills %s of the card, so a larger batch is nearly free", phrase.Thousands(int(batch)), phrase.Percent(short), phrase.Percent(fill))
}

// leading returns the most frequent first dimension of the inputs of products and convolutions, or
// 0 without shapes.
func leading(a *analysis.Analysis) int64 {
	times := map[int64]int{}
	a.EachOp(func(_ *trace.Thread, _, _ int, o *trace.Op) {
		if o.Form == 0 {
			return
		}
		switch a.Names.List[o.Name].Text {
		case "aten::linear", "aten::conv1d", "aten::conv2d", "aten::conv3d", "aten::matmul", "aten::bmm", "aten::scaled_dot_product_attention", "aten::embedding":
			for _, in := range a.Forms[o.Form].Inputs {
				if len(in.Dims) > 1 && in.Dims[0] > 0 {
					times[in.Dims[0]]++
					return
				}
			}
		}
	})
	best, most := int64(0), 0
	for d, n := range times {
		if n > most || n == most && d < best {
			best, most = d, n
		}
	}
	return best
}

// loaderRemedy returns a remedy that depends on the loader's current configuration.
func loaderRemedy(a *analysis.Analysis) string {
	if !a.Workers {
		return ""
	}
	wall, idle := float64(a.Wall), a.Idle[analysis.IdleLoader]
	times := wall / max(1, wall-idle)
	return fmt.Sprintf("The loader has workers already, which deliver a batch per %s ms where the loop could take one per %s ms: it needs %.1f times as many (four would have to be %d), "+
		"or less work per sample: decode once and store it, augment on the GPU, collate into preallocated arrays.",
		phrase.Figure(a.Ms(wall)), phrase.Figure(a.Ms(wall-idle)), times, int(4*times+0.999))
}

// commRemedy returns a remedy that depends on the kind of communication.
func commRemedy(a *analysis.Analysis) string {
	s := &a.Comm
	if s.Host && len(a.Devices) > 0 {
		return "The collectives run on the host with tensors of the GPU: each is copied down, exchanged by gloo and copied back. Use the nccl backend (init_process_group(\"nccl\")), " +
			"which exchanges on the card and beside compute."
	}
	n, bytes := 0, uint64(0)
	for _, f := range s.Families {
		n, bytes = n+f.N, bytes+f.Bytes
	}
	if per := a.PerStep(float64(n)); per >= manyCollectives && bytes > 0 && bytes/uint64(n) < smallCollective {
		return fmt.Sprintf("%s collectives per step of %s each on average: put gradients into buckets (DistributedDataParallel with bucket_cap_mb, or one flat buffer), so that a few large ones remain.",
			phrase.PerStepCount(per), phrase.Size(float64(bytes)/float64(n)))
	}
	return ""
}

// hostRandom reports whether random numbers are drawn on the CPU for a GPU.
func hostRandom(names string) bool {
	for _, w := range []string{"aten::randn", "aten::rand ", "aten::normal_", "aten::randint", "aten::randperm", "aten::uniform_", "aten::bernoulli"} {
		if strings.Contains(names, w) {
			return true
		}
	}
	return false
}

// underfilled returns the fraction of the kernels' time that leaves the GPU unfilled, and how full
// the GPU is then. It ignores an optimizer's kernels, whose size does not depend on the batch.
func underfilled(a *analysis.Analysis) (share, fill float64) {
	var short, weighted, all float64
	for i := range a.GPU.Len() {
		g := a.GPU.At(i)
		if _, ok := trace.Within(a.Steps, g.Start); !ok || g.Kind != trace.CatKernel || g.Comm {
			continue
		}
		if len(a.Updates) > 0 && inUpdate(a, g) {
			continue
		}
		all += float64(g.Dur)
		if g.Blocks >= 0 && g.Blocks < 1 {
			short += float64(g.Dur)
			weighted += float64(g.Dur) * float64(g.Blocks)
		}
	}
	return short / max(1, all), weighted / max(1, short)
}

// inUpdate reports whether an optimizer's step issued the work.
func inUpdate(a *analysis.Analysis, g *trace.Work) bool {
	for _, p := range a.IssuedAt(g) {
		if trace.Covered(a.Updates, trace.Span{Start: p.Start, End: p.Start + 1}) > 0 {
			return true
		}
	}
	return false
}
