// Package convert is the verb haul convert.
package convert

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"haul/cmd/haul/cli"
	"haul/cmd/haul/routes"
	"haul/internal/report"
	"haul/internal/solve"
	"haul/internal/vrp"
	"haul/internal/vrp/files"
	"haul/internal/vrp/outputs"
)

type convertFlags struct {
	problem routes.Problem
	to      string
	force   bool
	json    bool
}

// app is the program that the verb is a part of.
type app struct{ *cli.App }

// New returns the verb.
func New(program *cli.App) *cobra.Command {
	a := &app{program}
	var f convertFlags
	cmd := &cobra.Command{
		Use:   "convert FILE [ROUTES] OUT",
		Short: "Write a problem, or its routes, in another format",
		Long: `FILE is a problem as haul solve reads it, with the same flags. It is written to OUT in the format of its ending (.json, .xlsx, .csv,
.vrp) or of --to. What a format cannot say is refused by name. With ROUTES, a file of routes of the problem, those are written instead:
to ` + outputs.Endings() + `.`,
		Example: `  haul convert docs/examples/deliveries.xlsx deliveries.json --speed 35
  haul convert docs/examples/grid20.vrp grid20.json
  haul convert docs/examples/grid20.vrp x.sol plan.xlsx`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return cli.Usagef("name the file to read and the file to write (see %s --help)", cmd.CommandPath())
			}
			return cli.AtMost(3)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			out := args[len(args)-1]
			if slices.Contains(args[1:len(args)-1], cli.StandardInput) && args[0] == cli.StandardInput {
				return cli.Usagef("the problem and its routes would both come from standard input: name a file for one of them")
			}
			if err := f.problem.Check(cmd.Flags(), args[0]); err != nil {
				return err
			}
			to := out
			if to == cli.StandardOutput {
				to = ""
			}
			if err := cli.FirstOf(f.problem.Keep(map[string]string{"OUT": to}), cli.RefuseOverwrite(f.force, to)); err != nil {
				return err
			}
			if len(args) == 3 {
				return a.routes(args[1], out, &f)
			}
			return a.problem(out, &f)
		},
	}
	f.problem.Register(cmd)
	cmd.Flags().StringVar(&f.to, "to", "", "format to write: "+strings.Join(written(), ", ")+" (default: by the ending of OUT)")
	cmd.Flags().BoolVar(&f.force, "force", false, "replace a file that exists")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON object")
	cli.Grouped(cmd, "Output", "to", "force", "json")
	return cmd
}

// written are the names of the formats that problems are written in.
func written() (names []string) {
	for _, f := range files.Formats {
		if f.Write != nil {
			names = append(names, f.Name)
		}
	}
	return names
}

// format is the one that a problem is written in: the one of --to, or of OUT's ending.
func format(to, out string) (files.Format, error) {
	ext := strings.ToLower(filepath.Ext(out))
	var fit []files.Format
	for _, f := range files.Formats {
		if f.Write != nil && (f.Name == to || to == "" && slices.Contains(f.Extensions, ext)) {
			fit = append(fit, f)
		}
	}
	all := strings.Join(written(), ", ")
	switch {
	case len(fit) == 1:
		return fit[0], nil
	case to != "":
		return files.Format{}, cli.Usagef("--to %s: there is no such format to write: they are %s", to, all)
	case len(fit) > 1:
		var names []string
		for _, f := range fit {
			names = append(names, f.Name)
		}
		return files.Format{}, cli.Usagef("%s may be one of several formats: say which with --to, %s", out, strings.Join(names, " or "))
	}
	return files.Format{}, cli.Usagef("%s does not say the format: name it with --to: %s", cli.Spoken(out), all)
}

// written is what a conversion wrote.
type result struct {
	File   string `json:"file"`
	Out    string `json:"out"`
	Format string `json:"format"`
	Routes int    `json:"route_count,omitempty"`
	Places int    `json:"customers"`
}

// problem writes the problem.
func (a *app) problem(out string, f *convertFlags) error {
	to, err := format(f.to, out)
	if err != nil {
		return err
	}
	p, err := f.problem.Load(false)
	if err != nil {
		return err
	}
	a.notes(p, f)
	if out == cli.StandardOutput {
		return to.Write(a.Whole(), p)
	}
	if err := cli.WriteFile(out, func(w io.Writer) error { return to.Write(w, p) }); err != nil {
		return fmt.Errorf("%s as %s: %w", cli.Spoken(f.problem.Path), to.Name, err)
	}
	return a.tell(result{File: f.problem.Path, Out: out, Format: to.Name, Places: p.N()}, f)
}

// notes tells what the file holds and Haul does not read.
func (a *app) notes(p *vrp.Problem, f *convertFlags) {
	for _, note := range p.Notes {
		fmt.Fprintf(a.Stderr, "%s: %s\n", f.problem.Path, note)
	}
}

// routes writes routes of the problem.
func (a *app) routes(path, out string, f *convertFlags) error {
	if f.to != "" {
		return cli.Usagef("--to is about a problem: routes are written by the ending of OUT")
	}
	if err := routes.KnownOut(out); err != nil {
		return err
	}
	p, err := f.problem.Load(routes.IsMap(out))
	if err != nil {
		return err
	}
	if err := routes.CanWrite(out, p); err != nil {
		return err
	}
	s, err := routes.Read(path, p, f.problem.VROOM)
	if err != nil {
		return err
	}
	var plan *files.Plan
	if why := solve.Reasons(p, *s); files.Timed(p) || why != nil {
		if plan, err = files.NewPlan(p, *s, why); err != nil {
			return err
		}
	}
	if err := routes.Write(out, p, *s, p.Cost(*s), plan); err != nil {
		return err
	}
	return a.tell(result{File: path, Out: out, Format: strings.TrimPrefix(filepath.Ext(out), "."), Routes: len(s.Routes), Places: p.N()}, f)
}

func (a *app) tell(r result, f *convertFlags) error {
	if f.json {
		return a.Emit(r)
	}
	of := report.Plural(int64(r.Places), "customer")
	if r.Routes > 0 {
		of = report.Plural(int64(r.Routes), "route")
	}
	_, err := fmt.Fprintf(a.Stdout, "%s: %s, %s\n", r.Out, r.Format, of)
	return err
}
