package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/pflag"

	"haul/internal/env/cvrp"
	"haul/internal/env/cvrp/search"
)

// testsetKool is the name of the test distribution of Kool et al. (2019): the unit square, demands 1 to 9.
const testsetKool = "kool"

// koolCapacity is what a vehicle carries there, by the number of customers.
var koolCapacity = map[int]int32{10: 20, 20: 30, 50: 40, 100: 50}

// kool sets the flags of generated instances to the test distribution.
func (f *solveFlags) kool(fs *pflag.FlagSet) error {
	if f.testset == "" {
		return nil
	}
	for _, name := range []string{"capacity", "distribution", "demand-range", "coord-range"} {
		if fs.Changed(name) {
			return usagef("--%s and --testset both describe the instances: use one of them", name)
		}
	}
	if f.testset != testsetKool {
		for _, name := range []string{"customers", "seed", "first"} {
			if fs.Changed(name) {
				return usagef("--%s is about generated instances, and --testset %s is a file: leave it out", name, f.testset)
			}
		}
		if !fs.Changed("count") {
			f.src.count = 0 // all of the file's
		}
		return nil
	}
	capacity, ok := koolCapacity[f.src.customers]
	if !ok {
		return usagef("--testset kool has 10, 20, 50 or 100 customers, not %d", f.src.customers)
	}
	f.src.capacity, f.src.distribution, f.src.demandRange = capacity, string(cvrp.Uniform), "1,9"
	return nil
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
	HGS        *float64 `json:"hgs_mean_cost,omitempty"`
	HGSGap     *float64 `json:"hgs_gap,omitempty"`    // mean of the instances' gaps
	HGSGapSE   *float64 `json:"hgs_gap_se,omitempty"` // its standard error
	Optimal    int      `json:"compared_with_optimum,omitempty"`
	OptimumGap *float64 `json:"optimum_gap,omitempty"`
	OptimumSE  *float64 `json:"optimum_gap_se,omitempty"`
}

func (a *app) searchGenerated(ctx context.Context, src cvrp.Source, f *solveFlags) error {
	return a.searchMany(ctx, generate(src, f.src.first, f.src.count), nil, f)
}

// solveTestSet searches the instances of a file.
func (a *app) solveTestSet(ctx context.Context, f *solveFlags) error {
	if f.method != "" && f.method != methodSearch {
		return usagef("--testset %s is solved by the search: leave --method %s out", f.testset, f.method)
	}
	set, err := cvrp.LoadTestSet(f.testset)
	if err != nil {
		return err
	}
	if n := f.src.count; n > 0 {
		if n > len(set.Problems) {
			return usagef("--count is %d, %s has %d instances", n, f.testset, len(set.Problems))
		}
		set.Problems = set.Problems[:n]
		if set.HGS != nil {
			set.HGS = set.HGS[:n]
		}
	}
	return a.searchMany(ctx, set.Problems, set.HGS, f)
}

// optimumLimits bound what the search is compared with: customers, and instances.
const (
	optimumCustomers = 15
	optimumInstances = 100
)

func (a *app) searchMany(ctx context.Context, problems []*cvrp.Problem, hgs []float64, f *solveFlags) error {
	n := problems[0].N()
	o := search.ReferenceOptions{Iterations: f.search.iterations, Workers: f.workers, Cache: search.CacheDir(),
		Warn: func(text string) { fmt.Fprintln(a.stderr, "haul: "+text) }}
	r := manyReport{Method: methodSearch, Instances: len(problems), Customers: n, Iterations: f.search.iterations, Workers: f.workers, BestKnown: f.bestKnown}
	if f.search.iterations == 0 {
		o.Time, r.Each = f.search.each, f.search.each.Seconds()
	}
	bar := a.newBar(len(problems), methodSearch)
	defer bar.end()
	o.Progress = bar.set
	start := time.Now()
	costs, err := search.References(ctx, problems, o)
	if err != nil {
		return err
	}
	bar.end()
	r.Seconds = time.Since(start).Seconds()
	var cpc, toHGS, toOptimum sample
	hgsMean := 0.0
	for i, c := range costs {
		cpc.add(cvrp.CPC(c, n))
		if hgs != nil {
			toHGS.add(c/hgs[i] - 1)
			hgsMean += hgs[i] / float64(len(hgs))
		}
	}
	r.MeanCPC, r.SECPC, r.MeanCost, r.Gap = cpc.mean, cpc.standardError(), cpc.mean*float64(n), f.gap(cpc.mean)
	if hgs != nil {
		r.HGS, r.HGSGap, r.HGSGapSE = &hgsMean, &toHGS.mean, toHGS.standardError()
	}
	if n <= optimumCustomers {
		some := problems[:min(len(problems), optimumInstances)]
		best, _, err := cvrp.OptimalSolutions(ctx, some, f.workers, nil)
		if err != nil {
			return err
		}
		for i, b := range best {
			toOptimum.add(costs[i]/b - 1)
		}
		r.Optimal, r.OptimumGap, r.OptimumSE = len(some), &toOptimum.mean, toOptimum.standardError()
	}
	if f.json {
		return a.emit(r)
	}
	return a.table(func(w io.Writer) { r.print(w, a) })
}

func (r manyReport) print(w io.Writer, a *app) {
	budget := fmt.Sprintf("%d iterations each", r.Iterations)
	if r.Iterations == 0 {
		budget = fmt.Sprintf("%g s each", r.Each)
	}
	fmt.Fprintf(w, "%s\n", a.bold(fmt.Sprintf("%d instances, %d customers, search, %s", r.Instances, r.Customers, budget)))
	errorBar := func(se *float64, scale float64) string {
		if se == nil {
			return ""
		}
		return fmt.Sprintf(" ± %.6f (standard error)", scale**se)
	}
	fmt.Fprintf(w, "mean CPC\t%.6f%s\n", r.MeanCPC, errorBar(r.SECPC, 1))
	fmt.Fprintf(w, "mean cost\t%.6f\n", r.MeanCost)
	if r.Gap != nil {
		fmt.Fprintf(w, "gap\t%s to %g\n", percent(*r.Gap), r.BestKnown)
	}
	if r.HGSGap != nil {
		fmt.Fprintf(w, "gap to HGS\t%+.4f %%%s\n", 100**r.HGSGap, errorBar(r.HGSGapSE, 100))
	}
	if r.OptimumGap != nil {
		fmt.Fprintf(w, "gap to optimum\t%+.4f %%%s, first %d instances\n", 100**r.OptimumGap, errorBar(r.OptimumSE, 100), r.Optimal)
	}
	fmt.Fprintf(w, "time\t%.1f s, %d at a time; costs known from before took none\n", r.Seconds, r.Workers)
}
