// Package problem is the verb haul problem.
package problem

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"haul/cmd/haul/cli"
	"haul/internal/rules"
	"haul/internal/rules/parse"
	"haul/problems"
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
docs/rules.md describes the language. PROBLEM is a folder with such a file, the file, or the name of a built-in problem: ` + names() + `.`,
		Example: `  haul problem new mine
  haul problem check mine
  haul problem draw cvrp --customers 5`,
	}
	cmd.AddCommand(a.newNew(), a.newCheck(), a.newDraw())
	a.Parent(cmd)
	return cmd
}

func names() string {
	var out []string
	for _, p := range problems.All() {
		out = append(out, p.Name)
	}
	return strings.Join(out, ", ")
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

// read finds a problem's file by folder, file or name, and returns its path in messages and its
// text.
func read(arg string) (path string, text []byte, err error) {
	info, err := os.Stat(arg)
	switch {
	case errors.Is(err, os.ErrNotExist) && !strings.ContainsAny(arg, `/\.`):
		p, ok := problems.Find(arg)
		if !ok {
			return "", nil, fmt.Errorf("no folder %s, and no built-in problem of that name: use one of %s, or write a file by haul problem new %s", arg, names(), arg)
		}
		return arg + ".go", p.Source(), nil
	case err != nil:
		return "", nil, err
	case info.IsDir():
		if path, err = fileIn(arg); err != nil {
			return "", nil, err
		}
	default:
		path = arg
	}
	text, err = os.ReadFile(path)
	return path, text, err
}

// fileIn returns the one Go file of a folder that is no test.
func fileIn(dir string) (string, error) {
	found, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return "", err
	}
	found = slices.DeleteFunc(found, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
	switch len(found) {
	case 0:
		return "", fmt.Errorf("%s has no Go file: write one by haul problem new", dir)
	case 1:
		return found[0], nil
	}
	for i, f := range found {
		found[i] = filepath.Base(f)
	}
	return "", fmt.Errorf("%s has %d Go files (%s): a problem is one; name it", dir, len(found), strings.Join(found, ", "))
}

// compile compiles the problem that the user names. Its mistakes are a parse.ErrorList.
func compile(arg string, f *settingFlag) (*rules.Problem, error) {
	settings, err := f.values()
	if err != nil {
		return nil, err
	}
	path, text, err := read(arg)
	if err != nil {
		return nil, err
	}
	p, err := rules.Compile(path, text, settings)
	if err != nil && !errors.As(err, new(parse.ErrorList)) {
		return nil, cli.AsUsage(fmt.Errorf("%s: %w", path, err)) // a setting
	}
	return p, err
}
