package analysis

import (
	"cmp"
	"errors"
	"slices"

	"haul/internal/doctor/trace"
)

// The order of the measurements is fixed: each reads results of earlier ones.

// attribute assigns the idle time of every device to causes.
func (a *Analysis) attribute() {
	if len(a.Devices) == 0 {
		a.attributeHost()
		return
	}
	w := &walker{a: a, weight: 1 / float64(len(a.Devices))}
	w.threads = busiest(a.Threads, func(th *trace.Thread) int { return th.Launches })
	// Other runtimes launch from separate threads and work in others, or record no calls.
	if a.Format != "" || len(w.threads) == 0 {
		w.threads = append(w.threads, busiest(a.Threads, func(th *trace.Thread) int { return th.Ops.Len() })...)
	}
	w.host = a.hostCollectives()
	w.bare = a.Main == nil
	w.launch = int64(a.UsualLaunch)
	w.findHostOps()
	for _, d := range a.Devices {
		w.device(d)
	}
	slices.SortStableFunc(a.Held, func(x, y Piece) int { return cmp.Compare(x.Start, y.Start) })
	slices.SortStableFunc(a.Long, func(x, y HeldCall) int { return cmp.Compare(y.Idle, x.Idle) })
}

func Analyse(t *trace.Trace) (*Analysis, error) {
	a := &Analysis{Trace: t}
	a.Marked, a.Orphans, a.AllocIn = len(t.StepMarks) > 0, map[trace.CallKind][]orphan{}, map[int]int{}
	a.CPUSteps = t.StepMarks
	if !a.Marked {
		w, ok := t.Extent()
		if !ok {
			return nil, errors.New("the trace holds no operators, driver calls or GPU work: there is nothing to measure")
		}
		a.CPUSteps = []trace.Window{w}
	}
	a.indexCalls()
	if !a.Marked && len(a.CPUSteps) == 1 {
		if list, by := a.iterations(a.CPUSteps[0]); list != nil {
			a.CPUSteps, a.By, a.Marked = list, by, true
		}
	}
	a.Steps = slices.Clone(a.CPUSteps)
	a.markCold()
	a.setPeriod()
	a.Skipped = a.leaveColdStepsOut()
	a.cutEdges()
	for _, s := range a.Steps {
		a.Wall += s.End - s.Start
	}
	a.Main = a.mainThread()
	a.splitFetches()
	a.byCorrelation = a.indexGPU()
	for _, th := range t.Threads {
		a.link(th, a.byCorrelation)
	}
	a.measureGPU()
	a.measureComm()
	a.attribute()
	a.findWidest()
	return a, nil
}
