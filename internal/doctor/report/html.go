package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strings"

	"haul/internal/doctor/analysis"
	"haul/internal/doctor/memory"
	"haul/internal/doctor/phrase"
	"haul/internal/doctor/rule"
)

// The page is self-contained: style, script and data are inside it, and it loads nothing from the
// network. Names from the trace are escaped by html/template or json.Marshal.

//go:embed page.html
var pageText string

//go:embed timeline.js
var pageScript string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"ms":      phrase.Figure,
	"mib":     memory.Size,
	"percent": phrase.Percent,
	"count":   phrase.PerStepCount,
	"kb":      func(bytes float64) string { return phrase.Figure(bytes / 1024) },
	"rank":    func(i int) int { return i + 1 },
	"color":   func(i int) string { return fmt.Sprintf("f%d", min(i, 5)) },
	"width":   func(share float64) string { return fmt.Sprintf("%.2f%%", 100*min(1, max(0, share))) },
	"signed":  func(x float64) string { return signed(x, " ms") },
	"signedn": func(x float64) string { return signed(x, "") },
	"join":    func(list []string) string { return strings.Join(list, ", ") },
	"gbps":    func(x float64) string { return fmt.Sprintf("%.3g GB/s", x) },
}).Parse(pageText))

// PageScript returns the only script of a page, without its tags. A server that sends the page
// allows the script by its hash.
func PageScript() string { return pageScript }

// view is the data of the page: of one trace, a job or a comparison.
type view struct {
	Title, Head, Verdict string
	Report               *Report // nil if it is not of one trace
	Ranks                *Ranks
	HasGPU               bool // any of the ranks has a GPU
	Diff                 *Diff
	Recorded             []rule.Recording
	Findings             []rule.Finding
	Remarks              []string
	Bar                  []segment
	IdleMS               float64
	CostNote             string
	Memory               string // the points of its curve
	MemoryTop            float64
	Snapshot             []*memory.Report // of memory snapshots; the page then has no timeline
	Data, Script         template.JS
}

func (v *view) write(w io.Writer, t *timeline) error {
	data, err := t.script()
	if err != nil {
		return err
	}
	v.Data, v.Script, v.CostNote = template.JS(data), template.JS(pageScript), costNote
	switch {
	case v.Report != nil:
		v.CostNote = v.Report.costNote()
	case v.Diff != nil:
		v.CostNote = v.Diff.After.costNote()
	case !v.HasGPU:
		v.CostNote = hostNote
	}
	return page.Execute(w, v)
}

// WriteHTML writes the report as one page with the timeline, its gaps and the findings.
func (r *Report) WriteHTML(w io.Writer) error {
	if r.Memory != nil {
		return page.Execute(w, &view{Title: "haul doctor: memory", Head: "haul doctor, memory of PyTorch", Verdict: r.Verdict(), Snapshot: r.Memory, Findings: r.Findings})
	}
	v := &view{Title: fmt.Sprintf("haul doctor: a step of %s ms", phrase.Figure(r.StepMS)), Head: "haul doctor", Verdict: r.Verdict(), Report: r,
		Recorded: r.Recordings, Findings: r.Findings, Remarks: r.Remarks, Bar: r.bar(), IdleMS: r.StepMS * (1 - r.GPUBusyShare)}
	if r.GPU != "" {
		v.Head += ", " + r.GPU
	}
	v.Memory, v.MemoryTop = curve(r.Breakdown.Memory)
	return v.write(w, r.timeline())
}

// WriteHTML writes the job as one page with all ranks on one timeline.
func (j *Ranks) WriteHTML(w io.Writer) error {
	v := &view{Title: fmt.Sprintf("haul doctor: %d ranks", len(j.Ranks)), Head: fmt.Sprintf("haul doctor, %d ranks", len(j.Ranks)), Verdict: j.Verdict(), Ranks: j,
		Findings: j.Findings, Remarks: j.Remarks, HasGPU: j.hasGPU()}
	return v.write(w, j.timeline())
}

// WriteHTML writes the comparison as one page with a step of each on one timeline.
func (d *Diff) WriteHTML(w io.Writer) error {
	if d.Memory != nil {
		return page.Execute(w, &view{Title: "haul doctor: memory before and after", Head: "haul doctor, memory before and after", Verdict: d.Verdict(),
			Snapshot: append(slices.Clone(d.Before.Memory), d.After.Memory...), Findings: d.After.Findings})
	}
	v := &view{Title: "haul doctor: before and after", Head: "haul doctor, before and after", Verdict: d.Verdict(), Diff: d, Findings: d.After.Findings, Remarks: d.After.Remarks}
	return v.write(w, d.timeline())
}

// segment is a part of the bar that shows the parts of a step's time.
type segment struct {
	Class, What string
	MS, Share   float64
}

func (r *Report) bar() []segment {
	b := r.Breakdown
	var out []segment
	add := func(class, what string, ms float64) {
		if ms > 0 {
			out = append(out, segment{class, what, ms, ms / r.StepMS})
		}
	}
	if len(b.GPUs) > 0 {
		add("kernel", "compute", r.StepMS*b.ComputeShare)
		if !r.a.Comm.Host {
			add("comm", "communication, exposed", r.StepMS*b.CommExposedShare)
		}
		add("copy", "copies and memsets alone", r.StepMS*b.CopyShare)
	}
	for _, s := range r.Idle {
		add("idle-"+s.Kind, "idle, the CPU "+s.What, s.MS)
	}
	return out
}

// curve returns the memory's timeline as points in a box of 1000 by 100, and the largest value.
func curve(levels []analysis.MemoryLevel) (points string, top float64) {
	if len(levels) < 2 {
		return "", 0
	}
	for _, l := range levels {
		top = math.Max(top, l.MB)
	}
	from, to := levels[0].MS, levels[len(levels)-1].MS
	if top <= 0 || to <= from {
		return "", 0
	}
	var b strings.Builder
	for _, l := range levels {
		fmt.Fprintf(&b, "%.1f,%.1f ", 1000*(l.MS-from)/(to-from), 100-96*l.MB/top)
	}
	return strings.TrimSpace(b.String()), top
}
