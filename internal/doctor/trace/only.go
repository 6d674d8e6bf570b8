package trace

import (
	"fmt"
	"slices"
	"strings"

	"haul/internal/doctor/phrase"
)

// To analyse a part of a recording, the part becomes the steps: only events inside steps count.
// Both functions must run before the trace is analysed.

// Only restricts the trace to the interval between two times, in ns since the first event; to is 0
// for the end. Steps are clipped to it. A recording without steps gets the interval as its step.
func (t *Trace) Only(from, to int64) error {
	whole, ok := t.Extent()
	if !ok {
		return fmt.Errorf("the trace holds nothing to measure")
	}
	w := Window{whole.Start + from, whole.End}
	if to > 0 {
		w.End = min(whole.End, whole.Start+to)
	}
	if w.End <= w.Start {
		return fmt.Errorf("nothing is recorded from %s ms on: the recording takes %s ms", phrase.Figure(float64(from)/1e6), phrase.Figure(float64(whole.End-whole.Start)/1e6))
	}
	if len(t.StepMarks) == 0 {
		t.StepMarks = []Window{w}
		return nil
	}
	var out []Window
	for _, s := range t.StepMarks {
		if cut := (Window{max(s.Start, w.Start), min(s.End, w.End)}); cut.End > cut.Start {
			out = append(out, cut)
		}
	}
	if len(out) == 0 {
		return fmt.Errorf("no step lies between %s and %s ms", phrase.Figure(float64(from)/1e6), phrase.Figure(float64(to)/1e6))
	}
	t.StepMarks = out
	return nil
}

// OnlyRange restricts the trace to the intervals of the program's annotation with this name. Each
// interval is a step.
func (t *Trace) OnlyRange(name string) error {
	var out []Window
	times := map[string]int{}
	for _, r := range t.Ranges {
		text := t.Names.List[r.Name].Text
		times[text]++
		if text == name {
			out = append(out, Window(r.Span))
		}
	}
	if out = tidySteps(out); len(out) > 0 {
		t.StepMarks = out
		return nil
	}
	var known []string
	for text := range times {
		known = append(known, text)
	}
	slices.SortFunc(known, func(x, y string) int { return strings.Compare(x, y) })
	if len(known) == 0 {
		return fmt.Errorf("no range is called %q: the trace has no annotations of its own (torch.profiler.record_function makes them)", name)
	}
	const shown = 6
	more := ""
	if len(known) > shown {
		more = fmt.Sprintf(" and %d more", len(known)-shown)
		known = known[:shown]
	}
	return fmt.Errorf("no range is called %q: there are %s%s", name, phrase.Printable(strings.Join(known, ", ")), more)
}
