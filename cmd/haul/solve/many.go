package solve

import (
	"context"
	"fmt"
	"io"
	"math"
	"time"

	"haul/cmd/haul/cli"
	"haul/internal/report"
	"haul/internal/search"
	"haul/internal/solve"
	"haul/internal/vrp"
	"haul/internal/vrp/testset"
)

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

func (a *app) searchGenerated(ctx context.Context, src vrp.Source, f *solveFlags) error {
	return a.searchMany(ctx, &testset.Set{Problems: cli.Generate(src, f.src.First, f.src.Count)}, f)
}

// optimumLimits bound what the search is compared with: customers, and instances.
const (
	optimumCustomers = 15
	optimumInstances = 100
)

func (a *app) searchMany(ctx context.Context, set *testset.Set, f *solveFlags) error {
	problems, n := set.Problems, set.Customers()
	o := search.ReferenceOptions{Iterations: f.search.iterations, Workers: f.workers, Cache: search.CacheDir(),
		Warn: func(text string) { fmt.Fprintln(a.Stderr, "haul: "+text) }}
	r := manyReport{Method: solve.Search, Instances: len(problems), Customers: n, Iterations: f.search.iterations, Workers: f.workers, BestKnown: f.bestKnown}
	if f.search.iterations == 0 {
		o.Time, r.Each = f.search.each, f.search.each.Seconds()
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
	r.MeanCPC, r.SECPC, r.MeanCost, r.Gap = cpc.mean, cpc.standardError(), cost.mean, f.gap(cpc.mean)
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
