package doctor

// A job without a GPU is judged by its main thread: in operators it computes, and the time outside
// them goes to the loader, to collectives that nothing hides, or to Python, by the same
// intersection of intervals as a GPU's idle time.

// attributeHost splits what the main thread of a job without a GPU does outside its operators.
func (a *analysis) attributeHost() {
	th := a.main
	if th == nil {
		for _, s := range clip(a.loader, a.steps) {
			a.idle[idleLoader] += float64(s.end - s.start)
		}
		return
	}
	w := &walker{a: a, host: a.hostCollectives(), weight: 1, threads: busiest(a.threads, func(th *thread) int {
		if th.feeds {
			return 0
		}
		return th.ops.len()
	})}
	for _, s := range a.steps {
		w.pieces = w.pieces[:0]
		w.cut(span(s), a.inLoop, idleLoader, func(g span) {
			w.cut(g, a.compiling, idleCompile, func(g span) { w.ask(g, th, 0) })
		})
		for _, p := range w.pieces {
			switch p.kind {
			case idleLoader, idleComm, idleCompile:
			case idleBetween:
				p.kind = idlePython
			default:
				continue
			}
			a.idle[p.kind] += float64(p.end - p.start)
			a.hold(&p)
		}
	}
}
