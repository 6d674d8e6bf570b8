package cover

import (
	"math"
	"math/rand/v2"
	"testing"
)

func coverOf(columns []Column, nodes int) *Problem {
	return &Problem{Columns: append([]Column(nil), columns...), Nodes: nodes, Upper: 1 << 40, Most: nodes,
		Price: make([]float64, nodes), Tries: math.MaxInt, Stop: goOn}
}

// The bound is one: at its prices no set of routes costs less. It does not lose from prices that it
// is given.
func TestRaiseIsABound(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 1))
	for range 10 {
		const nodes = 41
		columns := somePool(r, nodes-1, 300)
		best := coverOf(columns, nodes)
		best.Relax()
		best.Reduce()
		_, least := best.Search()
		b := coverOf(columns, nodes)
		b.Upper = least + 1
		b.Raise(nil)
		bound := 0.0
		for _, u := range b.Price[1:] {
			bound += u
		}
		for _, col := range columns {
			x := float64(col.Cost)
			for _, v := range col.Customers {
				x -= b.Price[v]
			}
			bound += min(x, 0)
		}
		if math.Abs(bound-b.Lower) > 1e-6*float64(least) || b.Lower > float64(least)+1 {
			t.Fatalf("the best solution costs %d; a bound of %g is %g at its prices", least, b.Lower, bound)
		}
		again := coverOf(columns, nodes)
		again.Upper = least + 1
		again.Raise(b.Price)
		if again.Lower < b.Lower-1e-6*float64(least) {
			t.Errorf("from the prices of a bound of %g it comes to %g", b.Lower, again.Lower)
		}
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
				for _, v := range col.Customers {
					bits |= 1 << (v - 1)
				}
				if bits&^set == 0 && bits&(set&-set) != 0 && least[set&^bits] < math.MaxInt64 {
					least[set] = min(least[set], least[set&^bits]+col.Cost)
				}
			}
		}
		want := least[1<<few-1]
		for name, nodes := range map[string]int{"few": few + 1, "some": 100, "many": 150} {
			all := append([]Column(nil), columns...)
			for v := few + 1; v < nodes; v++ {
				all = append(all, Column{Customers: []int32{int32(v)}, Cost: 1})
			}
			// One below the best there is none; one above it the best is found.
			for _, above := range []int64{0, 1, 400} {
				c := coverOf(all, nodes)
				c.Upper = want + int64(nodes-1-few) + above
				c.Sorted, c.Parts = true, Parts
				c.Raise(nil)
				c.Reduce()
				routes, cost := c.Search()
				if above == 0 && routes != nil || above > 0 && cost != want+int64(nodes-1-few) {
					t.Fatalf("trial %d, %s: the best costs %d; below %d it found %d", trial, name, want+int64(nodes-1-few), want+int64(nodes-1-few)+above, cost)
				}
			}
		}
	}
}

func goOn() bool { return false }

// somePool is routes over customers that are drawn on a line: sets of neighbours, at a cost that
// grows with their way and a share drawn, and one route for each customer alone.
func somePool(r *rand.Rand, customers, routes int) []Column {
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
	var out []Column
	for v := 1; v <= customers; v++ {
		out = append(out, Column{Customers: []int32{int32(v)}, Cost: cost([]int32{int32(v)})})
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
			out = append(out, Column{Customers: list, Cost: cost(list)})
		}
	}
	return out
}
