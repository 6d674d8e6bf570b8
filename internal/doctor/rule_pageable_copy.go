package doctor

import "fmt"

// pageableCopy looks for large copies between the GPU and ordinary host memory. The driver moves them
// through a small page-locked buffer of its own while the calling thread waits: slower than the bus,
// and nothing else is issued meanwhile.
//
// Threshold: copies past 1 MB that hold 2 % of the step. A smaller one is over before page-locking
// could pay.
const pageableShare = 0.02

var pageableCopy = rule{
	id:     "pageable-copy",
	remedy: "Copy from page-locked memory while the GPU works: pin_memory=True in the loader, non_blocking=True in .to(), a batch ahead of its use.",
	find: func(a *analysis, who cause) *cost {
		c := a.collect(holdsLargePaged)
		ms := a.ms(c.ns + a.bareCopies())
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

// bareCopies is the GPU time of large pageable copies with no kernel beside them.
func (a *analysis) bareCopies() float64 {
	var copies, kernels []span
	for i := range a.gpu.len() {
		g := a.gpu.at(i)
		switch {
		case g.kind == catKernel:
			kernels = append(kernels, span{g.start, g.end()})
		case g.kind == catCopy && g.bytes >= largeBytes && g.direction.pageable():
			copies = append(copies, span{g.start, g.end()})
		}
	}
	bare, _ := without(clip(union(copies), a.steps), union(kernels))
	return float64(total(bare))
}
