package lab

import (
	"fmt"
	"math"
	"strings"
)

// Verdict is what a measured number says about a claim.
type Verdict string

// The verdicts on a claim of a ratio, then the two on a claim of a figure.
const (
	Holds        Verdict = "holds"        // within the claim, give or take its slack
	Understated  Verdict = "understated"  // more of it than claimed
	Overstated   Verdict = "overstated"   // the right way, but less than claimed
	NoEffect     Verdict = "no effect"    // within noEffect of 1
	Contradicted Verdict = "contradicted" // the other way round
	Wrong        Verdict = "wrong"        // a figure that does not follow from the report's own
)

// noEffect is how far from 1 a ratio of times must be to be one: what two runs of the same thing
// may differ by.
const noEffect = 1.03

// Form is how a ratio is told.
type Form uint8

// The forms.
const (
	Times  Form = iota // "193×"
	Saved              // of times, as the share of the longer one that is saved: "15 % less time"
	Figure             // no ratio: a number that follows from others, in Unit
	Takes              // no ratio: a time in seconds
)

// Claim is a statement of a report as a number: Lo to Hi times, where more than 1 is what the
// report says; or a time, or a figure. A bare direction has no upper bound. Slack is the factor by
// which an honest machine may differ: in the effect, which is the ratio less 1, for Times; in the
// whole time for Saved and Takes. A Figure has to agree to a relative Slack.
type Claim struct {
	Report string  `json:"report"`
	Says   string  `json:"claim"`
	Lo     float64 `json:"low"`
	Hi     float64 `json:"-"` // may be infinite, which JSON has no word for
	Slack  float64 `json:"slack"`
	Form   Form    `json:"-"`
	Unit   string  `json:"unit,omitempty"`
}

// The slacks. Order: a report's machine, library and interpreter may make an effect twice or half
// as large and its claim still be right. Percent: a share of a step is claimed to the percent, so
// two percent of the time are allowed. Rounding: figures are printed to two or three digits.
const (
	slackOrder   = 2
	slackPercent = 1.02
	slackRound   = 0.01
)

// Finding is a claim beside its measurement.
type Finding struct {
	Claim
	Measured float64 `json:"measured"`
	Shown    string  `json:"shown"`
	Verdict  Verdict `json:"verdict"`
}

// faster claims that a is at least lo and at most hi times as fast as b.
func faster(report, says string, lo, hi float64) Claim {
	return Claim{Report: report, Says: says, Lo: lo, Hi: hi, Slack: slackOrder}
}

// direction claims that a is faster than b, and no more.
func direction(report, says string) Claim {
	return Claim{Report: report, Says: says, Lo: noEffect, Hi: math.Inf(1), Slack: 1}
}

// saves claims that between lo and hi of the time are saved, as fractions.
func saves(report, says string, lo, hi float64) Claim {
	return Claim{Report: report, Says: says, Lo: 1 / (1 - lo), Hi: 1 / (1 - hi), Slack: slackPercent, Form: Saved}
}

// takes claims a time.
func takes(report, says string, seconds float64) Claim {
	return Claim{Report: report, Says: says, Lo: seconds, Hi: seconds, Slack: slackOrder, Form: Takes}
}

// figure claims a number between lo and hi that follows from the report's other numbers.
func figure(report, says, unit string, lo, hi float64) Claim {
	return Claim{Report: report, Says: says, Lo: lo, Hi: hi, Slack: slackRound, Form: Figure, Unit: unit}
}

// limits are the ratios or times between which the claim holds. A ratio's slack goes to what it
// says beyond 1: half of "adds 9 %" is 4.5 %, not nine percent less than nothing, and twice that is
// 18 %.
func (c Claim) limits() (lo, hi float64) {
	if c.Form == Times {
		return 1 + (c.Lo-1)/c.Slack, 1 + (c.Hi-1)*c.Slack
	}
	return c.Lo / c.Slack, c.Hi * c.Slack
}

// verdict computes the verdict.
func (c Claim) verdict(measured float64) Verdict {
	if c.Form == Figure {
		if measured >= c.Lo-c.Slack*math.Abs(c.Lo) && measured <= c.Hi+c.Slack*math.Abs(c.Hi) {
			return Holds
		}
		return Wrong
	}
	lo, hi := c.limits()
	switch {
	case math.IsNaN(measured):
		return Contradicted
	case c.Form != Takes && measured <= 1/noEffect:
		return Contradicted
	case c.Form != Takes && measured < noEffect:
		return NoEffect
	case measured < lo:
		return Overstated
	case measured > hi:
		return Understated
	}
	return Holds
}

// finds puts a claim beside its measurement.
func (r *Result) finds(c Claim, measured float64) {
	r.Claims = append(r.Claims, Finding{Claim: c, Measured: measured, Shown: c.show(measured), Verdict: c.verdict(measured)})
}

// show writes a measured number in the claim's own form.
func (c Claim) show(measured float64) string {
	switch c.Form {
	case Figure:
		return strings.Replace(trim(measured)+" "+c.Unit, " ×", "×", 1)
	case Takes:
		return Row{Value: measured, Unit: "s"}.String()
	case Saved:
		if measured < 1 {
			return fmt.Sprintf("%.1f %% more time", 100*(1/measured-1))
		}
		return fmt.Sprintf("%.1f %% less time", 100*(1-1/measured))
	}
	if measured < 1/noEffect {
		return fmt.Sprintf("%s× (%s× the other way round)", trim(measured), trim(1/measured))
	}
	return trim(measured) + "×"
}

// trim writes three digits, and no more zeros than a reader needs.
func trim(v float64) string {
	switch a := math.Abs(v); {
	case a >= 100 || v == math.Trunc(v):
		return thousands(int64(math.Round(v)))
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	case a >= 1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

// thousands writes a whole number in groups of three digits.
func thousands(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// String writes a row's value with its unit.
func (r Row) String() string {
	if r.Unit != "s" {
		return trim(r.Value) + " " + r.Unit
	}
	switch {
	case r.Value < 1e-3:
		return trim(1e6*r.Value) + " µs"
	case r.Value < 1:
		return trim(1e3*r.Value) + " ms"
	}
	return trim(r.Value) + " s"
}
