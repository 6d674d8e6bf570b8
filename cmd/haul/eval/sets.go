package eval

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"haul/cmd/haul/cli"
	"haul/internal/report"
	"haul/internal/search"
	"haul/internal/solve"
	"haul/internal/vrp"
	"haul/internal/vrp/testset"
)

// setFlags are the flags of a set that a method of solving is tested on.
type setFlags struct {
	cli.SetFlags
	method     string
	iterations int
	rounded    bool
	bestKnown  float64
	each       time.Duration // of the search, per instance
	workers    int
	json       bool
}

// methodFlags are the flags that only mean something for a method, and sharedFlags those that a
// trained model has as well.
var (
	methodFlags = []string{"capacity", "demand-range", "coord-range", "method", "iterations", "rounded", "best-known"}
	sharedFlags = []string{"count", "first", "seed", "reference", "time", "workers", "json", "quiet"}
)

// searchEach is the time of a search per instance where the command line names no budget.
const searchEach = 100 * time.Millisecond

func (f *setFlags) register(cmd *cobra.Command) {
	f.Register(cmd)
	fs := cmd.Flags()
	fs.StringVar(&f.method, "method", "", "exact, search or savings (default: exact for few customers, else savings; search of files and routefinder)")
	fs.IntVar(&f.iterations, "iterations", 0, "iterations of the search per instance, instead of a time")
	fs.BoolVar(&f.rounded, "rounded", false, "of routefinder: round distances, windows, services and limits to thousandths, as its references do")
	fs.Float64Var(&f.bestKnown, "best-known", 0, "print the gap to this mean cost per customer")
	cli.Grouped(cmd, "A method", "method", "iterations", "rounded", "best-known")
}

// check refuses flags of trained models and values that cannot be; it takes those that both have.
func (f *setFlags) check(fs *pflag.FlagSet, e *evalFlags) (err error) {
	fs.Visit(func(flag *pflag.Flag) {
		if err == nil && !slices.Contains(methodFlags, flag.Name) && !slices.Contains(sharedFlags, flag.Name) {
			err = cli.Usagef("--%s is about a trained model: name one with --policy or --checkpoint", flag.Name)
		}
	})
	if err != nil {
		return err
	}
	f.Count, f.Seed, f.workers, f.json, f.each = 1000, 42, e.Workers, e.json, searchEach
	if fs.Changed("count") {
		f.Count = e.Int("count")
	}
	if fs.Changed("seed") {
		f.Seed = e.seed
	}
	first := e.Int("first")
	if f.First = uint64(first); first < 0 {
		return cli.Usagef("--first is %d: instances are counted from 0", first)
	}
	if text := e.String("time"); fs.Changed("time") {
		if f.each, err = time.ParseDuration(text); err != nil || f.each <= 0 {
			return cli.Usagef("--time is %q: a time above 0 is needed, for example 0.5s", text)
		}
	}
	timed, counted := fs.Changed("time"), fs.Changed("iterations")
	switch {
	case timed && counted:
		return cli.Usagef("--time and --iterations both say how long: use one of them")
	case counted && f.iterations < 1:
		return cli.Usagef("--iterations is %d: at least 1 is needed", f.iterations)
	case (timed || counted) && f.method != "" && f.method != solve.Search:
		return cli.Usagef("--%s is about the search: leave --method %s out", map[bool]string{true: "time", false: "iterations"}[timed], f.method)
	case timed || counted:
		f.method = solve.Search
	case f.method != "" && solve.Known(f.method) != nil:
		return cli.AsUsage(solve.Known(f.method))
	}
	if fs.Changed("best-known") && !(f.bestKnown > 0) {
		return cli.Usagef("--best-known is %v: a cost above 0 is needed", f.bestKnown)
	}
	return nil
}

