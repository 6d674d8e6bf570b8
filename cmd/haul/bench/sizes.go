package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"haul/cmd/haul/cli"
	"haul/internal/config"
	"haul/internal/draw"
	"haul/internal/recipe"
	told "haul/internal/report"
	"haul/internal/run"
)

// keyCustomers is the setting of an instance's size.
const keyCustomers = "problem.num_customers"

// sizesReport is instances per second against the size of an instance.
type sizesReport struct {
	Bench  string      `json:"bench"`
	Config string      `json:"config"`
	Device string      `json:"device"`
	Rows   []sizedStep `json:"sizes"`
}

// sizedStep is one size.
type sizedStep struct {
	Customers int     `json:"customers"`
	Batch     int     `json:"batch"`
	Seconds   float64 `json:"seconds"`
	PerSecond float64 `json:"instances_per_second"`
	Rate      float64 `json:"flops_per_second"`
}

var sizes = benchmark{
	use:   "sizes",
	short: "Time training steps of several instance sizes",
	long: `For each size the table and the picture have instances per second and floating-point operations per second. A step that leaves the fast
path of its device shows as a drop in the second curve. The work of a step is counted by formula from the model and the lengths of the
routes.

--reports draws the curves of files that --json wrote, one device per file, instead of timing anything.`,
	example: "  haul bench sizes --config tiny_1 --set training.batch_size=8 --customers 5,10,20 --plot sizes.svg\n  haul bench sizes --config large --device cuda:0 --json",
	open:    openSizes,
}

func openSizes(a *app, cmd *cobra.Command) func(context.Context, []string) (report, error) {
	var (
		configs   cli.ConfigFlags
		devices   cli.DeviceFlags
		plot      string
		customers []string
		reports   []string
	)
	configs.RegisterAs(cmd, "small")
	devices.Register(cmd)
	cmd.Flags().StringSliceVar(&customers, "customers", []string{"20", "50", "100", "200"}, "customers per instance (N) to time, in rising order")
	cmd.Flags().StringVar(&plot, "plot", "", "draw the curve to this .svg or .png file")
	cmd.Flags().StringSliceVar(&reports, "reports", nil, "draw these `files`, written by --json, in one picture instead of timing anything")
	return func(ctx context.Context, _ []string) (report, error) {
		if err := knownPlot(plot); err != nil {
			return nil, err
		}
		if len(reports) > 0 {
			return nil, drawReports(cmd, reports, plot)
		}
		sizes, err := sizesOf(customers)
		if err != nil {
			return nil, err
		}
		if err := cli.FirstOf(devices.Check(a.App), cli.CheckReplaceable(plot)); err != nil {
			return nil, err
		}
		r, err := a.benchSizes(ctx, &configs, &devices, sizes)
		if err != nil || plot == "" {
			return r, err
		}
		return r, drawSizes(plot, []*sizesReport{r})
	}
}

// timesNothing refuses flags beside one that takes what was timed elsewhere.
func timesNothing(cmd *cobra.Command, by string, flags ...string) error {
	for _, name := range flags {
		if cmd.Flags().Changed(name) {
			return cli.Usagef("--%s does not go with --%s, which times nothing", name, by)
		}
	}
	return nil
}

// drawReports draws what earlier runs wrote, the last as the one to look at.
func drawReports(cmd *cobra.Command, paths []string, plot string) error {
	if plot == "" {
		return cli.Usagef("--reports needs --plot, the picture to write")
	}
	if err := timesNothing(cmd, "reports", "config", "set", "device", "precision", "workers", "customers", "json"); err != nil {
		return err
	}
	if err := cli.CheckReplaceable(plot); err != nil {
		return err
	}
	var all []*sizesReport
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		r := &sizesReport{}
		if err := json.Unmarshal(data, r); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if r.Bench != "sizes" || len(r.Rows) == 0 {
			return fmt.Errorf("%s: no report of haul bench sizes --json", path)
		}
		all = append(all, r)
	}
	return drawSizes(plot, all)
}

// sizesOf reads the sizes, which rise.
func sizesOf(words []string) (out []int, err error) {
	for _, w := range words {
		n, err := strconv.Atoi(strings.TrimSpace(w))
		if err != nil || n < 1 {
			return nil, cli.Usagef("--customers %s: whole numbers of 1 or more are needed, with commas between them", strings.Join(words, ","))
		}
		if len(out) > 0 && n <= out[len(out)-1] {
			return nil, cli.Usagef("--customers %s: each size must be larger than the one before", strings.Join(words, ","))
		}
		out = append(out, n)
	}
	if len(out) == 0 {
		return nil, cli.Usagef("--customers names no size")
	}
	return out, nil
}

