package report

import (
	"fmt"
	"io"
	"math"
	"strings"

	"haul/internal/doctor/phrase"
	"haul/internal/doctor/rule"
)

// Two jobs are compared like two traces. Every part of a step is the mean over the job's ranks, so
// the parts still add up to the step, and their differences to its difference.

// RanksDiff is the difference between two jobs.
type RanksDiff struct {
	Before  *Ranks   `json:"before"`
	After   *Ranks   `json:"after"`
	DeltaMS float64  `json:"delta_ms"` // of the mean step; negative is faster
	Parts   []Change `json:"parts"`    // of the step's time, mean over the ranks; their sum is delta_ms
	Counts  []Change `json:"counts"`
	Gone    []string `json:"findings_gone"`
	Come    []string `json:"findings_come"`
	Stayed  []Change `json:"findings_stayed"`
}

// Names of the rows of a comparison's counts.
const (
	matchedRow = 1
	waitsRow   = 2
)

// CompareRanks computes the difference of two jobs.
func CompareRanks(before, after *Ranks) *RanksDiff {
	d := &RanksDiff{Before: before, After: after, DeltaMS: after.StepMS - before.StepMS}
	mean := func(j *Ranks, of func(r *Report) map[string]float64) map[string]float64 {
		out := map[string]float64{}
		for _, r := range j.Ranks {
			for what, x := range of(r) {
				out[what] += x / float64(len(j.Ranks))
			}
		}
		return out
	}
	d.Parts = changes(mean(before, (*Report).parts), mean(after, (*Report).parts))
	waits := func(j *Ranks) (sum float64) {
		for _, w := range j.Waits {
			sum += w.WaitMS / float64(len(j.Waits))
		}
		return sum
	}
	d.Counts = []Change{change("ranks", float64(len(before.Ranks)), float64(len(after.Ranks))),
		change("collectives matched", float64(before.Matched), float64(after.Matched)),
		change("ms that a rank waits for others", waits(before), waits(after))}
	d.Gone, d.Come, d.Stayed = compareFindings(costsByID(before.Findings), costsByID(after.Findings))
	return d
}

func costsByID(list []rule.Finding) map[string]float64 {
	out := map[string]float64{}
	for _, f := range list {
		id := f.ID
		if f.Rank != nil {
			id += fmt.Sprintf(" rank %d", *f.Rank)
		}
		out[id] = f.SavesMS
	}
	return out
}

// WriteText writes the comparison for people.
func (d *RanksDiff) WriteText(w io.Writer) error {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p("%s before, %s after. The mean step takes %s ms before and %s ms after: %s ms.", phrase.Count1(len(d.Before.Ranks), "rank"), phrase.Count1(len(d.After.Ranks), "rank"),
		phrase.Figure(d.Before.StepMS), phrase.Figure(d.After.StepMS), signed(d.DeltaMS, " ms"))
	p("\n%-52s %10s  %10s  %10s", "The step's time, mean over the ranks", "before", "after", "change")
	for _, c := range d.Parts {
		if math.Abs(c.Delta) >= 0.002*max(d.Before.StepMS, d.After.StepMS) {
			p("  %-50s %10s  %10s  %10s ms", cutTo(c.What, 50), phrase.Figure(c.Before), phrase.Figure(c.After), signed(c.Delta, " ms"))
		}
	}
	p("  %-50s %10s  %10s  %10s ms", "together", phrase.Figure(d.Before.StepMS), phrase.Figure(d.After.StepMS), signed(d.DeltaMS, " ms"))
	p("  %-50s %10s  %10s", "of that, a rank's waits for others", phrase.Figure(d.Counts[waitsRow].Before), phrase.Figure(d.Counts[waitsRow].After))
	p("\n%d collectives matched before, %d after.", int(d.Counts[matchedRow].Before), int(d.Counts[matchedRow].After))
	p("")
	for _, list := range []struct {
		what string
		ids  []string
	}{{"Findings that went: ", d.Gone}, {"Findings that came: ", d.Come}} {
		if len(list.ids) > 0 {
			p("%s%s", list.what, strings.Join(list.ids, ", "))
		}
	}
	for _, s := range d.Stayed {
		p("Stayed: %s, %s ms before, %s ms after", s.What, phrase.Figure(s.Before), phrase.Figure(s.After))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
