package vrp

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"haul/internal/rng"
)

// allRouteSets lists every way to serve n customers: each set of routes, each route in each
// direction. Every set of n customers comes from one of n-1 by putting customer n in one place.
func allRouteSets(n int) []Solution {
	sets := []Solution{{}}
	for c := int32(1); c <= int32(n); c++ {
		var grown []Solution
		for _, s := range sets {
			for r := range len(s.Routes) + 1 {
				length := 0
				if r < len(s.Routes) {
					length = len(s.Routes[r])
				}
				for at := range length + 1 {
					g := Solution{Routes: append([][]int32(nil), s.Routes...)}
					if r == len(s.Routes) {
						g.Routes = append(g.Routes, []int32{c})
					} else {
						old := s.Routes[r]
						route := append(append(append([]int32(nil), old[:at]...), c), old[at:]...)
						g.Routes[r] = route
					}
					grown = append(grown, g)
					if r == len(s.Routes) {
						break
					}
				}
			}
		}
		sets = grown
	}
	return sets
}

// bruteForce is the least cost of all route sets that keep the capacity.
func bruteForce(p *Problem, sets []Solution) float64 {
	best := math.Inf(1)
next:
	for _, s := range sets {
		for _, r := range s.Routes {
			load := int32(0)
			for _, c := range r {
				load += p.Demand[c]
			}
			if load > p.Capacity {
				continue next
			}
		}
		best = min(best, p.Cost(s))
	}
	return best
}

// A set of lists of n things: 1, 3, 13, 73, 501, 4051 (OEIS A000262).
func TestAllRouteSetsCounts(t *testing.T) {
	for n, want := range []int{1, 1, 3, 13, 73, 501, 4051} {
		if got := len(allRouteSets(n)); got != want {
			t.Errorf("%d route sets of %d customers, want %d", got, n, want)
		}
	}
}

// TestExactEqualsBruteForce covers every metric, asymmetric weights included. Rounded, ceiled and
// integer weights must agree to the bit; for the Exact metric the two may take routes of equal
// length whose float64 sums differ: at most 12 legs of 2^-53 each, far inside 1e-13 relative.
func TestExactEqualsBruteForce(t *testing.T) {
	instances := map[int]int{1: 100, 2: 400, 3: 1000, 4: 2000, 5: 2000, 6: 800}
	for n, count := range instances {
		if testing.Short() {
			count /= 10
		}
		sets := allRouteSets(n)
		e, err := NewExact(n)
		if err != nil {
			t.Fatal(err)
		}
		src := gridSource(3, n)
		b := NewBatch(1, n, 0)
		for i := range count {
			src.Capacity = []int32{10, 17, 30, 60}[i%4]
			src.Distribution = []Distribution{Grid, Uniform}[i/4%2]
			src.Fill(b, uint64(i))
			for _, metric := range []Metric{Exact, Rounded, Ceil, Explicit} {
				p := b.Problem(0)
				if metric != Exact {
					p = src.FileProblem(uint64(i))
					p.Metric = metric
				}
				if metric == Explicit {
					p.Weights = make([]float64, (n+1)*(n+1))
					for w := range p.Weights {
						p.Weights[w] = float64(rng.Below(rng.At(9, uint64(i), uint32(w), rng.Search)[0], 50))
					}
				}
				want := bruteForce(p, sets)
				got, s := e.Solve(p)
				within := 0.0
				if metric == Exact {
					within = 1e-13 * want
					if cost := e.SolveBatch(b, 0); math.Abs(cost-want) > within {
						t.Fatalf("N=%d instance %d: SolveBatch %v, brute force %v", n, i, cost, want)
					}
				}
				if math.Abs(got-want) > within {
					t.Fatalf("N=%d instance %d metric %d: exact %v, brute force %v", n, i, metric, got, want)
				}
				if err := Validate(p, s); err != nil {
					t.Fatalf("N=%d instance %d metric %d: routes %v: %v", n, i, metric, s.Routes, err)
				}
			}
		}
	}
}

// plainOptimum is the same recurrence without any of its shortcuts: every subset is tried as the
// next route, and a route is the best of all orders.
func plainOptimum(p *Problem) float64 {
	n := p.N()
	var shortest func(at int, left uint32) float64
	shortest = func(at int, left uint32) float64 {
		if left == 0 {
			return p.Dist(at, 0)
		}
		best := math.Inf(1)
		for c := 1; c <= n; c++ {
			if bit := uint32(1) << (c - 1); left&bit != 0 {
				best = min(best, p.Dist(at, c)+shortest(c, left^bit))
			}
		}
		return best
	}
	tour := make([]float64, 1<<n)
	best := make([]float64, 1<<n)
	for set := uint32(1); set < 1<<n; set++ {
		load := int32(0)
		for c := 1; c <= n; c++ {
			load += p.Demand[c] * int32(set>>(c-1)&1)
		}
		tour[set], best[set] = math.Inf(1), math.Inf(1)
		if load <= p.Capacity {
			tour[set] = shortest(0, set)
		}
		for sub := set; sub != 0; sub = (sub - 1) & set {
			best[set] = min(best[set], tour[sub]+best[set^sub])
		}
	}
	return best[1<<n-1]
}

