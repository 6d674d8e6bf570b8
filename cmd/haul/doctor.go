package main

import (
	"io"
	"runtime/debug"

	"github.com/spf13/cobra"

	"haul/internal/doctor"
)

func (a *app) newDoctor() *cobra.Command {
	var asJSON bool
	var page string
	cmd := &cobra.Command{
		Use:   "doctor TRACE.json[.gz]",
		Short: "Say why a PyTorch run is slow, from its profiler's trace",
		Long: `Read a trace that PyTorch's profiler wrote (export_chrome_trace, plain or gzip) and say how busy the
GPU was, what it waited for, and what that cost: the causes in order, each with its evidence, its
remedy and the most it would win back. Traces that Haul writes can be read too.

Record with ProfilerActivity.CPU and CUDA, record_shapes=True and prof.step() after each step.`,
		Example: "  haul doctor trace.json.gz\n  haul doctor trace.json --json\n  haul doctor trace.json.gz --html page.html",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("which trace? (see %s --help)", cmd.CommandPath())
			}
			return atMost(1)(cmd, args)
		},
		RunE: func(_ *cobra.Command, args []string) error {
			// Records are plain numbers that the collector passes over: collecting often is cheap and
			// keeps a trace of gigabytes within a few hundred megabytes.
			defer debug.SetGCPercent(debug.SetGCPercent(20))
			trace, err := doctor.ReadFile(args[0])
			if err != nil {
				return err
			}
			report, err := doctor.Diagnose(trace)
			if err != nil {
				return err
			}
			if page != "" {
				if err := writeFile(page, func(w io.Writer) error { return report.WriteHTML(w) }); err != nil {
					return err
				}
			}
			if asJSON {
				return a.emit(report)
			}
			return report.WriteText(a.stdout, doctor.Text{})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.Flags().StringVar(&page, "html", "", "write one self-contained page with the timeline to this file")
	return cmd
}
