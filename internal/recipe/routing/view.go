package routing

import (
	"fmt"

	"haul/internal/config"
	"haul/internal/report"
)

// Files of a run folder that routing adds to the event files.
const (
	historyGT  = "csv/history_gt_rl.csv"
	historyGAT = "csv/history_gat_rl.csv"
	sizesName  = "csv/sizes.csv" // of a run with a range of sizes
	curvesName = "curves"        // .svg and .png
	routesName = "routes"        // .svg and .png
)

// historyOf returns the name of the table of a run's epochs, as in the original PyTorch program.
func historyOf(c *config.Config) string {
	if c.Recipe() == config.RecipeGAT {
		return historyGAT
	}
	return historyGT
}

// view describes a routing run in text and pictures.
type view struct {
	info    *report.Info
	cfg     *config.Config
	shard   int
	flops   int64    // per step
	done    int      // steps of the current epoch that another process made
	rows    []*Epoch // of the whole run
	judged  *Epoch   // the last with a validation
	total   totals
	example *Example
	// Name of the method that the example is compared with. A resumed run without its history has
	// no row that names it.
	reference string
}

// totals sums the seconds and work of this process.
type totals struct {
	epochs                             int
	references                         float64 // solved before the first step
	steps, validation, baseline, flops float64
	instances                          int64
	asked                              report.Asked
}

func (v *view) Banner(live bool) (string, [][2]string) {
	c := v.cfg
	batch := c.Training.BatchSize
	shards := (batch + v.shard - 1) / max(1, v.shard)
	baseline := c.Baseline.Type
	if live && baseline == config.BaselineRollout {
		baseline += ", * where the policy replaced it"
	}
	if n := c.Starts(); n > 1 && c.Baseline.Starts == 0 && len(ends(c)) > 1 {
		baseline += ", as many starts per instance as customers"
	} else if n > 1 {
		baseline += fmt.Sprintf(", %d starts per instance", n)
	}
	if c.Model.StartViews {
		baseline += ", viewed"
	}
	if s := c.Baseline.Symmetries; s > 1 {
		baseline += fmt.Sprintf(", under %d symmetries, which count as %d instances", s, s)
	}
	rows := [][2]string{
		{"step", fmt.Sprintf("recorded once and replayed: %s in %s of %d, about %s", report.Plural(int64(batch), "instance"), report.Plural(int64(shards), "shard"), v.shard, report.Operations(float64(v.flops)))},
		{"baseline", baseline},
	}
	if c.Advanced.Optimizer == config.OptimizerMuon {
		rows = append(rows, [2]string{"optimizer", "muon for weight matrices, adamw for the rest"})
	}
	if sizes := c.Problem.Ladder(); len(sizes) > 1 {
		rows = append(rows, [2]string{"sizes", fmt.Sprintf("each step draws one of %s customers; validated at %d and %d, each counting half", listOf(sizes), sizes[0], sizes[len(sizes)-1])})
	}
	return fmt.Sprintf("%s, %s of %s", customers(c), report.Plural(int64(c.Training.NumEpochs), "epoch"), report.Plural(int64(c.Training.NumBatchesPerEpoch), "step")), rows
}

// customers returns the number of customers per instance as text.
func customers(c *config.Config) string {
	if s := c.Problem.Customers; s[0] < s[1] {
		return fmt.Sprintf("%s to %s customers", report.Thousands(int64(s[0])), report.Thousands(int64(s[1])))
	}
	return report.Plural(int64(c.Problem.NumCustomers()), "customer")
}

// listOf returns sizes as text: "50, 71, 100, 141 or 200".
func listOf(sizes []int) string {
	text := ""
	for i, n := range sizes {
		switch {
		case i == 0:
		case i == len(sizes)-1:
			text += " or "
		default:
			text += ", "
		}
		text += fmt.Sprint(n)
	}
	return text
}

func (v *view) Heading() (string, []string) {
	return fmt.Sprintf("%9s  %7s  %7s  %9s  %8s  %8s  %8s  %7s", "epoch", "train", "val", "gap", "baseline", "lr", "inst/s", "time"), []string{"lr", "baseline", "inst/s", "time"}
}

