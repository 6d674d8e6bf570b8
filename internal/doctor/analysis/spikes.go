package analysis

import (
	"slices"

	"haul/internal/doctor/trace"
)

// On a GPU that other programs use too, a kernel sometimes takes much longer, because other
// programs' kernels run in between. Kernels of a rank with more work, or with a slower GPU, always
// take longer.

const (
	spikeTimes = 2 // a duration of at least this many medians is a spike
	spikeRuns  = 8 // kernels with fewer runs have no median
)

// Spikes returns the excess time of kernels, by step, in ns: of kernels that take more than twice
// the median of the rank's runs of the same kernel with as many blocks. If such kernels are part of
// the program, ranks with the same work have equally many. Communication is left out, because it
// waits for others. It returns nil without a GPU.
func (a *Analysis) Spikes() []float64 {
	if a.spikes != nil || len(a.Devices) == 0 {
		return a.spikes
	}
	type kind struct {
		name   uint32
		blocks float32
	}
	type run struct {
		dur  float32
		step int32
	}
	runs := map[kind][]run{}
	for _, d := range a.Devices {
		for _, i := range d.Works {
			g := a.GPU.At(int(i))
			if g.Kind != trace.CatKernel || g.Comm {
				continue
			}
			if step, ok := trace.Within(a.Steps, g.Start); ok {
				k := kind{g.Name, g.Blocks}
				runs[k] = append(runs[k], run{g.Dur, int32(step)})
			}
		}
	}
	a.spikes = make([]float64, len(a.Steps))
	var durs []float32
	for _, list := range runs {
		if len(list) < spikeRuns {
			continue
		}
		durs = slices.Grow(durs[:0], len(list))
		for _, r := range list {
			durs = append(durs, r.dur)
		}
		middle := Median(durs)
		for _, r := range list {
			if r.dur > spikeTimes*middle {
				a.spikes[r.step] += float64(int64(r.dur - middle)) // whole numbers, so that the sum does not depend on the order
			}
		}
	}
	return a.spikes
}
