package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	"haul/internal/doctor/analysis"
	"haul/internal/doctor/phrase"
	"haul/internal/doctor/trace"
)

// lateness holds the activity of a late rank before its collectives that other ranks do not have.
type lateness struct {
	why, where string
	// If most of it is work that the recording lacks, or next to launches: the time of that work,
	// and the longest activity of the rank's CPU itself, both in ms per step. Kernels that overlap
	// such work take longer, and so do waits for them.
	unrecorded, known float64
	host              bool // its host's activity: launches, or work of others
}

// whyLate compares a late rank with the others. offsets are the clocks' offsets in ns.
func whyLate(ranks []*Report, offsets []float64, list []*analysis.Meeting, worst int) lateness {
	type sums struct {
		kinds   [analysis.IdleKinds]float64
		busy    float64
		entered float64
	}
	all := make([]sums, len(ranks))
	before := make([]int64, len(ranks)) // the end of each rank's previous collective
	for i, r := range ranks {
		before[i] = r.a.Steps[0].Start
	}
	var places []analysis.Place
	n := 0
	for _, m := range list {
		last, _ := m.Last()
		counts := m.Ranks[last] == worst
		for i, r := range m.Ranks {
			a := ranks[r].a
			w := trace.Span{Start: before[r], End: m.Items[i].Start}
			if s, ok := trace.Within(a.Steps, m.Items[i].Start); ok && w.Start < a.Steps[s].Start && a.Marked && counts {
				// The time between two steps belongs to the later one.
				w.Start = min(w.Start, a.Steps[s].Start)
			}
			if counts && w.End > w.Start {
				kinds, busy := during(a, w)
				for k := range kinds {
					all[r].kinds[k] += kinds[k]
				}
				all[r].busy += busy
				if before[r] == a.Steps[0].Start {
					all[r].entered += float64(w.Start) - offsets[r]
				}
				if r == worst {
					places = append(places, analysis.Place{Span: w})
				}
			}
			before[r] = max(before[r], m.Items[i].End)
		}
		if counts {
			n++
		}
	}
	if n == 0 {
		return lateness{why: "nothing before its collectives tells it"}
	}
	excess := func(of func(s *sums) float64) float64 {
		var others []float64
		for i := range all {
			if i != worst {
				others = append(others, of(&all[i]))
			}
		}
		return (of(&all[worst]) - analysis.Median(others)) / 1e6 / float64(max(1, ranks[worst].Steps))
	}
	words := map[string]float64{
		"its GPU computes longer":            excess(func(s *sums) float64 { return s.busy }),
		"it enters the recorded steps later": excess(func(s *sums) float64 { return s.entered }),
	}
	if len(ranks[worst].a.Devices) == 0 {
		words = map[string]float64{"its operators take longer": words["its GPU computes longer"], "it enters the recorded steps later": words["it enters the recorded steps later"]}
	}
	causeWords := map[analysis.IdleKind]string{analysis.IdleLoader: "its data loader", analysis.IdlePython: "its Python", analysis.IdleWait: "its waits", analysis.IdleAlloc: "its driver allocations", analysis.IdleCopy: "its copies",
		analysis.IdleCold: "its first uses", analysis.IdleCapture: "its graph capture", analysis.IdleUnrecorded: "work that was not recorded"}
	for k, w := range causeWords {
		words[w] = excess(func(s *sums) float64 { return s.kinds[k] })
	}
	const launches = "its launches"
	words[launches] = excess(func(s *sums) float64 {
		return s.kinds[analysis.IdleOp] + s.kinds[analysis.IdleLaunch] + s.kinds[analysis.IdleBetween]
	})
	names := slices.SortedFunc(maps.Keys(words), func(x, y string) int {
		return cmp.Or(cmp.Compare(words[y], words[x]), strings.Compare(x, y))
	})
	top := names[0]
	if words[top] <= 0 {
		return lateness{why: "before its collectives it does nothing that the others do not do as long", host: true}
	}
	late := lateness{why: fmt.Sprintf("before the collectives at which it is last, %s: %s ms per step more than on the other ranks", top, phrase.Figure(words[top]))}
	if len(names) > 1 && words[names[1]] > words[top]/4 {
		late.why += fmt.Sprintf("; then %s, %s ms", names[1], phrase.Figure(words[names[1]]))
	}
	late.where = ranks[worst].a.Where(heldIn(ranks[worst].a, places, top, causeWords))
	late.host = top == launches || top == causeWords[analysis.IdleUnrecorded]
	if other := words[causeWords[analysis.IdleUnrecorded]]; late.host && other > words[top]/4 {
		for _, w := range []string{causeWords[analysis.IdleLoader], causeWords[analysis.IdlePython], launches} {
			late.known = max(late.known, words[w])
		}
		late.unrecorded = other
	}
	return late
}

