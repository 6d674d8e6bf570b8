package routing

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"haul/internal/kernel"
	"haul/internal/kernel/cpu/isa"
	"haul/internal/kernel/host"
	"haul/internal/kernel/reference"
)

// TestRules walks random allowed routes by the rules here and by the plain ones: both allow the
// same nodes at every step, see the same load, and end together, within the 2(N-1) steps that a
// rollout has room for.
func TestRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		capacity := rapid.Int32Range(1, 40).Draw(t, "capacity")
		rules := kernel.Rules{Set: rapid.SampledFrom(kernel.RuleSets()).Draw(t, "rules"), Capacity: capacity}
		n := rapid.IntRange(rules.Set.Nodes(1), 200).Draw(t, "nodes")
		most := rules.Set.MaxSteps(n - rules.Set.Nodes(0))
		demand := rapid.SliceOfN(rapid.Int32Range(1, capacity), n, n).Draw(t, "demand")
		demand[0] = 0
		x, y := rapid.SliceOfN(rapid.Float32Range(0, 1), n, n).Draw(t, "x"), rapid.SliceOfN(rapid.Float32Range(0, 1), n, n).Draw(t, "y")
		nodes := make([]int32, n*len(rules.Set.Columns()))
		for j, d := range demand {
			nodes[j*len(rules.Set.Columns())] = d
		}
		drawing := kernel.Drawing{Seed: rapid.Uint64().Draw(t, "seed"), Range: 2.8, Mix: rapid.Uint64Range(1, 1<<32-1).Draw(t, "mix")}
		if rules.Set == kernel.MDVRP {
			drawing.Mix |= drawing.Mix << kernel.Several
		}
		host.Draw(rules.Set, nodes, x, y, &drawing, 5)
		in := newInstance(nodes, 0, n, rules)
		var v vehicle
		mask, seen := make([]uint64, isa.Words(n)), make([]float32, len(rules.Set.Context()))
		v.depart(in, make([]uint64, isa.Words(n)), 0)
		plain := reference.NewTour(rules, nodes)
		for step := 0; !v.ended(); step++ {
			if step == most {
				t.Fatalf("%d steps for %d nodes", step, n)
			}
			count, last := v.allow(mask, in)
			var got []int
			for j := range n {
				if mask[j/64]>>(j%64)&1 == 1 {
					got = append(got, j)
				}
			}
			want := plain.Allowed()
			if !slices.Equal(got, want) || count != len(want) || !slices.Contains(want, int(last)) {
				t.Fatalf("at node %d with context %v: allowed %v, count %d, one of them %d; want %v", v.node(), seen, got, count, last, want)
			}
			next := rapid.SampledFrom(want).Draw(t, "next")
			from, to := v.leg(int32(next), in)
			if a, b := plain.Leg(next); int(from) != a || int(to) != b {
				t.Fatalf("from node %d to %d the way is %d to %d, want %d to %d", v.node(), next, from, to, a, b)
			}
			v.move(int32(next), in)
			plain.Visit(next)
			v.context(seen, in)
			if want := reference.ContextOf[float32](plain); !slices.Equal(seen, want) || v.ended() != plain.Done() {
				t.Fatalf("after node %d: context %v, ended %v; want %v, %v", next, seen, v.ended(), want, plain.Done())
			}
		}
	})
}

// Routes of length zero are a tie like any other: no one of them is preferred.
func TestRoutesWithoutLengthAreATie(t *testing.T) {
	for _, c := range []struct {
		length []float32
		tie    bool
	}{{[]float32{0, 0}, true}, {[]float32{3, 3}, true}, {[]float32{0, 1}, false}} {
		adv := []float32{9, 9}
		prefer(adv, c.length, []float32{-1, -2}, 2, &kernel.Advantage{Weight: 1, Alpha: 1})
		if got := adv[0] == 0 && adv[1] == 0; got != c.tie {
			t.Errorf("%v: %v", c.length, adv)
		}
	}
}

// TestRulesOfEverySize: for every number of nodes, around the words of 64 too, a vehicle that
// begins is allowed what the plain rules allow, and no node that does not exist.
func TestRulesOfEverySize(t *testing.T) {
	for _, set := range kernel.RuleSets() {
		rules := kernel.Rules{Set: set, Capacity: 9}
		for n := set.Nodes(1); n <= 200; n++ {
			nodes, x, y := make([]int32, n*len(set.Columns())), make([]float32, n), make([]float32, n)
			for j := range n {
				nodes[j*len(set.Columns())], x[j], y[j] = min(1, int32(j)), float32(j%7)/7, float32(j%11)/11
			}
			host.Draw(set, nodes, x, y, &kernel.Drawing{Seed: 1, Range: 2.8, Mix: 1 | 1<<kernel.Several}, 5)
			in := newInstance(nodes, 0, n, rules)
			var v vehicle
			mask := make([]uint64, isa.Words(n))
			v.depart(in, make([]uint64, isa.Words(n)), 0)
			count, _ := v.allow(mask, in)
			var got []int
			for j := range 64 * len(mask) {
				if mask[j/64]>>(j%64)&1 == 1 {
					got = append(got, j)
				}
			}
			if want := reference.NewTour(rules, nodes).Allowed(); !slices.Equal(got, want) || count != len(want) {
				t.Fatalf("%v of %d nodes: allowed %v, count %d; want %v", set, n, got, count, want)
			}
		}
	}
}
