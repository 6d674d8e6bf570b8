package rule

import (
	"fmt"

	"haul/internal/doctor/analysis"
	"haul/internal/doctor/phrase"
	"haul/internal/doctor/trace"
)

// syncStorm looks for single values read back from the GPU: .item(), a tensor used as a condition,
// a count the host must know. Each read waits until the GPU has nothing left to do, so the CPU can
// never run ahead again. Waits outside any operator count with them.
//
// The few operators between the wait before and the read made the value that is read (a view, a
// comparison, a reduction); they exist for the read and are charged with it, and so is the Python
// between them: it is the loop over the values. Where more than chainLaunches kernels lie between,
// the work has other uses, and the read is charged alone.
//
// Threshold: 32 per step and 2 % of its time. Reading the loss and a few metrics is normal; one
// read per sample is not.
var syncStorm = Rule{
	Id:     "sync-storm",
	remedy: "Leave values on the GPU: compare, select and sum whole batches with tensor operations, and read the results once, at the end of the step or the epoch.",
	find: func(a *analysis.Analysis, who trace.Cause) *cost {
		c := a.NewCharge()
		reads := 0
		for _, th := range a.Threads {
			reads += collectReads(a, th, c)
		}
		waits := a.Orphans[trace.CallWait]
		c.AddCalls(waits)
		n := a.PerStep(float64(reads + len(waits)))
		loose := a.LooseWaits
		ms := a.Ms(c.Ns + loose)
		if n < syncReads || a.Share(ms) < syncShare {
			return nil
		}
		c.Take(who)
		ms = a.Ms(c.Ns + loose)
		return &cost{ms: ms, places: c.Placed(), evidence: []string{
			fmt.Sprintf("%s single values read back per step, of %s waits for the GPU per step", phrase.PerStepCount(a.PerStep(float64(reads))), phrase.PerStepCount(a.PerStep(float64(a.Waits)))),
			fmt.Sprintf("the GPU waits %s ms for the reads and the operators that only feed them: %s", phrase.Figure(ms), c.Top(4)),
			c.Where(),
		}}
	},
}

const (
	syncReads     = 32
	syncShare     = 0.02
	chainLaunches = 4
)

// collectReads charges one thread's reads with their chains and returns how many reads there are.
func collectReads(a *analysis.Analysis, th *trace.Thread, c *analysis.Charge) int {
	reads, since, launches := 0, 0, 0
	for i := range th.Ops.Len() {
		o := th.Ops.At(i)
		step, ok := trace.Within(a.CpuSteps, o.Start)
		if !ok {
			since, launches = i+1, 0
			continue
		}
		if o.Holds&trace.HoldsRead == 0 || o.Cause != 0 {
			launches += int(o.Launches)
			if o.Holds&trace.HoldsWait != 0 {
				since, launches = i+1, 0
			}
			continue
		}
		if launches > 0 && launches <= chainLaunches {
			for k := since; k < i; k++ {
				if fed := th.Ops.At(k); fed.Cause == 0 {
					c.Add(fed, step)
				}
			}
		}
		c.Add(o, step)
		reads++
		since, launches = i+1, 0
	}
	return reads
}
