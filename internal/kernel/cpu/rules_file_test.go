package cpu_test

import (
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"testing"

	"haul/internal/kernel"
	"haul/internal/kernel/cpu"
	"haul/internal/kernel/reference"
	"haul/internal/model"
	"haul/internal/plan"
	"haul/internal/rng"
	"haul/internal/rules"
	"haul/problems"
)

// lesson is a short training run: which rules, and how routes begin.
type lesson struct {
	rules          kernel.Rules
	drawing        kernel.Drawing
	customers      int
	starts         int
	forced, viewed bool
	baseline       bool // a greedy route of a frozen policy, else the mean of the starts
}

// trained is what a short run leaves: the routes of its last step and the weights.
type trained struct {
	actions, steps           []int32
	length, logProb, entropy []float32
	weights                  []float32
}

const lessonBatch = 6

// record records a step and returns its plan and the tensors to look at.
func (l *lesson) record(t testing.TB, dev kernel.Device, batch int) (*plan.Plan, *model.Network, *plan.Routes) {
	t.Helper()
	set := l.rules.Set
	m, err := model.NewGT(model.GTConfig{Width: 16, Heads: 2, Layers: 1, FeedMul: 2, Near: 0.3, Pairs: true, Views: l.viewed, Rules: set})
	if err != nil {
		t.Fatal(err)
	}
	p := plan.New("lesson", dev, batch, set.Nodes(l.customers), m.Layout())
	in := p.Drawn(l.rules, set.Nodes(l.customers), l.drawing)
	spec := plan.RolloutSpec{Starts: l.starts, MaxStep: set.MaxSteps(l.customers), Seed: 5, Keep: true, Forced: l.forced, Viewed: l.viewed}
	mode, given := kernel.SharedMean, (*kernel.Tensor)(nil)
	if l.baseline {
		greedy := plan.RolloutSpec{Choice: kernel.Greedy, Starts: 1, MaxStep: spec.MaxStep, Seed: 5}
		mode, given = kernel.Given, p.Rollout("baseline", m.Encode(p, 0, in, false), greedy, rng.Actions).Length
	}
	routes := p.Rollout("policy", m.Encode(p, 0, in, true), spec, rng.Actions)
	adv, base := p.Advantage(routes, mode, given, 0, plan.Comparison{})
	p.PolicyGradient(routes, adv)
	p.Backward()
	p.Optimize(&kernel.AdamW{Beta1: 0.9, Beta2: 0.99, Eps: 1e-8, MaxNorm: 1}, 1)
	p.TallyRoutes(routes, adv, base)
	return p, m, routes
}

// train makes three updates.
func (l *lesson) train(t testing.TB, dev kernel.Device) trained {
	t.Helper()
	p, m, routes := l.record(t, dev, lessonBatch)
	store, err := dev.NewStore(m.Layout(), true)
	check(t, err)
	defer store.Close()
	check(t, store.WriteWeights(model.Initial(m.Layout(), 3)))
	runner, err := p.Compile(dev, store)
	check(t, err)
	defer runner.Close()
	check(t, runner.SetControl(kernel.Control{LearningRate: 1e-2, Temperature: 1, Coefficients: map[string]float32{plan.EntropyBonus: 0.01}}))
	for range 3 {
		check(t, runner.Run())
	}
	rows := lessonBatch * l.starts
	out := trained{make([]int32, rows*routes.Actions.Shape[2]), make([]int32, rows), make([]float32, rows), make([]float32, rows), make([]float32, rows), make([]float32, m.Layout().Len)}
	check(t, runner.ReadBatch(routes.Actions, out.actions))
	check(t, runner.ReadBatch(routes.Steps, out.steps))
	check(t, runner.ReadBatch(routes.Length, out.length))
	check(t, runner.ReadBatch(routes.LogProb, out.logProb))
	check(t, runner.ReadBatch(routes.Entropy, out.entropy))
	check(t, store.ReadWeights(out.weights))
	return out
}

