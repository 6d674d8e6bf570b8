package analysis

import (
	"slices"

	"haul/internal/doctor/trace"
)

// On a GPU that other programs use too, a kernel sometimes takes many times as long as
// otherwise, because the others run in between. A rank with more work, or with a slower GPU, has
// kernels that take longer each time.

const (
	spikeTimes = 2 // the middle of a kernel's runs, and more is a spike
	spikeRuns  = 8 // fewer have no middle
)

// Spikes is how much longer kernels run, by step, than in the middle of all of the rank's runs of
// the same kernel with as many blocks, ns: those that take more than twice as long. Where steps
// have such kernels anyhow, ranks with the same work have as much of it. Communication is left out:
// it waits for others. It is nil without a GPU.
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
				a.spikes[r.step] += float64(int64(r.dur - middle)) // whole: added in any order
			}
		}
	}
	return a.spikes
}
