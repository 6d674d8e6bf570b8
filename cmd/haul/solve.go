package main

import (
	"runtime"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"haul/internal/env/cvrp"
)

// The methods of haul solve.
const (
	methodExact   = "exact"
	methodSavings = "savings"
	methodPolicy  = "policy" // what --checkpoint asks for
)

// solveFlags are the flags of haul solve beside those of generated instances.
type solveFlags struct {
	src       sourceFlags
	policy    policyFlags
	device    deviceFlags
	method    string
	workers   int
	bestKnown float64
	distance  string
	out       string
	plot      string
	check     string
	json      bool
}

// fileFlagNames are the flags that mean nothing without a file.
var fileFlagNames = []string{"distance", "out", "plot", "check", "checkpoint", "decode", "device"}

func (a *app) newSolve() *cobra.Command {
	var f solveFlags
	cmd := &cobra.Command{
		Use:   "solve [FILE.vrp]",
		Short: "Solve generated instances or a CVRPLIB file, or check a solution",
		Long: `Solve generated instances, or one CVRPLIB file, and report what the routes cost.

Without a file, instances are generated and the mean cost per customer (CPC) is printed with its
standard error. With a file, its routes are found, and written and drawn where asked; with --check, a
.sol file is judged instead. Every route is judged by the validator before it is reported.

Methods: exact is dynamic programming over sets of customers, optimal and for small N only; savings
is Clarke-Wright with local search, for any N. Generated instances default to exact where it fits,
files to savings. CVRPLIB's rounding of distances applies to files unless --distance exact.

With --checkpoint a trained policy solves the file, whatever its N: coordinates are scaled to the unit square, and of
the routes that --decode asks for the best by the file's own distances counts.`,
		Example: `  haul solve --customers 10 --capacity 30 --count 1000 --method exact
  haul solve --distribution uniform --customers 100 --capacity 50 --count 100 --best-known 0.15563
  haul solve X-n101-k25.vrp --best-known 27591 --out x.sol --plot routes.svg
  haul solve X-n101-k25.vrp --checkpoint runs/large-001 --decode pomo8
  haul solve X-n101-k25.vrp --check x.sol`,
		Args: atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.validate(cmd.Flags(), len(args) == 1); err != nil {
				return err
			}
			var err error
			if f.workers, err = a.cores(f.workers); err != nil {
				return err
			}
			switch {
			case len(args) == 0:
				return a.solveGenerated(cmd.Context(), &f)
			case f.check != "":
				return a.checkSolution(args[0], &f)
			default:
				return a.solveFile(cmd.Context(), args[0], &f)
			}
		},
	}
	fs := cmd.Flags()
	f.src.register(cmd, 1000)
	f.policy.register(cmd)
	fs.StringVar(&f.device.name, "device", "auto", "where a policy computes: cpu, cuda:K, or auto: the fastest here")
	fs.StringVar(&f.method, "method", "", "exact or savings (default: see above)")
	fs.IntVar(&f.workers, "workers", runtime.GOMAXPROCS(0), "instances solved at the same time")
	fs.Float64Var(&f.bestKnown, "best-known", 0, "print the gap to this value: a mean CPC, or a file's cost")
	fs.StringVar(&f.distance, "distance", "rounded", "distances of a file: rounded as CVRPLIB does, or exact")
	fs.StringVar(&f.out, "out", "", "write the routes of a file as .sol")
	fs.StringVar(&f.plot, "plot", "", "draw the routes of a file as .svg or .png")
	fs.StringVar(&f.check, "check", "", "judge this .sol file against the file instead of solving it")
	fs.BoolVar(&f.json, "json", false, "print one JSON object")
	return cmd
}

// validate refuses flags that contradict each other or the kind of problem.
func (f *solveFlags) validate(fs *pflag.FlagSet, file bool) error {
	var err error
	fs.Visit(func(flag *pflag.Flag) {
		switch {
		case err != nil:
		case file && slices.Contains(sourceFlagNames, flag.Name):
			err = usagef("--%s describes generated instances: leave it out with a file", flag.Name)
		case !file && slices.Contains(fileFlagNames, flag.Name):
			err = usagef("--%s needs a file to solve: haul solve FILE.vrp --%s ...", flag.Name, flag.Name)
		case f.check != "" && slices.Contains([]string{"method", "out", "workers", "checkpoint"}, flag.Name):
			err = usagef("--%s solves, --check judges: use one of them", flag.Name)
		case f.policy.checkpoint != "" && flag.Name == "method":
			err = usagef("--method and --checkpoint both say how to solve: use one of them")
		case f.policy.checkpoint == "" && slices.Contains([]string{"decode", "device"}, flag.Name):
			err = usagef("--%s is about a policy: name one with --checkpoint", flag.Name)
		case flag.Name == "best-known" && !(f.bestKnown > 0):
			err = usagef("--best-known is %v: a cost above 0 is needed", f.bestKnown)
		}
	})
	switch {
	case err != nil:
		return err
	case f.method != "" && f.method != methodExact && f.method != methodSavings:
		return usagef("unknown method %q: use exact or savings", f.method)
	case f.distance != "rounded" && f.distance != "exact":
		return usagef("unknown distance %q: use rounded or exact", f.distance)
	}
	return nil
}

// gap is how far a value lies above the best known one, as a fraction; nil when none was given.
func (f *solveFlags) gap(value float64) *float64 {
	if f.bestKnown == 0 {
		return nil
	}
	g := value/f.bestKnown - 1
	return &g
}

func (f *solveFlags) readOptions() cvrp.ReadOptions {
	return cvrp.ReadOptions{ExactDistance: f.distance == "exact"}
}
