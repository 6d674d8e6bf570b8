package vrp

import (
	"math"
	"strings"
	"testing"
)

// line is customers at 10, 20, 30, ... on a line, the depot at 0: a distance is a duration.
func line(n int) *Problem {
	p := &Problem{Capacity: 10, Demand: make([]int32, n+1), X: make([]float64, n+1), Y: make([]float64, n+1)}
	for v := range p.X {
		p.X[v] = 10 * float64(v)
		if v > 0 {
			p.Demand[v] = 1
		}
	}
	return p
}

// fleet gives the line a vehicle type to set.
func fleet(p *Problem, set func(t *VehicleType)) {
	t := NewVehicleType(p.Capacity)
	set(&t)
	p.Fleet = append(p.Fleet, t)
}

// TestViolations: each rule is told where it is broken and by how much, at the limit and past it.
func TestViolations(t *testing.T) {
	windows := func(p *Problem, v int, w ...Window) { byPlace(&p.Windows, len(p.Demand))[v] = w }
	for _, c := range []struct {
		name  string
		set   func(p *Problem) Solution
		rule  Rule // 0: valid
		place int32
		by    float64
		text  string
	}{
		{"window met", func(p *Problem) Solution { windows(p, 2, Window{0, 20}); return one(1, 2, 3) }, 0, 0, 0, ""},
		{"window missed", func(p *Problem) Solution { windows(p, 2, Window{0, 19}); return one(1, 2, 3) }, WithinWindow, 2, 1, "route 1: customer 2 is reached at 20, its window closes at 19: late by 1"},
		{"several windows", func(p *Problem) Solution { windows(p, 1, Window{0, 5}, Window{100, 110}); return one(1, 2, 3) }, 0, 0, 0, ""},
		{"past the last of several", func(p *Problem) Solution { windows(p, 2, Window{0, 5}, Window{10, 19.5}); return one(1, 2, 3) }, WithinWindow, 2, 0.5, "late by 0.5"},
		{"soft window", func(p *Problem) Solution {
			windows(p, 2, Window{0, 5})
			p.Late = []float64{0, 0, 2, 0}
			return one(1, 2, 3)
		}, 0, 0, 0, ""},
		{"depot closes", func(p *Problem) Solution { windows(p, 0, Window{0, 59}); return one(1, 2, 3) }, WithinWindow, 0, 1, "the depot is reached at 60"},
		{"shift ends", func(p *Problem) Solution {
			fleet(p, func(t *VehicleType) { t.Shift = Window{5, 64} })
			return one(1, 2, 3)
		}, WithinShift, 0, 1, "the shift ends at 64"},
		{"shift holds", func(p *Problem) Solution {
			fleet(p, func(t *VehicleType) { t.Shift = Window{5, 65} })
			return one(1, 2, 3)
		}, 0, 0, 0, ""},
		{"released too late", func(p *Problem) Solution {
			p.Release = []float64{0, 0, 8, 0}
			fleet(p, func(t *VehicleType) { t.LatestStart = 7 })
			return one(1, 2, 3)
		}, WithinShift, 0, 1, "it can leave the depot at 8, and must by 7: late by 1"},
		{"duration", func(p *Problem) Solution {
			p.Service = []float64{0, 1, 1, 1}
			windows(p, 3, Window{40, 99})
			fleet(p, func(t *VehicleType) { t.MaxDuration = 62 })
			return one(1, 2, 3)
		}, WithinDuration, None, 1, "it takes 63, the limit is 62"},
		{"distance", func(p *Problem) Solution { fleet(p, func(t *VehicleType) { t.MaxDistance = 59 }); return one(1, 2, 3) }, WithinDistance, None, 1, "it is 60 long, the limit is 59"},
		{"stops", func(p *Problem) Solution { fleet(p, func(t *VehicleType) { t.MaxStops = 2 }); return one(1, 2, 3) }, WithinStops, None, 1, "it has 3 stops, the limit is 2"},
		{"stops held", func(p *Problem) Solution { fleet(p, func(t *VehicleType) { t.MaxStops = 3 }); return one(1, 2, 3) }, 0, 0, 0, ""},
		{"skill", func(p *Problem) Solution {
			p.Needs = [][]int32{nil, nil, {4}, nil}
			fleet(p, func(t *VehicleType) { t.Skills = []int32{3} })
			return one(1, 2, 3)
		}, Skilled, 2, 1, "customer 2 needs skill 4, which its vehicle does not have"},
		{"allowed", func(p *Problem) Solution {
			fleet(p, func(t *VehicleType) { t.Allowed = []int32{1, 2} })
			return one(1, 2, 3)
		}, AllowedCustomer, 3, 1, "customer 3 may not be served by its vehicle"},
		{"pickups fill", func(p *Problem) Solution {
			p.Pickup, p.Capacity = []int32{0, 4, 0, 0}, 5
			return one(1, 2, 3)
		}, WithinCapacity, 1, 1, "it carries 6, the capacity is 5 (behind customer 1)"},
		{"reload allowed", func(p *Problem) Solution {
			fleet(p, func(t *VehicleType) { t.Capacity, t.Reloads, t.MaxReloads = []int32{2}, []int{0}, 1 })
			return one(1, 2, 0, 3)
		}, 0, 0, 0, ""},
		{"reload forbidden", func(p *Problem) Solution { fleet(p, func(t *VehicleType) {}); return one(1, 2, 0, 3) }, RouteOfCustomers, 0, 1, "lists the depot, where its vehicle does not reload"},
		{"one reload too many", func(p *Problem) Solution {
			fleet(p, func(t *VehicleType) { t.Reloads, t.MaxReloads = []int{0}, 1 })
			return one(1, 0, 2, 0, 3)
		}, WithinReloads, None, 1, "it reloads 2 times, the limit is 1"},
		{"open end", func(p *Problem) Solution {
			fleet(p, func(t *VehicleType) { t.End, t.MaxDistance, t.MaxDuration = None, 30, 30 })
			return one(1, 2, 3)
		}, 0, 0, 0, ""},
		{"open start", func(p *Problem) Solution {
			fleet(p, func(t *VehicleType) { t.Start, t.MaxDistance = None, 50 })
			return one(1, 2, 3)
		}, 0, 0, 0, ""},
		{"open end past the shift", func(p *Problem) Solution {
			p.Service = []float64{0, 0, 0, 2}
			fleet(p, func(t *VehicleType) { t.End, t.Shift = None, Window{0, 31} })
			return one(1, 2, 3)
		}, WithinWindow, 3, 1, "customer 3 is reached at 30"},
		{"backhauls last", func(p *Problem) Solution {
			p.Backhauls, p.Demand[2], p.Pickup = BackhaulsLast, 0, []int32{0, 0, 1, 0}
			return one(1, 2, 3)
		}, BackhaulOrder, 3, 1, "customer 3 is delivered after the pickup at customer 2: pickups come last"},
		{"backhauls alone", func(p *Problem) Solution {
			p.Backhauls, p.Demand[2], p.Pickup = BackhaulsLast, 0, []int32{0, 0, 1, 0}
			return Solution{Routes: [][]int32{{2}, {1, 3}}}
		}, 0, 0, 0, ""},
		{"a linehaul first", func(p *Problem) Solution {
			p.Backhauls, p.Demand[2], p.Pickup = LinehaulFirst, 0, []int32{0, 0, 1, 0}
			return Solution{Routes: [][]int32{{2}, {1, 3}}}
		}, BackhaulOrder, 2, 1, "it begins with customer 2, a pickup: a delivery comes first"},
		{"a linehaul first on every trip", func(p *Problem) Solution {
			fleet(p, func(t *VehicleType) { t.Reloads = []int{0} })
			p.Backhauls, p.Demand[2], p.Pickup = LinehaulFirst, 0, []int32{0, 0, 1, 0}
			return Solution{Routes: [][]int32{{1, 0, 2}, {3}}}
		}, BackhaulOrder, 2, 1, "it begins with customer 2, a pickup: a delivery comes first"},
		{"shipment turned", func(p *Problem) Solution {
			p.Shipments = []Shipment{{3, 1, []int32{2}}}
			return one(1, 2, 3)
		}, PairOrder, 1, 1, "customer 1 is delivered what was not picked up before, at customer 3"},
		{"shipment torn", func(p *Problem) Solution {
			p.Shipments = []Shipment{{1, 3, []int32{2}}}
			return Solution{Routes: [][]int32{{1, 2}, {3}}}
		}, PairOrder, 1, 1, "what is picked up at customer 1 is not delivered at customer 3 in the same route"},
		{"a shipment stays on board through a reload", func(p *Problem) Solution {
			fleet(p, func(t *VehicleType) { t.Capacity, t.Reloads = []int32{9}, []int{0} })
			p.Demand, p.Shipments = []int32{0, 0, 7, 0}, []Shipment{{1, 3, []int32{2}}}
			return one(1, 0, 2, 3)
		}, 0, 0, 0, ""},
		{"a shipment takes its room after a reload", func(p *Problem) Solution {
			fleet(p, func(t *VehicleType) { t.Capacity, t.Reloads = []int32{8}, []int{0} })
			p.Demand, p.Shipments = []int32{0, 0, 7, 0}, []Shipment{{1, 3, []int32{2}}}
			return one(1, 0, 2, 3)
		}, WithinCapacity, 0, 1, "it carries 9, the capacity is 8 (behind the depot)"},
		{"shipment too large", func(p *Problem) Solution {
			p.Shipments = []Shipment{{1, 3, []int32{9}}}
			return one(1, 2, 3)
		}, WithinCapacity, 1, 1, "it carries 11, the capacity is 10 (behind customer 1)"},
		{"last in, first out", func(p *Problem) Solution {
			*p = *line(4)
			p.LIFO, p.Shipments = true, []Shipment{{1, 3, []int32{1}}, {2, 4, []int32{1}}}
			return one(1, 2, 3, 4)
		}, LastInFirstOut, 3, 1, "customer 3 is delivered before what was picked up later, at customer 2"},
		{"group twice", func(p *Problem) Solution { p.Groups = []Group{{Members: []int32{1, 2}}}; return one(1, 2, 3) }, GroupOnce, 2, 1, "customer 2 is a second one of group 1"},
		{"group left out", func(p *Problem) Solution { p.Groups = []Group{{Members: []int32{1, 2}}}; return one(3) }, 0, 0, 0, ""},
		{"group required", func(p *Problem) Solution { p.Groups = []Group{{Members: []int32{1, 2}, Required: true}}; return one(3) }, GroupServed, 1, 1, "nobody of group 1 is visited"},
		{"optional", func(p *Problem) Solution { p.Optional = []bool{false, true, false, false}; return one(2, 3) }, 0, 0, 0, ""},
		{"required", func(p *Problem) Solution { p.Optional = []bool{false, true, false, false}; return one(1, 3) }, VisitedAtAll, 2, 1, "customer 2 is never visited"},
		{"fleet used up", func(p *Problem) Solution {
			fleet(p, func(t *VehicleType) { t.Count = 1 })
			return Solution{Routes: [][]int32{{1}, nil, {2, 3}}}
		}, WithinFleet, None, 1, "route 3: there are more routes than vehicles: 1 vehicles"},
		{"break taken while waiting", func(p *Problem) Solution {
			windows(p, 2, Window{30, 40})
			fleet(p, func(t *VehicleType) {
				t.Breaks, t.MaxDuration = []Break{{Windows: []Window{{15, 25}}, Duration: 5}}, 65
			})
			return one(1, 2, 3)
		}, 0, 0, 0, ""},
		{"break has no place", func(p *Problem) Solution {
			fleet(p, func(t *VehicleType) {
				t.Shift.From, t.Breaks = 20, []Break{{Windows: []Window{{5, 15}}, Duration: 5}}
			})
			return one(1, 2, 3)
		}, BreakTaken, None, 1, "1 of its breaks find no place"},
		{"break with load", func(p *Problem) Solution {
			windows(p, 3, Window{0, 30})
			fleet(p, func(t *VehicleType) {
				t.Breaks = []Break{{Windows: []Window{{0, 29}}, Duration: 5, MaxLoad: []int32{0}}}
			})
			return one(1, 2, 3)
		}, BreakTaken, None, 1, "1 of its breaks find no place"},
		{"setup", func(p *Problem) Solution {
			p.X[2] = 10
			p.Setup = []float64{0, 3, 3, 0}
			fleet(p, func(t *VehicleType) { t.MaxDuration = 62 })
			return one(1, 2, 3)
		}, WithinDuration, None, 1, "it takes 63, the limit is 62"},
		{"unknown type", func(p *Problem) Solution {
			fleet(p, func(*VehicleType) {})
			return Solution{Routes: [][]int32{{1, 2, 3}}, Types: []int32{1}}
		}, KnownType, None, 0, "route 1 has vehicle type 1: types are 0 to 0"},
		{"types of other routes", func(p *Problem) Solution {
			fleet(p, func(*VehicleType) {})
			return Solution{Routes: [][]int32{{1, 2, 3}}, Types: []int32{0, 0}}
		}, KnownType, None, 0, "1 routes with 2 vehicle types"},
		{"unknown place", func(p *Problem) Solution { fleet(p, func(*VehicleType) {}); return one(1, 2, 4) }, KnownNode, 4, 0, "node 4 does not exist"},
	} {
		p := line(3)
		s := c.set(p)
		if err := p.Check(); err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		all := Violations(p, s)
		if c.rule == 0 {
			if len(all) > 0 || Validate(p, s) != nil {
				t.Errorf("%s: %v", c.name, all)
			}
			continue
		}
		if len(all) != 1 && c.rule != PairOrder { // both halves of a shipment tell
			t.Errorf("%s: %d violations: %v", c.name, len(all), all)
			continue
		}
		v := all[0]
		if v.Rule != c.rule || v.Node != c.place || math.Abs(v.By-c.by) > 1e-9 || !strings.Contains(v.Error(), c.text) {
			t.Errorf("%s: rule %d at %d by %g: %v", c.name, v.Rule, v.Node, v.By, v)
		}
		if p.Limited() != nil && Validate(p, s) == nil {
			t.Errorf("%s: Validate finds nothing", c.name)
		}
	}
}

