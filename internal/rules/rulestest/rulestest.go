// Package rulestest walks random routes through instances of a problem file and hands them to a
// validator, which a problem's folder writes in its test: float64 arithmetic on the finished route,
// sharing nothing with the rules.
package rulestest

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"haul/internal/rng"
	"haul/internal/rules"
	"haul/internal/rules/eval"
	"haul/internal/rules/ir"
	"haul/internal/rules/parse"
)

// Route is a finished route: the nodes visited, without the first, and what they cost.
type Route struct {
	Customers int
	Visits    []int
	Cost      float64
	p         *rules.Problem
	in        *rules.Instance
}

// Node returns a word of node j by the path of its field, such as X or Homes[1].
func (r *Route) Node(j int, path string) float64 {
	for w, f := range r.p.Node {
		if f.Path == path || strings.HasSuffix(f.Path, "."+path) {
			return number(f.Kind, r.in.Nodes[w][j])
		}
	}
	panic("rulestest: no field " + path + " of Node")
}

// Instance returns a word of the instance by the path of its field.
func (r *Route) Instance(path string) float64 {
	for w, f := range r.p.Instance {
		if f.Path == path {
			return number(f.Kind, r.in.Words[w])
		}
	}
	panic("rulestest: no field " + path + " of Instance")
}

// Distance returns the Euclidean distance of two nodes.
func (r *Route) Distance(i, j int) float64 {
	return math.Hypot(r.Node(i, "X")-r.Node(j, "X"), r.Node(i, "Y")-r.Node(j, "Y"))
}

// Once returns an error unless each customer is visited exactly once and the last visit is to node
// 0.
func (r *Route) Once() error {
	seen := make([]int, r.p.Nodes(r.Customers))
	for _, j := range r.Visits {
		seen[j]++
	}
	for j := 1; j <= r.Customers; j++ {
		if seen[j] != 1 {
			return fmt.Errorf("customer %d is visited %d times", j, seen[j])
		}
	}
	if len(r.Visits) == 0 || r.Visits[len(r.Visits)-1] != 0 {
		return fmt.Errorf("the route does not end at the depot")
	}
	return nil
}

func number(kind ir.Kind, word uint32) float64 {
	if kind == ir.Float32 {
		return float64(math.Float32frombits(word))
	}
	return float64(int32(word))
}

// Tolerance is the difference that sums of a hundred float32 distances may have.
const Tolerance = 1e-4

// Validate walks random routes through random instances of the file, for each of the settings. The
// validator returns the cost of a route, or why it is not valid. It must accept what the rules
// allow, at their cost, and refuse most routes that are then broken: a visit dropped, repeated, or
// moved.
func Validate(t *testing.T, file string, settings []map[string]string, valid func(*Route) (float64, error)) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	refused, broken := 0, 0
	for i, s := range settings {
		p, err := rules.Compile(file, text, s)
		if err != nil {
			t.Fatal(err)
		}
		form := eval.New(p)
		for g := range 60 {
			r := rand.New(rand.NewPCG(uint64(i), uint64(g)))
			in := p.Draw(form, &rules.Drawing{Seed: 7, Purpose: rng.Instances}, uint64(g), 1+r.IntN(25))
			route := Walk(p, form, in, r)
			cost, err := valid(route)
			if err != nil || !(math.Abs(cost-route.Cost) <= Tolerance*(1+math.Abs(cost))) {
				t.Fatalf("settings %v, instance %d, route %v: cost %v by the validator, %v by the rules; %v", s, g, route.Visits, cost, route.Cost, err)
			}
			for range 4 {
				other := *route
				other.Visits = breakRoute(route.Visits, r)
				if slices.Equal(other.Visits, route.Visits) {
					continue
				}
				broken++
				if cost, err := valid(&other); err != nil || math.Abs(cost-route.Cost) > Tolerance {
					refused++
				}
			}
		}
	}
	if refused*10 < broken*9 {
		t.Errorf("%d of %d broken routes were noticed", refused, broken)
	}
}

// breakRoute returns the visits with one of them dropped, repeated, or exchanged with another.
func breakRoute(visits []int, r *rand.Rand) []int {
	out := slices.Clone(visits)
	i, j := r.IntN(len(out)), r.IntN(len(out))
	switch r.IntN(3) {
	case 0:
		return slices.Delete(out, i, i+1)
	case 1:
		return slices.Insert(out, i, out[j])
	}
	out[i], out[j] = out[j], out[i]
	return out
}

// Walk walks a random route through an instance.
func Walk(p *rules.Problem, form rules.Form, in *rules.Instance, r *rand.Rand) *Route {
	n := in.Customers
	route := rules.NewRoute(p, form, in)
	out := &Route{Customers: n, p: p, in: in}
	mask := make([]uint64, (p.Nodes(n)+63)/64)
	for limit := p.Steps(form, n); !route.Done && route.Steps < limit; {
		count := route.Allowed(mask)
		if count == 0 {
			route.Strand()
			break
		}
		j := Nth(mask, r.IntN(count))
		route.Visit(j)
		out.Visits = append(out.Visits, j)
	}
	out.Cost = float64(route.Cost)
	return out
}

// Nth returns the number of the set bit of that rank.
func Nth(mask []uint64, rank int) int {
	for i, w := range mask {
		if n := bits.OnesCount64(w); rank >= n {
			rank -= n
			continue
		}
		for ; rank > 0; rank-- {
			w &= w - 1
		}
		return i*64 + bits.TrailingZeros64(w)
	}
	return -1
}

// Methods returns the names of the methods that a problem's file has.
func Methods(p *rules.Problem) (out []string) {
	for _, m := range parse.Methods() {
		if p.Func(m) != nil {
			out = append(out, m.String())
		}
	}
	return out
}
