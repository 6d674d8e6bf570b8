package report

import (
	"fmt"
	"strings"

	"haul/internal/config"
	"haul/internal/train"
)

// Terminal tells a person. With Live it keeps a block at the bottom of the screen (where the epoch stands, and the
// validation curve) below one line an epoch; without, it prints the lines alone, as pipes and logs want them.
type Terminal struct {
	Screen
	info  train.Info
	curve []point
	level float64
	name  string // of the level
	last  *train.EpochReport
	judge *train.EpochReport // the last with a validation
	total totals
}

// totals are what this process has spent.
type totals struct {
	epochs                                          int
	steps, validation, baseline, flops              float64
	instances                                       int64
	launches, waits, copiesIn, copiesOut, allocated int64
}

// chartRows is the height of the curve.
const chartRows = 5

// Start prints the banner: what runs, on what, with what, and where results go.
func (t *Terminal) Start(i train.Info) {
	t.info = i
	shards := (i.Batch + i.Shard - 1) / max(1, i.Shard)
	rows := [][2]string{
		{"model", fmt.Sprintf("%s, %s parameters", i.Model, thousands(int64(i.Parameters)))},
		{"device", fmt.Sprintf("%s, %s", i.Device, i.Precision)},
		{"step", fmt.Sprintf("recorded once and replayed: %s in %s of %d, about %s", plural(int64(i.Batch), "instance"), plural(int64(shards), "shard"), i.Shard, operations(float64(i.StepFLOPs)))},
		{"baseline", i.Baseline},
		{"memory", bytesText(i.Memory)},
		{"results", i.Dir},
	}
	if t.Live && i.Baseline == config.BaselineRollout {
		rows[3][1] += ", * where the policy replaced it"
	}
	if i.Starts > 1 {
		rows[3][1] += fmt.Sprintf(", %d starts an instance", i.Starts)
	}
	t.write(t.paint(bold, fmt.Sprintf("%s: %s, %s of %s", i.Name, plural(int64(i.Customers), "customer"), plural(int64(i.Epochs), "epoch"), plural(int64(i.Steps), "step"))))
	t.banner(rows, i.Paths)
	if i.Resumed {
		t.write(fmt.Sprintf("  %-9s after %s and %s", "resumed", plural(int64(i.EpochsDone), "epoch"), plural(int64(i.StepsDone), "step")))
	}
	if t.Live {
		t.write("")
		t.write(t.paint(dim, fmt.Sprintf("%9s  %7s  %7s  %9s  %8s  %8s  %8s  %7s", "epoch", "train", "val", "gap", "baseline", "lr", "inst/s", "time")))
	}
}

// History takes the validations of a resumed run's past, so that the curve is whole.
func (t *Terminal) History(rows []train.EpochReport) {
	for i := range rows {
		t.remember(&rows[i])
	}
}

func (t *Terminal) remember(r *train.EpochReport) {
	t.level, t.name = r.GapToCPC, r.GapTo
	if r.ValCPC != nil {
		t.curve = append(t.curve, point{float64(r.Epoch), *r.ValCPC})
		t.judge = r
	}
	t.last = r
}

// Tick redraws the block.
func (t *Terminal) Tick(p train.Progress) {
	if t.Live {
		t.draw(p)
	}
}

// Epoch prints the epoch's line.
func (t *Terminal) Epoch(r train.EpochReport) {
	t.remember(&r)
	t.total.add(&r)
	if !t.Live {
		t.write(fmt.Sprintf("epoch %d/%d  train %.4f  val %s  gap %s  baseline %.4f  lr %.2g  %s inst/s  %s left",
			r.Epoch, r.Epochs, r.TrainCPC, costText(r.ValCPC), gapText(r.ValGap), r.BaselineCPC, r.LR, thousands(int64(r.InstancesPerSecond)), duration(r.SecondsLeft)))
		return
	}
	t.clear()
	seconds := r.Seconds + r.ValSeconds + r.BaselineSeconds
	mark := ' '
	if r.BaselineUpdated {
		mark = '*'
	}
	line := fmt.Sprintf("%9s  %7.4f  %7s  %9s  %8.4f%c %8.2g  %8s  %7s", fmt.Sprintf("%d/%d", r.Epoch, r.Epochs), r.TrainCPC,
		costText(r.ValCPC), gapText(r.ValGap), r.BaselineCPC, mark, r.LR, thousands(int64(r.InstancesPerSecond)), duration(seconds))
	t.write(fit(line, t.Width()-1))
	if r.Epoch < r.Epochs {
		t.draw(train.Progress{Epoch: r.Epoch + 1, Epochs: r.Epochs, Steps: t.info.Steps, InstancesPerSecond: r.InstancesPerSecond})
	}
}

// draw replaces the block.
func (t *Terminal) draw(p train.Progress) {
	width := t.Width() - 1
	const bar = 12
	done := 0.0
	if p.Steps > 0 {
		done = float64(p.Step) / float64(p.Steps)
	}
	full := int(done * bar)
	lines := []string{fmt.Sprintf("%9s  %s%s %3.0f %%  %s inst/s  %s left", fmt.Sprintf("%d/%d", p.Epoch, p.Epochs),
		strings.Repeat("█", full), strings.Repeat("░", bar-full), 100*done, thousands(int64(p.InstancesPerSecond)), duration(t.left(p)))}
	if l := t.last; l != nil {
		lines[0] += fmt.Sprintf("  train %.4f", l.TrainCPC)
		if j := t.judge; j != nil {
			lines[0] += fmt.Sprintf("  val %.4f  gap %s", *j.ValCPC, gapText(j.ValGap))
		}
		lines[0] += fmt.Sprintf("  baseline %.4f  lr %.2g", l.BaselineCPC, l.LR)
	}
	lines = append(lines, chart(t.curve, p.Epochs, t.level, t.name, min(width, 76), chartRows)...)
	t.show(lines)
}

// left is the time to the end, at the pace of the steps under way and of the last epoch.
func (t *Terminal) left(p train.Progress) float64 {
	if !(p.InstancesPerSecond > 0) {
		return 0
	}
	step := float64(t.info.Batch) / p.InstancesPerSecond
	epoch := step * float64(p.Steps)
	if t.last != nil {
		epoch = t.last.Seconds + t.last.ValSeconds + t.last.BaselineSeconds
	}
	return step*float64(p.Steps-p.Step) + epoch*float64(p.Epochs-p.Epoch)
}
