package rule

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"haul/internal/doctor/analysis"
	"haul/internal/doctor/phrase"
	"haul/internal/doctor/trace"
)

// commExposed looks for exposed collectives: kernels of NCCL, RCCL and similar libraries while no
// other kernel runs, or collectives on the host while the GPU (without one, the main thread) is
// idle. A rank that waits for another looks the same; with all ranks' traces the doctor
// distinguishes them.
//
// Threshold: 5 % of the step. A last bucket that cannot be hidden takes less.
const CommShare = 0.05

var CommExposed = Rule{
	ID: "comm-exposed",
	remedy: "Hide the exchange behind compute (DDP's buckets during backward, prefetch in FSDP, a side stream), send less (bf16 gradients, fewer and larger buckets), " +
		"and look at the other ranks' traces: a rank that arrives late looks like this on all others.",
	find: func(a *analysis.Analysis, _ trace.Cause) *cost {
		s := &a.Comm
		ms := a.Ms(s.Exposed)
		if s.Host { // the part attributed to it
			ms = a.Ms(a.Idle[analysis.IdleComm])
		}
		middle := ms
		if s.Host && len(a.Devices) == 0 { // a disturbance by the machine is not the exchange's
			middle = min(ms, a.MiddleHeld(analysis.IdleComm)/1e6)
		}
		if a.Share(middle) < CommShare {
			return nil
		}
		c := &cost{ms: ms, remedy: commRemedy(a), places: analysis.SpansOf(s.ExposedSpans), issued: s.Issued}
		where := "no other kernel runs beside"
		if s.Host {
			where = "nothing runs beside"
		}
		c.evidence = append(c.evidence, fmt.Sprintf("%s ms of communication per step, %s ms of it exposed: %s it", phrase.Figure(a.Ms(s.Total)), phrase.Figure(ms), where))
		list := slices.SortedFunc(maps.Values(s.Families), func(x, y *analysis.CommFamily) int {
			return cmp.Or(cmp.Compare(y.Exposed, x.Exposed), cmp.Compare(x.Kind+x.Group, y.Kind+y.Group))
		})
		for _, f := range list[:min(3, len(list))] {
			c.evidence = append(c.evidence, familyLine(a, f))
		}
		return c
	},
}

// familyLine describes the cost of one kind of collective and its bandwidth.
func familyLine(a *analysis.Analysis, f *analysis.CommFamily) string {
	line := fmt.Sprintf("%s: %s per step, %s ms, %s ms exposed", f.Kind, phrase.PerStepCount(a.PerStep(float64(f.N))), phrase.Figure(a.Ms(f.NS)), phrase.Figure(a.Ms(f.Exposed)))
	if f.Group != "" {
		line = fmt.Sprintf("group %s, ", phrase.Printable(f.Group)) + line
	}
	if f.Members > 1 {
		line += fmt.Sprintf(", over %d ranks", f.Members)
	}
	if f.Bytes == 0 {
		return line
	}
	line += fmt.Sprintf("; %s each on average, %s the largest", phrase.Size(float64(f.Bytes)/float64(f.N)), phrase.Size(float64(f.Largest)))
	if f.RateNS > 0 {
		rate := f.RateBytes / f.RateNS * analysis.Traffic(f.Kind, f.Members)
		line += fmt.Sprintf("; %.3g GB/s of bus bandwidth, waiting for late ranks included", rate)
		link, name := link2link(a)
		switch {
		case f.Members > perMachine:
			line += "; so many ranks span machines, and the network between them decides"
		case a.Comm.Host:
		case link > 0:
			line += fmt.Sprintf(", where %s gives about %.0f", name, link)
		}
	}
	return line
}

// link2link returns the bandwidth of a GPU's links in the vendors' all-reduce tests inside one
// machine, in GB/s, and the links' name.
func link2link(a *analysis.Analysis) (float64, string) {
	if len(a.GPUModels) == 0 {
		return 0, ""
	}
	c := a.GPUModels[0]
	if c.Vendor() == trace.Amd {
		if c.Processors >= 300 {
			return 300, "MI300X over Infinity Fabric"
		}
		return 130, "MI200 over Infinity Fabric"
	}
	switch {
	case strings.Contains(strings.ToUpper(c.Name), "PCIE"), c.Major > 10: // workstation GPUs
	case c.Major == 10:
		return 800, "NVLink 5"
	case c.Major == 9:
		return 370, "NVLink 4"
	case c.Major == 8 && c.Minor == 0:
		return 230, "NVLink 3"
	case c.Major == 7 && c.Minor == 0:
		return 130, "NVLink 2"
	}
	return 20, "PCIe"
}
