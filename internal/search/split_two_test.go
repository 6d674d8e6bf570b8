package search

import (
	"context"
	"testing"

	"haul/internal/search/model"
	"haul/internal/vrp"
)

// A route in a dear large vehicle becomes two in cheap small ones.
func TestLargeVehicleGivesWay(t *testing.T) {
	small, large := vrp.NewVehicleType(10), vrp.NewVehicleType(20)
	small.FixedCost, large.FixedCost = 10, 1000
	n := 20
	p := &vrp.Problem{Demand: make([]int32, n+1), X: make([]float64, n+1), Y: make([]float64, n+1), Metric: vrp.Exact,
		Fleet: []vrp.VehicleType{small, large}}
	var whole []int32
	for v := 1; v <= n; v++ {
		p.Demand[v], p.X[v], p.Y[v] = 1, float64(10+v%5), float64(v)
		whole = append(whole, int32(v))
	}
	m := compileNear(context.Background(), p)
	if m.Traits.Fleet < model.Splits {
		t.Fatal("a fleet of two sizes is not divided")
	}
	c := newCandidate(m, model.NewStream(1, 1))
	if !c.set([][]int32{whole}, []int32{1}, nil) {
		t.Fatal("the whole route breaks a limit")
	}
	c.begin()
	c.touch(0)
	was := c.cost
	c.divide(0)
	c.keep()
	if len(c.routes) != 2 || c.used[0] != 2 || c.used[1] != 0 || c.cost > was-900 {
		t.Fatalf("%d routes, vehicles %v, cost %g of %g", len(c.routes), c.used, c.cost, was)
	}
	cost, change := c.cost, 0.0
	c.remember()
	if !c.set(c.best, c.bestKind, nil) {
		t.Error("a half breaks a limit")
	}
	if change = c.cost - cost; change > 1e-6 || change < -1e-6 {
		t.Errorf("the halves cost %g, the books say %g", c.cost, cost)
	}
	m.Types[0].Count = 1
	if !c.set([][]int32{whole}, []int32{1}, nil) {
		t.Fatal("the whole route breaks a limit")
	}
	c.begin()
	c.touch(0)
	c.divide(0)
	if len(c.routes) != 1 {
		t.Errorf("one small vehicle drives %d routes", len(c.routes))
	}
}
