// Package report assembles a diagnosis for `haul doctor` and writes it as text, as JSON or as one
// HTML file: of one trace, of the ranks of a job, or of the difference of two.
package report

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"haul/internal/doctor/analysis"
	"haul/internal/doctor/memory"
	"haul/internal/doctor/phrase"
	"haul/internal/doctor/rule"
	"haul/internal/doctor/trace"
)

// Report is a diagnosis. Scripts depend on its JSON: gpu_busy_share, step_ms and findings keep
// their meaning; every other key may be absent.
type Report struct {
	GPUBusyShare float64              `json:"gpu_busy_share"`
	StepMS       float64              `json:"step_ms"`
	Findings     []rule.Finding       `json:"findings"`
	Steps        int                  `json:"steps"`
	PerStep      Counts               `json:"per_step"`
	Idle         []analysis.IdleShare `json:"gpu_idle_ms"`
	Gaps         []Gap                `json:"widest_gaps"`
	Operators    []Operator           `json:"operators"` // the largest ones on the CPU
	GPU          string               `json:"gpu,omitempty"`
	Recorded     []string             `json:"recorded"`       // what was recorded, if that prevents a verdict
	Recordings   []rule.Recording     `json:"recorded_words"` // the same, as sentences
	Remarks      []string             `json:"remarks"`
	Breakdown    *analysis.Breakdown  `json:"breakdown"`
	File         string               `json:"file,omitempty"`
	Rank         *int                 `json:"rank,omitempty"`
	Memory       []*memory.Report     `json:"memory,omitempty"` // of a memory snapshot, which has no steps

	a         *analysis.Analysis
	worked    bool               // the recording contains GPU work
	operators float64            // per step, including those inside others
	kernels   map[string]float64 // ms per step by kernel, after Release
	released  bool
}

// Counts holds the mean counts per step.
type Counts struct {
	Kernels     float64 `json:"kernels"`
	KernelMS    float64 `json:"kernel_ms"`
	Copies      float64 `json:"copies"` // across the bus
	CopyMS      float64 `json:"copy_ms"`
	CopiedBytes float64 `json:"copied_bytes"`
	Waits       float64 `json:"waits"`
	WaitMS      float64 `json:"wait_ms"`
	Allocations float64 `json:"allocations"`
	Launches    float64 `json:"launches"`
}

// Gap is one of the widest intervals without GPU work.
type Gap struct {
	MS    float64 `json:"ms"`
	Step  int     `json:"step"`  // counted from 1
	At    float64 `json:"at"`    // its start, as a fraction of its step
	Doing string  `json:"doing"` // the CPU's main activity in it
	Where string  `json:"where,omitempty"`
}

// Operator sums the outermost operators of one name, on all threads.
type Operator struct {
	Name  string  `json:"name"`
	Count float64 `json:"count"` // per step
	MS    float64 `json:"ms"`
}

// topOperators is the number of operators that a report lists.
const topOperators = 8

// Diagnose analyses the steps of a trace and finds causes of lost time. It consumes the trace.
func Diagnose(t *trace.Trace) (*Report, error) {
	if t.Snapshot != nil {
		return ofSnapshot(t.Snapshot), nil
	}
	a, err := analysis.Analyse(t)
	if err != nil {
		return nil, err
	}
	r := &Report{
		GPUBusyShare: a.Busy / float64(a.Wall),
		StepMS:       a.Ms(float64(a.Wall)),
		Steps:        len(a.Steps),
		PerStep: Counts{
			Kernels: a.PerStep(float64(a.Kernels)), KernelMS: a.Ms(a.Kernel),
			Copies: a.PerStep(float64(a.Copies)), CopyMS: a.Ms(a.Copied), CopiedBytes: a.PerStep(float64(a.Moved)),
			Waits: a.PerStep(float64(a.Waits)), WaitMS: a.Ms(a.Waited), Allocations: a.PerStep(float64(a.Allocs)),
			Launches: a.PerStep(float64(a.Launched)),
		},
		Idle:       a.IdleList(),
		Recordings: rule.RecordedList(a),
		Recorded:   []string{},
		Remarks:    rule.Remarks(a),
		a:          a,
		worked:     a.GPU.Len() > 0,
		operators:  a.OperatorsPerStep(),
	}
	for _, x := range r.Recordings {
		r.Recorded = append(r.Recorded, x.ID)
	}
	if len(a.GPUModels) > 0 {
		r.GPU = phrase.Printable(a.GPUModels[0].Name)
	}
	if a.Job.Known {
		rank := a.Job.Rank
		r.Rank = &rank
	}
	for _, g := range a.Widest {
		w := a.Steps[g.Step]
		r.Gaps = append(r.Gaps, Gap{MS: float64(g.End-g.Start) / 1e6, Step: g.Step + 1,
			At: float64(g.Start-w.Start) / float64(w.End-w.Start), Doing: g.Doing, Where: g.Where})
	}
	r.Operators = costliest(a)
	r.Breakdown = a.Breakdown()
	var choices []string
	r.Findings, choices = rule.Evaluate(a, r.Recorded)
	r.Remarks = append(r.Remarks, choices...)
	return r, nil
}

