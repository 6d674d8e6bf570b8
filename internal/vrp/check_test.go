package vrp

import (
	"math"
	"strings"
	"testing"
)

// whole is a problem that has every part, and passes Check.
func whole() *Problem {
	matrix := make([]float64, 36)
	t := NewVehicleType(10, 20)
	t.Count, t.Skills, t.Reloads, t.MaxReloads = 2, []int32{1}, []int{1}, 2
	t.Breaks = []Break{{Windows: []Window{{5, 6}}, Duration: 1}}
	return &Problem{Depots: 2, Demand: []int32{0, 0, 1, 2, 0, 0}, Pickup: []int32{0, 0, 0, 0, 1, 0},
		X: make([]float64, 6), Y: make([]float64, 6), IDs: []string{"n", "s", "a", "b", "c", "d"},
		Service: make([]float64, 6), Setup: make([]float64, 6), Release: make([]float64, 6), Prize: make([]float64, 6), Late: make([]float64, 6),
		Windows: [][]Window{{{0, 9}}, nil, {{1, 2}, {3, 4}}, nil, nil, nil}, Optional: make([]bool, 6), Needs: [][]int32{nil, nil, {1}, nil, nil, nil}, Priority: make([]int, 6),
		Dimensions: []Dimension{{Name: "volume", Delivery: make([]int32, 6)}}, Profiles: []Profile{{Distance: matrix}}, Fleet: []VehicleType{t},
		Groups: []Group{{Members: []int32{2, 3}, Required: true}}, Shipments: []Shipment{{Pickup: 4, Delivery: 5, Amount: []int32{3, 1}}}}
}

