package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"haul/internal/doctor/memory"
	"haul/internal/doctor/phrase"
	"haul/internal/doctor/trace"
)

// A step's time consists of compute, exposed communication, exposed copies and idle time by cause,
// without overlap. So the difference of two steps is the sum of the differences of these parts,
// which explain it.

// Diff is the difference between two traces.
type Diff struct {
	Before   *Report  `json:"before"`
	After    *Report  `json:"after"`
	DeltaMS  float64  `json:"delta_ms"` // of the step; negative is faster
	Parts    []Change `json:"parts"`    // of the step's time, largest change first; their sum is delta_ms
	Counts   []Change `json:"counts"`   // per step
	Families []Change `json:"kernel_families"`
	Kernels  []Change `json:"kernels"` // the names with the largest changes of time
	Gone     []string `json:"findings_gone"`
	Come     []string `json:"findings_come"`
	Stayed   []Change `json:"findings_stayed"`

	Memory []*memory.Diff `json:"memory,omitempty"` // of two memory snapshots, which have no steps
}

// Change is one quantity before and after.
type Change struct {
	What   string  `json:"what"`
	Before float64 `json:"before"`
	After  float64 `json:"after"`
	Delta  float64 `json:"delta"`
}

func change(what string, before, after float64) Change {
	return Change{what, before, after, after - before}
}

// changedKernels is the number of kernels that a comparison lists.
const changedKernels = 8

// Compare computes the difference of two reports.
func Compare(before, after *Report) *Diff {
	if before.Memory != nil {
		return compareMemory(before, after)
	}
	d := &Diff{Before: before, After: after, DeltaMS: after.StepMS - before.StepMS}
	d.Parts = changes(before.parts(), after.parts())
	b, c := before.PerStep, after.PerStep
	d.Counts = []Change{
		change("kernels", b.Kernels, c.Kernels), change("launches", b.Launches, c.Launches), change("copies", b.Copies, c.Copies),
		change("copied kB", b.CopiedBytes/1024, c.CopiedBytes/1024), change("waits", b.Waits, c.Waits), change("allocations", b.Allocations, c.Allocations),
	}
	families := func(r *Report) map[string]float64 {
		out := map[string]float64{}
		for _, f := range r.Breakdown.Families {
			out[f.Family] = f.MS
		}
		return out
	}
	d.Families = changes(families(before), families(after))
	d.Kernels = changes(before.kernelTimes(), after.kernelTimes())
	d.Kernels = d.Kernels[:min(len(d.Kernels), changedKernels)]
	costs := func(r *Report) map[string]float64 {
		out := map[string]float64{}
		for _, f := range r.Findings {
			out[f.ID] = f.SavesMS
		}
		return out
	}
	d.Gone, d.Come, d.Stayed = compareFindings(costs(before), costs(after))
	return d
}