// byPlace is a slice by place, made where it is not there yet.
func byPlace[T any](s *[]T, n int) []T {
	if *s == nil {
		*s = make([]T, n)
	}
	return *s
}

func one(route ...int32) Solution { return Solution{Routes: [][]int32{route}} }

// TestScheduleIsShortest: a route with several windows leaves when its duration is least, and every
// stop's slack is what it can be delayed by.
func TestScheduleIsShortest(t *testing.T) {
	p := line(2)
	p.Windows = [][]Window{nil, {{20, 30}}, {{35, 36}, {100, 120}}}
	e, err := Evaluate(p, one(1, 2))
	if err != nil {
		t.Fatal(err)
	}
	r := e.Routes[0]
	if r.Start != 15 || r.Duration != 40 || r.Stops[1].Begin != 25 || r.Stops[2].Begin != 35 || r.Stops[1].Slack != 1 || r.Stops[2].Slack != 1 {
		t.Errorf("%+v", r)
	}
	p.Windows[2] = []Window{{20, 21}, {100, 120}} // the first is out of reach: wait for the second
	if e, _ = Evaluate(p, one(1, 2)); e.Routes[0].Start != 20 || e.Routes[0].Duration != 100 {
		t.Errorf("%+v", e.Routes[0])
	}
	p.Windows[1] = []Window{{20, 30}, {80, 95}} // the later window of both makes the route shorter
	if e, _ = Evaluate(p, one(1, 2)); e.Routes[0].Start != 80 || e.Routes[0].Duration != 40 {
		t.Errorf("%+v", e.Routes[0])
	}
	// Costs: fixed, distance, duration, lateness and prizes at their prices.
	p = line(3)
	p.Windows = [][]Window{nil, {{0, 4}}, nil, nil}
	p.Late, p.Prize, p.Optional = []float64{0, 0.5, 0, 0}, []float64{0, 0, 0, 7}, []bool{false, false, false, true}
	fleet(p, func(t *VehicleType) { t.FixedCost, t.DistanceCost, t.DurationCost = 100, 2, 3 })
	e, err = Evaluate(p, one(1, 2))
	if err != nil || e.Fixed != 100 || e.Travel != 80 || e.Time != 120 || e.Lateness != 3 || e.Lost != 7 || e.Cost != 310 || p.Cost(one(1, 2)) != 310 || e.Unserved[0] != 3 {
		t.Errorf("%+v, %v", e, err)
	}
}

