package search

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"haul/internal/vrp/testset"
)

func goOn() bool { return false }

// somePool is routes over customers that are drawn on a line: sets of neighbours, at a cost that
// grows with their way and a share drawn, and one route for each customer alone.
func somePool(r *rand.Rand, customers, routes int) []column {
	at := make([]float64, customers+1)
	for v := range at {
		at[v] = r.Float64() * 1000
	}
	cost := func(list []int32) int64 {
		low, high := 0.0, 0.0
		for _, v := range list {
			low, high = min(low, at[v]-500), max(high, at[v]-500)
		}
		return int64(2*(high-low)+(50+100*r.Float64())*math.Sqrt(float64(len(list)))) + 1
	}
	var out []column
	for v := 1; v <= customers; v++ {
		out = append(out, column{customers: []int32{int32(v)}, cost: cost([]int32{int32(v)})})
	}
	for range routes {
		var list []int32
		middle := at[1+r.IntN(customers)]
		for v := 1; v <= customers && len(list) < 6; v++ {
			if r.Float64() < 0.8*math.Exp(-math.Abs(at[v]-middle)/100) {
				list = append(list, int32(v))
			}
		}
		if len(list) > 1 {
			out = append(out, column{customers: list, cost: cost(list)})
		}
	}
	return out
}

func coverOf(columns []column, nodes int) *coverer {
	return &coverer{columns: append([]column(nil), columns...), nodes: nodes, upper: 1 << 40, most: nodes,
		price: make([]float64, nodes), tries: math.MaxInt, stop: goOn}
}

// The bound is one: at its prices no set of routes costs less. It does not lose from prices that it
// is given.
func TestRaiseIsABound(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 1))
	for range 10 {
		const nodes = 41
		columns := somePool(r, nodes-1, 300)
		best := coverOf(columns, nodes)
		best.relax()
		best.reduce()
		_, least := best.search()
		b := coverOf(columns, nodes)
		b.upper = least + 1
		b.raise(nil)
		bound := 0.0
		for _, u := range b.price[1:] {
			bound += u
		}
		for _, col := range columns {
			x := float64(col.cost)
			for _, v := range col.customers {
				x -= b.price[v]
			}
			bound += min(x, 0)
		}
		if math.Abs(bound-b.lower) > 1e-6*float64(least) || b.lower > float64(least)+1 {
			t.Fatalf("the best solution costs %d; a bound of %g is %g at its prices", least, b.lower, bound)
		}
		again := coverOf(columns, nodes)
		again.upper = least + 1
		again.raise(b.price)
		if again.lower < b.lower-1e-6*float64(least) {
			t.Errorf("from the prices of a bound of %g it comes to %g", b.lower, again.lower)
		}
	}
}

// Of routes that a search has seen, the bound is nearer to the best solution than by subgradients
// alone, whose gap is 1.6 times as wide on these three.
func TestRaiseComesNearerThanRelax(t *testing.T) {
	var plain, volume float64
	for _, name := range []string{"vrptw", "vrpmb", "mdvrpbtw"} {
		set, err := testset.RouteFinder(name, 50)
		if err != nil {
			t.Fatal(err)
		}
		m := compile(context.Background(), set.Problems[0])
		c := newRichChain(m, newStream(3, 1))
		c.set(nil, nil, nil)
		c.build(t.Context())
		c.typicalLeg()
		for range 150 {
			c.ease(20)
			for range 20 {
				c.iterate(c.leg / 4)
			}
			c.pool.sample(c)
		}
		var columns []column
		for _, r := range c.pool.routes {
			columns = append(columns, column{customers: r.rows, cost: int64(1e6 * r.cost)})
		}
		a, b := coverOf(columns, len(m.tasks)+1), coverOf(columns, len(m.tasks)+1)
		a.upper, b.upper = int64(1e6*c.bestCost), int64(1e6*c.bestCost)
		a.relax()
		b.raise(nil)
		plain += (float64(a.upper) - a.lower) / float64(a.upper)
		volume += (float64(b.upper) - b.lower) / float64(b.upper)
	}
	if volume > 0.9*plain {
		t.Errorf("the bounds are %.3f %% below the best in the mean, those of subgradients %.3f %%", 100*volume/3, 100*plain/3)
	}
}

// Whatever is searched first, and however many customers there are, the cover is the best one.
func TestCoversFindTheBest(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 1))
	for trial := range 60 {
		const few = 11
		columns := somePool(r, few, 60)
		// By the set of customers that are covered: the least cost.
		least := make([]int64, 1<<few)
		for set := 1; set < 1<<few; set++ {
			least[set] = math.MaxInt64
			for _, col := range columns {
				bits := 0
				for _, v := range col.customers {
					bits |= 1 << (v - 1)
				}
				if bits&^set == 0 && bits&(set&-set) != 0 && least[set&^bits] < math.MaxInt64 {
					least[set] = min(least[set], least[set&^bits]+col.cost)
				}
			}
		}
		want := least[1<<few-1]
		for name, nodes := range map[string]int{"few": few + 1, "some": 100, "many": 150} {
			all := append([]column(nil), columns...)
			for v := few + 1; v < nodes; v++ {
				all = append(all, column{customers: []int32{int32(v)}, cost: 1})
			}
			// One below the best there is none; one above it the best is found.
			for _, above := range []int64{0, 1, 400} {
				c := coverOf(all, nodes)
				c.upper = want + int64(nodes-1-few) + above
				c.sorted, c.parts = true, coverParts
				c.raise(nil)
				c.reduce()
				routes, cost := c.search()
				if above == 0 && routes != nil || above > 0 && cost != want+int64(nodes-1-few) {
					t.Fatalf("trial %d, %s: the best costs %d; below %d it found %d", trial, name, want+int64(nodes-1-few), want+int64(nodes-1-few)+above, cost)
				}
			}
		}
	}
}
