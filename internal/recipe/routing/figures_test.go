package routing

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"haul/internal/kernel"
	"haul/internal/policy"
	"haul/internal/rng"
	"haul/internal/run"
	"haul/internal/run/runtest"
	"haul/internal/vrp"
)

// figures are a sample's mean and the standard error of it, by their definitions: the deviation of
// the sample over the root of its size.
func figures(v []float64) (mean, se float64) {
	n := float64(len(v))
	for _, x := range v {
		mean += x / n
	}
	squares := 0.0
	for _, x := range v {
		squares += math.Pow(x-mean, 2)
	}
	return mean, math.Sqrt(squares/(n-1)) / math.Sqrt(n)
}

// gaps returns the gap of each cost to the optimum of its instance.
func gaps(costs, optimum []float64) (out []float64) {
	for i, c := range costs {
		out = append(out, c/optimum[i]-1)
	}
	return out
}

func same(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 1e-9*(1e-3+math.Abs(want))) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// evalFlags holds the given flags of an evaluation. The others have their defaults.
type evalFlags map[string]any

func (f evalFlags) Changed(name string) bool { _, ok := f[name]; return ok }

func (f evalFlags) value(name string) any {
	if v, ok := f[name]; ok {
		return v
	}
	for _, flag := range about.EvalFlags {
		if flag.Name == name {
			return flag.Default
		}
	}
	panic("no flag " + name)
}

func (f evalFlags) String(name string) string { return f.value(name).(string) }

func (f evalFlags) Int(name string) int { return f.value(name).(int) }

func (f evalFlags) Float(string) float64 { return 0 }

func evaluation(t *testing.T, dev kernel.Device, path string, flags evalFlags) *run.Evaluation {
	t.Helper()
	ck, err := run.Load(path, "")
	if err != nil {
		t.Fatal(err)
	}
	return &run.Evaluation{Path: path, Checkpoint: ck, Settings: ck.Settings, Device: func() (kernel.Device, error) { return dev, nil }, Workers: 1, Flags: flags, Plot: true,
		Progress: func(int, int) {}, Note: func(string) {}}
}

// TestFiguresAreThoseOfTheRoutes: means, gaps and standard errors of validation, of the final test
// and of an evaluation, worked out again from the routes of the same weights on the same instances.
func TestFiguresAreThoseOfTheRoutes(t *testing.T) {
	for _, geometric := range []bool{false, true} {
		t.Run(fmt.Sprint("geometric=", geometric), func(t *testing.T) {
			c := tiny(t, "training.num_epochs=1", "training.validation_instances=40", fmt.Sprint("training.use_geometric_mean=", geometric))
			dev := openCPU(t, 1)
			e, _ := whole(t, c, dev)
			p, err := policy.Load(dev, e.Info.Best)
			if err != nil {
				t.Fatal(err)
			}
			at := func(purpose rng.Purpose, count int) (costs, optimum []float64, tours [][]int32) {
				src := policy.SourceOf(c, purpose)
				out, err := p.Evaluate(t.Context(), policy.EvalOptions{Source: src, Count: count, Decode: policy.Greedy, KeepTours: true})
				if err != nil {
					t.Fatal(err)
				}
				optimum = make([]float64, count)
				if err := vrp.OptimalCosts(t.Context(), src, 0, count, 1, optimum, nil); err != nil {
					t.Fatal(err)
				}
				return out.Lengths, optimum, out.Tours
			}
			perCustomer := func(costs []float64) (mean, se float64) {
				if geometric {
					logs := make([]float64, len(costs))
					for i, c := range costs {
						logs[i] = math.Log(c)
					}
					m, s := figures(logs)
					return math.Exp(m) / 5, math.Exp(m) * s / 5
				}
				m, s := figures(costs)
				return m / 5, s / 5
			}
			row, sum := epochsOf(e)[0], e.Ending.Row.(*Summary)
			costs, optimum, _ := at(rng.ValidInstances, 40)
			mean, se := perCustomer(costs)
			same(t, "val_cpc", *row.ValCPC, mean)
			same(t, "val_se", *row.ValSE, se)
			gap, gapSE := figures(gaps(costs, optimum))
			same(t, "val_gap", *row.ValGap, gap)
			same(t, "val_gap_se", *row.ValGapSE, gapSE)
			reference, _ := perCustomer(optimum)
			same(t, "gap_to_cpc", row.GapToCPC, reference)
			same(t, "best_val_cpc", sum.BestCPC, mean)

			tested, best, tours := at(rng.TestInstances, 40)
			if slices.Equal(tested, costs) {
				t.Error("the test set is the validation set")
			}
			mean, se = perCustomer(tested)
			same(t, "test_cpc", sum.TestCPC, mean)
			same(t, "test_se", sum.TestSE, se)
			gap, gapSE = figures(gaps(tested, best))
			same(t, "test_gap", sum.TestGap, gap)
			same(t, "test_gap_se", sum.TestGapSE, gapSE)

			if geometric {
				return
			}
			result, err := Recipe{}.Evaluate(t.Context(), evaluation(t, dev, e.Info.Best, evalFlags{"count": 40}))
			if err != nil {
				t.Fatal(err)
			}
			j := result.Object().(*Evaluated)
			same(t, "mean_cpc", j.MeanCPC, mean)
			same(t, "se_cpc", j.SECPC, se)
			same(t, "mean_cost", j.MeanCost, 5*mean)
			same(t, "gap", j.Gap, gap)
			same(t, "gap_se", j.GapSE, gapSE)
			if j.GapTo != policy.Optimum || j.Instances != 40 || j.Epoch != 1 {
				t.Errorf("judged %+v", j)
			}
			// The picture shows the first test instance by both.
			if x := j.example; math.Abs(x.PolicyCost-tested[0]) > 1e-5 || math.Abs(x.ReferenceCost-best[0]) > 1e-9 || len(vrp.FromTour(tours[0]).Routes) != len(x.Policy.Routes) {
				t.Errorf("the example costs %v and %v, want %v and %v", x.PolicyCost, x.ReferenceCost, tested[0], best[0])
			}
		})
	}
}

