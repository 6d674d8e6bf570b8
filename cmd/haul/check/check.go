// Package check is the verb haul check.
package check

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"haul/cmd/haul/cli"
	"haul/cmd/haul/routes"
	"haul/internal/draw"
	"haul/internal/vrp"
)

type checkFlags struct {
	problem   routes.Problem
	plot      string
	bestKnown float64
	force     bool
	json      bool
}

// app is the program that the verb is a part of.
type app struct{ *cli.App }

// New returns the verb.
func New(program *cli.App) *cobra.Command {
	a := &app{program}
	var f checkFlags
	cmd := &cobra.Command{
		Use:   "check FILE ROUTES",
		Short: "Judge routes that any program has found",
		Long: `FILE is a problem as haul solve reads it, ROUTES a file of its routes: .sol, or what haul solve --out writes (.json, .csv, .xlsx), or
VROOM's answer. Routes that break a rule, or that state a cost which is not theirs, are refused with the reason; the exit code is 1.`,
		Example: `  haul check docs/examples/grid20.vrp x.sol
  haul check docs/examples/grid20.vrp x.sol --plot routes.svg --best-known 587 --force`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return cli.Usagef("name the problem's file and the file of its routes (see %s --help)", cmd.CommandPath())
			}
			return cli.AtMost(2)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] == cli.StandardInput && args[1] == cli.StandardInput {
				return cli.Usagef("the problem and its routes would both come from standard input: name a file for one of them")
			}
			if f.bestKnown == 0 && cmd.Flags().Changed("best-known") || f.bestKnown < 0 || math.IsNaN(f.bestKnown) {
				return cli.Usagef("--best-known is %v: a cost above 0 is needed", f.bestKnown)
			}
			if err := cli.FirstOf(routes.KnownPicture(f.plot), f.problem.Check(cmd.Flags(), args[0]),
				f.problem.Keep(map[string]string{"plot": f.plot}), cli.RefuseOverwrite(f.force, f.plot)); err != nil {
				return err
			}
			return a.check(args[1], &f)
		},
	}
	fs := cmd.Flags()
	f.problem.Register(cmd)
	fs.StringVar(&f.plot, "plot", "", "draw the routes to this .svg or .png file")
	fs.Float64Var(&f.bestKnown, "best-known", 0, "print the gap to this cost")
	fs.BoolVar(&f.force, "force", false, "replace a picture that exists")
	fs.BoolVar(&f.json, "json", false, "print one JSON object")
	cli.Grouped(cmd, "Output", "plot", "best-known", "force", "json")
	return cmd
}

// check judges a file of routes: the routes by the validator, the stated cost by the true one.
func (a *app) check(path string, f *checkFlags) error {
	p, err := f.problem.Load(f.plot != "")
	if err != nil {
		return err
	}
	start := time.Now()
	s, stated, err := cli.LoadSolution(path, p, f.problem.VROOM)
	if err != nil {
		return err
	}
	if err := f.judge(p, s); err != nil {
		return a.refuse(path, p, f, fmt.Errorf("%w%s", err, f.holdsBy(path)))
	}
	r := routes.Of(f.problem.Path, p, s, f.bestKnown)
	r.Checked, r.Plot, r.Seconds = path, f.plot, time.Since(start).Seconds()
	if !sameCost(stated, r.Cost) {
		return a.refuse(path, p, f, fmt.Errorf("it states cost %s, its routes cost %s%s", draw.Cost(stated), draw.Cost(r.Cost), cmp.Or(counted(stated, r.Cost), f.holdsBy(path))))
	}
	if err := routes.Draw(f.plot, p, s, ""); err != nil {
		return err
	}
	return r.Print(a.App, f.json)
}

// judge is the validator's word on routes. In VROOM's words nobody has to be served.
func (f *checkFlags) judge(p *vrp.Problem, s vrp.Solution) error {
	if f.problem.VROOM == nil {
		return vrp.Validate(p, s)
	}
	for _, v := range vrp.Violations(p, s) {
		if v.Rule != vrp.VisitedAtAll {
			return v
		}
	}
	return nil
}

// refuse reports a file of routes that does not hold.
func (a *app) refuse(path string, p *vrp.Problem, f *checkFlags, why error) error {
	if f.json {
		r := routes.Report{File: f.problem.Path, Name: p.Name, Customers: p.N(), Capacity: p.Amount(0, int64(p.Capacity)), Checked: path, Violation: why.Error()}
		if err := a.Emit(r); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s is not a solution of %s: %w", cli.Spoken(path), cli.Spoken(f.problem.Path), why)
}

// counted says of a stated cost that is the true one in smaller parts that it is: PyVRP counts in
// whole numbers, so that its files have tenths or thousandths.
func counted(stated, cost float64) string {
	for parts, word := range map[float64]string{10: "tenths", 100: "hundredths", 1000: "thousandths"} {
		if cost != 0 && math.Abs(stated-parts*cost) <= 0.5 {
			return ", of which it counts the " + word
		}
	}
	if cost >= 100 && math.Abs(100*stated-cost) <= 0.5 {
		return ", of which it counts the hundreds: the problem's own costs are a hundredfold"
	}
	return ""
}

// holdsBy says with which rounding of distances the file of routes holds, where none was named and
// the problem's own format has another; "" where it holds with none.
func (f *checkFlags) holdsBy(path string) string {
	if path == cli.StandardInput {
		return ""
	}
	for _, name := range []string{"dimacs", "exact", "rounded", "trunc", "ceil"} {
		p := f.problem.Rounded(name)
		if p == nil {
			return ""
		}
		if s, stated, err := cli.LoadSolution(path, p, nil); err == nil && vrp.Validate(p, s) == nil {
			if cost := p.Cost(s); sameCost(stated, cost) {
				return "; by --set distance=" + name + " it holds"
			} else if text := counted(stated, cost); text != "" {
				return "; by --set distance=" + name + " they cost " + draw.Cost(cost) + text
			}
		}
	}
	return ""
}

// sameCost says whether the stated cost is the true one, rounded to the digits it is stated with:
// published files give two decimals. A file that states none (NaN) has nothing wrong to state.
func sameCost(stated, cost float64) bool {
	_, decimals, _ := strings.Cut(strconv.FormatFloat(stated, 'f', -1, 64), ".")
	half := 0.5 * math.Pow10(-len(decimals))
	return math.IsNaN(stated) || math.Abs(stated-cost) <= half+1e-9*math.Abs(cost)
}
