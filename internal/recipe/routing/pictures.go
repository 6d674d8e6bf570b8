package routing

import (
	"fmt"
	"io"

	"haul/internal/draw"
	"haul/internal/policy"
	"haul/internal/report"
)

func (v *view) Pictures() []report.Picture {
	var out []report.Picture
	if len(v.rows) > 0 {
		out = append(out, report.Picture{Name: curvesName, Draw: v.drawCurves})
	}
	if v.example != nil {
		out = append(out, report.Picture{Name: routesName, Draw: func(w io.Writer, f draw.Format) error {
			return v.example.draw(w, f, v.cfg.Recipe(), v.reference)
		}})
	}
	return out
}

// drawCurves draws cost and gap by epoch.
func (v *view) drawCurves(w io.Writer, f draw.Format) error {
	var sampled, greedy, gap draw.Curve
	sampled.Name, greedy.Name = "training, sampled", "validation, "+policy.ValidationDecode(v.cfg).String()
	last := v.last()
	gap.Name = "validation, " + policy.ValidationDecode(v.cfg).String() + ", to " + last.GapTo
	var bestGap *float64
	for _, r := range v.rows {
		x := float64(r.Epoch)
		sampled.Add(x, r.TrainCPC)
		if r.ValCPC != nil {
			greedy.Add(x, *r.ValCPC)
			gap.Add(x, 100**r.ValGap)
			if bestGap == nil || *r.ValGap < *bestGap {
				bestGap = r.ValGap
			}
		}
	}
	subtitle := fmt.Sprintf("%s · %s baseline · %s parameters · %s", customers(v.cfg), v.cfg.Baseline.Type, report.Thousands(int64(v.info.Parameters)), v.info.Device)
	title := v.info.Config
	if bestGap != nil {
		title += fmt.Sprintf(" · best gap %.2f %%", 100**bestGap)
	}
	return draw.Panels(w, f, title, subtitle,
		draw.Panel{Title: "Cost per customer", X: "epoch", Curves: []draw.Curve{sampled, greedy}, Level: last.GapToCPC, LevelName: last.GapTo},
		draw.Panel{Title: "Gap, %", X: "epoch", Curves: []draw.Curve{gap}, FromZero: true})
}

// draw draws an example's two solutions next to each other: the policy's and the reference's. how
// describes the policy and its decoder.
func (x *Example) draw(w io.Writer, f draw.Format, how, reference string) error {
	if x.ReferenceCost > 0 {
		how += fmt.Sprintf(" · gap %s %%", report.Signed(100*(x.PolicyCost/x.ReferenceCost-1), 2))
	}
	return draw.SideBySide(w, f, x.Problem, draw.Titled{Title: "policy", Solution: x.Policy, Caption: how},
		draw.Titled{Title: reference, Solution: x.Reference, Caption: x.Problem.Name})
}
