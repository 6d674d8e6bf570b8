// Package rule holds one file per cause of lost time, and the table of them. A rule reads the
// analysis, takes the operators that are its cause's, and says what they cost.
package rule

import (
	"cmp"
	"slices"

	"haul/internal/doctor/analysis"
	"haul/internal/doctor/trace"
)

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
	SavesMS  float64  `json:"saves_ms"`            // per step, at most
	SavesMiB float64  `json:"saves_mib,omitempty"` // of memory, at most; of a memory snapshot alone
	Where    string   `json:"where,omitempty"`     // file:line and function, where Python's frames were recorded
	Rank     *int     `json:"rank,omitempty"`      // over ranks: whose it is
	More     string   `json:"more"`                // the manual's section about it, with a before and after that was run

	Places []analysis.Place `json:"-"` // where it happens
	choice bool             // a choice to be made rather than a fault
}

// MoreOn is the section of the manual about a finding.
func MoreOn(id string) string { return "docs/doctor.md#" + id }

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

// SortFindings puts the most costly first.
func SortFindings(list []Finding) {
	slices.SortStableFunc(list, func(x, y Finding) int { return cmp.Compare(y.SavesMS, x.SavesMS) })
}

func Order(s Severity) int { return slices.Index([]Severity{Note, Warning, Critical}, s) }