// TestCheckParts: every part that contradicts itself is refused in one line that names the place.
func TestCheckParts(t *testing.T) {
	if err := whole().Check(); err != nil {
		t.Fatal(err)
	}
	inf := math.Inf(1)
	for _, c := range []struct {
		want  string
		spoil func(p *Problem)
	}{
		{"the number of depots is -1", func(p *Problem) { p.Depots = -1 }},
		{"the problem has no customers", func(p *Problem) { p.Depots = 6 }},
		{"5 service times for 6 nodes", func(p *Problem) { p.Service = p.Service[:5] }},
		{"7 time windows for 6 nodes", func(p *Problem) { p.Windows = append(p.Windows, nil) }},
		{"5 ids for 6 nodes", func(p *Problem) { p.IDs = p.IDs[:5] }},
		{`5 amounts of "volume" for 6 nodes`, func(p *Problem) { p.Dimensions[0].Delivery = make([]int32, 5) }},
		{`depot "s" has demand 1: expected 0`, func(p *Problem) { p.Demand[1] = 1 }},
		{`demand -1 of customer "a" is negative`, func(p *Problem) { p.Demand[2] = -1 }},
		{`pickup -1 of customer "c" is negative`, func(p *Problem) { p.Pickup[4] = -1 }},
		{`depot "n" has a pickup of 1: expected 0`, func(p *Problem) { p.Pickup[0] = 1 }},
		{"profile 0 has 35 distances for 6 nodes: expected 36", func(p *Problem) { p.Profiles[0].Distance = make([]float64, 35) }},
		{"profile 0 has 37 durations for 6 nodes: expected 36", func(p *Problem) { p.Profiles[0].Duration = make([]float64, 37) }},
		{"profile 0: the distance from node 1 to node 2 is -1", func(p *Problem) { p.Profiles[0].Distance[8] = -1 }},
		{"the speed is -1: expected a number above 0", func(p *Problem) { p.Speed = -1 }},
		{"the service time of node 2 is -1", func(p *Problem) { p.Service[2] = -1 }},
		{`customer "b": its window closes at 1, before it opens at 2`, func(p *Problem) { p.Windows[3] = []Window{{2, 1}} }},
		{`customer "b": its window opens at -1 and closes at 1`, func(p *Problem) { p.Windows[3] = []Window{{-1, 1}} }},
		{`customer "b": its window opens at 2, and the one before it closes at 2: windows come in order, with time in between`, func(p *Problem) { p.Windows[3] = []Window{{1, 2}, {2, 3}} }},
		{`the release time of customer "a" is -1: expected a number from 0 on`, func(p *Problem) { p.Release[2] = -1 }},
		{`depot "s" has a prize of 1: expected 0`, func(p *Problem) { p.Prize[1] = 1 }},
		{`the price of lateness of customer "a" is +Inf: expected a number from 0 on`, func(p *Problem) { p.Late[2] = inf }},
		{`depot "n" is optional, needs a skill or has a priority: only customers can`, func(p *Problem) { p.Optional[0] = true }},
		{`customer "a" needs skill -1: skills are numbers from 0 on`, func(p *Problem) { p.Needs[2][0] = -1 }},
		{`"volume" of customer "a" is -1: expected a number from 0 on, and 0 at depots`, func(p *Problem) { p.Dimensions[0].Delivery[2] = -1 }},
		{"its fleet has no vehicle types", func(p *Problem) { p.Fleet = []VehicleType{} }},
		{"it has 2 depots and no fleet: which depot a vehicle leaves from is not said", func(p *Problem) { p.Fleet, p.Capacity = nil, 10 }},
		{"it has a fleet and a number of vehicles (3): expected one of them", func(p *Problem) { p.Vehicles = 3 }},
		{"it has a fleet and open routes beside it: expected an open end in the fleet", func(p *Problem) { p.Open = true }},
		{"vehicle type 1: its depot is 2: depots are 0 to 1", func(p *Problem) { p.Fleet[0].Start = 2 }},
		{"vehicle type 1: its depot is -2: depots are 0 to 1", func(p *Problem) { p.Fleet[0].End = -2 }},
		{"vehicle type 1: it reloads at 2: depots are 0 to 1", func(p *Problem) { p.Fleet[0].Reloads[0] = 2 }},
		{"vehicle type 1: it may reload 2 times, at 0 depots", func(p *Problem) { p.Fleet[0].Reloads = nil }},
		{"vehicle type 1: it has 3 capacities or loads for 2 dimensions of load", func(p *Problem) { p.Fleet[0].Capacity = make([]int32, 3) }},
		{"vehicle type 1: its initial load 11 is over its capacity 10", func(p *Problem) { p.Fleet[0].InitialLoad = []int32{11} }},
		{"vehicle type 1: its shift begins at 2 and ends at 1", func(p *Problem) { p.Fleet[0].Shift = Window{2, 1} }},
		{"vehicle type 1: its limit of duration is -1", func(p *Problem) { p.Fleet[0].MaxDuration = -1 }},
		{"vehicle type 1: its cost per distance is +Inf", func(p *Problem) { p.Fleet[0].DistanceCost = inf }},
		{"vehicle type 1: its profile is 1: there are 1", func(p *Problem) { p.Fleet[0].Profile = 1 }},
		{"vehicle type 1: it may serve 1, which is no customer", func(p *Problem) { p.Fleet[0].Allowed = []int32{1} }},
		{"vehicle type 1: it has 2 vehicles and the numbers of 1", func(p *Problem) { p.Fleet[0].Numbers = []int32{0} }},
		{"vehicle type 1: break 1: its window closes at 5, before it opens at 6", func(p *Problem) { p.Fleet[0].Breaks[0].Windows[0] = Window{6, 5} }},
		{"group 1 has member 1, which is no customer", func(p *Problem) { p.Groups[0].Members[0] = 1 }},
		{`customer "a" is in groups 1 and 2`, func(p *Problem) { p.Groups = append(p.Groups, Group{Members: []int32{2}}) }},
		{`customer "c" is in group 1 and in shipment 1: expected one of them`, func(p *Problem) { p.Groups[0].Members[0] = 4 }},
		{`shipment 1 is picked up and delivered at customer "c"`, func(p *Problem) { p.Shipments[0].Delivery = 4 }},
		{"shipment 1 has place 0, which is no customer", func(p *Problem) { p.Shipments[0].Delivery = 0 }},
		{`customer "d" is in shipments 1 and 2`, func(p *Problem) { p.Shipments = append(p.Shipments, Shipment{Pickup: 2, Delivery: 5}); p.Groups = nil }},
		{`the amount of the shipment from customer "c" to customer "d" is -1`, func(p *Problem) { p.Shipments[0].Amount[0] = -1 }},
		{`the halves of a shipment contradict: of customer "c" and customer "d" one is optional and one required`, func(p *Problem) { p.Optional[4] = true }},
		{`customer "c" takes a delivery and has a pickup: with backhauls last it can have one of them`, func(p *Problem) { p.Demand[4], p.Backhauls = 1, BackhaulsLast }},
		{"there is no objective 9", func(p *Problem) { p.Objective = 9 }},
		{"there is no rule 9 of backhauls", func(p *Problem) { p.Backhauls = 9 }},
		{"there is no metric 99", func(p *Problem) { p.Metric = 99 }},
		{"its windows or release times are times and its distances metres: a speed is needed", func(p *Problem) { p.Metric, p.Profiles = GreatCircle, nil }},
	} {
		p := whole()
		c.spoil(p)
		err := p.Check()
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}

// A type whose vehicles begin with loads that have no capacity of their own is judged like any
// other.
func TestLoadsBeyondTheCapacities(t *testing.T) {
	p := &Problem{X: make([]float64, 2), Demand: make([]int32, 2), Dimensions: make([]Dimension, 1)}
	for _, c := range []struct {
		capacity, load []int32
		ok             bool
	}{{nil, []int32{5}, true}, {[]int32{5}, []int32{5, 7}, true}, {[]int32{4}, []int32{5, 7}, false}, {[]int32{5, 6}, []int32{5, 7}, false}} {
		err := p.checkType(&VehicleType{Count: 1, Capacity: c.capacity, InitialLoad: c.load, Shift: Window{To: 1}, LatestStart: 1, MaxDuration: 1, MaxDistance: 1})
		if (err == nil) != c.ok {
			t.Errorf("capacity %v, load %v: %v", c.capacity, c.load, err)
		}
	}
}