// Captures returns the graphs whose capture is in a recording. A recording without one is an error.
func Captures(name string, t *trace.Trace) ([]trace.Capture, error) {
	a, err := analysis.Analyse(t)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	list := a.CapturedGraphs()
	if len(list) == 0 {
		return nil, fmt.Errorf("%s: no graph is captured in this recording: record the call that captures it, with torch.cuda.graph for example", name)
	}
	for i := range list {
		list[i].File = name
	}
	return list, nil
}

// costliest returns the operators with the largest CPU time.
func costliest(a *analysis.Analysis) []Operator {
	c := a.NewCharge()
	a.EachOp(func(_ *trace.Thread, _, _ int, o *trace.Op) { c.Count(o) })
	list := []Operator{}
	for _, v := range c.Ranked(topOperators, (*analysis.Named).OnCPU) {
		list = append(list, Operator{trace.ShortName(a.Names.List[v.Name].Text), a.PerStep(float64(v.N)), a.Ms(v.Ns)})
	}
	return list
}

// healthyBusy is the share from which a GPU counts as busy. The rest is the start and the end of a
// step.
const healthyBusy = 0.7

// Verdict returns a summary of the report in a sentence or two.
func (r *Report) Verdict() string {
	if r.Memory != nil {
		return r.memoryVerdict()
	}
	var parts []string
	for _, f := range r.Findings {
		if f.Severity != rule.Note {
			parts = append(parts, fmt.Sprintf("%s (%s ms)", f.ID, phrase.Figure(f.SavesMS)))
		}
	}
	switch {
	case len(r.Recorded) > 0 && len(parts) > 0:
		return "What was recorded does not show how the whole run behaves; certain is: " + strings.Join(parts, ", ") + ". Other costs below are notes."
	case len(r.Recorded) > 0:
		return "No verdict: what was recorded does not show how the run behaves. Costs below are notes."
	case len(parts) == 0 && !r.worked:
		return "There is no GPU work to judge; nothing on the CPU side stands out."
	case len(parts) == 0 && r.GPUBusyShare >= healthyBusy:
		return "This run is healthy: the GPU is kept busy and no known cause holds it back."
	case len(parts) == 0:
		return fmt.Sprintf("No known cause stands out, yet the GPU is idle for %s of the step; the list below says what the CPU did meanwhile.", phrase.Percent(1-r.GPUBusyShare))
	case len(parts) == 1:
		return "What holds this run back: " + parts[0] + "."
	}
	return "What holds this run back, most costly first: " + strings.Join(parts, ", ") + "."
}

// costNote explains a cost, with a GPU and without.
const (
	costNote = "A cost is the time in which the GPU waited for that cause and no other, or the GPU time it wastes, under the profiler."
	hostNote = "A cost is the time of the operators that would go away with that cause, and the time in which the main thread ran none because of it, under the profiler."
)

func (r *Report) costNote() string {
	if len(r.a.Devices) == 0 {
		return hostNote
	}
	return costNote
}

// Text configures how much of a report is written.
type Text struct {
	Breakdown bool // also the detailed figures
}

