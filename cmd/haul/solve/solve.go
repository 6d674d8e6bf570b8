// Package solve is the verb haul solve.
package solve

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"haul/cmd/haul/cli"
	"haul/internal/config"
	"haul/internal/draw"
	"haul/internal/solve"
	"haul/internal/vrp/files"
)

// solveFlags are the flags of haul solve beside those of generated instances.
type solveFlags struct {
	src      cli.SourceFlags
	policy   cli.PolicyFlags
	device   cli.DeviceFlags
	search   searchFlags
	vehicles int
	goal     string // the objective, in a file's words
	open     bool
	force    bool
	testset  cli.TestsetFlags

	// What validate finds in the command line.
	csv                     bool // the file is a table
	tables                  tableFlags
	object                  bool // the file is JSON
	vroom                   *files.VROOM
	reading                 float64 // seconds that reading it took
	given                   []byte  // what came from standard input
	begun                   time.Time
	timeGiven, workersGiven bool
	fleetGiven              bool
	seedGiven               bool
	improve                 bool // the search goes on from a policy's routes
	method                  string
	workers                 int
	bestKnown               float64
	distance                string
	out                     string
	plot                    string
	check                   string
	limits                  []string
	json                    bool
}

// fileFlagNames are the flags that mean nothing without a file.
var fileFlagNames = []string{"distance", "out", "plot", "check", "policy", "checkpoint", "decode", "device", "time", "target", "start", "fix", "curve", "vehicles", "objective", "open", "force", "fleet", "depots", "shipments", "distances", "durations", "speed", "times", "limit"}

// app is the program that the verb is a part of.
type app struct{ *cli.App }

