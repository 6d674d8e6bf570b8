package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
)

// app is what every verb shares. Standard output carries results and nothing else; words, bars and
// errors go to stderr. A verb that breaks this breaks every script that reads --json.
type app struct {
	stdout, stderr io.Writer
	columns        int       // of the screen; 0: it is asked
	quiet          bool      // nothing but results and errors
	errors         io.Writer // where errors go with quiet, which takes stderr away; nil: stderr
}

// The groups of the help page, by purpose.
const (
	groupLearn   = "learn"
	groupRoute   = "route"
	groupSetup   = "setup"
	groupMeasure = "measure"
)

// execute runs one command line and returns its exit code.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) (code int) {
	results := &resultWriter{to: stdout}
	a := &app{stdout: results, stderr: stderr}
	if isTerminal(stdout) {
		s := &screenWriter{to: results, width: func() int { return widthOf(stdout) }}
		a.stdout = s
		defer func() {
			if err := s.flush(); err != nil && code == exitDone {
				code = a.exit(ctx, err)
			}
		}()
	}
	root := a.newRoot()
	root.SetArgs(append([]string{}, args...)) // for none at all cobra takes those of the process
	root.SetOut(results)
	root.SetErr(stderr)
	root.InitDefaultCompletionCmd()
	for _, verb := range root.Commands() {
		if verb.Name() == "completion" { // cobra's own, which takes any word for a call for help
			verb.Short = "Complete verbs, flags, settings and policies in your shell"
			a.parent(verb)
		}
	}
	err := root.ExecuteContext(ctx)
	if err == nil {
		err = results.failure() // help, and what else passes over its own
	}
	return a.exit(ctx, err)
}

// forRelease are verbs that only the builds of scripts/release have.
var forRelease []func(*app) *cobra.Command

func (a *app) newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "haul",
		Short: "Solve routing problems, train small decision-making transformers, and find where time goes",
		Long: `Haul solves vehicle routing problems, trains small transformers as fast as the hardware allows (policies that route vehicles, and
agents that learn a task inside their context), and shows where every millisecond went, in its own runs and in PyTorch's.

Results go to standard output, notes and progress to standard error. With --json, results are JSON.
Exit codes: 0 done, 1 failed, 2 wrong use, 3 required customers are unserved, 130 interrupted by Ctrl-C, 143 by SIGTERM.`,
		Example: `  haul train
  haul solve --customers 10 --capacity 30 --count 1000 --method exact
  haul solve docs/examples/grid20.vrp --out x.sol --plot routes.svg
  haul data darkroom
  haul train --model AD --config ad_dr_compressed
  haul doctor docs/examples/trace.json.gz
  haul config explain problem`,
		Version:       readVersion().String(),
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if a.quiet {
				a.errors, a.stderr = a.stderr, io.Discard
			}
			return checkNames(cmd)
		},
	}
	root.AddGroup(
		&cobra.Group{ID: groupLearn, Title: "Learning:"},
		&cobra.Group{ID: groupRoute, Title: "Problems and routes:"},
		&cobra.Group{ID: groupSetup, Title: "Settings:"},
		&cobra.Group{ID: groupMeasure, Title: "This machine and this program:"},
	)
	a.group(root, groupLearn, a.newTrain(), a.newEval(), a.newAct(), a.newPolicies(), a.newData())
	a.group(root, groupRoute, a.newGen(), a.newSolve())
	a.group(root, groupSetup, a.newConfig())
	a.group(root, groupMeasure, a.newBench(), a.newProfile(), a.newLab(), a.newDoctor(), a.newServe(), a.newDevices(), a.newVersion())
	for _, verb := range forRelease {
		root.AddCommand(verb(a))
	}
	root.PersistentFlags().BoolVar(&a.quiet, "quiet", false, "print results and errors only: no notes, no progress")
	root.SetCompletionCommandGroupID(groupMeasure)
	a.parent(root)
	complete(root)
	a.layHelp(root)
	root.SetHelpCommand(a.newHelp())
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(badFlag)
	return root
}

func (a *app) group(parent *cobra.Command, id string, verbs ...*cobra.Command) {
	for _, v := range verbs {
		v.GroupID = id
		parent.AddCommand(v)
	}
}

// parent makes a command that only holds others: alone it prints its help, and an unknown word is
// wrong use with the nearest verb named.
func (a *app) parent(cmd *cobra.Command) {
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return unknownVerb(cmd, args[0])
	}
}

// atMost limits the arguments of a verb and says which one is too many.
func atMost(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > n {
			return usagef("unexpected argument %q (see %s --help)", args[n], cmd.CommandPath())
		}
		return nil
	}
}

// one takes one argument, and says what it is where it is missing.
func one(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usagef("name %s (see %s --help)", what, cmd.CommandPath())
		}
		return atMost(1)(cmd, args)
	}
}

// oneLine folds an error into the single line that a user sees. What a file's names and metadata
// may carry must not command the terminal: control characters are shown, not sent.
func oneLine(s string) string {
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
	var out strings.Builder
	for _, r := range s {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			fmt.Fprintf(&out, "\\x%02x", r)
			continue
		}
		out.WriteRune(r)
	}
	return out.String()
}
