package doctor

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strings"
)

// The page's timeline is lanes of marks. A trace holds far more marks than a page may carry, so a
// lane is bounded: marks that stand closer than a screen could show are merged, more coarsely
// outside the step that is shown first. Times are nanoseconds since the timeline's origin; each
// mark is written as the distance from the end of the one before, its length, its class and its
// label.

// lane is one row of the timeline.
type lane struct {
	Label string  `json:"label"`
	Group string  `json:"group,omitempty"` // lanes of one GPU or rank stand together
	Kind  string  `json:"kind"`
	Marks []int64 `json:"marks"` // four numbers a mark

	list []mark
}

// mark is one stretch of a lane. Its class is a colour of the page.
type mark struct {
	span
	class int
	label int
}

// timeline is what the page's script draws.
type timeline struct {
	Span    int64      `json:"span"`
	From    int64      `json:"from"` // what is shown first
	To      int64      `json:"to"`
	Steps   [][2]int64 `json:"steps"`
	Lanes   []*lane    `json:"lanes"`
	Labels  []string   `json:"labels"`
	Classes []string   `json:"classes"`
	Places  []where    `json:"places"` // where findings and gaps happen

	origin  int64
	byLabel map[string]int
	byClass map[string]int
}

// where is a stretch to jump to.
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
	laneMarks   = 5000 // of a lane, inside the step that is shown first
	outerMarks  = 1500 // and outside it
	shownLanes  = 6    // CPU threads
	shownGPUs   = 16
	rankMarks   = 900
	shownPlaces = 40
)

var callClass = map[callKind]string{callLaunch: "launch", callCopy: "copy", callSet: "set", callWait: "wait", callAlloc: "alloc", callOther: "launch"}

// add merges a lane's marks into at most a number of them and files the lane.
func (t *timeline) add(l *lane, inner span, most, outer int) {
	if len(l.list) == 0 {
		return
	}
	slices.SortStableFunc(l.list, func(x, y mark) int { return cmp.Compare(x.start, y.start) })
	fine := (inner.end - inner.start) / int64(most)
	coarse := t.Span / int64(outer)
	if len(l.list) <= most {
		fine, coarse = 0, 0
	}
	several := t.label("several")
	var out []mark
	for _, m := range l.list {
		near := coarse
		if m.end > inner.start && m.start < inner.end {
			near = fine
		}
		if n := len(out); n > 0 && near > 0 {
			p := &out[n-1]
			if m.start-p.end < near && p.end-p.start < near*4 && m.end-m.start < near {
				if m.class != p.class && m.end-m.start > p.end-p.start {
					p.class = m.class
				}
				p.end, p.label = max(p.end, m.end), several
				continue
			}
		}
		out = append(out, m)
	}
	at := t.origin
	for _, m := range out {
		l.Marks = append(l.Marks, m.start-at, m.end-m.start, int64(m.class), int64(m.label))
		at = m.end
	}
	t.Lanes = append(t.Lanes, l)
}

