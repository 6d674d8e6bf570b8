package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// commExposed looks for collectives that nothing hides: kernels of NCCL, RCCL and their kin with no
// other kernel beside them, or collectives on the host while the GPU (without one, the main thread)
// has nothing to do. A rank that waits for another shows the same way; over all ranks' traces the
// doctor tells the two apart.
//
// Threshold: 5 % of the step. A last bucket that cannot be hidden stays below.
const commShare = 0.05

var commExposed = rule{
	id: "comm-exposed",
	remedy: "Hide the exchange behind compute (DDP's buckets during backward, prefetch in FSDP, a side stream), send less (bf16 gradients, fewer and larger buckets), " +
		"and look at the other ranks' traces: a rank that arrives late looks like this on all others.",
	find: func(a *analysis, _ cause) *cost {
		s := &a.comm
		ms := a.ms(s.exposed)
		if s.host { // what the attribution gave to it
			ms = a.ms(a.idle[idleComm])
		}
		if a.share(ms) < commShare {
			return nil
		}
		c := &cost{ms: ms, places: spansOf(s.exposedSpans), issued: s.issued}
		where := "no other kernel runs beside"
		if s.host {
			where = "nothing runs beside"
		}
		c.evidence = append(c.evidence, fmt.Sprintf("%s ms of communication per step, %s ms of it exposed: %s it", figure(a.ms(s.total)), figure(ms), where))
		list := slices.SortedFunc(maps.Values(s.families), func(x, y *commFamily) int {
			return cmp.Or(cmp.Compare(y.exposed, x.exposed), cmp.Compare(x.kind+x.group, y.kind+y.group))
		})
		for _, f := range list[:min(3, len(list))] {
			c.evidence = append(c.evidence, a.familyLine(f))
		}
		return c
	},
}

// familyLine says what one kind of collective costs, and how fast it moves its bytes.
func (a *analysis) familyLine(f *commFamily) string {
	line := fmt.Sprintf("%s: %s per step, %s ms, %s ms exposed", f.kind, perStepCount(a.perStep(float64(f.n))), figure(a.ms(f.ns)), figure(a.ms(f.exposed)))
	if f.group != "" {
		line = fmt.Sprintf("group %s, ", printable(f.group)) + line
	}
	if f.members > 1 {
		line += fmt.Sprintf(", over %d ranks", f.members)
	}
	if f.bytes == 0 {
		return line
	}
	line += fmt.Sprintf("; %s each on average, %s the largest", size(float64(f.bytes)/float64(f.n)), size(float64(f.largest)))
	if f.rateNS > 0 {
		rate := f.rateBytes / f.rateNS * traffic(f.kind, f.members)
		line += fmt.Sprintf("; %.3g GB/s of bus bandwidth, waiting for late ranks included", rate)
		link, name := a.link2link()
		switch {
		case a.comm.host:
		case link > 0:
			line += fmt.Sprintf(", where %s gives about %.0f", name, link)
		}
	}
	return line
}

// link2link is what a card's links reach in the makers' all-reduce tests inside one machine, in
// GB/s.
func (a *analysis) link2link() (float64, string) {
	if len(a.cards) == 0 {
		return 0, ""
	}
	c := a.cards[0]
	if c.vendor() == amd {
		if c.processors >= 300 {
			return 300, "MI300X over Infinity Fabric"
		}
		return 130, "MI200 over Infinity Fabric"
	}
	switch {
	case strings.Contains(strings.ToUpper(c.name), "PCIE"), c.major > 10: // cards for workstations
	case c.major == 10:
		return 800, "NVLink 5"
	case c.major == 9:
		return 370, "NVLink 4"
	case c.major == 8 && c.minor == 0:
		return 230, "NVLink 3"
	case c.major == 7 && c.minor == 0:
		return 130, "NVLink 2"
	}
	return 20, "PCIe"
}
