package solve

import (
	"context"
	"fmt"
	"io"
	"math"
	"time"

	"haul/cmd/haul/cli"
	"haul/internal/report"
	"haul/internal/solve"
	"haul/internal/vrp"
	"haul/internal/vrp/testset"
)

type generatedReport struct {
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

// solveSet solves the instances of a public test set, or of a file, which is searched unless a
// method is named.
func (a *app) solveSet(ctx context.Context, set *testset.Set, f *solveFlags) error {
	if f.method == "" && f.testset.Name != cli.TestsetKool || f.method == solve.Search {
		return a.searchMany(ctx, set, f)
	}
	n := set.Customers()
	if n == 0 || f.testset.Name != cli.TestsetKool {
		return cli.Usagef("--testset %s is solved by the search: leave --method %s out", f.testset.Name, f.method)
	}
	r := generatedReport{Instances: len(set.Problems), Customers: n, Capacity: set.Capacity(), Distribution: set.Name, DemandRange: [2]int32{1, 9},
		Seed: testset.KoolSeed(f.testset.Split), First: f.src.First}
	return a.solveMany(ctx, r, func(done, count int) []*vrp.Problem { return set.Problems[done : done+count] }, f)
}

func (a *app) solveGenerated(ctx context.Context, f *solveFlags) error {
	src, err := f.src.Source()
	if err != nil {
		return err
	}
	if f.method == solve.Search {
		return a.searchGenerated(ctx, src, f)
	}
	r := generatedReport{Instances: f.src.Count, Customers: src.N, Capacity: src.Capacity, Distribution: string(src.Distribution),
		DemandRange: [2]int32{src.DemandMin, src.DemandMax}, Seed: src.Seed, First: f.src.First}
	return a.solveMany(ctx, r, func(done, count int) []*vrp.Problem { return cli.Generate(src, f.src.First+uint64(done), count) }, f)
}

// solveMany solves instances a block at a time, exactly or by savings.
func (a *app) solveMany(ctx context.Context, r generatedReport, problemsFrom func(done, count int) []*vrp.Problem, f *solveFlags) error {
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
				return fmt.Errorf("%s made invalid routes for instance %d: %w", f.method, f.src.First+uint64(done+i), err)
			}
			cpc.add(vrp.CPC(problems[i].Cost(s), r.Customers))
		}
	}
	bar.End()
	r.Method, r.Workers, r.Seconds = f.method, f.workers, time.Since(start).Seconds()
	r.MeanCPC, r.SECPC, r.MeanCost = cpc.mean, cpc.standardError(), cpc.mean*float64(r.Customers)
	r.PerSecond, r.BestKnown, r.Gap = float64(cpc.n)/r.Seconds, f.bestKnown, f.gap(cpc.mean)
	if f.json {
		return a.Emit(r)
	}
	return a.Table(func(w io.Writer) { r.print(w, a) })
}

func (r generatedReport) print(w io.Writer, a *app) {
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
