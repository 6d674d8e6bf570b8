package bench

import (
	"context"
	"errors"
	"strings"
	"time"

	"haul/cmd/haul/cli"
	"haul/internal/config"
	"haul/internal/device"
	"haul/internal/kernel"
	"haul/internal/recipe"
	"haul/internal/run"
)

// beside is a step in another precision or instruction set, timed in turn with the measured one.
type beside struct {
	Device    string  `json:"device"`
	Precision string  `json:"precision"`
	MS        float64 `json:"ms_per_step"` // median
	P10       float64 `json:"ms_p10"`
	Own       float64 `json:"own_ms_per_step"` // of the step that is measured, in these turns
	OwnP10    float64 `json:"own_ms_p10"`
	Ratio     float64 `json:"ratio"` // how many times longer it takes: median over the turns
}

// stepsBeside alternates the step with the same one in another precision on the same device, or by
// another of the processor's instruction sets.
func (a *app) stepsBeside(ctx context.Context, f *stepFlags, dev kernel.Device, own *run.Step, cfg config.Settings) (*beside, error) {
	r, err := recipe.Find(cfg.Recipe())
	if err != nil {
		return nil, err
	}
	name, steps := f.Name, 25 // on a card, as in timeSteps
	if strings.HasPrefix(dev.Name(), "cpu") {
		name, steps = "cpu", 1
	}
	if name == "auto" {
		return nil, cli.Usagef("--beside needs a named device, as in --device cuda:0")
	}
	o := device.Options{Workers: f.Workers, Precision: f.beside}
	if !besidePrecision(f.beside) {
		if name != "cpu" {
			return nil, cli.Usagef("--beside %s: instruction sets are the processor's; use --device cpu", f.beside)
		}
		o.Precision, o.Set = run.Precision(dev), f.beside
	}
	other, err := device.Open(name, o)
	if err != nil {
		return nil, cli.AsUsage(err)
	}
	defer other.Close()
	s, err := r.Step(other, cfg)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	defer context.AfterFunc(ctx, func() { run.Stop(s.Runner) })()
	if err := warm(s.Runner.Run, past(warmFor)); err != nil {
		return nil, err
	}
	b := &beside{Device: other.Name(), Precision: run.Precision(other)}
	mine, theirs, ratios := make([]float64, f.rounds), make([]float64, f.rounds), make([]float64, f.rounds)
	bar := a.NewBar(f.rounds, "turns")
	defer bar.End()
	for i := range ratios {
		var first, second error
		mine[i], first = seconds(own, steps)
		theirs[i], second = seconds(s, steps)
		if err := errors.Join(ctx.Err(), first, second); err != nil {
			return nil, err
		}
		ratios[i] = theirs[i] / mine[i]
		bar.Set(i + 1)
	}
	b.MS, b.P10, b.Own, b.OwnP10 = 1e3*quantile(theirs, 0.5), 1e3*quantile(theirs, 0.1), 1e3*quantile(mine, 0.5), 1e3*quantile(mine, 0.1)
	b.Ratio = quantile(ratios, 0.5)
	return b, nil
}

// besidePrecision tells a precision from an instruction set.
func besidePrecision(s string) bool { return s == "fp32" || s == "tf32" || s == "bf16" }

// seconds is what a step takes, of several that are closed by reading what they did.
func seconds(s *run.Step, steps int) (float64, error) {
	start := time.Now()
	for range steps {
		if err := s.Runner.Run(); err != nil {
			return 0, err
		}
	}
	if steps > 1 {
		if _, err := s.FLOPs(); err != nil {
			return 0, err
		}
	}
	return time.Since(start).Seconds() / float64(steps), nil
}
