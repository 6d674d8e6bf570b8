// Package rule holds one file per cause of lost time, and the table of them. A rule reads the
// analysis, takes the operators that are its cause's, and says what they cost.
package rule

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"haul/internal/doctor/analysis"
	"haul/internal/doctor/trace"
)

// Rules in the order in which they take operators: the particular before the general. The order of
// the findings does not follow from it; that is cost.
var Rules = []Rule{
	loaderStarved,
	recompile,
	CommExposed,
	anomalyMode,
	allocThrash,
	pageableCopy,
	copyExposed,
	repeatedWork,
	deadGraph,
	syncStorm,
	tensorInLoop,
	transferStorm,
	paddingOverhead,
	longWait,
	smallBatch,
	launchBound,
	pythonBound,
	fp32Matmul,
	hostCopies,
	fp64,
	oversubscribed,
	unfused,
}

// Rule looks for one cause. find returns nil where it is absent or too small to matter; a rule that
// returns a cost has taken its operators.
type Rule struct {
	ID     string
	remedy string
	find   func(a *analysis.Analysis, who trace.Cause) *cost
}

// cost is what a rule found: the milliseconds per step that go away with the cause, and why it says
// so.
type cost struct {
	ms       float64
	evidence []string
	places   []analysis.Place // where it happens, for the place in the code and in the page
	issued   []analysis.Place // where the CPU issued it, where the places are the GPU's
	choice   bool             // a choice to be made rather than a fault
	most     Severity         // the highest severity it may have; empty for any
	remedy   string           // in place of the rule's
}

// Finding is one cause, as a report tells it.
type Finding struct {
	ID       string   `json:"id"`
	Severity Severity `json:"severity"`
	Share    float64  `json:"share"` // of the step's time
	Evidence []string `json:"evidence"`
	Remedy   string   `json:"remedy"`
	SavesMS  float64  `json:"saves_ms"`        // per step, at most
	Where    string   `json:"where,omitempty"` // file:line and function, where Python's frames were recorded
	Rank     *int     `json:"rank,omitempty"`  // over ranks: whose it is

	Places []analysis.Place `json:"-"` // where it happens
	choice bool             // a choice to be made rather than a fault
}

// Page is the section of the manual about a finding, with a before and after that was run.
func (f *Finding) Page() string { return "docs/doctor.md#" + f.ID }

// Severity is how much a finding matters.
type Severity string

// The severities, by share of the step: under 3 % a cause is worth knowing, past 30 % it is what
// the step mostly does.
const (
	Note     Severity = "note"
	Warning  Severity = "warning"
	Critical Severity = "critical"

	warningShare  = 0.03
	criticalShare = 0.30
)

func SeverityOf(share float64) Severity {
	switch {
	case share >= criticalShare:
		return Critical
	case share >= warningShare:
		return Warning
	}
	return Note
}

// Judge asks every rule and orders the findings, most costly first. What the recording leaves in
// doubt is no more than a note. A choice, such as the precision on a card whose faster
// units need another one, is a finding only where no fault stands before it, and a remark
// otherwise.
func Judge(a *analysis.Analysis, recorded []string) (findings []Finding, choices []string) {
	findings = []Finding{}
	step := a.Ms(float64(a.Wall))
	left := step
	for i, r := range Rules {
		c := r.find(a, trace.Cause(i+1))
		if c == nil || !(c.ms > 0) {
			continue
		}
		// No finding wins more than the critical path has left beside the others.
		if c.ms = min(c.ms, left); !(c.ms > 0) {
			continue
		}
		left -= c.ms
		share := c.ms / step
		f := Finding{ID: r.ID, Severity: SeverityOf(share), Share: share, Evidence: c.evidence, Remedy: r.remedy, SavesMS: c.ms, Places: c.places, choice: c.choice}
		if c.most != "" && Order(f.Severity) > Order(c.most) {
			f.Severity = c.most
		}
		if Withheld(recorded, r.ID) {
			f.Severity = Note
		}
		if c.remedy != "" {
			f.Remedy = c.remedy
		}
		if f.Where = a.Where(c.places); c.issued != nil {
			f.Where = a.Where(c.issued)
		}
		if f.Where != "" {
			f.Evidence = append(f.Evidence, "in the code: "+f.Where)
		}
		findings = append(findings, f)
	}
	if slices.ContainsFunc(findings, func(f Finding) bool { return f.Severity != Note }) {
		findings = slices.DeleteFunc(findings, func(f Finding) bool {
			if f.choice {
				choices = append(choices, fmt.Sprintf("%s, past the findings above: %s. %s", f.ID, strings.Join(f.Evidence, "; "), f.Remedy))
			}
			return f.choice
		})
	}
	SortFindings(findings)
	return findings, choices
}

// SortFindings puts the most costly first.
func SortFindings(list []Finding) {
	slices.SortStableFunc(list, func(x, y Finding) int { return cmp.Compare(y.SavesMS, x.SavesMS) })
}

func Order(s Severity) int { return slices.Index([]Severity{Note, Warning, Critical}, s) }
