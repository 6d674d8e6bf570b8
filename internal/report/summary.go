package report

import (
	"fmt"
	"path/filepath"
	"strings"

	"haul/internal/train"
)

func (s *totals) add(r *train.EpochReport) {
	s.epochs++
	s.steps += r.Seconds
	s.validation += r.ValSeconds
	s.baseline += r.BaselineSeconds
	s.flops += r.FLOPsPerSecond * r.Seconds
	s.instances += r.Instances
	s.launches += r.Launches
	s.waits += r.Waits
	s.copiesIn += r.CopiesIn
	s.copiesOut += r.CopiesOut
	s.allocated += r.Allocations
}

// Done prints how the run ended, where its time went, and what to try next.
func (t *Terminal) Done(s train.Summary) {
	t.clear()
	if t.Live {
		for _, line := range chart(t.curve, t.info.Epochs, t.level, t.name, min(t.Width()-1, 76), chartRows) {
			t.write(t.paint(cyan, line))
		}
	}
	t.write("")
	var b strings.Builder
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "  %-9s %s\n", name, fmt.Sprintf(format, args...))
	}
	end := "done"
	if s.StoppedEarly {
		end = "stopped early, validation no longer gained"
	}
	fmt.Fprintf(&b, "%s: %s, %s, %s\n", end, plural(int64(s.Epochs), "epoch"), plural(int64(s.Instances), "instance"), duration(s.Seconds))
	row("best", "%.4f CPC on validation, epoch %d", s.BestCPC, s.BestEpoch)
	row("test", "%.4f ± %.4f CPC, gap %+.2f ± %.2f %% to %s, %s, greedy", s.TestCPC, s.TestSE, 100*s.TestGap, 100*s.TestGapSE, s.GapTo, plural(int64(s.TestInstances), "instance"))
	if u := &t.total; u.epochs > 0 {
		all := u.steps + u.validation + u.baseline
		row("speed", "%s instances/s, %s/s", thousands(int64(float64(u.instances)/u.steps)), operations(u.flops/u.steps))
		row("time", "%5.1f %%  steps       %s", 100*u.steps/all, duration(u.steps))
		row("", "%5.1f %%  validation  %s", 100*u.validation/all, duration(u.validation))
		row("", "%5.1f %%  baseline    %s", 100*u.baseline/all, duration(u.baseline))
		row("device", "in %s: %s, %s, copies: %s in and %s out, %s", plural(int64(u.epochs*t.info.Steps-t.info.StepsDone), "step"),
			pluralES(u.launches, "launch"), plural(u.waits, "wait"), thousands(u.copiesIn), thousands(u.copiesOut), plural(u.allocated, "allocation"))
	}
	row("written", "%s, %s", s.Best, filepath.Base(s.Last))
	row("", "%s, %s, %s", historyName, curvesName+".svg and .png", routesName+".svg and .png")
	row("next", "haul eval --checkpoint %s --decode pomo8", s.Dir)
	row("", "tensorboard --logdir %s", filepath.Dir(s.Dir))
	fmt.Fprint(t.Result, b.String())
}

func pluralES(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return thousands(n) + " " + noun + "es"
}