// lanesOf files the lanes of one trace: its GPUs, what they waited for, its calls and its threads.
func (t *timeline) lanesOf(r *Report, findings []Finding, group string, inner span, most, outer, threads int) {
	a := r.a
	put := func(l *lane, s span, class, label string) {
		s = span{max(s.start, t.origin), min(s.end, t.origin+t.Span)}
		if s.end > s.start {
			l.list = append(l.list, mark{s, t.class(class), t.label(label)})
		}
	}
	for _, d := range a.devices[:min(len(a.devices), shownGPUs)] {
		name := "GPU"
		if len(a.devices) > 1 {
			name = fmt.Sprintf("GPU %d", d.id)
		}
		compute, comm, copies := &lane{Label: name, Group: group, Kind: "gpu"}, &lane{Label: name + " communication", Group: group, Kind: "gpu"}, &lane{Label: name + " copies", Group: group, Kind: "gpu"}
		for _, i := range d.works {
			g := a.gpu.at(int(i))
			s, label := span{g.start, g.end()}, shortName(a.names.list[g.name].text)
			switch {
			case g.comm:
				put(comm, s, "comm", label)
			case g.kind == catKernel:
				put(compute, s, "kernel", label)
			case g.kind == catCopy:
				put(copies, s, "copy", fmt.Sprintf("%s, %s", label, size(float64(g.bytes))))
			default:
				put(copies, s, "set", label)
			}
		}
		t.add(compute, inner, most, outer)
		t.add(comm, inner, most, outer)
		t.add(copies, inner, most, outer)
	}
	idle := &lane{Label: "GPU waits for", Group: group, Kind: "idle"}
	if len(a.devices) == 0 {
		idle.Label = "outside operators"
	}
	at := int64(0)
	for _, p := range a.held {
		if p.start >= at { // of several devices, the first one's
			put(idle, p.span, "idle-"+idleIDs[p.kind], "waits: "+a.idleWord(p.kind))
			at = p.end
		}
	}
	t.add(idle, inner, most, outer)
	classes := causeClasses(findings)
	shown := busiestIn(a.threads, inner)
	calls := &lane{Label: "driver calls", Group: group, Kind: "cpu"}
	mainShown := false
	for k, th := range shown[:min(len(shown), threads)] {
		l := &lane{Label: "thread " + cutTo(printable(th.tid), 12), Group: group, Kind: "cpu"}
		switch {
		case a.isAutograd(th):
			l.Label = "autograd"
		case !mainShown:
			l.Label, mainShown = "operators", true
		}
		for i := range th.ops.len() {
			o := th.ops.at(i)
			put(l, span{o.start, o.end()}, classes[o.cause], shortName(a.names.list[o.name].text))
		}
		if k == 0 {
			for _, s := range a.inLoop {
				put(l, s, "idle-loader", "data loader")
			}
		}
		t.add(l, inner, most, outer)
	}
	for _, th := range shown {
		for i := range th.calls.len() {
			c := th.calls.at(i)
			put(calls, span{c.start, c.end()}, callClass[c.kind], printable(a.names.list[c.name].text))
		}
	}
	t.add(calls, inner, most, outer)
	host := &lane{Label: "collectives on the host", Group: group, Kind: "cpu"}
	for _, n := range a.notes {
		if text := a.names.list[n.name].text; onHost(text) {
			put(host, n.span, "comm", printable(text))
		}
	}
	t.add(host, inner, most, outer)
}

// busiestIn are the threads with most operators or calls in a window, most first.
func busiestIn(threads []*thread, w span) []*thread {
	type weighed struct {
		th *thread
		ns int64
	}
	var list []weighed
	for _, th := range threads {
		if th.ops.len() == 0 && th.calls.len() == 0 {
			continue
		}
		x := weighed{th: th}
		for i := sort.Search(th.ops.len(), func(i int) bool { return th.ops.at(i).end() > w.start }); i < th.ops.len() && th.ops.at(i).start < w.end; i++ {
			x.ns += overlap(w, span{th.ops.at(i).start, th.ops.at(i).end()})
		}
		for i := sort.Search(th.calls.len(), func(i int) bool { return th.calls.at(i).end() > w.start }); i < th.calls.len() && th.calls.at(i).start < w.end; i++ {
			x.ns += overlap(w, span{th.calls.at(i).start, th.calls.at(i).end()}) / 16
		}
		if x.ns > 0 {
			list = append(list, x)
		}
	}
	slices.SortStableFunc(list, func(x, y weighed) int { return cmp.Compare(y.ns, x.ns) })
	var out []*thread
	for _, x := range list[:min(len(list), shownLanes)] {
		out = append(out, x.th)
	}
	return out
}

// isAutograd tells autograd's thread: most of its operators are autograd's.
func (a *analysis) isAutograd(th *thread) bool {
	backward := 0
	for i := range th.ops.len() {
		if name := a.names.list[th.ops.at(i).name].text; strings.HasPrefix(name, backwardPrefix) || strings.Contains(name, "Backward") || strings.Contains(name, "AccumulateGrad") {
			backward++
		}
	}
	return 2*backward > th.ops.len()
}

func causeOf(id string) cause {
	return cause(slices.IndexFunc(rules, func(r rule) bool { return r.id == id }) + 1)
}

// causeClasses gives the operators of each finding the colour of its card.
func causeClasses(findings []Finding) map[cause]string {
	out := map[cause]string{}
	for i := range rules {
		out[cause(i+1)] = "op"
	}
	out[0] = "op"
	for i, f := range findings {
		out[causeOf(f.ID)] = fmt.Sprintf("f%d", min(i, 5))
	}
	return out
}

