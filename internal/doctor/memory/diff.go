package memory

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Diff compares the peaks of two snapshots. Sizes are MiB.
type Diff struct {
	Before   *Report  `json:"before"`
	After    *Report  `json:"after"`
	Peak     float64  `json:"peak_delta_mib"`
	Reserved float64  `json:"reserved_delta_mib"`
	SameWork bool     `json:"same_work"` // both recordings hold the same phases of a step
	Why      string   `json:"why,omitempty"`
	Kinds    []Change `json:"kinds"`
	Places   []Change `json:"places"` // most changed first
}

// Change compares the memory of one kind or place at the two peaks.
type Change struct {
	Name   string  `json:"name"`
	Before float64 `json:"before_mib"`
	After  float64 `json:"after_mib"`
}

// Delta is the difference in MiB.
func (c Change) Delta() float64 { return c.After - c.Before }

// leastChange is the smallest difference in MiB that a comparison lists. Its last digit is a tenth.
const leastChange = 0.05

// Compare compares the peaks of one GPU in two snapshots.
func Compare(before, after *Report) *Diff {
	d := &Diff{Before: before, After: after, Peak: after.Peak - before.Peak, Reserved: after.Reserved - before.Reserved, SameWork: true}
	var only [2][]string // phases that one recording alone holds
	for _, p := range []Phase{Backward, Optimizer} {
		switch was, is := before.r.has(p), after.r.has(p); {
		case was && !is:
			only[0] = append(only[0], p.String())
		case is && !was:
			only[1] = append(only[1], p.String())
		}
	}
	for i, which := range []string{"first", "second"} {
		if len(only[i]) > 0 {
			d.SameWork, d.Why = false, fmt.Sprintf("only the %s recording holds %s", which, strings.Join(only[i], " and "))
		}
	}
	d.Kinds = pair(before.Kinds, after.Kinds)
	d.Places = pair(before.Places, after.Places)
	return d
}

// pair lists what changed between two lists, most changed first.
func pair(before, after []Holding) []Change {
	var out []Change
	for _, h := range before {
		out = append(out, Change{Name: h.Name, Before: h.MiB})
	}
	for _, h := range after {
		i := slices.IndexFunc(out, func(c Change) bool { return c.Name == h.Name })
		if i < 0 {
			i, out = len(out), append(out, Change{Name: h.Name})
		}
		out[i].After = h.MiB
	}
	out = slices.DeleteFunc(out, func(c Change) bool { return math.Abs(c.Delta()) < leastChange })
	slices.SortStableFunc(out, func(x, y Change) int { return cmp.Compare(math.Abs(y.Delta()), math.Abs(x.Delta())) })
	return out
}

// Verdict is the comparison in two sentences.
func (d *Diff) Verdict() string {
	s := fmt.Sprintf("The peak is as high as before: %s MiB.", Size(d.Before.Peak))
	if math.Abs(d.Peak) >= leastChange {
		s = fmt.Sprintf("The peak goes from %s to %s MiB (%s), reserved memory from %s to %s (%s).", Size(d.Before.Peak), Size(d.After.Peak),
			signed(d.Peak), Size(d.Before.Reserved), Size(d.After.Reserved), signed(d.Reserved))
	}
	if !d.SameWork {
		return s + " The work is not the same: " + d.Why + "."
	}
	return s
}

// Write prints the comparison for a person.
func (d *Diff) Write(p func(format string, args ...any)) {
	p("%s", d.Verdict())
	for _, part := range []struct {
		title string
		list  []Change
	}{{"What holds the peak, MiB", d.Kinds}, {"Who asked for it, MiB", d.Places[:min(topPlaces, len(d.Places))]}} {
		for i, c := range part.list {
			if i == 0 {
				p("\n%-50s %12s %12s %12s", part.title, "before", "after", "change")
			}
			p("  %-48s %12s %12s %12s", c.Name, Size(c.Before), Size(c.After), signed(c.Delta()))
		}
	}
}

func signed(mib float64) string {
	if mib < 0 {
		return "-" + Size(-mib)
	}
	return "+" + Size(mib)
}
