package files

import (
	"fmt"
	"math"
	"slices"

	"haul/internal/vrp"
)

// Vehicles of PyVRP's dialect. What a reader could break: the file lists vehicles one by one,
// and .sol files number routes by them, so a type keeps the numbers of its vehicles. Equal
// vehicles are one type, in the order of their first vehicle in the file.

// byVehicle are the sections and keys that make a fleet of vehicles which are not all alike, or
// that a plain problem has no field for.
var byVehicle = []string{"CAPACITY", "VEHICLES_ALLOWED_CLIENTS", "VEHICLES_DEPOT", "VEHICLES_RELOAD_DEPOT", "VEHICLES_FIXED_COST",
	"VEHICLES_MAX_DISTANCE", "VEHICLES_MAX_DURATION", "VEHICLES_MAX_RELOADS", "VEHICLES_UNIT_DISTANCE_COST"}

// hasFleet tells whether the file says more of its vehicles than one number and one capacity.
func (v *vrpFile) hasFleet() bool {
	return len(v.depots) > 1 || slices.ContainsFunc(byVehicle, func(key string) bool {
		_, section := v.seen[key+"_SECTION"]
		_, header := v.keys[key]
		return section || header && key != "CAPACITY"
	})
}

// fillFleet makes the fleet of a file that has one. vehicles is VEHICLES, 0 where it is not given;
// capacity CAPACITY, -1 where it is not given.
func (v *vrpFile) fillFleet(p *vrp.Problem, order []int, vehicles, capacity int) error {
	for _, key := range byVehicle {
		line, ok := v.seen[key+"_SECTION"]
		if !ok {
			continue
		}
		if f, both := v.keys[key]; both {
			return v.errorf(line, "%s_SECTION contradicts %s on line %d", key, key, f.line)
		}
		rows := v.tables[key+"_SECTION"]
		if vehicles == 0 {
			vehicles = len(rows)
		}
		if len(rows) != vehicles || len(rows) == 0 {
			return v.errorf(line, "%s_SECTION lists %d vehicles of %d", key, len(rows), vehicles)
		}
		for _, r := range rows {
			if r.id < 1 || r.id > vehicles {
				return v.errorf(r.line, "%s_SECTION: vehicle %d is unknown: there are %d", key, r.id, vehicles)
			}
		}
	}
	listed := false
	for _, key := range byVehicle {
		_, ok := v.seen[key+"_SECTION"]
		listed = listed || ok
	}
	each := 1 // stands for all of them
	if listed {
		each = vehicles
	}
	fleet := make([]vrp.VehicleType, each)
	for k := range fleet {
		fleet[k] = vrp.NewVehicleType()
		if capacity >= 0 {
			fleet[k].Capacity = []int32{int32(capacity)}
		}
		if p.MaxDuration > 0 {
			fleet[k].MaxDuration = p.MaxDuration
		}
	}
	p.MaxDuration = 0
	for _, key := range byVehicle {
		if key == "CAPACITY" {
			if err := v.eachVehicle(key, fleet, func(t *vrp.VehicleType, r tableRow) error {
				c, err := v.whole("CAPACITY_SECTION", r, 0)
				t.Capacity = []int32{c}
				return err
			}); err != nil {
				return err
			}
			continue
		}
		if _, ok := v.keys[key]; ok {
			x, err := v.positiveOrZero(key)
			if err != nil {
				return err
			}
			r := tableRow{line: v.keys[key].line, values: []float64{x}}
			for k := range fleet {
				if err := v.vehicle(key, &fleet[k], r, p, order); err != nil {
					return err
				}
			}
			continue
		}
		if err := v.eachVehicle(key, fleet, func(t *vrp.VehicleType, r tableRow) error { return v.vehicle(key, t, r, p, order) }); err != nil {
			return err
		}
	}
	p.Fleet = grouped(fleet, listed)
	if !listed {
		p.Fleet[0].Count = vehicles
	}
	p.Capacity = 0
	return nil
}

func (v *vrpFile) eachVehicle(key string, fleet []vrp.VehicleType, set func(t *vrp.VehicleType, r tableRow) error) error {
	for _, r := range v.tables[key+"_SECTION"] {
		if err := set(&fleet[r.id-1], r); err != nil {
			return err
		}
	}
	return nil
}

