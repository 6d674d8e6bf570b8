package doctor

import "fmt"

// pageableCopy looks for large copies between the GPU and ordinary host memory. The driver moves
// them through a small page-locked buffer of its own while the calling thread waits: slower than
// the bus, and nothing else is issued meanwhile.
//
// Threshold: copies past 1 MB that hold 2 % of the step. A smaller one is over before page-locking
// could pay.
const pageableShare = 0.02

var pageableCopy = rule{
	id:     "pageable-copy",
	remedy: "Copy from page-locked memory while the GPU works: pin_memory=True in the loader, non_blocking=True in .to(), a batch ahead of its use.",
	find: func(a *analysis, who cause) *cost {
		c := a.collect(holdsLargePaged)
		bare := a.bareCopies(func(g *work) bool { return isLargeCopy(g) && g.direction.pageable() })
		ms := a.ms(c.ns + float64(total(bare)))
		if a.large == 0 || a.share(ms) < pageableShare {
			return nil
		}
		c.take(who)
		return &cost{ms: ms, places: c.placed(), evidence: []string{
			fmt.Sprintf("copies past 1 MB through pageable memory: %s per step, %s MB together", perStepCount(a.perStep(float64(a.large))), figure(a.perStep(a.largeMB))),
			fmt.Sprintf("%.1f GB/s reached; the calling thread is held for %s ms, %s", a.largeMB*(1<<20)/max(1, a.largeNS), figure(a.ms(c.cpu)), c.heldBy()),
			c.where(),
		}}
	},
}
