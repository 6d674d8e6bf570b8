package analysis

import (
	"haul/internal/doctor/trace"
)

// A job without a GPU is judged by its main thread: in operators it computes, and the time outside
// them goes to the loader, to collectives that nothing hides, or to Python, by the same
// intersection of intervals as a GPU's idle time.

// attributeHost splits what the main thread of a job without a GPU does outside its operators.
func (a *Analysis) attributeHost() {
	th := a.Main
	if th == nil {
		for _, s := range trace.Clip(a.Loader, a.Steps) {
			a.Idle[IdleLoader] += float64(s.End - s.Start)
		}
		return
	}
	w := &walker{a: a, host: a.hostCollectives(), weight: 1, threads: busiest(a.Threads, func(th *trace.Thread) int {
		if th.Feeds {
			return 0
		}
		return th.Ops.Len()
	})}
	w.usual = usualPause(th)
	for _, s := range a.Steps {
		w.pieces = w.pieces[:0]
		w.cut(trace.Span(s), a.InLoop, IdleLoader, func(g trace.Span) {
			w.cut(g, a.Compiling, IdleCompile, func(g trace.Span) { w.ask(g, th, 0) })
		})
		for _, p := range w.pieces {
			switch p.Kind {
			case IdleLoader, IdleComm, IdleCompile:
			case IdleBetween:
				// between two operators it goes away with them; a stretch that stands out is Python's own
				if w.isLong(p.End - p.Start) {
					p.Kind = IdlePython
				}
			default:
				continue
			}
			a.Idle[p.Kind] += float64(p.End - p.Start)
			a.hold(&p)
		}
	}
}

// fewPauses is up to how many of them none is usual.
const fewPauses = 8

// usualPause is the middle of the pauses between a thread's operators.
func usualPause(th *trace.Thread) int64 {
	var list []int64
	for i := 1; i < th.Ops.Len(); i++ {
		if ns := th.Ops.At(i).Start - th.Ops.At(i-1).End(); ns > 0 {
			list = append(list, ns)
		}
	}
	if len(list) < fewPauses {
		return 0
	}
	return Median(list)
}
