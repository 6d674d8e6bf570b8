package doctor

import (
	"fmt"
	"io"
	"strings"
)

// Report is a diagnosis. Its JSON is a contract with scripts: gpu_busy_share, step_ms and findings
// keep their meaning; every other key may be absent.
type Report struct {
	GPUBusyShare float64     `json:"gpu_busy_share"`
	StepMS       float64     `json:"step_ms"`
	Findings     []Finding   `json:"findings"`
	Steps        int         `json:"steps"`
	PerStep      Counts      `json:"per_step"`
	Idle         []idleShare `json:"gpu_idle_ms"`
	Gaps         []Gap       `json:"widest_gaps"`
	Operators    []Operator  `json:"operators"` // the costliest on the CPU
	GPU          string      `json:"gpu,omitempty"`
	Remarks      []string    `json:"remarks"`

	a *analysis
}

// Counts is what one step holds on average.
type Counts struct {
	Kernels     float64 `json:"kernels"`
	KernelMS    float64 `json:"kernel_ms"`
	Copies      float64 `json:"copies"` // across the bus
	CopyMS      float64 `json:"copy_ms"`
	CopiedBytes float64 `json:"copied_bytes"`
	Waits       float64 `json:"waits"`
	WaitMS      float64 `json:"wait_ms"`
	Allocations float64 `json:"allocations"`
}

// Gap is one of the widest stretches without GPU work.
type Gap struct {
	MS    float64 `json:"ms"`
	Step  int     `json:"step"`  // counted from 1
	At    float64 `json:"at"`    // where it starts, as a share of its step
	Doing string  `json:"doing"` // what the CPU did for most of it
}

// Operator is the outermost operators of one name, on all threads together.
type Operator struct {
	Name  string  `json:"name"`
	Count float64 `json:"count"` // a step
	MS    float64 `json:"ms"`
}

// topOperators is how many operators a report lists.
const topOperators = 8

// Diagnose measures the steps of a trace and looks for what slows them. It consumes the trace.
func Diagnose(t *Trace) (*Report, error) {
	a, err := analyse(t)
	if err != nil {
		return nil, err
	}
	r := &Report{
		GPUBusyShare: float64(a.busy) / float64(a.wall),
		StepMS:       a.ms(float64(a.wall)),
		Steps:        len(a.steps),
		PerStep: Counts{
			Kernels: a.perStep(float64(a.kernels)), KernelMS: a.ms(a.kernel),
			Copies: a.perStep(float64(a.copies)), CopyMS: a.ms(a.copied), CopiedBytes: a.perStep(float64(a.moved)),
			Waits: a.perStep(float64(a.waits)), WaitMS: a.ms(a.waited), Allocations: a.perStep(float64(a.allocs)),
		},
		Idle:    a.idle,
		Remarks: append([]string{}, t.Remarks()...),
		a:       a,
	}
	if len(a.cards) > 0 {
		r.GPU = a.cards[0].name
	}
	if !a.marked {
		r.Remarks = append(r.Remarks, "no ProfilerStep in the trace: the whole recording counts as one step (call prof.step() each step)")
	}
	if a.gpu.len() == 0 {
		r.Remarks = append(r.Remarks, "no GPU events in the trace: only the CPU side can be judged (PyTorch records the GPU with ProfilerActivity.CUDA)")
	} else if !a.shapes {
		r.Remarks = append(r.Remarks, "no shapes in the trace: repeated work cannot be told from loops (record_shapes=True)")
	}
	for _, g := range a.widest {
		w := a.steps[g.step]
		r.Gaps = append(r.Gaps, Gap{MS: float64(g.end-g.start) / 1e6, Step: g.step + 1,
			At: float64(g.start-w.start) / float64(w.end-w.start), Doing: g.doing})
	}
	r.Operators = a.costliest()
	r.Findings = judge(a)
	return r, nil
}

// costliest lists the operators that take most of the CPU's time.
func (a *analysis) costliest() []Operator {
	c := a.newCharge()
	a.eachOp(func(_ *thread, _, _ int, o *op) { c.count(o) })
	list := []Operator{}
	for _, v := range c.ranked()[:min(topOperators, len(c.byName))] {
		list = append(list, Operator{shortName(a.names.list[v.name].text), a.perStep(float64(v.n)), a.ms(v.ns)})
	}
	return list
}

