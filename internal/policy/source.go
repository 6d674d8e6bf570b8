package policy

import (
	"haul/internal/config"
	"haul/internal/kernel"
	"haul/internal/rng"
	"haul/internal/vrp"
)

// SourceOf is where the settings' instances of that purpose come from. The same source on the host
// and in a device's generate op gives the same bits.
func SourceOf(c *config.Config, purpose rng.Purpose) vrp.Source {
	p := &c.Problem
	return vrp.Source{Seed: c.Experiment.RandomSeed, Purpose: purpose, Distribution: vrp.Distribution(p.Distribution),
		N: p.NumCustomers, Capacity: int32(p.VehicleCapacity), DemandMin: int32(p.DemandRange[0]), DemandMax: int32(p.DemandRange[1]),
		CoordRange: int32(p.CoordRange), MaxLength: float32(p.MaxRouteLength)}
}

// rulesOf is the rule set of a source's instances.
func rulesOf(src vrp.Source) kernel.RuleSet {
	if src.MaxLength > 0 {
		return kernel.CVRPL
	}
	return kernel.CVRP
}
