package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strings"

	"haul/internal/doctor/analysis"
	"haul/internal/doctor/phrase"
	"haul/internal/doctor/rule"
	"haul/internal/doctor/trace"
)

// The page's timeline consists of rows of marks (lanes). A trace has far more marks than a page can
// hold, so the marks of a row are limited: marks that are too close for a screen are merged, more
// coarsely outside the step that is shown first. Times are in nanoseconds since the timeline's
// origin. A mark is written as the distance from the previous mark's end, its length, its class and
// its label.

// lane is one row of the timeline.
type lane struct {
	Label string  `json:"label"`
	Group string  `json:"group,omitempty"` // rows of one GPU or rank are adjacent
	Kind  string  `json:"kind"`
	Marks []int64 `json:"marks"` // four numbers per mark

	list []mark
}

// mark is one interval in a row. Its class is a colour of the page.
type mark struct {
	trace.Span
	class int
	label string // from the trace; made printable when it is used
	bytes int64  // of a copy; -1 for other marks
}

// timeline is the data that the page's script draws.
type timeline struct {
	Span    int64      `json:"span"`
	From    int64      `json:"from"` // the part that is shown first
	To      int64      `json:"to"`
	Steps   [][2]int64 `json:"steps"`
	Lanes   []*lane    `json:"lanes"`
	Labels  []string   `json:"labels"`
	Classes []string   `json:"classes"`
	Places  []where    `json:"places"` // places of findings and gaps

	origin  int64
	byLabel map[string]int
	byClass map[string]int
}

// where is an interval to jump to.
type where struct {
	ID    string `json:"id"`
	Start int64  `json:"start"`
	End   int64  `json:"end"`
	Lane  string `json:"group,omitempty"`
}

func newTimeline(origin, end int64) *timeline {
	return &timeline{Span: max(1, end-origin), origin: origin, Steps: [][2]int64{}, Places: []where{}, byLabel: map[string]int{}, byClass: map[string]int{}}
}

func intern(list *[]string, index map[string]int, s string) int {
	id, ok := index[s]
	if !ok {
		id = len(*list)
		index[s] = id
		*list = append(*list, s)
	}
	return id
}

func (t *timeline) class(s string) int { return intern(&t.Classes, t.byClass, s) }

func (t *timeline) label(s string) int { return intern(&t.Labels, t.byLabel, s) }

const (
	laneMarks   = 5000 // per row, inside the step that is shown first
	outerMarks  = 1500 // per row, outside it
	shownLanes  = 6    // number of CPU threads
	shownGPUs   = 16
	rankMarks   = 900
	shownPlaces = 40
)

// waits begins the label of idle time, which is never shortened.
const waits = "waits: "

var callClass = map[trace.CallKind]string{trace.CallLaunch: "launch", trace.CallCopy: "copy", trace.CallSet: "set", trace.CallWait: "wait", trace.CallAlloc: "alloc", trace.CallOther: "launch"}

// add merges a row's marks into at most the given numbers, and adds the row.
func (t *timeline) add(l *lane, inner trace.Span, most, outer int) {
	if len(l.list) == 0 {
		return
	}
	slices.SortStableFunc(l.list, func(x, y mark) int { return cmp.Compare(x.Start, y.Start) })
	fine := (inner.End - inner.Start) / int64(most)
	coarse := t.Span / int64(outer)
	if len(l.list) <= most {
		fine, coarse = 0, 0
	}
	var out []mark
	for _, m := range l.list {
		near := coarse
		if m.End > inner.Start && m.Start < inner.End {
			near = fine
		}
		if n := len(out); n > 0 && near > 0 {
			p := &out[n-1]
			if m.Start-p.End < near && p.End-p.Start < near*4 && m.End-m.Start < near {
				if m.class != p.class && m.End-m.Start > p.End-p.Start {
					p.class = m.class
				}
				p.End, p.label, p.bytes = max(p.End, m.End), "several", -1
				continue
			}
		}
		out = append(out, m)
	}
	at := t.origin
	for _, m := range out {
		label := m.label
		if !strings.HasPrefix(label, waits) {
			label = trace.ShortName(label)
		}
		if m.bytes >= 0 {
			label += ", " + phrase.Size(float64(m.bytes))
		}
		l.Marks = append(l.Marks, m.Start-at, m.End-m.Start, int64(m.class), int64(t.label(label)))
		at = m.End
	}
	t.Lanes = append(t.Lanes, l)
}

