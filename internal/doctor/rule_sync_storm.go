package doctor

import "fmt"

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
var syncStorm = rule{
	id:     "sync-storm",
	remedy: "Leave values on the GPU: compare, select and sum whole batches with tensor operations, and read the results once, at the end of the step or the epoch.",
	find: func(a *analysis, who cause) *cost {
		c := a.newCharge()
		reads := 0
		for _, th := range a.threads {
			reads += a.collectReads(th, c)
		}
		waits := a.orphans[callWait]
		c.addCalls(waits)
		n := a.perStep(float64(reads + len(waits)))
		loose := a.looseWaits
		ms := a.ms(c.ns + loose)
		if n < syncReads || a.share(ms) < syncShare {
			return nil
		}
		c.take(who)
		ms = a.ms(c.ns + loose)
		return &cost{ms: ms, places: c.placed(), evidence: []string{
			fmt.Sprintf("%s single values read back per step, of %s waits for the GPU per step", perStepCount(a.perStep(float64(reads))), perStepCount(a.perStep(float64(a.waits)))),
			fmt.Sprintf("the GPU waits %s ms for the reads and the operators that only feed them: %s", figure(ms), c.top(4)),
			c.where(),
		}}
	},
}

const (
	syncReads     = 32
	syncShare     = 0.02
	chainLaunches = 4
)

// collectReads charges one thread's reads with their chains and returns how many reads there are.
func (a *analysis) collectReads(th *thread, c *charge) int {
	reads, since, launches := 0, 0, 0
	for i := range th.ops.len() {
		o := th.ops.at(i)
		step, ok := within(a.cpuSteps, o.start)
		if !ok {
			since, launches = i+1, 0
			continue
		}
		if o.holds&holdsRead == 0 || o.cause != 0 {
			launches += int(o.launches)
			if o.holds&holdsWait != 0 {
				since, launches = i+1, 0
			}
			continue
		}
		if launches > 0 && launches <= chainLaunches {
			for k := since; k < i; k++ {
				if fed := th.ops.at(k); fed.cause == 0 {
					c.add(fed, step)
				}
			}
		}
		c.add(o, step)
		reads++
		since, launches = i+1, 0
	}
	return reads
}
