package problem

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"haul/cmd/haul/cli"
	"haul/internal/rules/check"
	"haul/internal/rules/parse"
)

func (a *app) newCheck() *cobra.Command {
	var (
		settings settingFlag
		o        check.Options
		asJSON   bool
	)
	cmd := &cobra.Command{
		Use:   "check PROBLEM",
		Short: "Say what is wrong with a problem file, and try it",
		Long: `Names mistakes by line with what to write instead. Then it draws instances and walks random routes; runs the rules word by word, over
blocks of nodes and as text for a GPU, and compares each result bit for bit; looks for NaN, dead ends and routes without an end; and solves
small instances to the optimum by enumeration. The exit code is 1 if something is wrong.`,
		Example: "  haul problem new mine\n  haul problem check mine\n  haul problem check vrp --set Mix=16 --instances 20 --json",
		Args:    cli.One("a problem: a folder, a file or a built-in name"),
		RunE: func(_ *cobra.Command, args []string) error {
			if o.Instances < 1 || o.Routes < 1 {
				return cli.Usagef("--instances and --routes are at least 1")
			}
			return a.check(args[0], &settings, o, asJSON)
		},
	}
	settings.register(cmd)
	cmd.Flags().Uint64Var(&o.Seed, "seed", 42, "seed of instances and routes")
	cmd.Flags().IntVar(&o.Instances, "instances", 2, "instances per number of customers")
	cmd.Flags().IntVar(&o.Routes, "routes", 3, "random routes per instance")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// refused is the report of a file that does not compile.
type refused struct {
	Mistakes []mistake `json:"mistakes"`
}

type mistake struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Text   string `json:"text"`
	Remedy string `json:"remedy,omitempty"`
}

func (a *app) check(arg string, settings *settingFlag, o check.Options, asJSON bool) error {
	p, err := compile(arg, settings)
	if list := (parse.ErrorList)(nil); errors.As(err, &list) {
		return a.refuse(arg, list, asJSON)
	}
	if err != nil {
		return err
	}
	r, err := check.Check(p, o)
	if err != nil {
		return err
	}
	if asJSON {
		err = a.Emit(r)
	} else {
		err = a.Table(func(w io.Writer) { show(w, r) })
	}
	if err == nil && r.Failed() {
		return fmt.Errorf("%s has faults", arg)
	}
	return err
}

// refuse reports the mistakes of a file.
func (a *app) refuse(arg string, list parse.ErrorList, asJSON bool) error {
	var r refused
	for _, e := range list {
		r.Mistakes = append(r.Mistakes, mistake{e.Pos.Filename, e.Pos.Line, e.Pos.Column, e.Text, e.Remedy})
	}
	var err error
	if asJSON {
		err = a.Emit(r)
	} else {
		_, err = fmt.Fprintln(a.Stdout, list)
	}
	if err == nil {
		err = fmt.Errorf("%s does not compile", arg)
	}
	return err
}

// show prints a report.
func show(w io.Writer, r *check.Report) {
	fmt.Fprintf(w, "problem\t%s\n", r.Name)
	fmt.Fprintf(w, "words\t%d of an instance, %d of a node, %d of a vehicle\n", r.Words.Instance, r.Words.Node, r.Words.Vehicle)
	fmt.Fprintf(w, "networks see\t%d features of a node, %d numbers of a vehicle\n", r.Words.Features, r.Words.Context)
	fmt.Fprintf(w, "Fits\t%d operations per step, %d per node\n", r.Words.Prepare, r.Words.Fits)
	fmt.Fprintf(w, "tried\t%d instances, %d routes, %d steps; three forms of the rules agree: %s\n", r.Instances, r.Routes, r.Steps, yes(!r.FormsDiffer))
	fmt.Fprintf(w, "mixed masks\t%d steps\n", r.Mixed)
	fmt.Fprintf(w, "dead ends\t%d routes\n", r.DeadEnds)
	fmt.Fprintf(w, "symmetries of the square\t%s\n", yes(r.Symmetric))
	for _, o := range r.Optima {
		fmt.Fprintf(w, "optimum, %d customers\t%s, on average over 4 instances\n", o.Customers, strconv.FormatFloat(o.Cost, 'f', 4, 64))
	}
	for _, f := range r.Findings {
		kind := "note"
		if f.Error {
			kind = "fault"
		}
		fmt.Fprintf(w, "%s\t%s\n", kind, f.Text)
	}
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