// WriteText writes the report for people.
func (r *Report) WriteText(w io.Writer, opt Text) error {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	if r.Memory != nil {
		r.writeMemory(p)
		_, err := io.WriteString(w, b.String())
		return err
	}
	head := fmt.Sprintf("%s of %s ms on average", phrase.Count1(r.Steps, "step"), phrase.Figure(r.StepMS))
	if middle, longest := r.uneven(); longest > 0 {
		words := "the middle one %s, the longest %s"
		if r.Steps == 2 {
			words = "one %s, one %s"
		}
		head += fmt.Sprintf(" ("+words+")", phrase.Figure(middle), phrase.Figure(longest))
	}
	if r.GPU != "" {
		head += " on " + r.GPU
	}
	if len(r.a.Devices) > 1 {
		head += fmt.Sprintf(", %d GPUs", len(r.a.Devices))
	}
	if !r.worked {
		p("%s; the recording holds no GPU work.", head)
	} else {
		p("%s; the GPU works %s of the time.", head, phrase.Percent(r.GPUBusyShare))
	}
	for _, x := range r.Recordings {
		p("This is %s.", x.Words)
	}
	p("%s", r.Verdict())
	if !r.worked {
		r.writeOperators(p)
	} else {
		r.writeCounts(p)
	}
	r.writeIdle(p)
	for i, f := range r.Findings {
		p("\n%d. %s: %s, costs %s ms per step (%s)", i+1, f.ID, f.Severity, phrase.Figure(f.SavesMS), phrase.Percent(f.Share))
		for _, e := range f.Evidence {
			p("   - %s", e)
		}
		p("   Remedy: %s", f.Remedy)
		p("   More: %s", f.More)
		p("   Wins back up to %s ms: %s ms per step would be left.", phrase.Figure(f.SavesMS), phrase.Figure(r.StepMS-f.SavesMS))
	}
	if len(r.Findings) > 0 {
		p("\n%s", r.costNote())
	}
	if len(r.Gaps) > 0 {
		p("\nWidest gaps without GPU work")
		for _, g := range r.Gaps {
			where := ""
			if g.Where != "" {
				where = ", " + g.Where
			}
			p("  %8s ms  at %3.0f %% of step %d, the CPU in %s%s", phrase.Figure(g.MS), 100*g.At, g.Step, g.Doing, where)
		}
	}
	if opt.Breakdown {
		write(r.Breakdown, p)
		writeRates(r.Breakdown, p)
	}
	for i, m := range r.Remarks {
		if i == 0 {
			p("\nAbout the recording")
		}
		p("  %s", m)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// unevenTimes is the ratio of the longest step to the median from which an average alone would
// mislead.
const unevenTimes = 1.5

// uneven returns the median and the longest step in ms if they differ much, otherwise zeros.
func (r *Report) uneven() (middle, longest float64) {
	var lengths []int64
	for _, w := range r.a.Steps {
		lengths = append(lengths, w.End-w.Start)
	}
	slices.Sort(lengths)
	mid, last := lengths[(len(lengths)-1)/2], lengths[len(lengths)-1]
	if float64(last) < unevenTimes*float64(mid) {
		return 0, 0
	}
	return float64(mid) / 1e6, float64(last) / 1e6
}

func (r *Report) writeIdle(p func(format string, args ...any)) {
	switch {
	case len(r.Idle) == 0:
		return
	case !r.worked:
		p("\nOutside its operators the main thread is, per step,")
	default:
		p("\nThe GPU is idle for %s ms per step, while the CPU is", phrase.Figure(r.StepMS*(1-r.GPUBusyShare)))
	}
	for _, s := range r.Idle {
		p("  %8s ms  %s", phrase.Figure(s.MS), s.What)
	}
}

func (r *Report) writeCounts(p func(format string, args ...any)) {
	c := r.PerStep
	p("\nA step holds")
	p("  kernels  %8s  %8s ms on the GPU", phrase.PerStepCount(c.Kernels), phrase.Figure(c.KernelMS))
	p("  copies   %8s  %8s ms on the GPU, %s kB across the bus", phrase.PerStepCount(c.Copies), phrase.Figure(c.CopyMS), phrase.Figure(c.CopiedBytes/1024))
	p("  waits    %8s  %8s ms on the CPU", phrase.PerStepCount(c.Waits), phrase.Figure(c.WaitMS))
	if c.Allocations > 0 {
		p("  driver allocations and releases %s", phrase.PerStepCount(c.Allocations))
	}
}

func (r *Report) writeOperators(p func(format string, args ...any)) {
	if len(r.Operators) == 0 {
		return
	}
	p("\nOperators that take most of the CPU's time, all threads together")
	for _, o := range r.Operators {
		p("  %8s ms  %s, %s per step", phrase.Figure(o.MS), o.Name, phrase.PerStepCount(o.Count))
	}
}

// ofSnapshot returns the report of a memory snapshot, without devices that have no memory and
// events.
func ofSnapshot(s *memory.Snapshot) *Report {
	r := &Report{Memory: memory.Analyse(s), Findings: []rule.Finding{}, Recorded: []string{}, Recordings: []rule.Recording{}, Remarks: []string{}}
	for _, m := range r.Memory {
		for _, f := range m.Findings {
			share := 0.0
			if m.Peak > 0 {
				share = min(1, f.Saves/m.Peak)
			}
			severity := rule.SeverityOf(share)
			if f.Choice && severity == rule.Critical {
				severity = rule.Warning
			}
			r.Findings = append(r.Findings, rule.Finding{ID: f.ID, Severity: severity, Share: share, SavesMiB: f.Saves,
				Evidence: f.Evidence, Remedy: f.Remedy, More: rule.MoreOn("memory-snapshots")})
		}
	}
	return r
}

func (r *Report) memoryVerdict() string {
	var parts []string
	for _, m := range r.Memory {
		parts = append(parts, m.Verdict())
	}
	return strings.Join(slices.Compact(parts), " ")
}

func (r *Report) writeMemory(p func(format string, args ...any)) {
	for i, m := range r.Memory {
		if i > 0 {
			p("")
		}
		m.Write(p)
	}
}

// Together returns an error if reports cannot be analysed as ranks of one job or, with diff,
// compared. A memory snapshot cannot be combined with a trace, and snapshots cannot be ranks.
func Together(reports []*Report, diff bool) error {
	snapshots := 0
	for _, r := range reports {
		if r.Memory != nil {
			snapshots++
		}
	}
	switch {
	case snapshots == 0 || len(reports) == 1:
		return nil
	case snapshots < len(reports):
		return errors.New("a memory snapshot and a trace have nothing to compare: give snapshots, or traces")
	case !diff:
		return errors.New("memory snapshots are read one at a time, or two with --diff")
	}
	return nil
}