// healthyBusy is the share from which a GPU counts as kept busy: what is left is the start and the
// end of a step.
const healthyBusy = 0.7

// Verdict is the report in a sentence or two.
func (r *Report) Verdict() string {
	worst := Note
	for _, f := range r.Findings {
		if f.Severity != Note {
			worst = f.Severity
			break
		}
	}
	switch {
	case r.a.gpu.len() == 0 && worst == Note:
		return "There is no GPU work to judge; nothing on the CPU side stands out."
	case worst == Note && r.GPUBusyShare >= healthyBusy:
		return "This run is healthy: the GPU is kept busy and no known cause holds it back."
	case worst == Note:
		return fmt.Sprintf("No known cause stands out, yet the GPU is idle for %s of the step; the list below says what the CPU did meanwhile.", percent(1-r.GPUBusyShare))
	}
	var parts []string
	for _, f := range r.Findings {
		if f.Severity != Note {
			parts = append(parts, fmt.Sprintf("%s (%s ms)", f.ID, figure(f.SavesMS)))
		}
	}
	if len(parts) == 1 {
		return "What holds this run back: " + parts[0] + "."
	}
	return "What holds this run back, most costly first: " + strings.Join(parts, ", ") + "."
}

// WriteText prints the page for a person.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	head := fmt.Sprintf("%s of %s ms on average", count1(r.Steps, "step"), figure(r.StepMS))
	if r.GPU != "" {
		head += " on " + r.GPU
	}
	if r.a.gpu.len() == 0 {
		p("%s; the recording holds no GPU work.", head)
		p("%s", r.Verdict())
		r.writeOperators(p)
	} else {
		p("%s; the GPU works %s of the time.", head, percent(r.GPUBusyShare))
		p("%s", r.Verdict())
		r.writeCounts(p)
	}
	if len(r.Idle) > 0 {
		p("\nThe GPU is idle for %s ms a step, while the CPU is", figure(r.StepMS*(1-r.GPUBusyShare)))
		for _, s := range r.Idle {
			p("  %8s ms  %s", figure(s.MS), s.What)
		}
	}
	for i, f := range r.Findings {
		p("\n%d. %s: %s, costs %s ms a step (%s)", i+1, f.ID, f.Severity, figure(f.SavesMS), percent(f.Share))
		for _, e := range f.Evidence {
			p("   - %s", e)
		}
		p("   Remedy: %s", f.Remedy)
		p("   Wins back up to %s ms: %s ms a step would be left.", figure(f.SavesMS), figure(r.StepMS-f.SavesMS))
	}
	if len(r.Findings) > 0 {
		p("\nCosts are the time of the causes' own operators under the profiler; Python between them is not counted.")
	}
	if len(r.Gaps) > 0 {
		p("\nWidest gaps without GPU work")
		for _, g := range r.Gaps {
			p("  %8s ms  at %3.0f %% of step %d, the CPU in %s", figure(g.MS), 100*g.At, g.Step, g.Doing)
		}
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

func (r *Report) writeCounts(p func(format string, args ...any)) {
	c := r.PerStep
	p("\nA step holds")
	p("  kernels  %8s  %8s ms on the GPU", perStepCount(c.Kernels), figure(c.KernelMS))
	p("  copies   %8s  %8s ms on the GPU, %s kB across the bus", perStepCount(c.Copies), figure(c.CopyMS), figure(c.CopiedBytes/1024))
	p("  waits    %8s  %8s ms on the CPU", perStepCount(c.Waits), figure(c.WaitMS))
	if c.Allocations > 0 {
		p("  driver allocations and releases %s", perStepCount(c.Allocations))
	}
}

func (r *Report) writeOperators(p func(format string, args ...any)) {
	if len(r.Operators) == 0 {
		return
	}
	p("\nOperators that take most of the CPU's time, all threads together")
	for _, o := range r.Operators {
		p("  %8s ms  %s, %s a step", figure(o.MS), o.Name, perStepCount(o.Count))
	}
}
