package walk

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"haul/internal/rng"
	"haul/internal/rules"
	"haul/internal/rules/eval"
	"haul/internal/rules/random"
	"haul/internal/rules/rulestest"
	"haul/problems"
)

// TestMachineIsThePlainForm draws instances of the built-in problems and walks random routes by a
// Machine and plainly: the words, features, masks, contexts, costs and ends are equal, bit for bit.
func TestMachineIsThePlainForm(t *testing.T) {
	for _, b := range problems.All() {
		t.Run(b.Name, func(t *testing.T) {
			for seed := range uint64(60) {
				r := rand.New(rand.NewPCG(seed, 3))
				settings := map[string]string{}
				switch b.Name {
				case "vrp":
					settings["Mix"] = fmt.Sprint(int32(r.Uint32()))
				case "mdvrp":
					settings["Mix"], settings["MixSeveral"] = fmt.Sprint(int32(r.Uint32())), fmt.Sprint(int32(r.Uint32()))
				}
				p, err := rules.Compile(b.Name+".go", b.Source(), settings)
				if err != nil {
					t.Fatal(err)
				}
				n := []int{1, 10, 61, 62, 63, 64, 65, 130}[seed%8]
				compare(t, p, seed, n, r)
			}
		})
	}
}

// TestMachineRunsRandomFiles is TestMachineIsThePlainForm on random files, which have every method,
// dead ends, nodes that open others and nodes that stay.
func TestMachineRunsRandomFiles(t *testing.T) {
	seen := 0
	for seed := range uint64(400) {
		text := random.File(random.Options{Seed: seed, Wild: seed%2 == 1})
		p, err := rules.Compile("random.go", []byte(text), nil)
		if err != nil {
			continue // about one in five overflows a constant
		}
		seen++
		r := rand.New(rand.NewPCG(seed, 4))
		for range 4 {
			compare(t, p, seed, 1+r.IntN(12), r)
			if t.Failed() {
				t.Fatalf("seed %d\n%s", seed, text)
			}
		}
	}
	if seen < 200 {
		t.Errorf("%d files compile", seen)
	}
}

// compare draws an instance and walks three routes through it side by side.
func compare(t *testing.T, p *rules.Problem, seed uint64, n int, r *rand.Rand) {
	t.Helper()
	form := eval.New(p)
	d := &rules.Drawing{Seed: seed, Purpose: rng.Instances, Symmetries: 1 + 7*int(seed&1), Grid: int32(seed & 2 * 50)}
	in := p.Draw(form, d, seed, n)
	m := New(p, n, 3)
	words := make([]uint32, Words(p, n))
	m.Draw(d, seed, words)
	wide := len(p.Node)
	for j := range p.Nodes(n) {
		for w, f := range p.Node {
			if !rules.Same(f.Kind, words[j*wide+w], in.Nodes[w][j]) {
				t.Errorf("%s of node %d is %#x, want %#x", f.Path, j, words[j*wide+w], in.Nodes[w][j])
				return
			}
		}
	}
	for i, f := range p.Instance {
		if got := words[p.Nodes(n)*wide+i]; !rules.Same(f.Kind, got, in.Words[i]) {
			t.Errorf("%s of the instance is %#x, want %#x", f.Path, got, in.Words[i])
			return
		}
	}
	features, want := make([]float32, p.Nodes(n)*p.File.Features), make([]float32, p.File.Features)
	m.Features(words, features)
	for j := range p.Nodes(n) {
		p.NodeFeatures(form, in, j, want)
		if !sameFloats(features[j*len(want):][:len(want)], want) {
			t.Errorf("features of node %d are %v, want %v", j, features[j*len(want):][:len(want)], want)
			return
		}
	}
	m.Open(words)
	for i := range 3 {
		walkBoth(t, p, m, i, rules.NewRoute(p, form, in), n, r)
	}
}

