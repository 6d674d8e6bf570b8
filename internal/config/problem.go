package config

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// Problem configures the distribution of instances.
type Problem struct {
	Customers       Sizes   `yaml:"num_customers"`
	VehicleCapacity int     `yaml:"vehicle_capacity"`
	CapacityRange   [2]int  `yaml:"capacity_range"`
	DemandRange     [2]int  `yaml:"demand_range"`
	CoordRange      int     `yaml:"coord_range"`
	Distribution    string  `yaml:"distribution"`
	MaxRouteLength  float64 `yaml:"max_route_length"`
	Attributes      string  `yaml:"attributes"`
	SingleTour      bool    `yaml:"single_tour"`
	Rules           string  `yaml:"rules"`
	RulesSettings   string  `yaml:"rules_settings"`
	RulesHash       string  `yaml:"rules_hash"`
}

// Sizes holds the least and the greatest number of customers of an instance.
type Sizes [2]int

// String returns "n" for one size, else "[low, high]".
func (s Sizes) String() string {
	if s[0] == s[1] {
		return strconv.Itoa(s[0])
	}
	return fmt.Sprintf("[%d, %d]", s[0], s[1])
}

// Size returns the Sizes of a single size.
func Size(n int) Sizes { return Sizes{n, n} }

// mostSizes is the number of sizes on which a wider range is trained.
const mostSizes = 5

// NumCustomers returns the number of customers, of a range the largest.
func (p *Problem) NumCustomers() int { return p.Customers[1] }

// Nearest returns the size in the range that is nearest to n.
func (s Sizes) Nearest(n int) int { return min(max(n, s[0]), s[1]) }

// Ladder returns the sizes that a run trains on, in rising order. A range of at most five sizes has
// all of them. A wider one has five, including both ends, with about equal ratios between
// neighbours: each size costs a program and its memory.
func (p *Problem) Ladder() []int {
	low, high := p.Customers[0], p.Customers[1]
	count := min(mostSizes, high-low+1)
	out := make([]int, count)
	for i := range out {
		switch {
		case high-low < mostSizes:
			out[i] = low + i
		case i == 0 || i == count-1:
			out[i] = p.Customers[min(i, 1)]
		default:
			share := float64(i) / float64(count-1)
			out[i] = max(out[i-1]+1, int(math.Round(float64(low)*math.Pow(float64(high)/float64(low), share))))
		}
	}
	return out
}

// Of returns the settings for instances of one size.
func (c *Config) Of(customers int) *Config {
	own := *c
	own.Problem.Customers = Size(customers)
	return &own
}

// problemKeys returns the schema of these keys, in this order. A new rule of a route has its
// setting in this file and its default in configs/default.yaml.
func problemKeys() []Entry {
	return []Entry{
		sizes("problem.num_customers", upTo(1, mostCustomers), Honoured, "N, the number of customers of an instance, without the depot. [low, high]: every step draws its size, so that one policy learns the range: any size if there are at most five, otherwise one of five from low to high in equal ratios ([50, 200]: 50, 71, 100, 141, 200). Validation is at both ends, and its cost per customer is their mean."),
		integer("problem.vehicle_capacity", atLeast(1), Honoured, "Capacity of a vehicle; the number of vehicles is not limited."),
		pair("problem.capacity_range", between(0, 1<<20-1), Honoured, "Lowest and highest capacity of training instances. Each instance draws its own, smaller ones more often; validation and tests use vehicle_capacity. 0, 0: all use vehicle_capacity."),
		pair("problem.demand_range", atLeast(1), Honoured, "Lowest and highest demand of a customer, both included, drawn uniformly."),
		integer("problem.coord_range", between(1, 1<<24), Honoured, "With distribution grid: coordinates are integers 0..coord_range, scaled to the unit square. No effect with uniform."),
		text("problem.distribution", Honoured, "Distribution of customers: grid (integer coordinates, scaled to the unit square) or uniform (the unit square, as in Kool et al.).", "grid", "uniform"),
		float("problem.max_route_length", between(0, 1000), Honoured, "Largest limit of a route's length, including the way back, in sides of the unit square. Each instance draws its limit between twice the distance to its farthest customer and this (RouteFinder: 2.8). 0: no limit."),
		text("problem.attributes", Honoured, "Kinds of problems that a batch mixes; each instance draws one, with equal probabilities. Names are RouteFinder's, with commas between them: cvrp, or vrp with the suffixes b or mb, l and tw, the prefix o (open) and before it md (several depots). all means the 24 kinds with one depot, mdall the 24 with several. Empty: plain CVRP, which has its own kernels."),
		boolean("problem.single_tour", Honoured, "true: the travelling salesman problem (TSP): one vehicle serves all customers in one tour. Demands and capacities are then ignored. With baseline.type pomo, model.start_views lets every start choose where its tour begins."),
		text("problem.rules", Honoured, "Text of a problem file (docs/rules.md), whose rules then decide what is drawn, allowed and paid; haul train --problem fills it in, so that a checkpoint carries its problem. The keys of capacities and demands are then ignored. Empty: the other keys say which problem."),
		text("problem.rules_settings", Honoured, "Fields of Settings of the file in problem.rules and their values, with commas between them: Limit=4, Bonus=0.5."),
		text("problem.rules_hash", Honoured, "SHA-256 of problem.rules in hexadecimal digits, as haul train --problem fills it in. A text of another hash is refused. Empty: not checked."),
	}
}

