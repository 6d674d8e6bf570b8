package lab

import (
	"fmt"
	"math"
	"strings"
)

// Verdict is the result of comparing a measured number with a claim.
type Verdict string

// The verdicts. Claims of a ratio have the first five; a figure Holds or is Wrong.
const (
	Holds        Verdict = "holds"        // within the claim, up to its slack
	Understated  Verdict = "understated"  // the effect is larger than claimed
	Overstated   Verdict = "overstated"   // the effect has the claimed direction, but is smaller
	NoEffect     Verdict = "no effect"    // within noEffect of 1
	Contradicted Verdict = "contradicted" // the effect has the opposite direction
	Wrong        Verdict = "wrong"        // a figure that does not follow from the report's other figures
)

// noEffect is the largest ratio of times that counts as no effect: two runs of the same work may
// differ by as much.
const noEffect = 1.03

// Form is the form in which a claim states its number.
type Form uint8

// The forms.
const (
	Times  Form = iota // "193×"
	Saved              // the fraction of the longer time that is saved: "15 % less time"
	Figure             // a number in Unit that follows from other numbers
	Takes              // a time in seconds
)

// Claim is a statement of a report as a number: a ratio of Lo to Hi, where more than 1 confirms the
// report, or a time, or a figure. A claim of a direction has an infinite Hi. Slack is the factor by
// which another machine may differ: for Times in the effect (the ratio less 1), for Saved and Takes
// in the whole time. A Figure must agree up to a relative Slack.
type Claim struct {
	Report string  `json:"report"`
	Says   string  `json:"claim"`
	Lo     float64 `json:"low"`
	Hi     float64 `json:"-"` // may be infinite, which JSON cannot express
	Slack  float64 `json:"slack"`
	Form   Form    `json:"-"`
	Unit   string  `json:"unit,omitempty"`
}

// The slacks. Order: another machine, library or interpreter may double or halve an effect.
// Percent: fractions of a step are claimed to the percent, so two percent of the time are allowed.
// Rounding: figures are printed with two or three digits.
const (
	slackOrder   = 2
	slackPercent = 1.02
	slackRound   = 0.01
)

// Finding is a claim with its measurement.
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

// direction claims that a is faster than b, by any factor.
func direction(report, says string) Claim {
	return Claim{Report: report, Says: says, Lo: noEffect, Hi: math.Inf(1), Slack: 1}
}

// saves claims that a fraction between lo and hi of the time is saved.
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

// limits returns the ratios or times between which the claim holds. The slack of a ratio applies to
// its difference from 1: for "adds 9 %" the limits are 4.5 % and 18 %.
func (c Claim) limits() (lo, hi float64) {
	if c.Form == Times {
		return 1 + (c.Lo-1)/c.Slack, 1 + (c.Hi-1)*c.Slack
	}
	return c.Lo / c.Slack, c.Hi * c.Slack
}

// verdict compares a measured number with the claim.
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

// finds adds a claim with its measurement to the result.
func (r *Result) finds(c Claim, measured float64) {
	r.Claims = append(r.Claims, Finding{Claim: c, Measured: measured, Shown: c.show(measured), Verdict: c.verdict(measured)})
}

// show formats a measured number in the claim's form.
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

// trim formats a number with three digits, without trailing zeros.
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

// thousands formats an integer in groups of three digits.
func thousands(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// String formats a row's value with its unit.
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
