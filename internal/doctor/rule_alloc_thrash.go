package doctor

import "fmt"

// allocThrash looks for memory asked from the driver, or given back, inside the steps. PyTorch's
// allocator keeps what it has: after warm-up a step asks for nothing. Each call takes the driver's
// lock, and a release waits for the whole GPU.
//
// Threshold: 4 calls in most of the steps, and 1 % of the time; a stray growth is no cause.
var allocThrash = rule{
	id:     "alloc-thrash",
	remedy: "Keep memory: no empty_cache() in the loop, the same shapes from step to step (or expandable_segments), buffers allocated once before it.",
	find: func(a *analysis, who cause) *cost {
		c := a.collect(holdsAlloc)
		c.addCalls(a.orphans[callAlloc])
		ms := a.bounded(c.ns, 0)
		if !c.steady(1) || a.perStep(float64(a.allocs)) < 4 || a.share(ms) < 0.01 {
			return nil
		}
		c.take(who)
		ms = a.bounded(c.ns, 0)
		return &cost{ms, []string{
			fmt.Sprintf("%s driver allocations and releases a step, where a warm step has none", perStepCount(a.perStep(float64(a.allocs)))),
			fmt.Sprintf("they hold %s ms a step, %s", figure(ms), c.heldBy()),
			c.where(),
		}}
	},
}

// heldBy names the operators around the calls, or says that there are none.
func (c *charge) heldBy() string {
	if len(c.byName) == 0 {
		return "outside any operator"
	}
	return "in " + c.top(3)
}