// slowerCore is the lower quartile of the ratios of operator durations from which a rank's cores
// are named. Ranks with separate cores differ by a tenth.
const slowerCore = 1.15

// manySteps is the number of steps from which slow cores count as the machine's. Two ranks on 16
// idle cores have differed by 1.3 times for ten steps, and not in the recordings before and after.
const manySteps = 50

// slowerWords returns a remark if a rank's cores are slower than the others', otherwise "".
func slowerWords(ranks []*Report, worst int) string {
	list := make([]*analysis.Analysis, len(ranks))
	for i, r := range ranks {
		list[i] = r.a
	}
	middle, low, high, kinds := analysis.Slower(list, worst)
	if low < slowerCore {
		return ""
	}
	return fmt.Sprintf("its operators take %.2f times as long as on the other ranks, whatever they do (%d kinds, half of them %.2f to %.2f times): its cores are slower, or others use them too",
		middle, kinds, low, high)
}

// heldIn returns the idle intervals of the given cause inside the places.
func heldIn(a *analysis.Analysis, places []analysis.Place, top string, words map[analysis.IdleKind]string) []analysis.Place {
	var out []analysis.Place
	for _, w := range places {
		i := sort.Search(len(a.Held), func(i int) bool { return a.Held[i].End > w.Start })
		for ; i < len(a.Held) && a.Held[i].Start < w.End; i++ {
			p := a.Held[i]
			if words[p.Kind] == top {
				out = append(out, analysis.Place{Span: trace.Span{Start: max(p.Start, w.Start), End: min(p.End, w.End)}, Thread: p.Thread})
			}
		}
	}
	return out
}

// during returns the idle time by kind inside a window, and the time in which the GPU (without one,
// the main thread) works.
func during(a *analysis.Analysis, w trace.Span) (kinds [analysis.IdleKinds]float64, busy float64) {
	i := sort.Search(len(a.Held), func(i int) bool { return a.Held[i].End > w.Start })
	for ; i < len(a.Held) && a.Held[i].Start < w.End; i++ {
		kinds[a.Held[i].Kind] += float64(trace.Overlap(a.Held[i].Span, w))
	}
	if len(a.Devices) > 0 {
		d := a.Devices[0]
		idle := float64(trace.Covered(d.Gaps, w))
		inSteps := float64(trace.Covered(spansOfSteps(a.Steps), w))
		return kinds, inSteps - idle
	}
	if th := a.Main; th != nil {
		i := sort.Search(th.Ops.Len(), func(i int) bool { return th.Ops.At(i).End() > w.Start })
		for ; i < th.Ops.Len() && th.Ops.At(i).Start < w.End; i++ {
			busy += float64(trace.Overlap(trace.Span{Start: th.Ops.At(i).Start, End: th.Ops.At(i).End()}, w))
		}
		busy -= kinds[analysis.IdleLoader] // a loader in the main process runs operators
	}
	return kinds, max(0, busy)
}

func spansOfSteps(steps []trace.Window) []trace.Span {
	out := make([]trace.Span, len(steps))
	for i, s := range steps {
		out[i] = trace.Span(s)
	}
	return out
}