// TestTheJudgeIsAsked: where a device states another length than its routes have, or visits a
// customer twice, validation, the final test and an evaluation fail; with strict_validation off the
// first two do not look.
func TestTheJudgeIsAsked(t *testing.T) {
	lie := map[string]func(t *kernel.Tensor, values any){
		"length": func(t *kernel.Tensor, values any) {
			if v, ok := values.([]float32); ok && strings.HasSuffix(t.Name, ".length") {
				v[0] += 0.5
			}
		},
		"route": func(t *kernel.Tensor, values any) {
			if v, ok := values.([]int32); ok && strings.HasSuffix(t.Name, ".actions") {
				v[0] = v[1]
			}
		},
	}
	for what, tamper := range lie {
		for _, purpose := range []rng.Purpose{rng.ValidInstances, rng.TestInstances} {
			for _, strict := range []bool{true, false} {
				dev := runtest.Watch(openCPU(t, 1))
				dev.Tamper = func(p *kernel.Program, tensor *kernel.Tensor, values any) {
					if g := runtest.Ops[*kernel.Generate](p.PerShard); len(g) == 1 && g[0].Purpose == purpose {
						tamper(tensor, values)
					}
				}
				c := tiny(t, "training.num_epochs=1", fmt.Sprint("experiment.strict_validation=", strict))
				o := options(c, dev)
				o.Dir = runtest.OpenDir(t, runtest.Folder(t), false)
				err := run.Run(t.Context(), o)
				if strict && (err == nil || !strings.Contains(err.Error(), "the policy's route is invalid")) || !strict && err != nil {
					t.Errorf("a wrong %s in the instances of purpose %d, strict %v: %v", what, purpose, strict, err)
				}
				if strict || purpose != rng.TestInstances {
					continue
				}
				if _, err := (Recipe{}).Evaluate(t.Context(), evaluation(t, dev, o.Dir.Best(), evalFlags{"count": 9})); err == nil || !strings.Contains(err.Error(), "the policy's route is invalid") {
					t.Errorf("a wrong %s in an evaluation: %v", what, err)
				}
			}
		}
	}
}
