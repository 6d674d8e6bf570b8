package rule

import (
	"fmt"

	"haul/internal/doctor/analysis"
	"haul/internal/doctor/phrase"
	"haul/internal/doctor/trace"
)

// syncStorm looks for single values read back from the GPU: .item(), a tensor used as a condition,
// a count that the host needs. Each read waits until the GPU is idle, so the CPU can never run
// ahead. Waits outside any operator count too.
//
// The few operators between the previous wait and the read compute the value that is read (a view,
// a comparison, a reduction). They are charged with the read, and so is the Python between them,
// which is the loop over the values. If more than chainLaunches kernels are between, the work has
// other uses, and only the read is charged.
//
// Threshold: 32 per step and 2 % of its time. Reading the loss and a few metrics is normal; one
// read per sample is not.
var syncStorm = Rule{
	ID:     "sync-storm",
	remedy: "Leave values on the GPU: compare, select and sum whole batches with tensor operations, and read the results once, at the end of the step or the epoch.",
	find: func(a *analysis.Analysis, who trace.Cause) *cost {
		if a.OnHost() {
			return readsOnHost(a, who)
		}
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

// collectReads charges one thread's reads and their chains. It returns the number of reads.
func collectReads(a *analysis.Analysis, th *trace.Thread, c *analysis.Charge) int {
	reads, since, launches := 0, 0, 0
	for i := range th.Ops.Len() {
		o := th.Ops.At(i)
		step, ok := trace.Within(a.CPUSteps, o.Start)
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

// On a CPU a read waits for nothing. It costs an operator and the Python around it. The threshold
// is 5 % of the step, as for a GPU that waits for the host.
const (
	hostReads     = 256
	hostReadShare = 0.05
	hostBetween   = 3    // operators between two reads of one loop
	hostBody      = 0.05 // fraction of the reads after the same operators, from which these belong to the loop
)

// body is the names of the operators between two reads, padded with zeros.
type body [hostBetween]uint32

// bodyOf returns the operators between two reads, if the reads are close enough to be of one loop.
func bodyOf(th *trace.Thread, last, i int) (b body, ok bool) {
	if last < 0 || i-last > hostBetween+1 {
		return b, false
	}
	for k := last + 1; k < i; k++ {
		b[k-last-1] = th.Ops.At(k).Name + 1
	}
	return b, true
}

// eachRead visits the reads of single values, each with the index of its thread's previous read or
// -1.
func eachRead(a *analysis.Analysis, visit func(th *trace.Thread, last, i, step int)) {
	for _, th := range a.Threads {
		last := -1
		for i := range th.Ops.Len() {
			o := th.Ops.At(i)
			step, ok := trace.Within(a.CPUSteps, o.Start)
			if name := a.Names.List[o.Name].Text; !ok || o.Cause != 0 || name != "aten::item" && name != "aten::is_nonzero" {
				continue
			}
			visit(th, last, i, step)
			last = i
		}
	}
}

// readsOnHost looks for a loop over single values in a CPU job: the reads, the views between them,
// and the Python around both. Operators between two reads only once per step do not belong to the
// loop.
func readsOnHost(a *analysis.Analysis, who trace.Cause) *cost {
	c := a.NewCharge()
	reads := 0
	bodies := map[body]int{}
	eachRead(a, func(th *trace.Thread, last, i, _ int) {
		reads++
		if b, ok := bodyOf(th, last, i); ok {
			bodies[b]++
		}
	})
	var spans []trace.Span
	eachRead(a, func(th *trace.Thread, last, i, step int) {
		o := th.Ops.At(i)
		from := o.Start
		if b, ok := bodyOf(th, last, i); ok && float64(bodies[b]) >= hostBody*float64(reads) {
			from = th.Ops.At(last).End()
			for k := last + 1; k < i; k++ {
				c.Add(th.Ops.At(k), step)
			}
		}
		spans = append(spans, trace.Span{Start: from, End: o.End()})
		c.Add(o, step)
	})
	ms := a.Ms(float64(trace.Total(trace.Clip(trace.Union(spans), a.CPUSteps))))
	if a.PerStep(float64(reads)) < hostReads || a.Share(ms) < hostReadShare {
		return nil
	}
	c.Take(who)
	return &cost{ms: ms, places: c.Placed(), remedy: "Work on whole tensors: sum, compare and select with tensor operations and read the result once, or take the values out in one call, .tolist().",
		evidence: []string{
			fmt.Sprintf("%s single values read per step", phrase.PerStepCount(a.PerStep(float64(reads)))),
			fmt.Sprintf("the loop over them takes %s ms per step, its views and its Python included: %s", phrase.Figure(ms), c.TopBy(4, (*analysis.Named).OnCPU)),
			c.Where(),
		}}
}