func (v *view) Add(r *report.Record, past bool) {
	row, ok := r.Row.(*Epoch)
	if !ok {
		return // the row of a size is part of its epoch
	}
	v.rows = append(v.rows, row)
	if row.ValCPC != nil {
		v.judged = row
	}
	if past {
		return
	}
	s := &v.total
	s.epochs++
	s.steps += row.Seconds
	s.validation += row.ValSeconds
	s.baseline += row.BaselineSeconds
	s.flops += row.FLOPsPerSecond * row.Seconds
	s.instances += row.Instances
	s.asked.Add(row.Asked)
}

func (v *view) Line(r *report.Record, live bool) string {
	if s, ok := r.Row.(*Size); ok {
		if !live {
			return fmt.Sprintf("epoch %d  %s", s.Epoch, s.line())
		}
		return fmt.Sprintf("%9s  %7s  %7.4f  %9s  of %s", "", "", s.CPC, report.GapText(&s.Gap), report.Plural(int64(s.Customers), "customer"))
	}
	row := r.Row.(*Epoch)
	if !live {
		return fmt.Sprintf("epoch %d/%d  train %.4f  val %s  gap %s  baseline %.4f  lr %.2g  %s inst/s  %s left",
			row.Epoch, row.Epochs, row.TrainCPC, report.CostText(row.ValCPC), report.GapText(row.ValGap), row.BaselineCPC, row.LR, report.Thousands(int64(row.InstancesPerSecond)), report.Duration(row.SecondsLeft))
	}
	mark := ' '
	if row.BaselineUpdated {
		mark = '*'
	}
	return fmt.Sprintf("%9s  %7.4f  %7s  %9s  %8.4f%c %8.2g  %8s  %7s", fmt.Sprintf("%d/%d", row.Epoch, row.Epochs), row.TrainCPC,
		report.CostText(row.ValCPC), report.GapText(row.ValGap), row.BaselineCPC, mark, row.LR, report.Thousands(int64(row.InstancesPerSecond)), report.Duration(row.Seconds+row.ValSeconds+row.BaselineSeconds))
}

// last returns the latest epoch, or nil before the first.
func (v *view) last() *Epoch {
	if len(v.rows) == 0 {
		return nil
	}
	return v.rows[len(v.rows)-1]
}

func (v *view) Status(t report.Tick) report.Status {
	steps := v.cfg.Training.NumBatchesPerEpoch
	// An update belongs to the epoch that it ends.
	epoch, step := (t.Updates-1)/steps, (t.Updates-1)%steps+1
	speed := t.PerSecond * float64(v.cfg.Training.BatchSize)
	s := report.Status{Place: fmt.Sprintf("%d/%d", epoch+1, v.cfg.Training.NumEpochs), Share: float64(step) / float64(steps),
		Speed: report.Thousands(int64(speed)) + " inst/s"}
	// Seconds per epoch, at the pace of the current steps or of the last epoch.
	each := float64(steps) / t.PerSecond
	if l := v.last(); l != nil {
		each = l.Seconds + l.ValSeconds + l.BaselineSeconds
		s.Figures = fmt.Sprintf("  train %.4f", l.TrainCPC)
		if j := v.judged; j != nil {
			s.Figures += fmt.Sprintf("  val %.4f  gap %s", *j.ValCPC, report.GapText(j.ValGap))
		}
		s.Figures += fmt.Sprintf("  baseline %.4f  lr %.2g", l.BaselineCPC, l.LR)
	}
	s.Left = float64(steps-step)/t.PerSecond + each*float64(v.cfg.Training.NumEpochs-epoch-1)
	return s
}

// Chart returns the validation curve, with the reference as a level.
func (v *view) Chart() report.Chart {
	c := report.Chart{Last: v.cfg.Training.NumEpochs}
	for _, r := range v.rows {
		c.Level, c.Name = r.GapToCPC, r.GapTo
		if r.ValCPC != nil {
			c.Points = append(c.Points, report.Point{X: float64(r.Epoch), Y: *r.ValCPC})
		}
	}
	return c
}