// same reports whether numbers are equal, bit for bit.
func same(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

// byFile returns the rules of a built-in problem's file with these settings.
func byFile(t testing.TB, name string, settings map[string]string) kernel.Rules {
	t.Helper()
	b, _ := problems.Find(name)
	p, err := rules.Compile(name+".go", b.Source(), settings)
	check(t, err)
	return kernel.Rules{Set: kernel.Compiled(p), Capacity: 30}
}

// TestFilesTrainAsTheRulesByHand: three updates with a problem's file end with the bits of those
// with the rules that stand in the device: routes, costs, probabilities and weights.
func TestFilesTrainAsTheRulesByHand(t *testing.T) {
	dev := open(t, cpu.Options{Workers: 2})
	drawing := kernel.Drawing{Seed: 9, Purpose: rng.TrainInstances, DemandMin: 1, DemandMax: 9, Symmetries: 1, Grid: 100}
	settings := map[string]string{"Capacity": "30", "DemandMax": "9"}
	for _, set := range kernel.RuleSets() {
		for k, l := range []lesson{{customers: 9, starts: 9, forced: true}, {customers: 9, starts: 7, viewed: true}, {customers: 20, starts: 1, baseline: true}, {customers: 66, starts: 3}} {
			t.Run(fmt.Sprint(set, k), func(t *testing.T) {
				d, own := drawing, map[string]string{}
				for key, v := range settings {
					own[key] = v
				}
				switch set {
				case kernel.TSP:
					own = nil
				case kernel.CVRPL:
					d.Range, own["Range"] = 2.8, "2.8"
				case kernel.VRP:
					d.Range, d.Mix, own["Range"], own["Mix"] = 2.8, 0xffffffff, "2.8", "-1"
				case kernel.MDVRP:
					d.Range, d.Mix, own["Range"], own["Mix"], own["MixSeveral"] = 2.8, 1<<64-1, "2.8", "-1", "-1"
				}
				l.rules, l.drawing = kernel.Rules{Set: set, Capacity: 30}, d
				want := l.train(t, dev)
				l.rules = byFile(t, set.String(), own)
				got := l.train(t, dev)
				if !slices.Equal(got.steps, want.steps) || !slices.Equal(got.actions, want.actions) {
					t.Fatalf("routes are\n%v\nwant\n%v", got.actions, want.actions)
				}
				if !same(got.length, want.length) || !same(got.logProb, want.logProb) || !same(got.entropy, want.entropy) {
					t.Errorf("costs %v, log-probabilities %v; want %v, %v", got.length, got.logProb, want.length, want.logProb)
				}
				if !same(got.weights, want.weights) {
					t.Errorf("digest of the weights %x, want %x", digest(got.weights), digest(want.weights))
				}
			})
		}
	}
}

func digest(weights []float32) uint64 {
	h := fnv.New64a()
	for _, x := range weights {
		fmt.Fprintf(h, "%x", math.Float32bits(x))
	}
	return h.Sum64()
}

// trap is a problem with dead ends, a forced start that is not allowed, a Steps that cuts routes
// off, and costs below 0: a vehicle may only go to nodes of a greater number than its own, and not
// to the first.
const trap = `package trap

import "haul/problem"

type Node struct {
	problem.Place
	problem.Site
}
type Instance struct{ Odd int32 }
type Vehicle struct{ Last, Count int32 }

func (in *Instance) Draw(r *problem.Random, n int32) { in.Odd = r.Below(2) }
func (v *Vehicle) Fits(in *Instance, at, to *Node) bool {
	return to.Index > v.Last && to.Index != 1 && to.Index%3 != in.Odd
}
func (v *Vehicle) Returns(in *Instance, at, to *Node, unvisited int32) bool {
	return v.Count > 2 && in.Odd == 1
}
func (v *Vehicle) Move(in *Instance, at, to *Node) (cost float32) {
	v.Last, v.Count = to.Index, v.Count+1
	return problem.Distance(at.Place, to.Place) - 1
}
func (v *Vehicle) Ended(in *Instance, at *Node, unvisited int32) bool { return at.Depot >= 0 }
func (v *Vehicle) Stuck(in *Instance, unvisited int32) float32         { return float32(unvisited) }
func (n *Node) Features(in *Instance) [3]float32 {
	return [3]float32{n.X, n.Y, float32(n.Index)}
}
func (v *Vehicle) Context(in *Instance, at *Node, unvisited int32) [2]float32 {
	return [2]float32{float32(v.Last), float32(unvisited)}
}
func Steps(n int32) int32 { return 5 }
`

// TestTrap: routes at dead ends, cut off, and begun where a forced customer is not allowed are
// those of the reference, at the same costs, and learning from them changes the weights alike.
func TestTrap(t *testing.T) {
	p, err := rules.Compile("trap.go", []byte(trap), nil)
	check(t, err)
	for _, l := range []lesson{{customers: 12, starts: 12, forced: true}, {customers: 12, starts: 4, viewed: true}, {customers: 5, starts: 1, baseline: true}} {
		l.rules = kernel.Rules{Set: kernel.Compiled(p)}
		l.drawing = kernel.Drawing{Seed: 3, Purpose: rng.TrainInstances, Symmetries: 1}
		got, want := l.train(t, open(t, cpu.Options{Workers: 1})), l.train(t, reference.New[float32](2))
		if !slices.Equal(got.actions, want.actions) || !slices.Equal(got.steps, want.steps) {
			t.Fatalf("routes %v of %v steps, want %v of %v", got.actions, got.steps, want.actions, want.steps)
		}
		if !same(got.length, want.length) {
			t.Errorf("costs %v, want %v", got.length, want.length)
		}
		for i, w := range want.weights {
			if math.Abs(float64(got.weights[i]-w)) > 2e-3 {
				t.Fatalf("weight %d is %v, want %v", i, got.weights[i], w)
			}
		}
		short := 0
		for i, n := range got.steps {
			if n < 5 && got.length[i] > 0 {
				short++
			}
			if first := got.actions[i*5]; first == 1 {
				t.Errorf("route %d begins at a customer who is not allowed", i)
			}
		}
		if short == 0 {
			t.Error("no route came to a dead end")
		}
	}
}

// BenchmarkRules times updates with rules by hand and with those of a file, in turn.
func BenchmarkRules(b *testing.B) {
	dev := open(b, cpu.Options{Workers: 2})
	for _, set := range kernel.RuleSets() {
		for _, file := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/file=%v", set, file), func(b *testing.B) {
				l := lesson{customers: 50, starts: 50, forced: true, rules: kernel.Rules{Set: set, Capacity: 40},
					drawing: kernel.Drawing{Seed: 9, Purpose: rng.TrainInstances, DemandMin: 1, DemandMax: 9, Symmetries: 1, Range: 2.8, Mix: 1<<64 - 1}}
				settings := map[string]string{"Capacity": "40", "DemandMax": "9"}
				switch set {
				case kernel.TSP:
					settings = nil
				case kernel.VRP:
					l.drawing.Mix, settings["Mix"] = 1<<32-1, "-1"
				case kernel.MDVRP:
					settings["Mix"], settings["MixSeveral"] = "-1", "-1"
				}
				if file {
					l.rules = byFile(b, set.String(), settings)
				}
				p, m, _ := l.record(b, dev, 16)
				store, err := dev.NewStore(m.Layout(), true)
				check(b, err)
				defer store.Close()
				check(b, store.WriteWeights(model.Initial(m.Layout(), 3)))
				runner, err := p.Compile(dev, store)
				check(b, err)
				defer runner.Close()
				check(b, runner.SetControl(kernel.Control{LearningRate: 1e-4, Temperature: 1}))
				for b.Loop() {
					check(b, runner.Run())
				}
			})
		}
	}
}
