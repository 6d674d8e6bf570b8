package doctor

import "fmt"

// loaderStarved looks for time in which the training loop stands in the data loader's next batch
// and the GPU has nothing to do. PyTorch marks that time itself.
//
// Threshold: 5 % of the step. A loader that keeps up costs the microseconds of taking a batch off a
// queue; anything a person could measure is already starvation.
const loaderShare = 0.05

var loaderStarved = rule{
	id:     "loader-starved",
	remedy: "Prepare batches beside the training loop: num_workers > 0 with persistent workers and a prefetch, a collate that fills preallocated arrays, or the data kept on the GPU.",
	find: func(a *analysis, _ cause) *cost {
		in := clip(a.loader, a.steps)
		ms := a.ms(a.idle[idleLoader])
		if a.share(ms) < loaderShare {
			return nil
		}
		var longest int64
		for _, s := range in {
			longest = max(longest, s.end-s.start)
		}
		idle := "the GPU stands"
		if len(a.devices) == 0 {
			idle = "the main thread stands"
		}
		return &cost{ms: ms, places: spansOf(in), evidence: []string{
			fmt.Sprintf("%s ms per step in the data loader's next batch, %s per step, the longest %s ms",
				figure(a.ms(float64(total(in)))), countFew(a.perStep(float64(len(in))), "fetch"), figure(float64(longest)/1e6)),
			fmt.Sprintf("%s idle for %s ms of that", idle, figure(ms)),
		}}
	},
}

// splitFetches tells the fetches that hold the training loop up from those of a thread that
// prepares batches for it, which count only where the loop does nothing else. The loop's thread
// marks the steps; without marks it launches, or has most operators.
func (a *analysis) splitFetches() {
	for _, f := range a.fetches {
		if f.thread.loops || !a.marked && (f.thread.launches > 0 || f.thread == a.main) || a.main == nil {
			a.inLoop = append(a.inLoop, f.span)
			continue
		}
		f.thread.feeds = true
		a.aside = append(a.aside, f.span)
	}
	a.inLoop, a.aside = union(a.inLoop), union(a.aside)
}

// clip cuts spans to the steps.
func clip(list []span, steps []window) []span {
	var out []span
	for _, s := range list {
		first, _ := within(steps, s.start)
		for _, w := range steps[first:] {
			if w.start >= s.end {
				break
			}
			out = append(out, span{max(s.start, w.start), min(s.end, w.end)})
		}
	}
	return union(out)
}
