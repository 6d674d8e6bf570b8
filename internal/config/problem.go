package config

import (
	"regexp"
	"strings"
)

// Problem says which instances are drawn.
type Problem struct {
	NumCustomers    int     `yaml:"num_customers"`
	VehicleCapacity int     `yaml:"vehicle_capacity"`
	CapacityRange   [2]int  `yaml:"capacity_range"`
	DemandRange     [2]int  `yaml:"demand_range"`
	CoordRange      int     `yaml:"coord_range"`
	Distribution    string  `yaml:"distribution"`
	MaxRouteLength  float64 `yaml:"max_route_length"`
	Attributes      string  `yaml:"attributes"`
	SingleTour      bool    `yaml:"single_tour"`
}

// problemKeys describes them, in this order. A rule of a route has its setting in this file and its
// default in configs/default.yaml.
func problemKeys() []Entry {
	return []Entry{
		integer("problem.num_customers", upTo(1, mostCustomers), Honoured, "N, the customers of an instance, the depot not counted."),
		integer("problem.vehicle_capacity", atLeast(1), Honoured, "What one vehicle carries; the fleet is unbounded."),
		pair("problem.capacity_range", between(0, 1<<20-1), Honoured, "Lowest and highest capacity of a training instance, each drawing its own, smaller ones more often; validation and tests have vehicle_capacity. 0, 0: all have vehicle_capacity."),
		pair("problem.demand_range", atLeast(1), Honoured, "Lowest and highest demand of a customer, both included, drawn uniformly."),
		integer("problem.coord_range", between(1, 1<<24), Honoured, "With distribution grid: coordinates are integers 0..coord_range, scaled to the unit square. No effect with uniform."),
		text("problem.distribution", Honoured, "Where instances come from: grid (integer coordinates, scaled) or uniform (the unit square, as Kool has it).", "grid", "uniform"),
		float("problem.max_route_length", between(0, 1000), Honoured, "Where the limit of a route's length ends, the way home included, in sides of the unit square: each instance draws its own between twice the way to its farthest customer and this (RouteFinder: 2.8). 0: no limit."),
		text("problem.attributes", Honoured, "Kinds of problems that a batch mixes, each instance drawing one, all as likely: variants by RouteFinder's names, cvrp, or vrp with b or mb, l and tw behind it and o before it, apart by commas; or all, which is 24. Empty: none, which is CVRP with kernels of its own."),
		boolean("problem.single_tour", Honoured, "true: one vehicle serves all customers in one tour and comes back when all are served, which is the travelling salesman problem (TSP). Demands and capacities are then not asked. With baseline.type pomo, model.start_views lets every start choose where its tour begins."),
	}
}

// variantName is a kind of problem by RouteFinder's names, as internal/vrp reads them.
var variantName = regexp.MustCompile(`^(?i)(all|o?vrp(m?b)?l?(tw)?|cvrp)$`)

// conflicts lists what is wrong between these keys.
func (p *Problem) conflicts() []conflict {
	var out []conflict
	if p.DemandRange[1] > p.VehicleCapacity {
		out = append(out, clash([]string{"problem.demand_range", "problem.vehicle_capacity"},
			"problem.demand_range reaches %d, over problem.vehicle_capacity %d: no vehicle could serve that customer", p.DemandRange[1], p.VehicleCapacity))
	}
	if low, high := p.CapacityRange[0], p.CapacityRange[1]; high > 0 {
		keys := []string{"problem.capacity_range", "problem.demand_range", "problem.num_customers"}
		switch {
		case low < p.DemandRange[1]:
			out = append(out, clash(keys, "problem.demand_range reaches %d, over the lowest capacity %d of problem.capacity_range: no vehicle could serve that customer", p.DemandRange[1], low))
		case p.NumCustomers*high >= loadUnit:
			out = append(out, clash(keys, "problem.capacity_range reaches %d: with %d customers at most %d can be told apart", high, p.NumCustomers, (loadUnit-1)/p.NumCustomers))
		}
	}
	for name := range strings.SplitSeq(p.Attributes, ",") {
		if name = strings.TrimSpace(name); p.Attributes != "" && (!variantName.MatchString(name) || strings.EqualFold(name, "vrp")) {
			out = append(out, clash([]string{"problem.attributes"}, "problem.attributes: there is no variant %q: write all, or names as cvrp, ovrp and vrpbltw, apart by commas", name))
		}
	}
	if p.Attributes != "" && p.MaxRouteLength > 0 {
		out = append(out, clash([]string{"problem.attributes", "problem.max_route_length"}, "problem.attributes and problem.max_route_length exclude one another: a mix draws limits of its own"))
	}
	if p.SingleTour && (p.Attributes != "" || p.MaxRouteLength > 0 || p.CapacityRange[1] > 0) {
		out = append(out, clash([]string{"problem.single_tour", "problem.attributes", "problem.max_route_length", "problem.capacity_range"},
			"problem.single_tour has one vehicle without limits: it goes with none of problem.attributes, problem.max_route_length and problem.capacity_range"))
	}
	return out
}
