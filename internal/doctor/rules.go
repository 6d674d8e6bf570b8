package doctor

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// rules in the order in which they take operators: the particular before the general. The order of
// the findings does not follow from it; that is cost.
var rules = []rule{
	loaderStarved,
	recompile,
	commExposed,
	allocThrash,
	pageableCopy,
	copyExposed,
	repeatedWork,
	syncStorm,
	tensorInLoop,
	transferStorm,
	paddingOverhead,
	longWait,
	smallBatch,
	launchBound,
	pythonBound,
	fp32Matmul,
}

// rule looks for one cause. find returns nil where it is absent or too small to matter; a rule that
// returns a cost has taken its operators.
type rule struct {
	id     string
	remedy string
	find   func(a *analysis, who cause) *cost
}

// cost is what a rule found: the milliseconds per step that go away with the cause, and why it says
// so.
type cost struct {
	ms       float64
	evidence []string
	places   []place  // where it happens, for the place in the code and in the page
	issued   []place  // where the CPU issued it, where the places are the GPU's
	choice   bool     // a choice to be made rather than a fault
	most     Severity // the highest severity it may have; empty for any
	remedy   string   // in place of the rule's
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

	places []place
	choice bool
}

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

func severityOf(share float64) Severity {
	switch {
	case share >= criticalShare:
		return Critical
	case share >= warningShare:
		return Warning
	}
	return Note
}

// judge asks every rule and orders the findings, most costly first. Where what was recorded allows
// no verdict, nothing is more than a note. A choice, such as the precision on a card whose faster
// units need another one, is a finding only where no fault stands before it, and a remark
// otherwise.
func judge(a *analysis, withheld bool) (findings []Finding, choices []string) {
	findings = []Finding{}
	step := a.ms(float64(a.wall))
	for i, r := range rules {
		c := r.find(a, cause(i+1))
		if c == nil || !(c.ms > 0) {
			continue
		}
		share := c.ms / step
		f := Finding{ID: r.id, Severity: severityOf(share), Share: share, Evidence: c.evidence, Remedy: r.remedy, SavesMS: c.ms, places: c.places, choice: c.choice}
		if c.most != "" && order(f.Severity) > order(c.most) {
			f.Severity = c.most
		}
		if withheld {
			f.Severity = Note
		}
		if c.remedy != "" {
			f.Remedy = c.remedy
		}
		if f.Where = a.where(c.places); c.issued != nil {
			f.Where = a.where(c.issued)
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
	sortFindings(findings)
	return findings, choices
}

// sortFindings puts the most costly first.
func sortFindings(list []Finding) {
	slices.SortStableFunc(list, func(x, y Finding) int { return cmp.Compare(y.SavesMS, x.SavesMS) })
}

func order(s Severity) int { return slices.Index([]Severity{Note, Warning, Critical}, s) }

// share of the step.
func (a *analysis) share(ms float64) float64 { return ms / a.ms(float64(a.wall)) }

// figure writes milliseconds with the digits that mean something, down to the nanosecond.
func figure(ms float64) string {
	switch {
	case ms >= 100 || ms <= -100:
		return fmt.Sprintf("%.0f", ms)
	case ms >= 10 || ms <= -10:
		return fmt.Sprintf("%.1f", ms)
	case math.Abs(ms) >= 0.1 || ms == 0:
		return fmt.Sprintf("%.2f", ms)
	}
	digits := min(7, 1-int(math.Floor(math.Log10(math.Abs(ms)))))
	return strconv.FormatFloat(ms, 'f', digits, 64)
}

// perStepCount writes how often something happens per step.
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

// printable makes a name out of a trace fit to be shown: control characters become spaces, so that
// none reaches a terminal.
func printable(s string) string {
	clean := true
	for i := range len(s) {
		if s[i] < ' ' || s[i] == 0x7f || s[i] >= 0x80 {
			clean = false
			break
		}
	}
	if clean {
		return s
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar || unicode.In(r, unicode.Cf) {
			return ' '
		}
		return r
	}, s)
}

// countFew writes how often something happens per step, with its noun.
func countFew(n float64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return perStepCount(n) + " " + plural(noun)
}

// shortName cuts a name to what fits a line: template arguments and parameters go first.
func shortName(s string) string {
	s = printable(s)
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
