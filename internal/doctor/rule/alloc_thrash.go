package rule

import (
	"fmt"

	"haul/internal/doctor/analysis"
	"haul/internal/doctor/phrase"
	"haul/internal/doctor/trace"
)

// allocThrash looks for driver allocations and releases inside the steps. PyTorch's allocator
// caches memory, so after warm-up a step needs none. Each call takes the driver's lock, and a
// release waits for the whole GPU.
//
// Only the calls themselves are charged, while the GPU is idle. Threshold: 4 calls per step, in
// most of the steps, and 1 % of the time; a single growth is no cause.
var allocThrash = Rule{
	ID:     "alloc-thrash",
	remedy: "Keep memory: no empty_cache() in the loop, the same shapes from step to step (or expandable_segments), buffers allocated once before it.",
	find: func(a *analysis.Analysis, _ trace.Cause) *cost {
		c := a.Collect(trace.HoldsAlloc)
		ms := a.Ms(a.Idle[analysis.IdleAlloc])
		if !steadyAllocs(a) || a.PerStep(float64(a.Allocs)) < allocCalls || a.Share(ms) < allocShare {
			return nil
		}
		return &cost{ms: ms, places: c.Placed(), evidence: []string{
			fmt.Sprintf("%s driver allocations and releases per step, where a warm step has none", phrase.PerStepCount(a.PerStep(float64(a.Allocs)))),
			fmt.Sprintf("the GPU stands idle for %s ms per step in the calls themselves, %s", phrase.Figure(ms), heldBy(c)),
		}}
	},
}

const (
	allocCalls = 4
	allocShare = 0.01
)

// steadyAllocs reports whether allocations continue after the start: more than half of the steps
// contain one or, without steps, half of the recording's tenths.
func steadyAllocs(a *analysis.Analysis) bool {
	if !a.Marked {
		return len(a.AllocIn) >= 5
	}
	steps := map[int]bool{}
	for tenth := range a.AllocIn {
		steps[tenth/10] = true
	}
	return 2*len(steps) > len(a.CPUSteps)
}

// heldBy names the operators around the calls, or says that there are none.
func heldBy(c *analysis.Charge) string {
	if c.Empty() {
		return "outside any operator"
	}
	return "in " + c.TopBy(3, (*analysis.Named).OnCPU)
}