// typicalStep is the step of middle length.
func (r *Report) typicalStep() span {
	steps := slices.Clone(r.a.steps)
	slices.SortStableFunc(steps, func(x, y window) int { return cmp.Compare(x.end-x.start, y.end-y.start) })
	return span(steps[(len(steps)-1)/2])
}

// timeline is one trace's.
func (r *Report) timeline() *timeline {
	a := r.a
	first, last := a.steps[0], a.steps[len(a.steps)-1]
	inner := r.typicalStep()
	t := newTimeline(min(first.start, a.cpuSteps[0].start), max(last.end, a.cpuSteps[len(a.cpuSteps)-1].end))
	t.From, t.To = inner.start-t.origin, inner.end-t.origin
	for _, s := range a.steps {
		t.Steps = append(t.Steps, [2]int64{s.start - t.origin, s.end - t.origin})
	}
	t.lanesOf(r, r.Findings, "", inner, laneMarks, outerMarks, shownLanes)
	for i, f := range r.Findings {
		t.place(fmt.Sprintf("f%d", i), f.places, "")
	}
	for i, g := range a.widest {
		t.place(fmt.Sprintf("gap%d", i), []place{{span: g.span}}, "")
	}
	return t
}

// place files the stretches of a finding, the longest first, each with some room around it.
func (t *timeline) place(id string, places []place, group string) {
	list := slices.Clone(places)
	slices.SortStableFunc(list, func(x, y place) int { return cmp.Compare(y.end-y.start, x.end-x.start) })
	n := 0
	for _, p := range list {
		s := span{max(p.start-t.origin, 0), min(p.end-t.origin, t.Span)}
		if s.end <= s.start {
			continue
		}
		t.Places = append(t.Places, where{id, s.start, s.end, group})
		if n++; n == shownPlaces {
			return
		}
	}
}

// timeline of a job: every rank's GPU and main thread, on the common clock.
func (j *Ranks) timeline() *timeline {
	origin := j.origin()
	end := origin + 1
	for i, r := range j.Ranks {
		end = max(end, r.a.steps[len(r.a.steps)-1].end-j.skew(i))
	}
	t := newTimeline(origin, end)
	t.To = t.Span
	for i, r := range j.Ranks {
		skew := j.skew(i)
		n := len(t.Lanes)
		t.origin = origin + skew // the rank's own clock
		inner := span{t.origin, t.origin + t.Span}
		t.lanesOf(r, j.Findings, fmt.Sprintf("rank %d", *r.Rank), inner, rankMarks, rankMarks, 1)
		t.Lanes = slices.DeleteFunc(t.Lanes, func(l *lane) bool { return l.Label == "driver calls" || strings.HasSuffix(l.Label, " copies") })
		for _, l := range t.Lanes[min(n, len(t.Lanes)):] {
			l.Label = fmt.Sprintf("%d  %s", *r.Rank, l.Label)
		}
		for k, f := range j.Findings {
			if f.Rank != nil && *f.Rank == *r.Rank {
				t.place(fmt.Sprintf("f%d", k), f.places, "")
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

func (j *Ranks) skew(i int) int64 { return int64(j.Clocks[i].MS * 1e6) }

// timeline of a comparison: a typical step of each, from the same moment.
func (d *Diff) timeline() *timeline {
	x, y := d.Before.typicalStep(), d.After.typicalStep()
	t := newTimeline(x.start, x.start+max(x.end-x.start, y.end-y.start))
	t.To = t.Span
	for _, side := range []struct {
		r    *Report
		step span
		name string
	}{{d.Before, x, "before"}, {d.After, y, "after"}} {
		n := len(t.Lanes)
		t.origin = side.step.start
		t.lanesOf(side.r, d.After.Findings, side.name, span{t.origin, t.origin + t.Span}, laneMarks/2, laneMarks/2, 2)
		for _, l := range t.Lanes[n:] {
			l.Label = side.name + " " + l.Label
		}
		t.Steps = append(t.Steps, [2]int64{0, side.step.end - side.step.start})
	}
	return t
}

// script is the timeline as the page's script reads it. JSON escapes what HTML would take for a
// tag.
func (t *timeline) script() (string, error) {
	b, err := json.Marshal(t)
	return string(b), err
}
