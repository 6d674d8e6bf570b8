package vrp

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// atDepot has two pairs of customers on either side of the depot, 1 and 2 against 6 and 7, and four
// at the depot itself.
func atDepot() *Problem {
	return &Problem{Capacity: 10, Metric: Rounded, Demand: []int32{0, 3, 3, 1, 1, 1, 3, 3, 1},
		X: []float64{0, 10, 10, 0, 0, 0, -10, -10, 0}, Y: []float64{0, 0, 5, 0, 0, 0, 0, -5, 0}}
}

func TestMergeAtDepot(t *testing.T) {
	apart := [][]int32{{1, 2}, {3}, {4}, {5}, {8}, {7, 6}}
	for _, c := range []struct {
		name string
		edit func(p *Problem)
		from [][]int32
		want [][]int32
	}{
		{"into the fullest route with room", func(*Problem) {}, apart, [][]int32{{8, 5, 4, 3, 1, 2}, {7, 6}}},
		{"none at the depot", func(p *Problem) { p.X[3], p.X[4], p.X[5], p.X[8] = 1, 1, 1, 1 }, apart, nil},
		{"no room anywhere: together", func(p *Problem) { p.Capacity = 6 }, apart, [][]int32{{1, 2}, {7, 6}, {8, 5, 4, 3}}},
		{"another of them must make room", func(p *Problem) { p.Capacity, p.Demand[3], p.Demand[8] = 8, 2, 0 },
			[][]int32{{4, 1, 2}, {5, 7, 6}, {3}, {8}}, [][]int32{{8, 3, 1, 2}, {5, 4, 7, 6}}},
		{"no time left for the service there", func(p *Problem) {
			p.MaxDuration, p.Service = 27, []float64{0, 0, 0, 1, 2, 1, 0, 0, 1}
		}, apart, [][]int32{{3, 1, 2}, {5, 7, 6}, {8, 4}}},
		{"one-way distances that make it dear", func(p *Problem) {
			w := make([]float64, 81)
			for i := range 9 {
				for j := range 9 {
					w[i*9+j] = p.Dist(i, j)
				}
			}
			for _, v := range []int{3, 4, 5, 8} { // from there only home
				for j := 1; j < 9; j++ {
					w[v*9+j] = 1000
				}
			}
			w[0] = 9999
			p.Metric, p.Weights = Explicit, w
		}, apart, nil},
		{"empty routes are none", func(*Problem) {}, [][]int32{{}, {8, 5, 4, 3, 1, 2}, {}, {7, 6}}, nil},
	} {
		p := atDepot()
		c.edit(p)
		if c.want == nil {
			c.want = c.from
		}
		if diff := cmp.Diff(Solution{Routes: c.want}, p.MergeAtDepot(Solution{Routes: c.from})); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

// Whatever the problem, gathered routes are valid where the routes were, no dearer and no more, and
// the routes given stay as they were.
func TestMergeAtDepotProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 14).Draw(t, "n")
		coord := rapid.Custom(func(t *rapid.T) float64 { return float64(rapid.IntRange(-1, 1).Draw(t, "c")) })
		p := &Problem{Capacity: rapid.Int32Range(9, 20).Draw(t, "capacity"),
			Metric: Metric(rapid.IntRange(int(Exact), int(Ceil)).Draw(t, "metric")),
			X:      rapid.SliceOfN(coord, n+1, n+1).Draw(t, "x"), Y: rapid.SliceOfN(coord, n+1, n+1).Draw(t, "y"), Open: rapid.Bool().Draw(t, "open")}
		p.Demand = append([]int32{0}, rapid.SliceOfN(rapid.Int32Range(0, 9), n, n).Draw(t, "demand")...)
		if rapid.Bool().Draw(t, "limited") {
			p.MaxDuration = rapid.Float64Range(3, 9).Draw(t, "limit")
		}
		var from Solution
		load := int32(0)
		for i, v := range rapid.Permutation(seq(n)).Draw(t, "order") {
			if i == 0 || load+p.Demand[v] > p.Capacity || rapid.Bool().Draw(t, "new") {
				from.Routes, load = append(from.Routes, nil), 0
			}
			last := len(from.Routes) - 1
			from.Routes[last] = append(from.Routes[last], v)
			load += p.Demand[v]
		}
		if Validate(p, from) != nil {
			return
		}
		before := FromTour(from.Tour())
		got := p.MergeAtDepot(from)
		if err := Validate(p, got); err != nil {
			t.Fatal(err)
		}
		if len(got.Routes) > len(from.Routes) || p.Cost(got) > p.Cost(from) {
			t.Fatalf("%v (%v) became %v (%v)", from, p.Cost(from), got, p.Cost(got))
		}
		if diff := cmp.Diff(before, from); diff != "" {
			t.Fatal("the routes given were changed: ", diff)
		}
	})
}

func seq(n int) (s []int32) {
	for v := range n {
		s = append(s, int32(v+1))
	}
	return s
}
