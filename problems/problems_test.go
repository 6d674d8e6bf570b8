package problems

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"

	"haul/internal/kernel"
	"haul/internal/kernel/host"
	"haul/internal/kernel/reference"
	"haul/internal/rng"
	"haul/internal/rules"
	"haul/internal/rules/eval"
	"haul/internal/rules/native"
)

// rulesOf compiles a built-in problem.
func rulesOf(t *testing.T, name string, settings map[string]string) (*rules.Problem, *native.Form) {
	t.Helper()
	b, ok := Find(name)
	if !ok {
		t.Fatalf("no problem %s", name)
	}
	p, err := rules.Compile(name+".go", b.Source(), settings)
	if err != nil {
		t.Fatal(err)
	}
	n, err := native.New(p, b.Types, b.Steps)
	if err != nil {
		t.Fatal(err)
	}
	return p, n
}

// drawn is a case: settings of the file and of the kernels' generator that mean the same.
type drawn struct {
	settings map[string]string
	op       kernel.Generate
}

// randomCase draws the settings of case i of a rule set.
func randomCase(set kernel.RuleSet, i int, r *rand.Rand) drawn {
	low := 1 + r.Int32N(10)
	c := drawn{map[string]string{}, kernel.Generate{
		Instances: kernel.Instances{Rules: kernel.Rules{Set: set, Capacity: 20 + r.Int32N(60)}},
		Drawing: kernel.Drawing{Seed: r.Uint64(), Purpose: rng.TrainInstances, DemandMin: low, DemandMax: low + r.Int32N(10),
			Symmetries: 1 + 7*r.IntN(2), Grid: []int32{0, 100}[r.IntN(2)]},
	}}
	o := &c.op
	if set == kernel.TSP {
		return c
	}
	if set != kernel.CVRP {
		o.Range = 1 + 3*r.Float32()
		c.settings["Range"] = fmt.Sprint(o.Range)
	}
	if r.IntN(3) == 0 {
		o.CapacityMin, o.Capacity = 20+r.Int32N(10), kernel.LoadUnit
		o.CapacityMax = o.CapacityMin + r.Int32N(100)
		c.settings["CapacityMin"], c.settings["CapacityMax"] = fmt.Sprint(o.CapacityMin), fmt.Sprint(o.CapacityMax)
	} else {
		c.settings["Capacity"] = fmt.Sprint(o.Capacity)
	}
	c.settings["DemandMin"], c.settings["DemandMax"] = fmt.Sprint(o.DemandMin), fmt.Sprint(o.DemandMax)
	mix := r.Uint64()
	if i%2 == 0 {
		mix = 1 << (i / 2 % 64) // one kind alone, each in its turn
	}
	switch set {
	case kernel.VRP:
		if uint32(mix) == 0 {
			mix = 1 << 5
		}
		o.Mix = uint64(uint32(mix))
		c.settings["Mix"] = fmt.Sprint(int32(mix))
	case kernel.MDVRP:
		o.Mix = mix
		c.settings["Mix"], c.settings["MixSeveral"] = fmt.Sprint(int32(mix)), fmt.Sprint(int32(mix>>32))
	}
	return c
}

// cases is the number of instances per rule set, routes the number of random routes through each.
const cases, routes = 136, 3

// TestFilesAreTodaysRules compares the files, compiled and native, with the rules of the kernels:
// the instances drawn, the features, and along random routes the nodes allowed, the contexts, the
// costs and the ends, all bit for bit.
func TestFilesAreTodaysRules(t *testing.T) {
	for k, set := range kernel.RuleSets() {
		t.Run(set.String(), func(t *testing.T) {
			t.Parallel()
			kinds := map[kernel.Attributes]bool{}
			mixed := 0
			for i := range cases {
				r := rand.New(rand.NewPCG(uint64(i), uint64(k)))
				c := randomCase(set, i, r)
				p, nat := rulesOf(t, set.String(), c.settings)
				forms := []rules.Form{eval.New(p)}
				if i%8 == 0 { // reflection is slow
					forms = append(forms, nat)
				}
				n := 1 + r.IntN(30)
				if i%40 == 0 {
					n = 60 + r.IntN(10) // more than one word of a mask
				}
				for _, form := range forms {
					kind, m := compareToday(t, p, form, &c.op, uint64(i), n, r)
					kinds[kind] = true
					mixed += m
				}
				if t.Failed() {
					t.Fatalf("case %d: %d customers, %v", i, n, c.settings)
				}
			}
			if want := map[kernel.RuleSet]int{kernel.VRP: 32, kernel.MDVRP: 64}[set]; len(kinds) < want {
				t.Errorf("%d kinds of instances were drawn, want %d", len(kinds), want)
			}
			if mixed == 0 && set != kernel.TSP {
				t.Error("no step forbade some customers and allowed others")
			}
		})
	}
}

