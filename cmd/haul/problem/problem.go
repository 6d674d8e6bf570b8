// Package problem is the verb haul problem.
package problem

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"haul/cmd/haul/cli"
	"haul/internal/rules"
	"haul/internal/rules/parse"
)

// app is the program that the verb is a part of.
type app struct{ *cli.App }

// New returns the verb.
func New(program *cli.App) *cobra.Command {
	a := &app{program}
	cmd := &cobra.Command{
		Use:   "problem",
		Short: "Write, check and draw routing problems: one Go file of rules each",
		Long: `A routing problem is one Go file: what an instance, a node and a vehicle are, and a few methods. Haul compiles it when it starts.
docs/rules.md describes the language. PROBLEM is a folder with such a file, the file, or the name of a built-in problem: ` + cli.ProblemNames() + `.`,
		Example: `  haul problem new mine
  haul problem check mine
  haul problem draw cvrp --customers 5`,
	}
	cmd.AddCommand(a.newNew(), a.newCheck(), a.newDraw())
	a.Parent(cmd)
	return cmd
}

// settingFlag is the flag --set, which gives settings of a problem.
type settingFlag struct{ sets []string }

func (f *settingFlag) register(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.sets, "set", nil, "give a field of Settings its value, as in Limit=4 (may be given again)")
}

func (f *settingFlag) values() (map[string]string, error) {
	out := map[string]string{}
	for _, s := range f.sets {
		name, value, ok := strings.Cut(s, "=")
		if !ok || name == "" {
			return nil, cli.Usagef("--set %s: write a field of Settings and its value, as in Limit=4", s)
		}
		out[name] = value
	}
	return out, nil
}

// compile compiles the problem that the user names. Its mistakes are a parse.ErrorList.
func compile(arg string, f *settingFlag) (*rules.Problem, error) {
	settings, err := f.values()
	if err != nil {
		return nil, err
	}
	path, text, err := cli.ReadProblem(arg)
	if err != nil {
		return nil, err
	}
	p, err := rules.Compile(path, text, settings)
	if err != nil && !errors.As(err, new(parse.ErrorList)) {
		return nil, cli.AsUsage(fmt.Errorf("%s: %w", path, err)) // a setting
	}
	return p, err
}
