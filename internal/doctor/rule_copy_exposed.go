package doctor

import "fmt"

// copyExposed looks for large copies across the bus that nothing hides: page-locked, so that the
// CPU is free, and still in front of the kernels because they stand in the same stream or are
// waited for. State that is offloaded to the host and a batch that is sent when it is needed look
// like this. What goes through pageable memory is pageable-copy's.
//
// Threshold: 5 % of the step, as for communication.
const copyExposedShare = 0.05

var copyExposed = rule{
	id: "copy-exposed",
	remedy: "Copy while the GPU works: on a stream of its own, a batch or a layer ahead of its use, with non_blocking=True; and send less: " +
		"bytes or half precision that the GPU widens, or what stays on the GPU.",
	find: func(a *analysis, _ cause) *cost {
		var list []*work
		for i := range a.gpu.len() {
			g := a.gpu.at(i)
			if _, ok := within(a.steps, g.start); ok && isLargeCopy(g) && !g.direction.pageable() {
				list = append(list, g)
			}
		}
		bare := a.bareCopies(func(g *work) bool { return isLargeCopy(g) && !g.direction.pageable() })
		ms := a.ms(float64(total(bare)))
		if len(list) == 0 || a.share(ms) < copyExposedShare {
			return nil
		}
		var bytes, ns float64
		c := &cost{ms: ms, places: spansOf(bare)}
		for _, g := range list {
			bytes, ns = bytes+float64(g.bytes), ns+float64(g.dur)
			c.issued = append(c.issued, a.issuedAt(g)...)
		}
		c.evidence = []string{
			fmt.Sprintf("copies past 1 MB between the host and the GPU: %s per step, %s MB together, %.1f GB/s reached",
				perStepCount(a.perStep(float64(len(list)))), figure(a.perStep(bytes)/(1<<20)), bytes/max(1, ns)),
			fmt.Sprintf("they take %s ms per step, %s ms of it alone: no kernel runs beside them", figure(a.ms(ns)), figure(ms)),
		}
		return c
	},
}

// isLargeCopy tells a copy across the bus whose bytes outweigh its fixed cost.
func isLargeCopy(g *work) bool {
	return g.kind == catCopy && g.bytes >= largeBytes && g.direction != inside
}

// bareCopies are the stretches of the steps in which such copies run and no kernel does, on any
// device.
func (a *analysis) bareCopies(which func(*work) bool) []span {
	var copies, kernels []span
	for i := range a.gpu.len() {
		g := a.gpu.at(i)
		switch {
		case g.kind == catKernel:
			kernels = append(kernels, span{g.start, g.end()})
		case which(g):
			copies = append(copies, span{g.start, g.end()})
		}
	}
	bare, _ := without(clip(union(copies), a.steps), union(kernels))
	return bare
}