// lanesOf adds the rows of one trace: its GPUs, their idle time, its calls and its threads.
func (t *timeline) lanesOf(r *Report, findings []rule.Finding, group string, inner trace.Span, most, outer, threads int) {
	if r.released {
		panic("report: a page after Release")
	}
	a := r.a
	put := func(l *lane, s trace.Span, class, label string) {
		s = trace.Span{Start: max(s.Start, t.origin), End: min(s.End, t.origin+t.Span)}
		if s.End > s.Start {
			l.list = append(l.list, mark{s, t.class(class), label, -1})
		}
	}
	for _, d := range a.Devices[:min(len(a.Devices), shownGPUs)] {
		name := "GPU"
		if len(a.Devices) > 1 {
			name = fmt.Sprintf("GPU %d", d.ID)
		}
		compute, comm, copies := &lane{Label: name, Group: group, Kind: "gpu"}, &lane{Label: name + " communication", Group: group, Kind: "gpu"}, &lane{Label: name + " copies", Group: group, Kind: "gpu"}
		for _, i := range d.Works {
			g := a.GPU.At(int(i))
			s, label := trace.Span{Start: g.Start, End: g.End()}, a.Names.List[g.Name].Text
			switch {
			case g.Comm:
				put(comm, s, "comm", label)
			case g.Kind == trace.CatKernel:
				put(compute, s, "kernel", label)
			case g.Kind == trace.CatCopy:
				n := len(copies.list)
				put(copies, s, "copy", label)
				if len(copies.list) > n {
					copies.list[n].bytes = int64(g.Bytes)
				}
			default:
				put(copies, s, "set", label)
			}
		}
		t.add(compute, inner, most, outer)
		t.add(comm, inner, most, outer)
		t.add(copies, inner, most, outer)
	}
	idle := &lane{Label: "GPU waits for", Group: group, Kind: "idle"}
	if len(a.Devices) == 0 {
		idle.Label = "outside operators"
	}
	at := int64(0)
	for _, p := range a.Held {
		if p.Start >= at { // of several devices, those of the first
			put(idle, p.Span, "idle-"+analysis.IdleIDs[p.Kind], waits+a.IdleWord(p.Kind))
			at = p.End
		}
	}
	t.add(idle, inner, most, outer)
	classes := causeClasses(findings)
	shown := busiestIn(a.Threads, inner)
	calls := &lane{Label: "driver calls", Group: group, Kind: "cpu"}
	mainShown := false
	for k, th := range shown[:min(len(shown), threads)] {
		l := &lane{Label: "thread " + cutTo(phrase.Printable(th.Tid), 12), Group: group, Kind: "cpu"}
		switch {
		case isAutograd(a, th):
			l.Label = "autograd"
		case !mainShown:
			l.Label, mainShown = "operators", true
		}
		for i := range th.Ops.Len() {
			o := th.Ops.At(i)
			put(l, trace.Span{Start: o.Start, End: o.End()}, classes[o.Cause], a.Names.List[o.Name].Text)
		}
		if k == 0 {
			for _, s := range a.InLoop {
				put(l, s, "idle-loader", "data loader")
			}
		}
		t.add(l, inner, most, outer)
	}
	for _, th := range shown {
		for i := range th.Calls.Len() {
			c := th.Calls.At(i)
			put(calls, trace.Span{Start: c.Start, End: c.End()}, callClass[c.Kind], a.Names.List[c.Name].Text)
		}
	}
	t.add(calls, inner, most, outer)
	host := &lane{Label: "collectives on the host", Group: group, Kind: "cpu"}
	for _, n := range a.Notes {
		if text := a.Names.List[n.Name].Text; trace.OnHost(text) {
			put(host, n.Span, "comm", text)
		}
	}
	t.add(host, inner, most, outer)
}