// TestExactEqualsPlainRecurrence reaches past brute force's N, where the partition skips sets.
func TestExactEqualsPlainRecurrence(t *testing.T) {
	e, err := NewExact(10)
	if err != nil {
		t.Fatal(err)
	}
	for n := 7; n <= 10; n++ {
		b := NewBatch(24, n, 0)
		src := gridSource(8, n)
		src.Capacity = []int32{23, 21, 19, 17}[n-7]
		src.Fill(b, 0)
		for i := range b.B {
			want := plainOptimum(b.Problem(i))
			if got := e.SolveBatch(b, i); math.Abs(got-want) > 1e-13*want {
				t.Errorf("N=%d instance %d: exact %v, plain %v", n, i, got, want)
			}
		}
	}
}

// TestExactRoomForMore solves small problems with a solver made for larger ones, after a larger
// one.
func TestExactRoomForMore(t *testing.T) {
	roomy, err := NewExact(11)
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint64(200) {
		n := 1 + int(i*7%11)
		tight, err := NewExact(n)
		if err != nil {
			t.Fatal(err)
		}
		b := NewBatch(1, n, 0)
		gridSource(5, n).Fill(b, i)
		want, got := tight.SolveBatch(b, 0), roomy.SolveBatch(b, 0)
		cost, s := roomy.Solve(b.Problem(0))
		if got != want || math.Abs(cost-want) > 1e-13*want {
			t.Fatalf("N=%d instance %d: roomy %v and %v, tight %v", n, i, got, cost, want)
		}
		if err := Validate(b.Problem(0), s); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPublishedMean holds the published optimum of N=6, capacity 30: 0.466568 ± 0.000284 (one
// standard error), within three combined standard errors.
func TestPublishedMean(t *testing.T) {
	const n, count = 6, 20000
	costs := make([]float64, count)
	if err := OptimalCosts(context.Background(), gridSource(42, n), 0, count, 2, costs, nil); err != nil {
		t.Fatal(err)
	}
	mean, variance := meanVariance(costs)
	cpc, se := CPC(mean, n), CPC(math.Sqrt(variance/count), n)
	if bound := 3 * math.Hypot(se, 0.000284); math.Abs(cpc-0.466568) > bound {
		t.Errorf("mean CPC %.6f ± %.6f, want 0.466568 within %.6f", cpc, se, bound)
	}
}

func TestOptimalCostsDoNotDependOnWorkers(t *testing.T) {
	src := gridSource(11, 8)
	const count = 333 // the last chunk is not full
	var want []float64
	for _, workers := range []int{0, 1, 2, 5} {
		got := make([]float64, count)
		last := 0
		err := OptimalCosts(context.Background(), src, 40, count, workers, got, func(done int) {
			if done <= last {
				t.Errorf("progress went from %d to %d", last, done)
			}
			last = done
		})
		if err != nil || last != count {
			t.Fatalf("%d workers: done %d, error %v", workers, last, err)
		}
		if want == nil {
			want = got
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d workers change the results:\n%s", workers, diff)
		}
	}
	problems := make([]*Problem, 70)
	b := NewBatch(len(problems), 8, 0)
	src.Fill(b, 40)
	for i := range problems {
		problems[i] = b.Problem(i)
	}
	costs, solutions, err := OptimalSolutions(context.Background(), problems, 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range problems {
		if err := Validate(p, solutions[i]); err != nil || math.Abs(costs[i]-want[i]) > 1e-13*want[i] {
			t.Errorf("instance %d: cost %v, want %v; %v", i, costs[i], want[i], err)
		}
	}
}

func TestOptimalCostsStop(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	out := make([]float64, 100000)
	err := OptimalCosts(ctx, gridSource(1, 10), 0, len(out), 2, out, func(int) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
	if out[len(out)-1] != 0 {
		t.Error("the last instance was solved after the end of the context")
	}
}

// TestExactHalts ends a solve from inside: at N=18 both steps reach their checks.
func TestExactHalts(t *testing.T) {
	closed := make(chan struct{})
	close(closed)
	b := NewBatch(1, 18, 0)
	gridSource(1, 18).Fill(b, 0)
	e, err := NewExact(18)
	if err != nil {
		t.Fatal(err)
	}
	e.SolveBatch(b, 0)
	e.halt = closed
	if e.tours(18, 30) {
		t.Error("tours ran to its end after the halt")
	}
	if got := e.partition(18, 30); got != infinite {
		t.Errorf("partition returned %d after the halt", got)
	}
}

func TestExactRefusals(t *testing.T) {
	for _, c := range []struct {
		n    int
		want string
	}{{0, "at least 1"}, {-3, "at least 1"}, {MaxExactN + 1, "largest N that fits is 22"}} {
		if _, err := NewExact(c.n); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("NewExact(%d): error %v, want %q", c.n, err, c.want)
		}
	}
	if m := ExactMemory(MaxExactN); m > 1<<30 {
		t.Errorf("the largest N takes %d bytes, more than 1 GiB", m)
	}
	heavy := &Problem{Name: "heavy", Capacity: 4, Demand: []int32{0, 3, 5}, X: []float64{0, 1, 2}, Y: []float64{0, 0, 0}}
	if _, _, err := OptimalSolutions(context.Background(), []*Problem{heavy}, 1, nil); err == nil || !strings.Contains(err.Error(), "customer 2 demands 5") {
		t.Errorf("error %v, want customer 2 named", err)
	}
	e, err := NewExact(2)
	if err != nil {
		t.Fatal(err)
	}
	if cost, s := e.Solve(heavy); !math.IsInf(cost, 1) || len(s.Routes) != 0 {
		t.Errorf("an unservable customer costs %v with routes %v, want +Inf and none", cost, s.Routes)
	}
}

func TestSolveBatchAllocatesNothing(t *testing.T) {
	b := NewBatch(4, 10, 0)
	gridSource(1, 10).Fill(b, 0)
	e, err := NewExact(10)
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(20, func() { e.SolveBatch(b, 2) }); n != 0 {
		t.Errorf("SolveBatch allocates %v times", n)
	}
}

func BenchmarkExact(b *testing.B) {
	for _, c := range []struct {
		name string
		n    int
	}{{"N=6", 6}, {"N=10", 10}, {"N=15", 15}} {
		batch := NewBatch(64, c.n, 0)
		gridSource(42, c.n).Fill(batch, 0)
		e, err := NewExact(c.n)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for i := range b.N {
				e.SolveBatch(batch, i%batch.B)
			}
		})
	}
}

// TestExactOfOneVehicle: with one vehicle the optimum is the best tour of all, also where several
// tours would be shorter; what it cannot carry is refused, and so are two vehicles.
func TestExactOfOneVehicle(t *testing.T) {
	sets := allRouteSets(5)
	for seed := range uint64(20) {
		p := &Problem{Name: "one", Vehicles: 1, Capacity: 15, Demand: []int32{0, 1, 2, 3, 4, 5}, Metric: Explicit, Weights: make([]float64, 36)}
		for i := range p.Weights {
			p.Weights[i] = 1 + float64(rng.Below(rng.At(seed, uint64(i), 0, 1)[0], 9))
			if i < 6 || i%6 == 0 {
				p.Weights[i] /= 8 // the depot is near to all, and every further tour a gain
			}
		}
		best, split := math.Inf(1), math.Inf(1)
		for _, s := range sets {
			if split = min(split, p.Cost(s)); len(s.Routes) == 1 {
				best = min(best, p.Cost(s))
			}
		}
		costs, solutions, err := OptimalSolutions(context.Background(), []*Problem{p}, 1, nil)
		if err != nil || math.Abs(costs[0]-best) > 1e-9 || len(solutions[0].Routes) != 1 || Validate(p, solutions[0]) != nil {
			t.Errorf("seed %d: %v, %v, %v; the best tour is %v", seed, costs, solutions, err, best)
		}
		if split >= best {
			t.Errorf("seed %d: no two tours are shorter than one", seed)
		}
		p.Capacity = 14
		if _, _, err := OptimalSolutions(context.Background(), []*Problem{p}, 1, nil); err == nil || !strings.Contains(err.Error(), "demand 15, and its one vehicle carries 14") {
			t.Errorf("one too many: %v", err)
		}
		p.Vehicles = 2
		if _, _, err := OptimalSolutions(context.Background(), []*Problem{p}, 1, nil); err == nil || !strings.Contains(err.Error(), "it has a fleet of 2") {
			t.Errorf("two vehicles: %v", err)
		}
	}
}

// TestTheExactMethodNamesWhatItRefuses by its name, where it has one.
func TestTheExactMethodNamesWhatItRefuses(t *testing.T) {
	for name, want := range map[string]string{"": "and this is not such a problem", "ring": "and ring is not such a problem"} {
		p := &Problem{Name: name, X: make([]float64, 2), Y: make([]float64, 2), Demand: []int32{0, 1}, Capacity: 1, MaxDuration: 1}
		if _, _, err := OptimalSolutions(context.Background(), []*Problem{p}, 1, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", name, err)
		}
	}
}
