package report

import (
	"fmt"
	"io"

	"haul/internal/draw"
	"haul/internal/train"
)

// drawCurves draws cost and gap over epochs.
func drawCurves(w io.Writer, f draw.Format, i *train.Info, rows []train.EpochReport) error {
	var sampled, greedy, gap draw.Curve
	sampled.Name, greedy.Name = "training, sampled", "validation, greedy"
	last := &rows[len(rows)-1]
	gap.Name = "validation, greedy, to " + last.GapTo
	var bestGap *float64
	for k := range rows {
		r := &rows[k]
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
	subtitle := fmt.Sprintf("%s customers · %s baseline · %s parameters · %s", thousands(int64(i.Customers)), i.Baseline, thousands(int64(i.Parameters)), i.Device)
	title := i.Name
	if bestGap != nil {
		title += fmt.Sprintf(" · best gap %.2f %%", 100**bestGap)
	}
	return draw.Panels(w, f, title, subtitle,
		draw.Panel{Title: "Cost per customer", X: "epoch", Curves: []draw.Curve{sampled, greedy}, Level: last.GapToCPC, LevelName: last.GapTo},
		draw.Panel{Title: "Gap, %", X: "epoch", Curves: []draw.Curve{gap}, FromZero: true})
}

// drawExample draws the policy's routes beside the reference's.
func drawExample(w io.Writer, f draw.Format, i *train.Info, rows []train.EpochReport, x *train.Example) error {
	reference := "optimum"
	if len(rows) > 0 {
		reference = rows[len(rows)-1].GapTo
	}
	return DrawExample(w, f, i.Model, reference, x)
}

// DrawExample draws an example's two solutions side by side, under the names of who made them.
func DrawExample(w io.Writer, f draw.Format, policy, reference string, x *train.Example) error {
	if x.ReferenceCost > 0 {
		policy += fmt.Sprintf(" · gap %+.2f %%", 100*(x.PolicyCost/x.ReferenceCost-1))
	}
	return draw.Beside(w, f, x.Problem, draw.Titled{Solution: x.Policy, Caption: policy}, draw.Titled{Solution: x.Reference, Caption: reference})
}
