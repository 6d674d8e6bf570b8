// Package cli holds what the verbs of the command line share: output, errors and exit codes, help,
// flags of devices, settings, policies and instances, and files that are written whole or not at
// all.
package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
)

// App is what every verb shares. Standard output carries results and nothing else; words, bars and
// errors go to stderr. A verb that breaks this breaks every script that reads --json.
type App struct {
	Stdout, Stderr io.Writer
	Columns        int       // of the screen; 0: it is asked
	Quiet          bool      // nothing but results and errors
	Errors         io.Writer // where errors go with quiet, which takes stderr away; nil: stderr

	// Execute runs another command line of this program and returns its exit code.
	Execute func(ctx context.Context, args []string, stdout, stderr io.Writer) int
}

// The groups of the help page, by purpose.
const (
	GroupLearn   = "learn"
	GroupRoute   = "route"
	GroupSetup   = "setup"
	GroupMeasure = "measure"
)

func (a *App) Group(parent *cobra.Command, id string, verbs ...*cobra.Command) {
	for _, v := range verbs {
		v.GroupID = id
		parent.AddCommand(v)
	}
}

// Parent makes a command that only holds others: alone it prints its help, and an unknown word is
// wrong use with the nearest verb named.
func (a *App) Parent(cmd *cobra.Command) {
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return unknownVerb(cmd, args[0])
	}
}

// AtMost limits the arguments of a verb and says which one is too many.
func AtMost(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > n {
			return Usagef("unexpected argument %q (see %s --help)", args[n], cmd.CommandPath())
		}
		return nil
	}
}

// One takes one argument, and says what it is where it is missing.
func One(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return Usagef("name %s (see %s --help)", what, cmd.CommandPath())
		}
		return AtMost(1)(cmd, args)
	}
}

// OneLine folds an error into the single line that a user sees. What a file's names and metadata
// may carry must not command the terminal: control characters are shown, not sent.
func OneLine(s string) string {
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
