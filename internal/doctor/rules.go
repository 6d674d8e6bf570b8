package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// rules in the order in which they take operators: the particular before the general. The order of
// the findings does not follow from it; that is cost.
var rules = []rule{
	loaderStarved,
	allocThrash,
	pageableCopy,
	repeatedWork,
	syncStorm,
	tensorInLoop,
	transferStorm,
	paddingOverhead,
	launchBound,
	smallBatch,
	fp32Matmul,
}

// rule looks for one cause. find returns nil where it is absent or too small to matter; a rule that
// returns a cost has taken its operators.
type rule struct {
	id     string
	remedy string
	find   func(a *analysis, who cause) *cost
}

// cost is what a rule found: the milliseconds a step that go away with the cause, and why it says so.
type cost struct {
	ms       float64
	evidence []string
}

// Finding is one cause, as a report tells it.
type Finding struct {
	ID       string   `json:"id"`
	Severity Severity `json:"severity"`
	Share    float64  `json:"share"` // of the step's time
	Evidence []string `json:"evidence"`
	Remedy   string   `json:"remedy"`
	SavesMS  float64  `json:"saves_ms"` // a step, at most
}

// Severity is how much a finding matters.
type Severity string

// The severities, by share of the step: under 3 % a cause is worth knowing, past 30 % it is what the
// step mostly does.
const (
	Note     Severity = "note"
	Warning  Severity = "warning"
	Critical Severity = "critical"

	warningShare  = 0.03
	criticalShare = 0.30
)

func severityOf(share float64) Severity {
	switch {
	case share >= criticalShare:
		return Critical
	case share >= warningShare:
		return Warning
	}
	return Note
}

// judge asks every rule and orders the findings, most costly first.
func judge(a *analysis) []Finding {
	findings := []Finding{}
	step := a.ms(float64(a.wall))
	for i, r := range rules {
		c := r.find(a, cause(i+1))
		if c == nil {
			continue
		}
		share := c.ms / step
		findings = append(findings, Finding{ID: r.id, Severity: severityOf(share), Share: share,
			Evidence: c.evidence, Remedy: r.remedy, SavesMS: c.ms})
	}
	slices.SortStableFunc(findings, func(x, y Finding) int { return cmp.Compare(y.SavesMS, x.SavesMS) })
	return findings
}

// bounded is a cause's CPU time a step, cut to what the GPU could have worked meanwhile: time of the
// CPU that hides behind a busy GPU costs nothing. own is GPU time that goes away with the cause.
func (a *analysis) bounded(ns, own float64) float64 {
	idle := float64(a.wall-a.busy) + own
	return a.ms(min(ns, idle))
}

// share of the step.
func (a *analysis) share(ms float64) float64 { return ms / a.ms(float64(a.wall)) }

// figure writes milliseconds with the digits that mean something.
func figure(ms float64) string {
	switch {
	case ms >= 100:
		return fmt.Sprintf("%.0f", ms)
	case ms >= 10:
		return fmt.Sprintf("%.1f", ms)
	}
	return fmt.Sprintf("%.2f", ms)
}

// perStepCount writes how often something happens a step.
func perStepCount(n float64) string {
	if n < 10 && n != float64(int(n)) {
		return fmt.Sprintf("%.1f", n)
	}
	return thousands(int(n + 0.5))
}

// percent writes a share as people say it.
func percent(share float64) string {
	if share < 0.1 {
		return fmt.Sprintf("%.1f %%", 100*share)
	}
	return fmt.Sprintf("%.0f %%", 100*share)
}

// shortName cuts a name to what fits a line: template arguments and parameters go first.
func shortName(s string) string {
	s = strings.Replace(s, backwardPrefix+": ", "backward of ", 1)
	s = strings.TrimPrefix(s, "void ")
	const limit = 60
	if len(s) <= limit {
		return s
	}
	if i := strings.IndexByte(s, '<'); i > 8 && i <= limit {
		return s[:i]
	}
	return strings.ToValidUTF8(s[:limit-1], "") + "…"
}
