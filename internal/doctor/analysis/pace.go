package analysis

import (
	"slices"

	"haul/internal/doctor/trace"
)

// Ranks with the same work run the same operators. A rank whose operators of all kinds take longer
// has a slower core, or a core that other programs use too.

const (
	paceRuns  = 8   // an operator with fewer runs is ignored
	paceKept  = 256 // largest number of runs of an operator that are used
	paceKinds = 12  // fewer operators do not describe a rank
)

// Pace returns the median duration of each operator in ns, by name.
func (a *Analysis) Pace() map[string]float64 {
	if a.pace != nil {
		return a.pace
	}
	runs := make([][]float32, len(a.Names.List))
	a.EachOp(func(_ *trace.Thread, _, _ int, o *trace.Op) {
		if len(runs[o.Name]) < paceKept {
			runs[o.Name] = append(runs[o.Name], o.Dur)
		}
	})
	a.pace = map[string]float64{}
	for name, list := range runs {
		if len(list) >= paceRuns {
			a.pace[a.Names.List[name].Text] = float64(Median(list))
		}
	}
	return a.pace
}

// Slower returns the ratio of a rank's operator durations to the other ranks': the median over all
// kinds, and the quartiles. kinds is 0 if too few can be compared.
func Slower(ranks []*Analysis, of int) (middle, low, high float64, kinds int) {
	var times []float64
	for name, own := range ranks[of].Pace() {
		var others []float64
		for i, a := range ranks {
			if t := a.Pace()[name]; i != of && t > 0 {
				others = append(others, t)
			}
		}
		if len(others) == len(ranks)-1 && len(others) > 0 {
			times = append(times, own/Median(others))
		}
	}
	if len(times) < paceKinds {
		return 0, 0, 0, 0
	}
	slices.Sort(times)
	return Median(times), times[len(times)/4], times[3*len(times)/4], len(times)
}
