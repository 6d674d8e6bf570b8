package report

import (
	"errors"
	"slices"
	"strings"

	"haul/internal/doctor/memory"
	"haul/internal/doctor/rule"
)

// ofSnapshot is the report of a memory snapshot. Devices without memory and events are left out.
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

// Together returns an error if reports cannot be judged as the ranks of one job or, with diff,
// compared: a memory snapshot goes with no trace, and snapshots are not joined as ranks.
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

// compareMemory compares the GPUs that both snapshots hold.
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