// TestUnservable: a customer that nobody can serve is named with the reason of the nearest vehicle.
func TestUnservable(t *testing.T) {
	p := line(3)
	p.IDs = []string{"d", "a", "b", "c"}
	p.Windows = [][]Window{nil, nil, nil, {{0, 25}}}
	p.Needs = [][]int32{nil, {3}, nil, {1}}
	fleet(p, func(t *VehicleType) { t.Skills = []int32{1} })
	fleet(p, func(t *VehicleType) { t.Skills = []int32{2} })
	got := p.UnservableOf([]int32{1, 2, 3})
	if len(got) != 2 || got[0].Customer != 1 || got[0].Reason != `customer "a": no vehicle can serve it: customer "a" needs skill 3, which its vehicle does not have` ||
		got[1].Reason != `customer "c": no vehicle can serve it: customer "c" is reached at 30, its window closes at 25: late by 5` {
		t.Errorf("%+v", got)
	}
}

// Shipments stay on board through a reload, and are delivered before the route ends.
func TestARouteDeliversWhatItPicksUp(t *testing.T) {
	p := &Problem{Demand: make([]int32, 3), Shipments: []Shipment{{Pickup: 1, Delivery: 2, Amount: []int32{1}}}}
	for _, c := range []struct {
		route []int32
		want  int
	}{{[]int32{1, 2}, 0}, {[]int32{1, 0, 2}, 0}, {[]int32{2, 1}, 2}, {[]int32{1}, 1}} {
		r := &report{evaluator: &evaluator{p: p, ship: []int32{0, 1, -1}}}
		if r.order(1, c.route); len(r.list) != c.want {
			t.Errorf("%v: %d faults, want %d", c.route, len(r.list), c.want)
		}
	}
}

// Two places are one where both coordinates are equal, and without coordinates by their number.
func TestSamePlace(t *testing.T) {
	p := &Problem{X: []float64{1, 1, 2, 1}, Y: []float64{5, 6, 5, 5}}
	for b, want := range []bool{true, false, false, true} {
		if p.samePlace(0, b) != want {
			t.Errorf("places 0 and %d: %v", b, !want)
		}
	}
	if p = new(Problem); !p.samePlace(2, 2) || p.samePlace(1, 2) {
		t.Error("without coordinates")
	}
}