// New returns the verb.
func New(program *cli.App) *cobra.Command {
	a := &app{program}
	var f solveFlags
	cmd := &cobra.Command{
		Use:   "solve [FILE]",
		Short: "Solve a routing problem from a file or generated ones, or check a solution",
		Long: `With FILE, routes are found for its problem, and written (--out) and drawn (--plot). With --check, routes of a file are judged instead.
Without FILE, generated instances are solved, and their mean cost per customer (CPC) is printed. A validator checks every route before
it is reported.

Methods. The default is exact up to 12 customers, and search above that; savings for generated instances that are too large for exact.
  search    improves routes until --time (default 1s) or --iterations is over: ruin and recreate
  exact     dynamic programming over sets of customers; optimal, for small problems only
  savings   Clarke and Wright's savings with local search; quick

With --iterations, equal seeds give equal routes for any number of workers. Ctrl-C ends a search: the best routes so far are reported
and written, and the exit code is 130. Required customers without a place in any route are listed with the reason, and the exit code is 3.

Files. FILE is told by its content: VRPLIB's .vrp (also PyVRP's dialect), TSPLIB, Solomon, Li and Lim, Cordeau, Haul's own JSON, VROOM's JSON, or
a table of customers (.csv, .tsv, .xlsx, GeoJSON points). - is standard input, also for --check and --start. What Haul cannot honour is refused by
name. Distances of CVRPLIB's files are rounded to integers, unless --distance says otherwise.

Tables. The first row is the depot. The header is id,x,y,demand, or id,lat,lon,demand for great-circle distances in metres, with further
columns for time windows, service, skills and more (docs/formats.md). Vehicles, depots, shipments and matrices are sheets of the .xlsx, or
files (--fleet, --depots, --shipments, --distances, --durations). --capacity is required without a table of vehicles; --speed is required
with lat and lon if times count.

Output. --out writes .sol, .json, .csv, .xlsx or .geojson, by its extension; --out - writes .sol to standard output and the report to
standard error.

Policies. --policy (a shipped one) or --checkpoint (your own) lets a trained policy solve FILE, with any number of customers. Coordinates are scaled
to the unit square; the routes that are best by the file's own distances count. Without --decode, the decoder is one that takes
about a second. With --time or --iterations too, the search starts from the policy's routes. --decode eas:I instead learns on FILE
for I iterations (default 200), or for --time; no search follows.

Test sets. --testset kool or routefinder solves a public test set, --testset FILE the instances of an .npz, .pkl or .pt file or of a folder of .vrp
files. Costs are compared with --reference, or with the array reference or hgs of an .npz. With --method search each instance gets
--time-per-instance or --iterations; costs are cached, so an interrupted run continues where it stopped.`,
		Example: `  haul solve docs/examples/deliveries.xlsx --speed 35 --out plan.xlsx --plot plan.svg
  haul solve docs/examples/stops.csv --capacity 100 --vehicles 8 --open --out routes.geojson
  haul solve docs/examples/grid20.vrp --time 10s --best-known 587 --out x.sol --plot routes.svg
  haul solve docs/examples/grid20.vrp --iterations 100000 --seed 7 --json
  haul solve --testset kool --customers 100 --count 100 --method search --time-per-instance 0.5s
  haul solve docs/examples/grid20.vrp --policy cvrp20
  haul solve docs/examples/grid20.vrp --checkpoint runs/quick-001 --decode sgbs8
  haul solve docs/examples/grid20.vrp --check x.sol
  haul solve --customers 10 --capacity 30 --count 1000 --method exact
  haul solve --distribution uniform --customers 100 --capacity 50 --count 100 --best-known 0.15563`,
		Args: cli.AtMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.begun = time.Now()
			if err := f.look(args); err != nil {
				return err
			}
			if err := f.validate(cmd.Flags(), len(args) == 1); err != nil {
				return err
			}
			if err := f.testset.Check(cmd.Flags()); err != nil {
				return err
			}
			var err error
			if f.workers, err = a.Cores(f.workers); err != nil {
				return err
			}
			switch {
			case f.testset.Name != "":
				set, err := f.testset.Load(cmd.Flags(), &f.src)
				if err != nil {
					return err
				}
				if set.Note != "" {
					fmt.Fprintf(a.Stderr, "%s: %s\n", set.Name, set.Note)
				}
				return a.solveSet(cmd.Context(), set, &f)
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
	f.src.Register(cmd, 1000)
	f.policy.Register(cmd)
	fs.StringVar(&f.device.Name, "device", "auto", "where a policy computes: cpu, cuda:K, or auto for the fastest")
	fs.StringVar(&f.method, "method", "", "how to solve: "+strings.Join(solve.Named(), ", ")+" (default: see above)")
	fs.IntVar(&f.workers, "workers", runtime.GOMAXPROCS(0), "CPU cores to use")
	fs.DurationVar(&f.search.time, "time", searchTime, "wall time of the search on FILE, including reading it")
	fs.DurationVar(&f.search.each, "time-per-instance", searchEach, "wall time of the search per instance of a set, on one core")
	fs.IntVar(&f.search.iterations, "iterations", 0, "iterations of the search, instead of a time")
	fs.Float64Var(&f.search.target, "target", 0, "stop the search once the cost is this or less")
	fs.StringVar(&f.search.start, "start", "", "start from the routes of this file (.sol or another format of --out) and improve them")
	fs.StringVar(&f.search.fix, "fix", "", "keep these routes of --start: 2 is route 2, 2:4 its first four stops, all is every route; 1,2:4 keeps several")
	fs.StringVar(&f.search.curve, "curve", "", "draw cost over time to this .svg or .png file")
	fs.IntVar(&f.vehicles, "vehicles", 0, "most vehicles to use (default: the file's limit, if any; 0 lifts it)")
	fs.StringVar(&f.goal, "objective", "", "what to minimise: cost; vehicles (then the cost); longest_route (then the cost) (default: as FILE says, else cost)")
	fs.BoolVar(&f.open, "open", false, "open routes: vehicles do not return to the depot")
	f.tables.register(fs)
	fs.StringArrayVar(&f.limits, "limit", nil, "how much the input may hold, as KEY=NUMBER (docs/formats.md; repeatable)")
	fs.BoolVar(&f.force, "force", false, "replace output files that exist")
	f.testset.Register(cmd, ", or a file: .npz, .pkl, .pt, a folder of .vrp")
	f.testset.RegisterRounded(cmd)
	fs.Float64Var(&f.bestKnown, "best-known", 0, "print the gap to this cost (of generated instances: to this mean CPC)")
	fs.StringVar(&f.distance, "distance", "", "rounding of FILE's distances: rounded, exact, dimacs (cut to one decimal), ceil or trunc (default: by FILE's format)")
	fs.StringVar(&f.out, "out", "", "write the routes to this .sol, .json, .csv, .xlsx or .geojson file; - writes .sol to standard output")
	fs.StringVar(&f.plot, "plot", "", "draw the routes to this .svg or .png file")
	fs.StringVar(&f.check, "check", "", "check the routes of this file (.sol or another format of --out) instead of solving FILE")
	fs.BoolVar(&f.json, "json", false, "print one JSON object")
	return cmd
}

// validate refuses flags that contradict each other or the kind of problem.
func (f *solveFlags) validate(fs *pflag.FlagSet, file bool) error {
	var err error
	by, policy := f.policy.Given()
	fs.Visit(func(flag *pflag.Flag) {
		switch {
		case err != nil:
		case file && flag.Name == "capacity" && f.csv:
			if f.src.Capacity < 1 {
				err = cli.Usagef("--capacity is %d: at least 1 is needed", f.src.Capacity)
			}
		case file && (slices.Contains(cli.SourceFlagNames, flag.Name) && flag.Name != "seed" || flag.Name == "testset" || flag.Name == "split" || flag.Name == "time-per-instance"):
			err = cli.Usagef("--%s describes generated instances: leave it out with a file", flag.Name)
		case !file && slices.Contains(fileFlagNames, flag.Name):
			err = cli.Usagef("--%s needs a file to solve: haul solve FILE.vrp --%s ...", flag.Name, flag.Name)
		case f.check != "" && slices.Contains([]string{"method", "out", "workers", "policy", "checkpoint", "time", "iterations", "target", "start", "fix", "curve", "seed"}, flag.Name):
			err = cli.Usagef("--%s solves, --check only checks: use one of them", flag.Name)
		case policy && flag.Name == "method":
			err = cli.Usagef("--method and --%s both say how to solve: use one of them", by)
		case flag.Name == "fix" && f.search.start == "":
			err = cli.Usagef("--fix keeps routes of a start: name it with --start")
		case policy && flag.Name == "start":
			err = cli.Usagef("--start and --%s both say where to start: use one of them", by)
		case flag.Name == "seed" && file && f.method != "" && f.method != solve.Search:
			err = cli.Usagef("--seed draws the numbers of the search and of policies, and --method %s draws none: leave one of them out", f.method)
		case (slices.Contains(searchFlagNames, flag.Name) || flag.Name == "time-per-instance") && f.method != "" && f.method != solve.Search:
			err = cli.Usagef("--%s is about the search: leave --method %s out", flag.Name, f.method)
		case flag.Name == "time" && f.search.time <= 0, flag.Name == "time-per-instance" && f.search.each <= 0:
			err = cli.Usagef("--%s is %s: a time above 0 is needed, for example 10s", flag.Name, flag.Value)
		case flag.Name == "time" && f.search.iterations > 0, flag.Name == "time-per-instance" && f.search.iterations > 0:
			err = cli.Usagef("--%s and --iterations both say how long: use one of them", flag.Name)
		case flag.Name == "iterations" && f.search.iterations < 1:
			err = cli.Usagef("--iterations is %d: at least 1 is needed", f.search.iterations)
		case flag.Name == "target" && !(f.search.target > 0):
			err = cli.Usagef("--target is %v: a cost above 0 is needed", f.search.target)
		case flag.Name == "vehicles" && f.vehicles < 0:
			err = cli.Usagef("--vehicles is %d: at least 1 is needed, or 0 for any number", f.vehicles)
		case flag.Name == "vehicles":
			f.fleetGiven = true
		case !file && f.method == "" && (flag.Name == "time-per-instance" || flag.Name == "iterations"):
			f.method = solve.Search
		case file && f.method == "" && !policy && slices.Contains(searchFlagNames, flag.Name):
			f.method = solve.Search
		case file && policy && slices.Contains(searchFlagNames, flag.Name):
			f.improve = true
		case !policy && slices.Contains([]string{"decode", "device"}, flag.Name):
			err = cli.Usagef("--%s is about a policy: name one with --policy or --checkpoint", flag.Name)
		case flag.Name == "best-known" && !(f.bestKnown > 0):
			err = cli.Usagef("--best-known is %v: a cost above 0 is needed", f.bestKnown)
		}
	})
	if err == nil {
		err = f.tables.check(fs, f.csv)
	}
	f.timeGiven, f.workersGiven, f.seedGiven = fs.Changed("time"), fs.Changed("workers"), fs.Changed("seed")
	switch {
	case err != nil:
		return err
	case f.method != "" && solve.Known(f.method) != nil:
		return cli.AsUsage(solve.Known(f.method))
	case unknownDistance(f.distance) != nil:
		return cli.AsUsage(unknownDistance(f.distance))
	case unknownObjective(f.goal) != nil:
		return cli.Usagef("--%v", unknownObjective(f.goal))
	}
	d, _, err := f.policy.Decoder(&config.Config{}, 0, false)
	if err != nil {
		return err
	}
	if d.Active && f.timeGiven { // the time is the active search's, and no other search follows
		for _, other := range []string{"target", "curve"} {
			if fs.Changed(other) {
				return cli.Usagef("--%s is about the search, and --decode %s takes the --time: leave one of them out", other, d)
			}
		}
		f.improve = false
	}
	return cli.FirstOf(cli.KnownDevice(f.device.Name, ""), f.knownFiles(), f.onePipe(fs.Arg(0)))
}

// onePipe refuses two things that would come from standard input, or go to standard output.
func (f *solveFlags) onePipe(path string) error {
	switch in := path == cli.StandardInput; {
	case in && f.check == cli.StandardInput, in && f.search.start == cli.StandardInput:
		return cli.Usagef("the problem and its routes would both come from standard input: name a file for one of them")
	case f.out == cli.StandardOutput && f.json:
		return cli.Usagef("--out - and --json would both go to standard output: use one of them; the object has the routes too")
	}
	return nil
}

// knownFiles refuses files to write whose names say what cannot be written.
func (f *solveFlags) knownFiles() error {
	switch ext := strings.ToLower(filepath.Ext(f.out)); ext {
	case "", ".sol", ".txt", ".csv", ".geojson", ".json", ".xlsx":
	default:
		return cli.Usagef("--out %s: cannot write %q, use .sol, .json, .csv, .xlsx or .geojson", f.out, ext[1:])
	}
	if f.plot != "" && filepath.Clean(f.plot) == filepath.Clean(f.search.curve) {
		return cli.Usagef("--plot and --curve would both write %s: name two files", f.plot)
	}
	for _, picture := range []string{f.plot, f.search.curve} {
		if picture != "" {
			if _, err := draw.FormatOf(picture); err != nil {
				return cli.AsUsage(err)
			}
		}
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

func unknownDistance(name string) error {
	_, err := files.ParseDistance(name)
	return err
}

func unknownObjective(name string) error {
	_, err := files.ParseObjective(name)
	return err
}

// look tells a table from a .vrp: by the name where it says so, else by its header. What comes
// through a pipe is read for that.
func (f *solveFlags) look(args []string) (err error) {
	if len(args) != 1 {
		return nil
	}
	path, from := args[0], os.Stdin
	if path == "" {
		return cli.Usagef("the name of the file to solve is empty")
	}
	if path != cli.StandardInput {
		st, err := os.Stat(path)
		if f.object = strings.EqualFold(filepath.Ext(path), ".json"); f.object && err == nil && st.Mode().IsRegular() {
			if f.csv, err = isGeoJSON(path); err != nil {
				return err
			}
			f.object = !f.csv
		}
		if f.csv = isTable(path); f.csv || f.object || strings.EqualFold(filepath.Ext(path), ".vrp") || err != nil || st.Mode()&(os.ModeType&^os.ModeNamedPipe) != 0 {
			return nil // what cannot be read is told by who reads it
		}
		if from, err = os.Open(path); err != nil {
			return err
		}
		defer from.Close()
		if st.Mode().IsRegular() {
			head := make([]byte, 512)
			n, err := io.ReadFull(from, head)
			if f.object = files.LooksJSON(head[:n]); f.object || err != nil && n == 0 {
				if f.object { // an empty file is told of by who reads it
					f.csv, err = isGeoJSON(path)
					f.object = !f.csv
					return err
				}
				return nil
			}
			if _, err = from.Seek(0, io.SeekStart); err == nil {
				f.csv, err = files.StartsTable(from)
			}
			return err
		}
	}
	if f.given, err = io.ReadAll(from); err != nil {
		return fmt.Errorf("%s: %w", cli.Spoken(path), err)
	}
	if f.object = files.LooksJSON(f.given) && !files.LooksGeoJSON(f.given); !f.object {
		f.csv = files.IsTable(f.given) || files.LooksGeoJSON(f.given)
	}
	return nil
}

// isGeoJSON tells a file of points, which is a table, whatever it is called.
func isGeoJSON(path string) (bool, error) {
	text, err := os.ReadFile(path)
	return err == nil && files.LooksGeoJSON(text), err
}

// isTable tells a table by the end of its name.
func isTable(path string) bool {
	return slices.Contains([]string{".csv", ".tsv", ".xlsx", ".geojson"}, strings.ToLower(filepath.Ext(path)))
}
