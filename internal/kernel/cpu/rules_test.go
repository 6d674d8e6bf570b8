package cpu

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"haul/internal/kernel/reference"
)

// TestRules walks random allowed routes by the rules here and by the plain ones: both allow the
// same nodes at every step, see the same load, and end together, within the 2(N-1) steps that a
// rollout has room for.
func TestRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 200).Draw(t, "nodes")
		capacity := rapid.Int32Range(1, 40).Draw(t, "capacity")
		in := instance{demand: rapid.SliceOfN(rapid.Int32Range(1, capacity), n, n).Draw(t, "demand"), capacity: capacity}
		in.demand[0] = 0
		var v vehicle
		mask := make([]uint64, words(n))
		v.depart(in, make([]uint64, words(n)))
		plain := reference.NewTour(in.demand, capacity)
		for step := 0; !v.ended(); step++ {
			if step == 2*(n-1) {
				t.Fatalf("%d steps for %d customers", step, n-1)
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
				t.Fatalf("at node %d with %v of the load left: allowed %v, count %d, one of them %d; want %v", v.node(), v.context(in), got, count, last, want)
			}
			next := rapid.SampledFrom(want).Draw(t, "next")
			v.move(int32(next), in)
			plain.Visit(next)
			if got, want := v.context(in), reference.ContextOf[float32](plain); got != want || v.ended() != plain.Done() {
				t.Fatalf("after node %d: %v of the load left, ended %v; want %v, %v", next, got, v.ended(), want, plain.Done())
			}
		}
	})
}
