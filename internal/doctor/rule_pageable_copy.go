package doctor

import "fmt"

// pageableCopy looks for large copies between the GPU and ordinary host memory. The driver moves them
// through a small page-locked buffer of its own while the calling thread waits: slower than the bus,
// and nothing else is issued meanwhile.
//
// Threshold: copies past 1 MB that hold 2 % of the step. A smaller one is over before page-locking
// could pay.
var pageableCopy = rule{
	id:     "pageable-copy",
	remedy: "Copy from page-locked memory while the GPU works: pin_memory=True in the loader, non_blocking=True in .to(), a batch ahead of its use.",
	find: func(a *analysis, who cause) *cost {
		c := a.collect(holdsLargePaged)
		ms := a.bounded(c.ns, a.largeNS)
		if a.large == 0 || a.share(ms) < 0.02 {
			return nil
		}
		c.take(who)
		ms = a.bounded(c.ns, a.largeNS)
		return &cost{ms, []string{
			fmt.Sprintf("%s copies past 1 MB a step through pageable memory, %s MB together", perStepCount(a.perStep(float64(a.large))), figure(a.perStep(a.largeMB))),
			fmt.Sprintf("%.1f GB/s reached; the calling thread is held for %s ms, %s", a.largeMB*(1<<20)/max(1, a.largeNS), figure(a.ms(c.ns)), c.heldBy()),
			c.where(),
		}}
	},
}
