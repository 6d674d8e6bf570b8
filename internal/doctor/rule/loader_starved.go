package rule

import (
	"fmt"

	"haul/internal/doctor/analysis"
	"haul/internal/doctor/phrase"
	"haul/internal/doctor/trace"
)

// loaderStarved looks for time in which the training loop waits for the data loader's next batch
// and the GPU is idle. PyTorch marks that time.
//
// Threshold: 5 % of the step. A loader that keeps up costs only the microseconds of taking a batch
// off a queue.
const loaderShare = 0.05

var loaderStarved = Rule{
	ID:     "loader-starved",
	remedy: "Prepare batches beside the training loop: num_workers > 0 with persistent workers and a prefetch, a collate that fills preallocated arrays, or the data kept on the GPU.",
	find: func(a *analysis.Analysis, _ trace.Cause) *cost {
		in := trace.Clip(a.Loader, a.Steps)
		ms := a.Ms(a.Idle[analysis.IdleLoader])
		if a.Share(ms) < loaderShare {
			return nil
		}
		var longest int64
		for _, s := range in {
			longest = max(longest, s.End-s.Start)
		}
		idle := "the GPU stands"
		if len(a.Devices) == 0 {
			idle = "the main thread stands"
		}
		return &cost{ms: ms, remedy: loaderRemedy(a), places: analysis.SpansOf(in), evidence: []string{
			fmt.Sprintf("%s ms per step in the data loader's next batch, %s per step, the longest %s ms",
				phrase.Figure(a.Ms(float64(trace.Total(in)))), phrase.CountFew(a.PerStep(float64(len(in))), "fetch"), phrase.Figure(float64(longest)/1e6)),
			fmt.Sprintf("%s idle for %s ms of that", idle, phrase.Figure(ms)),
		}}
	},
}