// solveSet solves the instances of a set, and tells what they cost on average.
func (a *app) solveSet(cmd *cobra.Command, set cli.Set, e *evalFlags) error {
	f, fs, ctx := &e.set, cmd.Flags(), cmd.Context()
	if err := f.check(fs, e); err != nil {
		return err
	}
	if set.Kind != "routefinder" && f.rounded {
		return cli.Usagef("--rounded is about RouteFinder's test sets: name one, as in routefinder:vrptw/50")
	}
	var err error
	if f.workers, err = a.Cores(f.workers); err != nil {
		return err
	}
	costs := e.String("reference")
	if set.Drawn() {
		if costs != "" {
			return cli.Usagef("--reference is about a public set or a file: name one in place of %s", set.Kind)
		}
		src, err := f.Source(set)
		if err != nil {
			return err
		}
		if f.method == solve.Search {
			return a.searchMany(ctx, &testset.Set{Problems: cli.Generate(src, f.First, f.Count)}, f)
		}
		r := setReport{Instances: f.Count, Customers: src.N, Capacity: src.Capacity, Distribution: string(src.Distribution),
			DemandRange: [2]int32{src.DemandMin, src.DemandMax}, Seed: src.Seed, First: f.First}
		return a.solveMany(ctx, r, func(done, count int) []*vrp.Problem { return cli.Generate(src, f.First+uint64(done), count) }, f)
	}
	if set.Customers == 0 && set.Kind != "file" {
		return cli.Usagef("%s: say how many customers, as in %s", set.Kind, map[bool]string{true: "kool:20", false: "routefinder:vrptw/50"}[set.Kind == "kool"])
	}
	loaded, err := f.Load(set, fs.Changed("seed"), costs)
	if err != nil {
		return err
	}
	if f.rounded {
		loaded.Round()
	}
	if loaded.Note != "" {
		fmt.Fprintf(a.Stderr, "%s: %s\n", loaded.Name, loaded.Note)
	}
	if f.method == "" && set.Kind != "kool" || f.method == solve.Search {
		return a.searchMany(ctx, loaded, f)
	}
	if set.Kind != "kool" {
		return cli.Usagef("%s is solved by the search: leave --method %s out", loaded.Name, f.method)
	}
	r := setReport{Instances: len(loaded.Problems), Customers: loaded.Customers(), Capacity: loaded.Capacity(), Distribution: loaded.Name, DemandRange: [2]int32{1, 9},
		Seed: testset.KoolSeed(set.Split), First: f.First}
	return a.solveMany(ctx, r, func(done, count int) []*vrp.Problem { return loaded.Problems[done : done+count] }, f)
}

// setReport is what a quick method made of a set.
type setReport struct {
	Method       string   `json:"method"`
	Instances    int      `json:"instances"`
	Customers    int      `json:"customers"`
	Capacity     int32    `json:"capacity"`
	Distribution string   `json:"distribution"`
	DemandRange  [2]int32 `json:"demand_range"`
	Seed         uint64   `json:"seed"`
	First        uint64   `json:"first"`
	Workers      int      `json:"workers"`
	MeanCPC      float64  `json:"mean_cpc"`
	SECPC        *float64 `json:"se_cpc"` // null for a single instance
	MeanCost     float64  `json:"mean_cost"`
	Seconds      float64  `json:"seconds"`
	PerSecond    float64  `json:"instances_per_second"`
	BestKnown    float64  `json:"best_known,omitempty"`
	Gap          *float64 `json:"gap,omitempty"`
}

// blockSize is how many instances are in memory at a time, whatever the count: enough that workers
// rarely wait for a block's last, few enough that a block of large ones stays small.
func blockSize(n int) int { return min(4096, max(1, 1<<22/(n+1))) }

