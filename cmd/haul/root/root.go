// Package root is the command haul with all of its verbs.
package root

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"haul/cmd/haul/act"
	"haul/cmd/haul/bench"
	"haul/cmd/haul/check"
	"haul/cmd/haul/cli"
	"haul/cmd/haul/config"
	"haul/cmd/haul/convert"
	"haul/cmd/haul/data"
	"haul/cmd/haul/devices"
	"haul/cmd/haul/doctor"
	"haul/cmd/haul/eval"
	"haul/cmd/haul/gen"
	"haul/cmd/haul/lab"
	"haul/cmd/haul/policies"
	"haul/cmd/haul/problem"
	"haul/cmd/haul/profile"
	"haul/cmd/haul/serve"
	"haul/cmd/haul/solve"
	"haul/cmd/haul/train"
	"haul/cmd/haul/version"
)

// Execute runs one command line and returns its exit code.
func Execute(ctx context.Context, args []string, stdout, stderr io.Writer) (code int) {
	results := &cli.ResultWriter{To: stdout}
	a := &cli.App{Stdout: results, Stderr: stderr, Execute: Execute}
	if cli.IsTerminal(stdout) {
		s := &cli.ScreenWriter{To: results, Width: func() int { return cli.WidthOf(stdout) }}
		a.Stdout = s
		defer func() {
			if err := s.Flush(); err != nil && code == cli.ExitDone {
				code = a.Exit(ctx, err)
			}
		}()
	}
	if now, old := Moved(args); old {
		if args = now; !slices.Contains(args, "--quiet") {
			fmt.Fprintf(stderr, "from the next release on, type: %s\n", spoken(args))
		}
	}
	root := New(a)
	root.SetArgs(append([]string{}, args...)) // for none at all cobra takes those of the process
	root.SetOut(results)
	root.SetErr(stderr)
	root.InitDefaultCompletionCmd()
	for _, verb := range root.Commands() {
		if verb.Name() == "completion" { // cobra's own, which takes any word for a call for help
			verb.Short = "Complete verbs, flags, settings and policies in your shell"
			a.Parent(verb)
		}
	}
	err := root.ExecuteContext(ctx)
	if err == nil {
		err = results.Failure() // help, and what else passes over its own
	}
	return a.Exit(ctx, err)
}

// forRelease are verbs that only the builds of scripts/release have.
var forRelease []func(*cli.App) *cobra.Command

// New returns the command haul with all of its verbs.
func New(a *cli.App) *cobra.Command {
	root := &cobra.Command{
		Use:   "haul",
		Short: "Solve routing problems, train small decision-making transformers, and find where time goes",
		Long: `Haul solves vehicle routing problems, trains small transformers as fast as the hardware allows (policies that route vehicles, and
agents that learn a task inside their context), and shows where every millisecond went, in its own runs and in PyTorch's.

Results go to standard output, notes and progress to standard error. With --json, results are JSON.
Exit codes: 0 done, 1 failed, 2 wrong use, 3 required customers are unserved, 130 interrupted by Ctrl-C, 143 by SIGTERM.`,
		Example: `  haul train
  haul eval grid:10 --count 1000 --method exact
  haul solve docs/examples/grid20.vrp --out x.sol --plot routes.svg
  haul data darkroom
  haul train --model AD --config ad_dr_compressed
  haul doctor docs/examples/trace.json.gz
  haul config explain problem`,
		Version:       cli.ReadVersion().String(),
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if a.Quiet {
				a.Errors, a.Stderr = a.Stderr, io.Discard
			}
			return cli.CheckNames(cmd)
		},
	}
	root.AddGroup(
		&cobra.Group{ID: cli.GroupLearn, Title: "Learning:"},
		&cobra.Group{ID: cli.GroupRoute, Title: "Problems and routes:"},
		&cobra.Group{ID: cli.GroupSetup, Title: "Settings:"},
		&cobra.Group{ID: cli.GroupMeasure, Title: "This machine and this program:"},
	)
	a.Group(root, cli.GroupLearn, train.New(a), eval.New(a), act.New(a), policies.New(a), data.New(a))
	a.Group(root, cli.GroupRoute, solve.New(a), check.New(a), convert.New(a), gen.New(a), problem.New(a))
	a.Group(root, cli.GroupSetup, config.New(a))
	a.Group(root, cli.GroupMeasure, bench.New(a), profile.New(a), lab.New(a), doctor.New(a), serve.New(a), devices.New(a), version.New(a))
	for _, verb := range forRelease {
		root.AddCommand(verb(a))
	}
	root.PersistentFlags().BoolVar(&a.Quiet, "quiet", false, "print results and errors only: no notes, no progress")
	root.SetCompletionCommandGroupID(cli.GroupMeasure)
	a.Parent(root)
	complete(root)
	a.LayHelp(root)
	root.SetHelpCommand(a.NewHelp())
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(cli.BadFlag)
	return root
}
