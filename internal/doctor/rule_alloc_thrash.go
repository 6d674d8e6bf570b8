package doctor

import "fmt"

// allocThrash looks for memory asked from the driver, or given back, inside the steps. PyTorch's
// allocator keeps what it has: after warm-up a step asks for nothing. Each call takes the driver's
// lock, and a release waits for the whole GPU.
//
// Only the calls themselves are charged, where the GPU is idle. Threshold: 4 calls per step, in
// most of the steps, and 1 % of the time; a stray growth is no cause.
var allocThrash = rule{
	id:     "alloc-thrash",
	remedy: "Keep memory: no empty_cache() in the loop, the same shapes from step to step (or expandable_segments), buffers allocated once before it.",
	find: func(a *analysis, _ cause) *cost {
		c := a.collect(holdsAlloc)
		ms := a.ms(a.idle[idleAlloc])
		if !a.steadyAllocs() || a.perStep(float64(a.allocs)) < allocCalls || a.share(ms) < allocShare {
			return nil
		}
		return &cost{ms: ms, places: c.placed(), evidence: []string{
			fmt.Sprintf("%s driver allocations and releases per step, where a warm step has none", perStepCount(a.perStep(float64(a.allocs)))),
			fmt.Sprintf("the GPU stands idle for %s ms per step in the calls themselves, %s", figure(ms), c.heldBy()),
		}}
	},
}

const (
	allocCalls = 4
	allocShare = 0.01
)

// steadyAllocs tells allocations that go on from those of a start: more than half of the steps hold
// one; of a recording without steps, half of its tenths.
func (a *analysis) steadyAllocs() bool {
	if !a.marked {
		return len(a.allocIn) >= 5
	}
	steps := map[int]bool{}
	for tenth := range a.allocIn {
		steps[tenth/10] = true
	}
	return 2*len(steps) > len(a.cpuSteps)
}

// heldBy names the operators that hold the CPU around the calls, or says that there are none.
func (c *charge) heldBy() string {
	if len(c.byName) == 0 {
		return "outside any operator"
	}
	return "in " + c.topBy(3, (*named).onCPU)
}