// compareFindings returns the findings that are gone, that are new and that remain; the arguments
// are costs by id. No list is nil, so that JSON has empty lists.
func compareFindings(was, is map[string]float64) (gone, come []string, stayed []Change) {
	gone, come, stayed = []string{}, []string{}, []Change{}
	for _, id := range slices.Sorted(maps.Keys(was)) {
		if ms, ok := is[id]; ok {
			stayed = append(stayed, change(id, was[id], ms))
		} else {
			gone = append(gone, id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(is)) {
		if _, ok := was[id]; !ok {
			come = append(come, id)
		}
	}
	return gone, come, stayed
}

// onCPU is the part of a step in operators, in a job without a GPU.
const onCPU = "operators on the CPU"

// parts divides a step's time into parts that add up to it.
func (r *Report) parts() map[string]float64 {
	out := map[string]float64{}
	rest := r.StepMS
	add := func(what string, ms float64) {
		if ms > 0 {
			out[what] += ms
			rest -= ms
		}
	}
	if len(r.Breakdown.GPUs) > 0 {
		add("compute", r.StepMS*r.Breakdown.ComputeShare)
		if !r.a.Comm.Host {
			add("communication, exposed", r.StepMS*r.Breakdown.CommExposedShare)
		}
		add("copies and memsets alone", r.StepMS*r.Breakdown.CopyShare)
	}
	for _, s := range r.Idle {
		add("idle "+s.What, s.MS)
	}
	if math.Abs(rest) > 1e-9*r.StepMS {
		what := onCPU
		if len(r.Breakdown.GPUs) > 0 {
			what = "rest"
		}
		out[what] += rest
	}
	return out
}

// kernelTimes returns each kernel's time per step, by name.
func (r *Report) kernelTimes() map[string]float64 {
	if r.released {
		return r.kernels
	}
	a := r.a
	byID := map[uint32]float64{}
	for i := range a.GPU.Len() {
		g := a.GPU.At(i)
		if _, ok := trace.Within(a.Steps, g.Start); ok && g.Kind == trace.CatKernel {
			byID[g.Name] += float64(g.Dur)
		}
	}
	out := map[string]float64{}
	for id, ns := range byID {
		out[trace.ShortName(a.Names.List[id].Text)] += a.Ms(ns)
	}
	return out
}

// changes pairs the values of two maps, largest change first.
func changes(before, after map[string]float64) []Change {
	out, both := []Change{}, map[string]float64{} // the keys of either
	maps.Copy(both, before)
	maps.Copy(both, after)
	by := func(what string) float64 { return math.Abs(change(what, before[what], after[what]).Delta) }
	for _, what := range slices.SortedFunc(maps.Keys(both), func(x, y string) int { return cmp.Or(cmp.Compare(by(y), by(x)), strings.Compare(x, y)) }) {
		out = append(out, change(what, before[what], after[what]))
	}
	return out
}

// Verdict returns a sentence on the difference and its main cause.
func (d *Diff) Verdict() string {
	if d.Memory != nil {
		return d.memoryVerdict()
	}
	how := "longer"
	if d.DeltaMS < 0 {
		how = "shorter"
	}
	if math.Abs(d.DeltaMS) < 0.01*d.Before.StepMS {
		return fmt.Sprintf("The step takes as long as before: %s ms and %s ms.", phrase.Figure(d.Before.StepMS), phrase.Figure(d.After.StepMS))
	}
	out := fmt.Sprintf("The step is %s ms %s: %s ms before, %s ms after.", phrase.Figure(math.Abs(d.DeltaMS)), how, phrase.Figure(d.Before.StepMS), phrase.Figure(d.After.StepMS))
	for _, p := range d.Parts {
		if p.Delta*d.DeltaMS > 0 {
			way := "more"
			if p.Delta < 0 {
				way = "less"
			}
			return out + fmt.Sprintf(" Most of it: %s, %s ms %s.", p.What, phrase.Figure(math.Abs(p.Delta)), way)
		}
	}
	return out
}

// WriteText writes the comparison for people.
func (d *Diff) WriteText(w io.Writer) error {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	if d.Memory != nil {
		d.writeMemory(p)
		_, err := io.WriteString(w, b.String())
		return err
	}
	p("%s", d.Verdict())
	for _, r := range []*Report{d.Before, d.After} {
		if len(r.Recorded) > 0 {
			p("%s holds %s: its times do not show how the run behaves.", r.File, strings.Join(r.Recorded, ", "))
		}
	}
	if x, y := d.Before.GPU, d.After.GPU; x != y {
		p("The cards differ: %s before, %s after.", orUnknown(x), orUnknown(y))
	}
	list := func(title string, changes []Change, least float64, unit string) {
		head := false
		for _, c := range changes {
			if math.Abs(c.Delta) < least {
				continue
			}
			if !head {
				p("\n%-52s %10s  %10s  %10s", title, "before", "after", "change")
				head = true
			}
			p("  %-50s %10s  %10s  %10s%s", cutTo(c.What, 50), amount(c.Before, unit), amount(c.After, unit), signed(c.Delta, unit), unit)
		}
	}
	list("The step's time", d.Parts, 0.002*max(d.Before.StepMS, d.After.StepMS), " ms")
	p("  %-50s %10s  %10s  %10s ms", "together", phrase.Figure(d.Before.StepMS), phrase.Figure(d.After.StepMS), signed(d.DeltaMS, " ms"))
	list("Per step", d.Counts, 0.5, "")
	list("Kernels by what they compute", d.Families, 0.005*max(d.Before.StepMS, d.After.StepMS), " ms")
	list("Kernels that changed most", d.Kernels, 0.005*max(d.Before.StepMS, d.After.StepMS), " ms")
	p("")
	if len(d.Gone) > 0 {
		p("Findings that went: %s", strings.Join(d.Gone, ", "))
	}
	if len(d.Come) > 0 {
		p("Findings that came: %s", strings.Join(d.Come, ", "))
	}
	for _, s := range d.Stayed {
		p("Stayed: %s, %s ms before, %s ms after", s.What, phrase.Figure(s.Before), phrase.Figure(s.After))
	}
	if len(d.Gone)+len(d.Come)+len(d.Stayed) == 0 {
		p("No findings before, none after.")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func orUnknown(s string) string {
	if s == "" {
		return "a card that the trace does not name"
	}
	return s
}

func amount(x float64, unit string) string {
	if unit == "" {
		return phrase.PerStepCount(x)
	}
	return phrase.Figure(x)
}

func signed(x float64, unit string) string {
	s := amount(math.Abs(x), unit)
	if x < 0 {
		return "-" + s
	}
	return "+" + s
}

// cutTo shortens a label to the width of its column.
func cutTo(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

// compareMemory compares the GPUs that are in both snapshots.
func compareMemory(before, after *Report) *Diff {
	d := &Diff{Before: before, After: after, Memory: []*memory.Diff{}, Parts: []Change{}, Counts: []Change{}, Families: []Change{}, Kernels: []Change{},
		Gone: []string{}, Come: []string{}, Stayed: []Change{}}
	for _, m := range before.Memory {
		if i := slices.IndexFunc(after.Memory, func(x *memory.Report) bool { return x.Device == m.Device }); i >= 0 {
			d.Memory = append(d.Memory, memory.Compare(m, after.Memory[i]))
		}
	}
	saves := func(r *Report) map[string]float64 {
		out := map[string]float64{}
		for _, f := range r.Findings {
			out[f.ID] = f.SavesMiB
		}
		return out
	}
	d.Gone, d.Come, d.Stayed = compareFindings(saves(before), saves(after))
	return d
}

func (d *Diff) memoryVerdict() string {
	var parts []string
	for _, m := range d.Memory {
		parts = append(parts, m.Verdict())
	}
	if len(parts) == 0 {
		return "The snapshots have no GPU in common."
	}
	return strings.Join(parts, " ")
}

func (d *Diff) writeMemory(p func(format string, args ...any)) {
	for i, m := range d.Memory {
		if i > 0 {
			p("")
		}
		m.Write(p)
	}
	if len(d.Memory) == 0 {
		p("%s", d.memoryVerdict())
	}
	p("")
	if len(d.Gone) > 0 {
		p("Findings that went: %s", strings.Join(d.Gone, ", "))
	}
	if len(d.Come) > 0 {
		p("Findings that came: %s", strings.Join(d.Come, ", "))
	}
	for _, s := range d.Stayed {
		p("Stayed: %s, %s MiB before, %s MiB after", s.What, memory.Size(s.Before), memory.Size(s.After))
	}
}
