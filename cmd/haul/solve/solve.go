// Package solve is the verb haul solve.
package solve

import (
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"haul/cmd/haul/cli"
	"haul/cmd/haul/routes"
	"haul/internal/config"
	"haul/internal/solve"
	"haul/internal/vrp/outputs"
)

// solveFlags are the flags of haul solve.
type solveFlags struct {
	problem routes.Problem
	policy  cli.PolicyFlags
	device  cli.DeviceFlags
	search  searchFlags
	seed    uint64
	force   bool

	// What validate finds in the command line.
	begun                   time.Time
	timeGiven, workersGiven bool
	seedGiven               bool
	improve                 bool // the search goes on from a policy's routes
	method                  string
	workers                 int
	bestKnown               float64
	out                     string
	plot                    string
	json                    bool
}

// app is the program that the verb is a part of.
type app struct{ *cli.App }

// New returns the verb.
func New(program *cli.App) *cobra.Command {
	a := &app{program}
	var f solveFlags
	cmd := &cobra.Command{
		Use:   "solve FILE",
		Short: "Solve the routing problem of a file",
		Long: `FILE is a .vrp, Haul's or VROOM's JSON, a table (.csv, .xlsx, GeoJSON points) or another format (docs/formats.md); - is standard input.
Required customers that fit no route are listed with the reason (exit code 3); Ctrl-C keeps the best routes. docs/solve.md says more.`,
		Example: `  haul solve docs/examples/deliveries.xlsx --speed 35 --out plan.xlsx --plot plan.svg
  haul solve docs/examples/stops.csv --capacity 100 --vehicles 8 --open --out routes.geojson
  haul solve docs/examples/grid20.vrp --time 10s --best-known 587 --out x.sol --plot routes.svg
  haul solve docs/examples/grid20.vrp --policy cvrp20`,
		Args: cli.One("the file to solve; many instances are haul eval's"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.begun = time.Now()
			if err := cli.FirstOf(f.problem.Check(cmd.Flags(), args[0]), f.validate(cmd.Flags())); err != nil {
				return err
			}
			var err error
			if f.workers, err = a.Cores(f.workers); err != nil {
				return err
			}
			return a.solveFile(cmd.Context(), args[0], &f)
		},
	}
	fs := cmd.Flags()
	f.device.Name = "auto"
	f.problem.Own = []routes.Setting{
		{Key: "device", Text: "where a policy computes: cpu, cuda:K, or auto for the fastest", Take: func(v string) error {
			f.device.Name = v
			return cli.KnownDevice(v, "")
		}},
		{Key: "decode", Text: "how a policy makes routes (docs/policies.md)", Take: f.policy.SetDecode},
	}
	f.problem.Register(cmd)
	fs.StringVar(&f.method, "method", "", strings.Join(solve.Named(), ", ")+" (default: exact up to 12 customers, else search)")
	fs.DurationVar(&f.search.time, "time", searchTime, "wall time of the search, including reading FILE")
	fs.IntVar(&f.search.iterations, "iterations", 0, "iterations instead of a time: equal seeds give equal routes")
	fs.Float64Var(&f.search.target, "target", 0, "stop once the cost is this or less")
	f.policy.Register(cmd)
	fs.StringVar(&f.search.start, "start", "", "improve the routes of this file")
	fs.StringVar(&f.search.fix, "fix", "", "keep routes of --start: 2 is route 2, 2:4 four stops of it, all; 1,2:4")
	fs.Uint64Var(&f.seed, "seed", 42, "random seed")
	fs.IntVar(&f.workers, "workers", runtime.GOMAXPROCS(0), "CPU cores to use")
	fs.StringVar(&f.out, "out", "", "write the routes: "+outputs.Endings()+"; - is standard output")
	fs.StringVar(&f.plot, "plot", "", "draw the routes to this .svg or .png file")
	fs.StringVar(&f.search.curve, "curve", "", "draw cost over time to this .svg or .png file")
	fs.Float64Var(&f.bestKnown, "best-known", 0, "print the gap to this cost")
	fs.BoolVar(&f.force, "force", false, "replace output files that exist")
	fs.BoolVar(&f.json, "json", false, "print one JSON object")
	cli.Grouped(cmd, "Search", "method", "time", "iterations", "target", "policy", "start", "fix", "seed", "workers")
	cli.Grouped(cmd, "Output", "out", "plot", "curve", "best-known", "force", "json")
	return cmd
}