// compareToday compares instance g of both, and routes through it. It returns the instance's kind
// and the number of steps whose masks are mixed.
func compareToday(t *testing.T, p *rules.Problem, form rules.Form, o *kernel.Generate, g uint64, n int, r *rand.Rand) (kernel.Attributes, int) {
	t.Helper()
	count := o.Set.Nodes(n)
	x, y := make([]float32, count), make([]float32, count)
	nodes := make([]int32, count*len(o.Set.Columns()))
	reference.Generate(x, y, nodes, o, g)
	in := p.Draw(form, &rules.Drawing{Seed: o.Seed, Purpose: o.Purpose, Grid: o.Grid, Symmetries: o.Symmetries}, g, n)
	if p.Nodes(n) != count || p.Steps(form, n) != o.Set.MaxSteps(n) {
		t.Fatalf("%d nodes and %d steps, want %d and %d", p.Nodes(n), p.Steps(form, n), count, o.Set.MaxSteps(n))
	}
	wide := len(o.Set.Features())
	want := reference.Matrix[float32]{Rows: count, Cols: wide, Stride: wide, Data: make([]float32, count*wide)}
	reference.Features(want, x, y, nodes, o.Set, float32(o.Capacity))
	got := make([]float32, p.File.Features)
	for j := range count {
		p.NodeFeatures(form, in, j, got)
		for k, w := range want.Row(j) {
			if math.Float32bits(w) != math.Float32bits(got[k]) {
				t.Fatalf("feature %s of node %d is %v, want %v", o.Set.Features()[k], j, got[k], w)
			}
		}
	}
	mixed := 0
	for range routes {
		mixed += walkToday(t, p, form, in, reference.NewTour(o.Rules, nodes), x, y, r)
	}
	if o.Set == kernel.VRP || o.Set == kernel.MDVRP {
		return kernel.Attributes(nodes[host.VRPKind]), mixed
	}
	return 0, mixed
}

// walkToday walks one random route by both rules.
func walkToday(t *testing.T, p *rules.Problem, form rules.Form, in *rules.Instance, tour *reference.Tour, x, y []float32, r *rand.Rand) (mixed int) {
	t.Helper()
	route := rules.NewRoute(p, form, in)
	mask, context := make([]uint64, (len(x)+63)/64), make([]float32, p.File.Context)
	var cost float32
	for step := 0; !route.Done; step++ {
		if step == p.Steps(form, in.Customers) {
			t.Fatalf("%d steps, and no end", step)
		}
		count := route.Allowed(mask)
		var nodes []int
		for i, w := range mask {
			for ; w != 0; w &= w - 1 {
				nodes = append(nodes, i*64+bits.TrailingZeros64(w))
			}
		}
		want := tour.Allowed()
		if fmt.Sprint(nodes) != fmt.Sprint(want) || count != len(want) {
			t.Fatalf("step %d at node %d: allowed %v (%d), want %v", step, route.At, nodes, count, want)
		}
		if count > 1 && count < route.Unvisited {
			mixed++
		}
		route.Context(context)
		for k, w := range reference.ContextOf[float32](tour) {
			if math.Float32bits(w) != math.Float32bits(context[k]) {
				t.Fatalf("step %d: number %d of the context is %v, want %v", step, k, context[k], w)
			}
		}
		next := want[r.IntN(len(want))]
		from, to := tour.Leg(next)
		cost += host.Leg(x[from], y[from], x[to], y[to])
		tour.Visit(next)
		route.Visit(next)
		if math.Float32bits(route.Cost) != math.Float32bits(cost) || route.Done != tour.Done() || route.At != tour.Node() {
			t.Fatalf("step %d to node %d: cost %v, done %v; want %v, %v", step, next, route.Cost, route.Done, cost, tour.Done())
		}
	}
	return mixed
}

// TestNothingIsFused: a product that Go may fuse with a sum would make the native form differ from
// the compiled one on some processors.
func TestNothingIsFused(t *testing.T) {
	for _, b := range All() {
		p, err := rules.Compile(b.Name+".go", b.Source(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range p.File.Fusible() {
			t.Error(e)
		}
	}
}