// walkBoth walks one random route. A second route of the Machine follows without costs.
func walkBoth(t *testing.T, p *rules.Problem, m *Machine, i int, plain *rules.Route, n int, r *rand.Rand) {
	t.Helper()
	route, behind := m.Start(i), m.Start((i+1)%3)
	got, want := make([]uint64, (p.Nodes(n)+63)/64), make([]uint64, (p.Nodes(n)+63)/64)
	context, plainContext := make([]float32, p.File.Context), make([]float32, p.File.Context)
	for limit := p.Steps(eval.New(p), n); !plain.Done && plain.Steps < limit; {
		count := plain.Allowed(want)
		c, one := m.Allowed(route, got)
		if c != count || !slices.Equal(got, want) || c > 0 && want[one/64]>>(one%64)&1 == 0 {
			t.Errorf("step %d: %d nodes %#x are allowed, one of them %d, want %d nodes %#x", plain.Steps, c, got, one, count, want)
			return
		}
		if c, _ := m.Allowed(behind, got); c != count || !slices.Equal(got, want) {
			t.Errorf("step %d: the route that follows may go to %#x, want %#x", plain.Steps, got, want)
			return
		}
		if count == 0 {
			plain.Strand()
			m.Strand(route)
		} else {
			plain.Context(plainContext)
			if m.Context(route, context); !sameFloats(context, plainContext) {
				t.Errorf("step %d: the context is %v, want %v", plain.Steps, context, plainContext)
				return
			}
			j := rulestest.Nth(want, r.IntN(count))
			plain.Visit(j)
			m.Visit(route, j)
			m.Follow(behind, j)
		}
		if !sameFloats([]float32{route.Cost}, []float32{plain.Cost}) || route.Done != plain.Done || int(route.At) != plain.At || int(route.Unvisited) != plain.Unvisited {
			t.Errorf("step %d: cost %v, done %v at node %d; want %v, %v, %d", plain.Steps, route.Cost, route.Done, route.At, plain.Cost, plain.Done, plain.At)
			return
		}
	}
}

// sameFloats reports whether numbers have the same bits. All NaN count as one.
func sameFloats(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool {
		return math.Float32bits(x) == math.Float32bits(y) || x != x && y != y
	})
}

// TestNothingIsAllocated: training draws and walks in every step.
func TestNothingIsAllocated(t *testing.T) {
	b, _ := problems.Find("mdvrp")
	p, err := rules.Compile("mdvrp.go", b.Source(), map[string]string{"Mix": "-1", "MixSeveral": "-1"})
	if err != nil {
		t.Fatal(err)
	}
	const n = 20
	m := New(p, n, 1)
	words, mask, context := make([]uint32, Words(p, n)), make([]uint64, 1), make([]float32, p.File.Context)
	features := make([]float32, p.Nodes(n)*p.File.Features)
	g := uint64(0)
	d := &rules.Drawing{Purpose: rng.Instances}
	if count := testing.AllocsPerRun(20, func() {
		m.Draw(d, g, words)
		m.Features(words, features)
		m.Open(words)
		for r := m.Start(0); !r.Done; {
			_, j := m.Allowed(r, mask)
			m.Context(r, context)
			m.Visit(r, int(j))
		}
		g++
	}); count > 0 {
		t.Errorf("%v allocations per instance", count)
	}
}

func BenchmarkStep(b *testing.B) {
	for _, name := range []string{"cvrp", "tsp", "vrp", "mdvrp"} {
		f, _ := problems.Find(name)
		p, err := rules.Compile(name+".go", f.Source(), nil)
		if err != nil {
			b.Fatal(err)
		}
		const n = 50
		m := New(p, n, 1)
		words, mask, context := make([]uint32, Words(p, n)), make([]uint64, 1), make([]float32, p.File.Context)
		m.Draw(&rules.Drawing{Purpose: rng.Instances}, 1, words)
		m.Open(words)
		for _, follow := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/follow=%v", name, follow), func(b *testing.B) {
				r := m.Start(0)
				for b.Loop() {
					_, j := m.Allowed(r, mask)
					m.Context(r, context)
					if follow {
						m.Follow(r, int(j))
					} else {
						m.Visit(r, int(j))
					}
					if r.Unvisited == 0 {
						r = m.Start(0)
					}
				}
			})
		}
	}
}