// busiestIn returns the threads with most operators or calls in a window, busiest first.
func busiestIn(threads []*trace.Thread, w trace.Span) []*trace.Thread {
	type weighed struct {
		th *trace.Thread
		ns int64
	}
	var list []weighed
	for _, th := range threads {
		if th.Ops.Len() == 0 && th.Calls.Len() == 0 {
			continue
		}
		x := weighed{th: th}
		for i := sort.Search(th.Ops.Len(), func(i int) bool { return th.Ops.At(i).End() > w.Start }); i < th.Ops.Len() && th.Ops.At(i).Start < w.End; i++ {
			x.ns += trace.Overlap(w, trace.Span{Start: th.Ops.At(i).Start, End: th.Ops.At(i).End()})
		}
		for i := sort.Search(th.Calls.Len(), func(i int) bool { return th.Calls.At(i).End() > w.Start }); i < th.Calls.Len() && th.Calls.At(i).Start < w.End; i++ {
			x.ns += trace.Overlap(w, trace.Span{Start: th.Calls.At(i).Start, End: th.Calls.At(i).End()}) / 16
		}
		if x.ns > 0 {
			list = append(list, x)
		}
	}
	slices.SortStableFunc(list, func(x, y weighed) int { return cmp.Compare(y.ns, x.ns) })
	var out []*trace.Thread
	for _, x := range list[:min(len(list), shownLanes)] {
		out = append(out, x.th)
	}
	return out
}

// isAutograd reports whether a thread is autograd's: most of its operators are.
func isAutograd(a *analysis.Analysis, th *trace.Thread) bool {
	backward := 0
	for i := range th.Ops.Len() {
		if name := a.Names.List[th.Ops.At(i).Name].Text; strings.HasPrefix(name, trace.BackwardPrefix) || strings.Contains(name, "Backward") || strings.Contains(name, "AccumulateGrad") {
			backward++
		}
	}
	return 2*backward > th.Ops.Len()
}

func causeOf(id string) trace.Cause {
	return trace.Cause(slices.IndexFunc(rule.Rules, func(r rule.Rule) bool { return r.ID == id }) + 1)
}

// causeClasses returns the colour class of each finding's operators.
func causeClasses(findings []rule.Finding) map[trace.Cause]string {
	out := map[trace.Cause]string{}
	for i := range rule.Rules {
		out[trace.Cause(i+1)] = "op"
	}
	out[0] = "op"
	for i, f := range findings {
		out[causeOf(f.ID)] = fmt.Sprintf("f%d", min(i, 5))
	}
	return out
}

// typicalStep returns the step of median length.
func (r *Report) typicalStep() trace.Span {
	steps := slices.Clone(r.a.Steps)
	slices.SortStableFunc(steps, func(x, y trace.Window) int { return cmp.Compare(x.End-x.Start, y.End-y.Start) })
	return trace.Span(steps[(len(steps)-1)/2])
}

// timeline returns the timeline of one trace.
func (r *Report) timeline() *timeline {
	a := r.a
	first, last := a.Steps[0], a.Steps[len(a.Steps)-1]
	inner := r.typicalStep()
	t := newTimeline(min(first.Start, a.CPUSteps[0].Start), max(last.End, a.CPUSteps[len(a.CPUSteps)-1].End))
	t.From, t.To = inner.Start-t.origin, inner.End-t.origin
	for _, s := range a.Steps {
		t.Steps = append(t.Steps, [2]int64{s.Start - t.origin, s.End - t.origin})
	}
	t.lanesOf(r, r.Findings, "", inner, laneMarks, outerMarks, shownLanes)
	for i, f := range r.Findings {
		t.place(fmt.Sprintf("f%d", i), f.Places, "")
	}
	for i, g := range a.Widest {
		t.place(fmt.Sprintf("gap%d", i), []analysis.Place{{Span: g.Span}}, "")
	}
	return t
}

