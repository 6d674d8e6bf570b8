package rule

import (
	"fmt"
	"slices"
	"strings"

	"haul/internal/doctor/analysis"
	"haul/internal/doctor/trace"
)

// Rules lists all rules in the order in which they take operators: specific rules before general
// ones. Findings are ordered by cost instead.
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
	dispatchBound,
	pythonBound,
	fp32Matmul,
	slowProduct,
	copies,
	fp64,
	oversubscribed,
	unfused,
}

// Evaluate runs every rule and returns the findings, most costly first. A finding that the
// recording leaves in doubt is a note. A choice, such as another precision for a GPU whose faster
// units need it, is a finding only if all findings are notes; otherwise it is described in choices.
func Evaluate(a *analysis.Analysis, recorded []string) (findings []Finding, choices []string) {
	findings = []Finding{}
	step := a.Ms(float64(a.Wall))
	left := step
	for i, r := range Rules {
		c := r.find(a, trace.Cause(i+1))
		if c == nil || !(c.ms > 0) {
			continue
		}
		// A finding gains at most the part of the critical path that other findings leave.
		if c.ms = min(c.ms, left); !(c.ms > 0) {
			continue
		}
		left -= c.ms
		share := c.ms / step
		f := Finding{ID: r.ID, Severity: SeverityOf(share), Share: share, Evidence: c.evidence, Remedy: r.remedy, SavesMS: c.ms, Places: c.places, More: MoreOn(r.ID), choice: c.choice}
		if c.most != "" && Order(f.Severity) > Order(c.most) {
			f.Severity = c.most
		}
		if Withheld(recorded, r.ID) {
			f.Severity = Note
		}
		if c.remedy != "" {
			f.Remedy = c.remedy
		}
		at := c.places
		if c.issued != nil {
			at = c.issued
		}
		if f.Where = a.Where(at); f.Where != "" {
			f.Evidence = append(f.Evidence, "in the code: "+f.Where)
		} else if name := a.Inside(at); name != "" {
			f.Evidence = append(f.Evidence, `inside the annotation "`+name+`"`)
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