func (a *app) benchSizes(ctx context.Context, f *cli.ConfigFlags, d *cli.DeviceFlags, sizes []int) (*sizesReport, error) {
	of := func(n int) (config.Settings, run.Recipe, error) {
		cfg, err := config.LoadAny("", f.Config, append(f.Sets[:len(f.Sets):len(f.Sets)], fmt.Sprintf("%s=%d", keyCustomers, n)))
		if err != nil {
			return nil, nil, err
		}
		r, err := recipe.Find(cfg.Recipe())
		return cfg, r, err
	}
	cfg, r, err := of(sizes[len(sizes)-1])
	if err != nil {
		return nil, err
	}
	a.NoteUnused(cfg, f.Sets, map[string]string{keyCustomers: "customers"})
	dev, err := a.OpenFor(ctx, d, r, cfg)
	if err != nil {
		return nil, err
	}
	defer dev.Close()
	out := &sizesReport{Bench: "sizes", Config: cfg.Title(), Device: dev.Name()}
	for _, n := range sizes {
		if cfg, r, err = of(n); err != nil {
			return nil, err
		}
		step, err := r.Step(dev, cfg)
		if err != nil {
			return nil, fmt.Errorf("%s %d: %w", keyCustomers, n, err)
		}
		flops, steps, err := workOf(ctx, step)
		if err != nil {
			return nil, errors.Join(err, step.Close())
		}
		batch := step.Program.Total()
		took, err := step.Trial(ctx) // closes the step
		if err != nil {
			return nil, err
		}
		out.Rows = append(out.Rows, sizedStep{n, batch, took, float64(batch) / took, float64(flops) / float64(steps) / took})
	}
	return out, nil
}

// workOf is the operations of a few steps.
func workOf(ctx context.Context, s *run.Step) (flops int64, steps int, err error) {
	for steps = range 2 {
		if err := run.Replay(ctx, s.Runner); err != nil {
			return 0, 0, err
		}
	}
	steps++
	flops, err = s.FLOPs()
	return flops, steps, err
}

func (r *sizesReport) print(w io.Writer, _ *app) {
	fmt.Fprintf(w, "%s, %s\n\ncustomers\tbatch\tstep\tinstances/s\toperations/s\n", r.Config, r.Device)
	for _, s := range r.Rows {
		fmt.Fprintf(w, "%d\t%d\t%.3f ms\t%s\t%s\n", s.Customers, s.Batch, 1e3*s.Seconds, perSecond(s.PerSecond), told.Operations(s.Rate))
	}
}

// perSecond writes a rate, which may be a few per second for large instances on few cores.
func perSecond(v float64) string {
	if v < 100 {
		return fmt.Sprintf("%.3g", v)
	}
	return told.Thousands(int64(math.Round(v)))
}

// drawSizes draws instances per second and operations per second against N, axes by ratios, but
// the operations of one device alone from zero. A report that knows no operations has no curve of
// them, and without any there is no panel.
func drawSizes(path string, reports []*sizesReport) error {
	f, err := draw.FormatOf(path)
	if err != nil {
		return cli.AsUsage(err)
	}
	var speeds, rates []draw.Curve
	var devices []string
	known, alone := false, len(reports) == 1
	gigas := math.Log2
	if alone {
		gigas = func(v float64) float64 { return v }
	}
	for _, r := range reports {
		speed, rate := draw.Curve{Name: r.Device}, draw.Curve{Name: r.Device}
		if alone {
			speed.Name, rate.Name = "instances/s", "GFLOP/s"
		}
		for _, s := range r.Rows {
			x := math.Log2(float64(s.Customers))
			speed.Add(x, math.Log2(s.PerSecond))
			if s.Rate > 0 {
				rate.Add(x, gigas(s.Rate/1e9))
				known = true
			}
		}
		speeds, rates, devices = append(speeds, speed), append(rates, rate), append(devices, r.Device)
	}
	customers := func(x float64) string { return fmt.Sprintf("%.0f", math.Exp2(x)) }
	figure := func(y float64) string { return perSecond(math.Exp2(y)) }
	panels := []draw.Panel{{Title: "Instances per second", X: "customers", Curves: speeds, XFigure: customers, YFigure: figure}}
	if known {
		work := draw.Panel{Title: "GFLOP per second", X: "customers", Curves: rates, XFigure: customers, FromZero: alone}
		if !alone {
			work.YFigure = figure
		}
		panels = append(panels, work)
	}
	title := "Training steps of " + reports[len(reports)-1].Config + " against the customers of an instance"
	return cli.WriteFile(path, func(w io.Writer) error { return draw.Panels(w, f, title, strings.Join(devices, "; "), panels...) })
}
