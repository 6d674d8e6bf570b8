package analysis

import (
	"haul/internal/doctor/trace"
)

// splitFetches separates fetches that block the training loop from fetches of a thread that
// prepares batches, which count only while the loop does nothing else. The loop's thread marks the
// steps. Without marks it is the thread with launches, or with most operators.
func (a *Analysis) splitFetches() {
	for _, f := range a.Fetches {
		if f.Thread.Loops || (!a.Marked || a.By != "") && (f.Thread.Launches > 0 || f.Thread == a.Main) || a.Main == nil {
			a.InLoop = append(a.InLoop, f.Span)
			continue
		}
		f.Thread.Feeds = true
		a.aside = append(a.aside, f.Span)
	}
	a.InLoop, a.aside = trace.Union(a.InLoop), trace.Union(a.aside)
}
