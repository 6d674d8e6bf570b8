package prove

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"haul/internal/vrp"
	"haul/internal/vrp/testset"
)

// Few is a problem of some customers of one of RouteFinder's, nearer to each other and with
// windows so much wider that many orders of many sets of them are routes.
func Few(t *testing.T, name string, instance, customers int, wider float64) *vrp.Problem {
	t.Helper()
	set, err := testset.RouteFinder(name, 50)
	if err != nil {
		t.Fatal(err)
	}
	p := *set.Problems[instance]
	n := p.DepotCount() + customers
	p.Demand, p.X, p.Y, p.Service = slices.Clone(p.Demand[:n]), slices.Clone(p.X[:n]), slices.Clone(p.Y[:n]), slices.Clone(p.Service[:n])
	for v := range n {
		p.X[v], p.Y[v] = 0.3*p.X[v], 0.3*p.Y[v]
	}
	far := 0.0
	for v := p.DepotCount(); v < n; v++ {
		for d := range p.DepotCount() {
			far = max(far, math.Hypot(p.X[v]-p.X[d], p.Y[v]-p.Y[d]))
		}
	}
	if p.Pickup != nil {
		p.Pickup = slices.Clone(p.Pickup[:n])
		for v := p.DepotCount(); v < n; v += 2 { // half of them, or few routes have two pickups
			p.Demand[v], p.Pickup[v] = 0, max(p.Demand[v], p.Pickup[v])
		}
	}
	p.Windows = slices.Clone(p.Windows[:n])
	for v := p.DepotCount(); v < n; v++ {
		w := p.Windows[v][0]
		p.Windows[v] = []vrp.Window{{From: max(0, w.From-wider), To: w.To + wider}}
		p.Service[v] += wider // so that no route comes back
	}
	p.Fleet, p.Open, p.Vehicles = slices.Clone(p.Types()), false, 0
	for i := range p.Fleet {
		p.Fleet[i].Capacity = []int32{16} // of 40: some routes are full
		if !math.IsInf(p.Fleet[i].MaxDistance, 1) {
			p.Fleet[i].MaxDistance = 2.4 * far // hardly more than there and back
			if strings.Contains(name, "ovrp") {
				p.Fleet[i].MaxDistance = 1.3 * far
			}
		}
	}
	return &p
}

// AllRoutes is every order of every set of customers that a vehicle may drive, judged by the
// validator, with its cost.
func AllRoutes(t *testing.T, p *vrp.Problem, kind int32) map[string]float64 {
	t.Helper()
	out := map[string]float64{}
	var line []int32
	var used uint
	var grow func()
	grow = func() {
		for v := p.DepotCount(); v < len(p.Demand); v++ {
			if used>>v&1 != 0 {
				continue
			}
			line = append(line, int32(v))
			used |= 1 << v
			s := vrp.Solution{Routes: [][]int32{line}, Types: []int32{kind}}
			if !slices.ContainsFunc(vrp.Violations(p, s), func(v *vrp.Violation) bool { return v.Rule != vrp.VisitedAtAll }) {
				e, err := vrp.Evaluate(p, s)
				if err != nil {
					t.Fatal(err)
				}
				out[fmt.Sprint(line)] = e.Distance
			}
			grow()
			used &^= 1 << v
			line = line[:len(line)-1]
		}
	}
	grow()
	return out
}

func Ints(t *testing.T, key string) (out []int32) {
	t.Helper()
	at := int32(0)
	digits := false
	for _, r := range key + " " {
		if r >= '0' && r <= '9' {
			at, digits = 10*at+r-'0', true
		} else if digits {
			out = append(out, at)
			at, digits = 0, false
		}
	}
	return out
}