// variantName matches RouteFinder's names of variants, which internal/vrp parses.
var variantName = regexp.MustCompile(`^(?i)(md)?(all|o?vrp(m?b)?l?(tw)?|cvrp)$`)

// conflicts returns the faults of combinations of these keys.
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
		case p.NumCustomers()*high >= loadUnit:
			out = append(out, clash(keys, "problem.capacity_range reaches %d: with %d customers at most %d can be told apart", high, p.NumCustomers(), (loadUnit-1)/p.NumCustomers()))
		}
	}
	for name := range strings.SplitSeq(p.Attributes, ",") {
		if name = strings.TrimSpace(name); p.Attributes != "" && (!variantName.MatchString(name) || strings.EqualFold(strings.TrimPrefix(strings.ToLower(name), "md"), "vrp")) {
			out = append(out, clash([]string{"problem.attributes"}, "problem.attributes: there is no variant %q: write all (one depot), mdall (several), or names as cvrp, ovrp and mdvrptw, apart by commas", name))
		}
	}
	if p.Attributes != "" && p.MaxRouteLength > 0 {
		out = append(out, clash([]string{"problem.attributes", "problem.max_route_length"}, "problem.attributes and problem.max_route_length exclude one another: a mix draws limits of its own"))
	}
	if p.SingleTour && (p.Attributes != "" || p.MaxRouteLength > 0 || p.CapacityRange[1] > 0) {
		out = append(out, clash([]string{"problem.single_tour", "problem.attributes", "problem.max_route_length", "problem.capacity_range"},
			"problem.single_tour has one vehicle without limits: it goes with none of problem.attributes, problem.max_route_length and problem.capacity_range"))
	}
	return append(out, p.ruleConflicts()...)
}

// ruleConflicts lists what is wrong between a problem file and the other keys.
func (p *Problem) ruleConflicts() (out []conflict) {
	switch {
	case p.Rules != "" && (p.Attributes != "" || p.MaxRouteLength > 0 || p.CapacityRange[1] > 0 || p.SingleTour):
		out = append(out, clash([]string{"problem.attributes", "problem.max_route_length", "problem.capacity_range", "problem.single_tour", "problem.rules"},
			"problem.rules has rules of its own: it goes with none of problem.attributes, problem.max_route_length, problem.capacity_range and problem.single_tour"))
	case p.Rules == "" && p.RulesSettings != "":
		out = append(out, clash([]string{"problem.rules_settings", "problem.rules"}, "problem.rules_settings are of a problem file, and problem.rules has none: haul train --problem names it"))
	case p.RulesHash != "" && p.RulesHash != HashRules(p.Rules):
		out = append(out, clash([]string{"problem.rules", "problem.rules_hash"}, "problem.rules has changed: its hash is %.12s, and problem.rules_hash is %.12s", HashRules(p.Rules), p.RulesHash))
	}
	return out
}

// HashRules returns the hash of a problem file's text.
func HashRules(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }

// WithRules is the settings for the problem of a file. Starts are viewed and not forced: where a
// route ends at its first return, nobody would learn how to leave the depot.
func (c *Config) WithRules(text string) (*Config, error) {
	own := *c
	own.Problem.Rules, own.Problem.RulesHash = text, HashRules(text)
	own.Model.StartViews = own.Baseline.Type == BaselinePOMO
	for _, bad := range own.conflicts() {
		return nil, errors.New(bad.text)
	}
	return &own, nil
}