// solveMany solves instances a block at a time, exactly or by savings.
func (a *app) solveMany(ctx context.Context, r setReport, problemsFrom func(done, count int) []*vrp.Problem, f *setFlags) error {
	m, err := solve.ForMany(f.method, r.Customers)
	if err != nil {
		return cli.AsUsage(err)
	}
	f.method = m.Name
	bar := a.NewBar(r.Instances, f.method)
	defer bar.End()
	start := time.Now()
	var cpc sample
	for cpc.n < r.Instances {
		done := cpc.n
		problems := problemsFrom(done, min(blockSize(r.Customers), r.Instances-done))
		solutions, err := m.SolveMany(ctx, problems, f.workers, func(n int) { bar.Set(done + n) })
		if err != nil {
			return err
		}
		for i, s := range solutions {
			if err := vrp.Validate(problems[i], s); err != nil {
				return fmt.Errorf("%s made invalid routes for instance %d: %w", f.method, f.First+uint64(done+i), err)
			}
			cpc.add(vrp.CPC(problems[i].Cost(s), r.Customers))
		}
	}
	bar.End()
	r.Method, r.Workers, r.Seconds = f.method, f.workers, time.Since(start).Seconds()
	r.MeanCPC, r.SECPC, r.MeanCost = cpc.mean, cpc.standardError(), cpc.mean*float64(r.Customers)
	r.PerSecond, r.BestKnown, r.Gap = float64(cpc.n)/r.Seconds, f.bestKnown, cli.Gap(cpc.mean, f.bestKnown)
	if f.json {
		return a.Emit(r)
	}
	return a.Table(func(w io.Writer) { r.print(w, a) })
}

func (r setReport) print(w io.Writer, a *app) {
	fmt.Fprintf(w, "%s\n", a.Bold(fmt.Sprintf("%s, %s, capacity %d, demands %d to %d, %s",
		report.Plural(int64(r.Instances), r.Distribution+" instance"), report.Plural(int64(r.Customers), "customer"), r.Capacity, r.DemandRange[0], r.DemandRange[1], r.Method)))
	if r.SECPC != nil {
		fmt.Fprintf(w, "mean CPC\t%.6f ± %.6f (standard error)\n", r.MeanCPC, *r.SECPC)
	} else {
		fmt.Fprintf(w, "CPC\t%.6f\n", r.MeanCPC)
	}
	fmt.Fprintf(w, "mean cost\t%.6f\n", r.MeanCost)
	if r.Gap != nil {
		fmt.Fprintf(w, "gap\t%s to %g\n", cli.Percent(*r.Gap), r.BestKnown)
	}
	fmt.Fprintf(w, "speed\t%.0f instances/s (%.3f s, %d at a time)\n", r.PerSecond, r.Seconds, r.Workers)
}

// sample gathers mean and variance in one pass (Welford), so that memory does not grow with the
// count.
type sample struct {
	n           int
	mean, sumSq float64 // sumSq: squared deviations from the mean
}

func (s *sample) add(x float64) {
	s.n++
	d := x - s.mean
	s.mean += d / float64(s.n)
	s.sumSq += d * (x - s.mean)
}

// standardError is the mean's; a single value has none.
func (s *sample) standardError() *float64 {
	if s.n < 2 {
		return nil
	}
	se := math.Sqrt(s.sumSq / float64(s.n-1) / float64(s.n))
	return &se
}

// manyReport is the search over many instances.
type manyReport struct {
	Method     string   `json:"method"`
	Instances  int      `json:"instances"`
	Customers  int      `json:"customers"`
	Each       float64  `json:"seconds_per_instance,omitempty"`
	Iterations int      `json:"iterations_per_instance,omitempty"`
	Workers    int      `json:"workers"`
	MeanCPC    float64  `json:"mean_cpc"`
	SECPC      *float64 `json:"se_cpc"`
	MeanCost   float64  `json:"mean_cost"`
	Seconds    float64  `json:"seconds"`
	BestKnown  float64  `json:"best_known,omitempty"`
	Gap        *float64 `json:"gap,omitempty"`
	Reference  *float64 `json:"reference_cost,omitempty"` // mean of the costs that the test set brings
	MeanGap    *float64 `json:"mean_gap,omitempty"`       // mean of the instances' gaps to them
	GapSE      *float64 `json:"se_gap,omitempty"`         // its standard error
	GapTo      string   `json:"gap_to,omitempty"`
	Optimal    int      `json:"compared_with_optimum,omitempty"`
	OptimumGap *float64 `json:"optimum_gap,omitempty"`
	OptimumSE  *float64 `json:"optimum_gap_se,omitempty"`
}

// optimumLimits bound what the search is compared with: customers, and instances.
const (
	optimumCustomers = 15
	optimumInstances = 100
)