// vehicle sets what one row, or a header's value, says of a vehicle.
func (v *vrpFile) vehicle(key string, t *vrp.VehicleType, r tableRow, p *vrp.Problem, order []int) error {
	node := func(x float64, depot bool) (int, error) {
		n := int(x)
		if float64(n) != x || n < 1 || n >= len(order) || (order[n] < p.DepotCount()) != depot {
			kind := "customer"
			if depot {
				kind = "depot"
			}
			return 0, v.errorf(r.line, "%s: node %g is no %s", key, x, kind)
		}
		return order[n], nil
	}
	switch key {
	case "VEHICLES_ALLOWED_CLIENTS":
		t.Allowed = []int32{}
		for _, x := range r.values {
			c, err := node(x, false)
			if err != nil {
				return err
			}
			t.Allowed = append(t.Allowed, int32(c))
		}
		slices.Sort(t.Allowed)
		if t.Allowed = slices.Compact(t.Allowed); len(t.Allowed) == p.N() {
			t.Allowed = nil
		}
	case "VEHICLES_DEPOT":
		d, err := node(r.values[0], true)
		if err != nil {
			return err
		}
		t.Start, t.End = d, d
	case "VEHICLES_RELOAD_DEPOT":
		for _, x := range r.values {
			d, err := node(x, true)
			if err != nil {
				return err
			}
			t.Reloads = append(t.Reloads, d)
		}
	case "VEHICLES_FIXED_COST":
		t.FixedCost = r.values[0]
	case "VEHICLES_MAX_DISTANCE":
		t.MaxDistance = r.values[0]
	case "VEHICLES_MAX_DURATION":
		t.MaxDuration = min(t.MaxDuration, r.values[0])
	case "VEHICLES_UNIT_DISTANCE_COST":
		t.DistanceCost = r.values[0]
	case "VEHICLES_MAX_RELOADS":
		n, err := v.whole(key, r, 0)
		if err != nil {
			return err
		}
		if t.MaxReloads = int(n); n == 0 {
			t.Reloads = nil
		}
		if t.Reloads == nil { // without a depot to reload at there is nothing to limit
			t.MaxReloads = 0
		}
	}
	return nil
}

// grouped puts equal vehicles into one type. numbered tells that the file counts them.
func grouped(fleet []vrp.VehicleType, numbered bool) []vrp.VehicleType {
	var types []vrp.VehicleType
	at := map[string]int{}
	for k, t := range fleet {
		key := fmt.Sprintf("%v %d %d %v %v %v %v %v %v %d", t.Capacity, t.Start, t.End, t.Allowed, t.Reloads, t.FixedCost, t.MaxDistance, t.MaxDuration, t.DistanceCost, t.MaxReloads)
		if t.Allowed == nil {
			key += " all"
		}
		i, ok := at[key]
		if !ok {
			i = len(types)
			at[key] = i
			types = append(types, t)
		}
		if numbered {
			types[i].Count++
			types[i].Numbers = append(types[i].Numbers, int32(k))
		}
	}
	return types
}

// kinds are the TYPEs that are read. What limits routes is told by sections; the type alone says
// which order linehauls and backhauls have, and whether routes are open.
var kinds = []string{"CVRP", "ACVRP", "VRP", "DCVRP", "TSP", "ATSP", "VRPTW", "CVRPTW", "PCVRP", "PCVRPTW", "MDVRP", "MDVRPTW", "SDVRP", "SDVRPTW", "HFVRP", "HFVRPTW", "FSM", "MTVRP", "MTVRPTW", "MTVRPTWR",
	"GVRP", "VRPB", "VRPBTW", "VRPMB", "VRPSPD", "VRPSPDTW", "PDP", "PDPTW", "OVRP", "OVRPTW", "VRPL"}

// anyCapacity is what a problem without loads has as the capacity of its vehicles.
const anyCapacity = 1

// noLimit is true of a limit that nothing reaches.
func noLimit(x float64) bool { return math.IsInf(x, 1) }