// validate refuses flags that contradict each other.
func (f *solveFlags) validate(fs *pflag.FlagSet) error {
	var err error
	policy, decode, device := fs.Changed("policy"), f.policy.Decoding(), f.device.Name != "auto"
	fs.Visit(func(flag *pflag.Flag) {
		searches := slices.Contains(searchFlagNames, flag.Name)
		switch {
		case err != nil:
		case policy && flag.Name == "method":
			err = cli.Usagef("--method and --policy both say how to solve: use one of them")
		case flag.Name == "fix" && f.search.start == "":
			err = cli.Usagef("--fix keeps routes of a start: name it with --start")
		case policy && flag.Name == "start":
			err = cli.Usagef("--start and --policy both say where to start: use one of them")
		case flag.Name == "seed" && f.method != "" && f.method != solve.Search:
			err = cli.Usagef("--seed draws the numbers of the search and of policies, and --method %s draws none: leave one of them out", f.method)
		case searches && f.method != "" && f.method != solve.Search:
			err = cli.Usagef("--%s is about the search: leave --method %s out", flag.Name, f.method)
		case flag.Name == "time" && f.search.time <= 0:
			err = cli.Usagef("--time is %s: a time above 0 is needed, for example 10s", flag.Value)
		case flag.Name == "time" && f.search.iterations > 0:
			err = cli.Usagef("--time and --iterations both say how long: use one of them")
		case flag.Name == "iterations" && f.search.iterations < 1:
			err = cli.Usagef("--iterations is %d: at least 1 is needed", f.search.iterations)
		case flag.Name == "target" && !(f.search.target > 0):
			err = cli.Usagef("--target is %v: a cost above 0 is needed", f.search.target)
		case flag.Name == "best-known" && !(f.bestKnown > 0):
			err = cli.Usagef("--best-known is %v: a cost above 0 is needed", f.bestKnown)
		case searches && policy:
			f.improve = true
		case searches:
			f.method = solve.Search
		}
	})
	f.timeGiven, f.workersGiven, f.seedGiven = fs.Changed("time"), fs.Changed("workers"), fs.Changed("seed")
	switch {
	case err != nil:
		return err
	case !policy && (decode || device):
		return cli.Usagef("--set %s is about a policy: name one with --policy", map[bool]string{true: "decode", false: "device"}[decode])
	case f.method != "" && solve.Known(f.method) != nil:
		return cli.AsUsage(solve.Known(f.method))
	}
	d, _, err := f.policy.Decoder(&config.Config{}, 0, false)
	if err != nil {
		return err
	}
	if d.Active && f.timeGiven { // the time is the active search's, and no other search follows
		for _, other := range []string{"target", "curve"} {
			if fs.Changed(other) {
				return cli.Usagef("--%s is about the search, and the decoder %s takes the --time: leave one of them out", other, d)
			}
		}
		f.improve = false
	}
	switch path := f.problem.Path; {
	case path == cli.StandardInput && f.search.start == cli.StandardInput:
		return cli.Usagef("the problem and its routes would both come from standard input: name a file for one of them")
	case f.out == cli.StandardOutput && f.json:
		return cli.Usagef("--out - and --json would both go to standard output: use one of them; the object has the routes too")
	case f.plot != "" && filepath.Clean(f.plot) == filepath.Clean(f.search.curve):
		return cli.Usagef("--plot and --curve would both write %s: name two files", f.plot)
	}
	return cli.FirstOf(routes.KnownOut(f.out), routes.KnownPicture(f.plot), routes.KnownPicture(f.search.curve))
}