func (a *app) searchMany(ctx context.Context, set *testset.Set, f *setFlags) error {
	problems, n := set.Problems, set.Customers()
	o := search.ReferenceOptions{Iterations: f.iterations, Workers: f.workers, Cache: search.CacheDir(),
		Warn: func(text string) { fmt.Fprintln(a.Stderr, "haul: "+text) }}
	r := manyReport{Method: solve.Search, Instances: len(problems), Customers: n, Iterations: f.iterations, Workers: f.workers, BestKnown: f.bestKnown}
	if f.iterations == 0 {
		o.Time, r.Each = f.each, f.each.Seconds()
	}
	bar := a.NewBar(len(problems), solve.Search)
	defer bar.End()
	o.Progress = bar.Set
	start := time.Now()
	costs, err := search.References(ctx, problems, o)
	if err != nil {
		return err
	}
	bar.End()
	r.Seconds = time.Since(start).Seconds()
	var cpc, cost, toReference, toOptimum sample
	mean := 0.0
	for i, c := range costs {
		if set.Rounded() {
			c = math.Round(1000*c) / 1000 // a sum of thousandths, to the last digit
		}
		cpc.add(vrp.CPC(c, problems[i].N()))
		cost.add(c)
		if set.Reference != nil {
			toReference.add(c/set.Reference[i] - 1)
			mean += set.Reference[i] / float64(len(costs))
		}
	}
	r.MeanCPC, r.SECPC, r.MeanCost, r.Gap = cpc.mean, cpc.standardError(), cost.mean, cli.Gap(cpc.mean, f.bestKnown)
	if set.Reference != nil {
		r.Reference, r.MeanGap, r.GapSE, r.GapTo = &mean, &toReference.mean, toReference.standardError(), set.Method
	}
	if n > 0 && n <= optimumCustomers {
		some := problems[:min(len(problems), optimumInstances)]
		best, _, err := vrp.OptimalSolutions(ctx, some, f.workers, nil)
		if err != nil {
			return err
		}
		for i, b := range best {
			toOptimum.add(costs[i]/b - 1)
		}
		r.Optimal, r.OptimumGap, r.OptimumSE = len(some), &toOptimum.mean, toOptimum.standardError()
	}
	if f.json {
		return a.Emit(r)
	}
	return a.Table(func(w io.Writer) { r.print(w, a) })
}

func (r manyReport) print(w io.Writer, a *app) {
	budget := fmt.Sprintf("%d iterations each", r.Iterations)
	if r.Iterations == 0 {
		budget = fmt.Sprintf("%g s each", r.Each)
	}
	customers := report.Plural(int64(r.Customers), "customer")
	if r.Customers == 0 {
		customers = "of several sizes"
	}
	fmt.Fprintf(w, "%s\n", a.Bold(fmt.Sprintf("%d instances, %s, search, %s", r.Instances, customers, budget)))
	errorBar := func(se *float64, scale float64) string {
		if se == nil {
			return ""
		}
		return fmt.Sprintf(" ± %.6f (standard error)", scale**se)
	}
	fmt.Fprintf(w, "mean CPC\t%.6f%s\n", r.MeanCPC, errorBar(r.SECPC, 1))
	fmt.Fprintf(w, "mean cost\t%.6f\n", r.MeanCost)
	if r.Gap != nil {
		fmt.Fprintf(w, "gap\t%s to %g\n", cli.Percent(*r.Gap), r.BestKnown)
	}
	if r.MeanGap != nil {
		fmt.Fprintf(w, "gap to %s\t%s %%%s\n", r.GapTo, report.Signed(100**r.MeanGap, 4), errorBar(r.GapSE, 100))
	}
	if r.OptimumGap != nil {
		fmt.Fprintf(w, "gap to optimum\t%s %%%s, first %d instances\n", report.Signed(100**r.OptimumGap, 4), errorBar(r.OptimumSE, 100), r.Optimal)
	}
	fmt.Fprintf(w, "time\t%.1f s, %d at a time; costs known from before took none\n", r.Seconds, r.Workers)
}
