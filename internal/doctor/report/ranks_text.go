package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"haul/internal/doctor/phrase"
	"haul/internal/doctor/rule"
)

// Verdict returns the job's diagnosis in a sentence or two.
func (j *Ranks) Verdict() string {
	var parts []string
	for _, f := range j.Findings {
		if f.Severity == rule.Note {
			continue
		}
		who := ""
		if f.Rank != nil {
			who = fmt.Sprintf(" rank %d", *f.Rank)
		}
		parts = append(parts, fmt.Sprintf("%s%s (%s ms)", f.ID, who, phrase.Figure(f.SavesMS)))
	}
	switch {
	case j.apart:
		return "No common verdict: they are judged one by one."
	case len(j.Recorded) > 0 && len(parts) > 0:
		return "What was recorded (" + strings.Join(j.Recorded, ", ") + ") does not show how the whole job behaves; certain is: " + strings.Join(parts, ", ") + ". Other costs below are notes."
	case len(j.Recorded) > 0:
		return "No verdict: what was recorded does not show how the job behaves (" + strings.Join(j.Recorded, ", ") + "). Costs below are notes."
	case len(parts) == 0:
		return "Nothing stands out over the ranks."
	}
	return "What holds this job back, most costly first: " + strings.Join(parts, ", ") + "."
}

// WriteText writes the job's report for people, with one line per rank.
func (j *Ranks) WriteText(w io.Writer, opt Text) error {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	if j.apart {
		p("%s that are no ranks of one job.", phrase.Count1(len(j.Ranks), "trace"))
	} else {
		p("%s, steps of %s ms on average, %s matched over them.", phrase.Count1(len(j.Ranks), "rank"), phrase.Figure(j.StepMS), phrase.Count1(j.Matched, "collective"))
	}
	p("%s", j.Verdict())
	for i, f := range j.Findings {
		who := ""
		if f.Rank != nil {
			who = fmt.Sprintf(" rank %d", *f.Rank)
		}
		p("\n%d. %s%s: %s, costs %s ms per step (%s)", i+1, f.ID, who, f.Severity, phrase.Figure(f.SavesMS), phrase.Percent(f.Share))
		for _, e := range f.Evidence {
			p("   - %s", e)
		}
		p("   Remedy: %s", f.Remedy)
		p("   More: %s", f.More)
		p("   Wins back up to %s ms: %s ms per step would be left.", phrase.Figure(f.SavesMS), phrase.Figure(j.StepMS-f.SavesMS))
	}
	hasGPU := j.hasGPU()
	busy := "GPU busy   compute"
	if !hasGPU {
		busy = "operators"
	}
	p("\n  rank      step  %s   exposed     waits  last  first finding", busy)
	waits := map[int]RankWait{}
	for _, x := range j.Waits {
		waits[x.Rank] = x
	}
	for _, r := range j.Ranks {
		x := waits[*r.Rank]
		first := "none"
		if len(r.Findings) > 0 {
			f := r.Findings[0]
			first = fmt.Sprintf("%s, %s, %s ms", f.ID, f.Severity, phrase.Figure(f.SavesMS))
			if f.Where != "" {
				first += ", " + f.Where
			}
		}
		if len(r.Recorded) > 0 {
			first = strings.Join(r.Recorded, ", ")
		}
		if j.apart {
			first += " (" + nameOf(r) + ")"
		}
		busy := ""
		if hasGPU {
			busy = fmt.Sprintf("    %6s", phrase.Percent(r.GPUBusyShare))
		}
		p("  %4d  %5s ms%s  %5s ms    %6s  %5s ms  %4d  %s", *r.Rank, phrase.Figure(r.StepMS), busy, phrase.Figure(x.ComputeMS),
			phrase.Percent(r.Breakdown.CommExposedShare), phrase.Figure(x.WaitMS), x.Last, first)
	}
	if len(j.Meetings) > 0 {
		p("\nCollectives with the longest waits")
		list := slices.Clone(j.Meetings)
		slices.SortStableFunc(list, func(x, y Meeting) int { return cmp.Compare(x.AtMS, y.AtMS) })
		for _, m := range list {
			group := ""
			if m.Group != "" {
				group = " of group " + m.Group
			}
			p("  at %8s ms  %s %d%s: rank %d last, %s ms behind the first", phrase.Figure(m.AtMS), m.Kind, m.Number, group, m.Last, phrase.Figure(m.LateMS))
		}
	}
	for _, c := range j.Clocks {
		if c.MS > 1 || c.MS < -1 {
			p("  the clock of rank %d stands %s ms off, told to within %s ms", c.Rank, phrase.Figure(c.MS), phrase.Figure(c.SpreadMS))
		}
	}
	if opt.Breakdown {
		for _, r := range j.Ranks {
			p("\nRank %d", *r.Rank)
			write(r.Breakdown, p)
			writeRates(r.Breakdown, p)
		}
	}
	for i, m := range j.Remarks {
		if i == 0 {
			p("\nAbout the recordings")
		}
		p("  %s", m)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