// place adds the intervals of a finding, longest first, each with some margin.
func (t *timeline) place(id string, places []analysis.Place, group string) {
	list := slices.Clone(places)
	slices.SortStableFunc(list, func(x, y analysis.Place) int { return cmp.Compare(y.End-y.Start, x.End-x.Start) })
	n := 0
	for _, p := range list {
		s := trace.Span{Start: max(p.Start-t.origin, 0), End: min(p.End-t.origin, t.Span)}
		if s.End <= s.Start {
			continue
		}
		t.Places = append(t.Places, where{id, s.Start, s.End, group})
		if n++; n == shownPlaces {
			return
		}
	}
}

// timeline returns the timeline of a job: every rank's GPU and main thread, on the common clock.
func (j *Ranks) timeline() *timeline {
	origin := j.origin()
	end := origin + 1
	for i, r := range j.Ranks {
		end = max(end, r.a.Steps[len(r.a.Steps)-1].End-j.skew(i))
	}
	t := newTimeline(origin, end)
	t.To = t.Span
	for i, r := range j.Ranks {
		skew := j.skew(i)
		n := len(t.Lanes)
		t.origin = origin + skew // the rank's own clock
		inner := trace.Span{Start: t.origin, End: t.origin + t.Span}
		t.lanesOf(r, j.Findings, fmt.Sprintf("rank %d", *r.Rank), inner, rankMarks, rankMarks, 1)
		t.Lanes = slices.DeleteFunc(t.Lanes, func(l *lane) bool { return l.Label == "driver calls" || strings.HasSuffix(l.Label, " copies") })
		for _, l := range t.Lanes[min(n, len(t.Lanes)):] {
			l.Label = fmt.Sprintf("%d  %s", *r.Rank, l.Label)
		}
		for k, f := range j.Findings {
			if f.Rank != nil && *f.Rank == *r.Rank {
				t.place(fmt.Sprintf("f%d", k), f.Places, "")
			}
		}
	}
	t.origin = origin
	for i, m := range j.Meetings {
		at := int64(m.AtMS * 1e6)
		t.Places = append(t.Places, where{ID: fmt.Sprintf("gap%d", i), Start: max(0, at), End: min(t.Span, at+int64(m.LateMS*1e6)+1)})
	}
	return t
}

// timeline returns the timeline of a comparison: a typical step of each, from the same start.
func (d *Diff) timeline() *timeline {
	x, y := d.Before.typicalStep(), d.After.typicalStep()
	t := newTimeline(x.Start, x.Start+max(x.End-x.Start, y.End-y.Start))
	t.To = t.Span
	for _, side := range []struct {
		r    *Report
		step trace.Span
		name string
	}{{d.Before, x, "before"}, {d.After, y, "after"}} {
		n := len(t.Lanes)
		t.origin = side.step.Start
		t.lanesOf(side.r, d.After.Findings, side.name, trace.Span{Start: t.origin, End: t.origin + t.Span}, laneMarks/2, laneMarks/2, 2)
		for _, l := range t.Lanes[n:] {
			l.Label = side.name + " " + l.Label
		}
		t.Steps = append(t.Steps, [2]int64{0, side.step.End - side.step.Start})
	}
	return t
}

// script returns the timeline as JSON for the page's script, with the characters of HTML tags
// escaped.
func (t *timeline) script() (string, error) {
	b, err := json.Marshal(t)
	return string(b), err
}
