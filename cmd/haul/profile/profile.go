// Package profile is the verb haul profile.
package profile

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"haul/cmd/haul/cli"
	"haul/internal/device"
	"haul/internal/ledger"
	"haul/internal/report"
)

type profileFlags struct {
	cli.ConfigFlags
	cli.DeviceFlags
	steps int
	trace string
	json  bool
}

// app is the program that the verb is a part of.
type app struct{ *cli.App }

// New returns the verb.
func New(program *cli.App) *cobra.Command {
	a := &app{program}
	var f profileFlags
	cmd := &cobra.Command{
		Use:   "profile",
		Short: "Show where the time of a training step goes",
		Long: `One training step is replayed and measured: time by stage and by op; arithmetic and bytes against the limits that were measured on
this device in the same run; launches, waits, copies, allocations, and workers without work. An agent's step draws its rows from
random walks instead of learning histories.

The three largest costs come first, in words. The times of all stages add up to the step's time, on several cores to its multiple. The
measured step is compared with plain ones, and the difference is printed. --trace writes the step as a Chrome trace, which Perfetto
(ui.perfetto.dev) and haul doctor open.`,
		Example: "  haul profile --config tiny_1\n  haul profile --config ad_dr\n  haul profile --config small --device cpu --trace step.json.gz",
		Args:    cli.AtMost(0),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.profile(cmd.Context(), &f) },
	}
	f.ConfigFlags.Register(cmd)
	f.DeviceFlags.Register(cmd)
	cmd.Flags().IntVar(&f.steps, "steps", 20, "plain steps to compare with; their median is taken")
	cmd.Flags().StringVar(&f.trace, "trace", "", "write the step as a Chrome trace to this file (.json or .json.gz)")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON object")
	return cmd
}

func (a *app) profile(ctx context.Context, f *profileFlags) (err error) {
	switch {
	case f.steps < 1:
		return cli.Usagef("--steps is %d: at least 1 is needed", f.steps)
	case f.trace != "" && !strings.HasSuffix(f.trace, ".json") && !strings.HasSuffix(f.trace, ".json.gz"):
		return cli.Usagef("--trace %s: write to a .json or a .json.gz", f.trace)
	}
	if err := cli.CheckReplaceable(f.trace); err != nil {
		return err
	}
	dev, step, cfg, err := a.Compiled(ctx, &f.ConfigFlags, &f.DeviceFlags)
	if err != nil {
		return err
	}
	defer func() { err = cli.FirstOf(err, dev.Close()) }()
	defer func() { err = cli.FirstOf(err, step.Close()) }()
	bar := a.NewBar(1, "steps")
	defer bar.End()
	l, err := ledger.Measure(ctx, dev, step.Runner, step.Program, f.steps, bar.Of)
	bar.End()
	if err != nil {
		return err
	}
	l.Program = cfg.Title()
	if f.trace != "" {
		gpu := device.OnGPU(dev.Name())
		if err := cli.WriteFile(f.trace, func(w io.Writer) error { return writeTrace(w, l, gpu, strings.HasSuffix(f.trace, ".gz")) }); err != nil {
			return err
		}
		fmt.Fprintf(a.Stderr, "wrote %s: open it with haul doctor or at ui.perfetto.dev\n", f.trace)
	}
	if f.json {
		return a.Emit(l)
	}
	return l.WriteText(a.columnWriter())
}

// columnWriter takes a ledger's tables; on a screen that is too narrow for all columns the least
// important ones are left out.
func (a *app) columnWriter() io.Writer {
	s, screen := a.Stdout.(*cli.ScreenWriter)
	if !screen {
		return a.Stdout
	}
	heading := ""
	return lineWriter(func(line string) error {
		switch words := strings.Fields(line); {
		case len(words) > 3 && words[1] == "time" && words[2] == "share":
			heading = line
		case line == "":
			heading = ""
		}
		if heading != "" {
			line = report.Narrow(line, heading, []string{"MB", "GFLOP", "bound", "share"}, s.Width()-1)
		}
		_, err := fmt.Fprintln(s, line)
		return err
	})
}

// lineWriter hands whole lines on; what is written to it ends in one.
type lineWriter func(line string) error

func (f lineWriter) Write(p []byte) (int, error) {
	for line := range strings.Lines(string(p)) {
		if err := f(strings.TrimRight(line, "\n")); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

func writeTrace(w io.Writer, l *ledger.Ledger, gpu, packed bool) error {
	if !packed {
		return l.WriteTrace(w, gpu)
	}
	z := gzip.NewWriter(w)
	if err := l.WriteTrace(z, gpu); err != nil {
		return err
	}
	return z.Close()
}
