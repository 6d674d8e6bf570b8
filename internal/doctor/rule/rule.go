// Package rule finds the causes of lost time in an analysis, for package report. Each cause has a
// file and an entry in the table of rules. A rule charges the operators that belong to its cause
// and returns their cost.
package rule

import (
	"cmp"
	"slices"

	"haul/internal/doctor/analysis"
	"haul/internal/doctor/trace"
)

// Rule looks for one cause. find returns nil if the cause is absent or too small to matter. If it
// returns a cost, it has taken its operators.
type Rule struct {
	ID     string
	remedy string
	find   func(a *analysis.Analysis, who trace.Cause) *cost
}

// cost is the result of a rule: the milliseconds per step that removing the cause gains, with
// evidence.
type cost struct {
	ms       float64
	evidence []string
	places   []analysis.Place // where it happens, for the place in the code and on the page
	issued   []analysis.Place // where the CPU issued it, if the places are the GPU's
	choice   bool             // a choice of the user instead of a fault
	most     Severity         // the highest severity it may have; "" for any
	remedy   string           // replaces the rule's remedy; "" for none
}

// Finding is one cause in a report.
type Finding struct {
	ID       string   `json:"id"`
	Severity Severity `json:"severity"`
	Share    float64  `json:"share"` // fraction of the step's time
	Evidence []string `json:"evidence"`
	Remedy   string   `json:"remedy"`
	SavesMS  float64  `json:"saves_ms"`            // per step, upper bound
	SavesMiB float64  `json:"saves_mib,omitempty"` // of memory, upper bound; only for memory snapshots
	Where    string   `json:"where,omitempty"`     // file:line and function, if Python's frames were recorded
	Rank     *int     `json:"rank,omitempty"`      // in a job of several ranks: the rank it concerns
	More     string   `json:"more"`                // the manual's section, with an example before and after

	Places []analysis.Place `json:"-"` // where it happens
	choice bool             // a choice of the user instead of a fault
}

// MoreOn returns the address of the manual's section about a finding.
func MoreOn(id string) string { return "docs/doctor.md#" + id }

// Severity is the importance of a finding.
type Severity string

// The severities, by share of the step: note below 3 %, critical above 30 %.
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

// SortFindings sorts by cost, largest first.
func SortFindings(list []Finding) {
	slices.SortStableFunc(list, func(x, y Finding) int { return cmp.Compare(y.SavesMS, x.SavesMS) })
}

func Order(s Severity) int { return slices.Index([]Severity{Note, Warning, Critical}, s) }
