package analysis

import (
	"slices"

	"haul/internal/doctor/trace"
)

// Ranks with the same work run the same operators. A rank whose operators all take longer,
// whatever they do, has a slower core, or one that other programs use too.

const (
	paceRuns  = 8   // an operator with fewer runs tells nothing of a core
	paceKept  = 256 // runs of an operator that are looked at
	paceKinds = 12  // fewer operators tell nothing of a rank
)

// Pace is how long each operator takes in the middle of its runs, ns, by name.
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

// Slower is how many times as long a rank's operators take as those of the others: in the middle of
// all kinds, and at the quarter points. kinds is 0 where too few can be compared.
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
