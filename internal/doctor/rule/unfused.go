package rule

import (
	"fmt"

	"haul/internal/doctor/analysis"
	"haul/internal/doctor/phrase"
	"haul/internal/doctor/trace"
)

// unfused looks for chains of elementwise kernels on a busy GPU. Each kernel reads and writes its
// whole tensor, so a norm or an activation that consists of several operators moves the same bytes
// several times. One kernel for the chain moves them once.
//
// A chain is at least three consecutive elementwise kernels in one stream. The gain is all of it
// except its longest kernel. Threshold: 10 % of the step for a note, and two fifths for a warning,
// because eager models always have some chains and fusing them is a choice. A GPU that waits
// between such kernels belongs to launch-bound.
const (
	chainKernels   = 3
	unfusedShare   = 0.10
	unfusedWarning = 0.40
)

var unfused = Rule{
	ID: "unfused",
	remedy: "Fuse: torch.compile around the block, or the library's own operator for it (F.layer_norm, F.rms_norm, F.gelu, F.scaled_dot_product_attention, fused or foreach optimizers). " +
		"In-place operators save memory, not time.",
	find: func(a *analysis.Analysis, _ trace.Cause) *cost {
		if 2*a.Busy < float64(a.Wall) {
			return nil
		}
		var saved, total float64
		chains, kernels, longest := 0, 0, 0
		var issued []analysis.Place
		type stream struct {
			device uint16
			id     uint32
		}
		open := map[stream][]*trace.Work{}
		chained := map[*trace.Work]bool{}
		end := func(s stream) {
			list := open[s]
			delete(open, s)
			if len(list) < chainKernels {
				return
			}
			var sum, most float64
			for _, g := range list {
				chained[g] = true
				sum, most = sum+float64(g.Dur), max(most, float64(g.Dur))
				issued = append(issued, a.IssuedAt(g)...)
			}
			saved, total = saved+sum-most, total+sum
			chains, kernels, longest = chains+1, kernels+len(list), max(longest, len(list))
		}
		for i := range a.GPU.Len() {
			g := a.GPU.At(i)
			if _, ok := trace.Within(a.Steps, g.Start); !ok || g.Kind != trace.CatKernel {
				continue
			}
			s := stream{g.Device, g.Stream}
			if g.Comm || a.Names.List[g.Name].Family != trace.FamilyElementwise {
				end(s)
				continue
			}
			open[s] = append(open[s], g)
		}
		for s := range open {
			end(s)
		}
		// Kernels that overlap others gain nothing.
		alone := a.Alone(func(g *trace.Work) bool { return chained[g] }, func(*trace.Work) {})
		ms := a.Ms(saved / float64(max(1, len(a.Devices))) * alone.Part())
		if a.Share(ms) < unfusedShare {
			return nil
		}
		c := &cost{ms: ms, places: issued, evidence: []string{
			fmt.Sprintf("%s elementwise kernels per step stand in chains, %s per step, the longest of %d: %s ms, %s of the kernels' time",
				phrase.PerStepCount(a.PerStep(float64(kernels))), phrase.CountFew(a.PerStep(float64(chains)), "chain"), longest, phrase.Figure(a.Ms(total)), phrase.Percent(total/a.Kernel)),
			"each kernel of a chain reads and writes its whole tensor; one kernel for the chain does so once",
		}}
		if a.Share(ms) < unfusedWarning {
			c.most = Note
		}
		return c
	},
}
