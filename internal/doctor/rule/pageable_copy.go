package rule

import (
	"fmt"

	"haul/internal/doctor/analysis"
	"haul/internal/doctor/phrase"
	"haul/internal/doctor/trace"
)

// pageableCopy looks for large copies between the GPU and pageable host memory. The driver moves
// them through a small page-locked buffer while the calling thread waits: slower than the bus, and
// nothing else is issued meanwhile.
//
// Threshold: copies above 1 MB that take 2 % of the step. For smaller copies page-locking does not
// pay.
const pageableShare = 0.02

var pageableCopy = Rule{
	ID:     "pageable-copy",
	remedy: "Copy from page-locked memory while the GPU works: pin_memory=True in the loader, non_blocking=True in .to(), a batch ahead of its use.",
	find: func(a *analysis.Analysis, who trace.Cause) *cost {
		c := a.Collect(trace.HoldsLargePaged)
		bare := bareCopies(a, func(g *trace.Work) bool { return isLargeCopy(g) && g.Direction.Pageable() })
		ms := a.Ms(c.Ns + float64(trace.Total(bare)))
		if a.Large == 0 || a.Share(ms) < pageableShare {
			return nil
		}
		c.Take(who)
		return &cost{ms: ms, places: c.Placed(), evidence: []string{
			fmt.Sprintf("copies past 1 MB through pageable memory: %s per step, %s MB together", phrase.PerStepCount(a.PerStep(float64(a.Large))), phrase.Figure(a.PerStep(a.LargeMB))),
			fmt.Sprintf("%.1f GB/s reached; the calling thread is held for %s ms, %s", a.LargeMB*(1<<20)/max(1, a.LargeNS), phrase.Figure(a.Ms(c.Cpu)), heldBy(c)),
			c.Where(),
		}}
	},
}
