package policy

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"haul/internal/config"
	"haul/internal/kernel"
	"haul/internal/plan"
	"haul/internal/rng"
	"haul/internal/vrp"
)

// This file alone maps settings and problems to rule sets. Training, evaluation and given problems
// use it, so that a policy meets the rules of its training in inference.

// SourceOf returns the source of the settings' instances for a purpose. The host and a device's
// generate op draw the same bits from one source.
func SourceOf(c *config.Config, purpose rng.Purpose) vrp.Source {
	p := &c.Problem
	mix := vrp.Mix(0)
	if p.Attributes != "" {
		mix, _ = vrp.ParseMix(p.Attributes) // cannot fail: the settings were checked
	}
	return vrp.Source{Mix: mix, Seed: c.Experiment.RandomSeed, Purpose: purpose, Distribution: vrp.Distribution(p.Distribution),
		N: p.NumCustomers(), Capacity: int32(p.VehicleCapacity), DemandMin: int32(p.DemandRange[0]), DemandMax: int32(p.DemandRange[1]),
		CoordRange: int32(p.CoordRange), MaxLength: float32(p.MaxRouteLength), Single: p.SingleTour,
		File: p.Rules, FileSettings: p.RulesSettings}
}

// rulesOf returns the rule set of a source's instances.
func rulesOf(src vrp.Source) kernel.RuleSet {
	switch {
	case src.File != "":
		return fileOf(src)
	case src.Mix.Several():
		return kernel.MDVRP
	case src.Mix != 0:
		return kernel.VRP
	case src.MaxLength > 0:
		return kernel.CVRPL
	case src.Single:
		return kernel.TSP
	}
	return kernel.CVRP
}

// nodesOf returns the number of nodes of a source's instance.
func nodesOf(src vrp.Source) int { return rulesOf(src).Nodes(src.N) }

// variantsOf returns the names of the variants that a source generates.
func variantsOf(src vrp.Source) []string {
	switch {
	case src.File != "":
		return []string{fileOf(src).String()}
	case src.Mix != 0:
		return src.Mix.Names()
	case src.MaxLength > 0:
		return []string{vrp.LimitedLength.String()}
	case src.Single:
		return []string{kernel.TSP.String()}
	}
	return []string{vrp.Attributes(0).String()}
}

// Learned reports whether a policy that was trained on a source's instances can route the variant
// with that name of RouteFinder's.
func Learned(src vrp.Source, variant string) bool {
	m, err := vrp.ParseMix(variant)
	switch {
	case err != nil || src.File != "" || strings.HasSuffix(variant, "all"):
		return false
	case src.Mix != 0:
		return src.Mix&m == m
	case src.Single:
		return false
	}
	return m == 1 // plain
}

// RecordInstances records the generation of a shard's instances. With a range of capacities each
// instance has a different one.
func RecordInstances(p *plan.Plan, src vrp.Source, symmetries int, capacities [2]int) kernel.Instances {
	if capacities[1] > 0 {
		src.Capacity = kernel.LoadUnit
	}
	grid := int32(0)
	if src.Distribution == vrp.Grid {
		grid = src.CoordRange
	}
	longest := src.MaxLength
	if src.Mix != 0 {
		longest = vrp.MixLongest
	}
	return p.Drawn(kernel.Rules{Set: rulesOf(src), Capacity: src.Capacity}, nodesOf(src), kernel.Drawing{Seed: src.Seed, Purpose: src.Purpose, Grid: grid,
		DemandMin: src.DemandMin, DemandMax: src.DemandMax, Symmetries: symmetries, CapacityMin: int32(capacities[0]), CapacityMax: int32(capacities[1]), Range: longest, Mix: uint64(src.Mix)})
}

// unlearned returns a one-line error that names an attribute of a problem which policies of the
// rule set have not learned; nil if there is none.
func unlearned(prob *vrp.Problem, set kernel.RuleSet) error {
	if set == kernel.VRP || set == kernel.MDVRP {
		a, err := prob.Variant()
		if err == nil && a&vrp.SeveralDepots != 0 && set == kernel.VRP {
			return errors.New("it has several depots, which the policy has not learned")
		}
		return err
	}
	left := *prob
	if set == kernel.CVRPL && prob.Service == nil && prob.Metric == vrp.Exact {
		left.MaxDuration = 0
	}
	if set == kernel.TSP {
		load := int64(0)
		for _, d := range prob.Demand {
			load += int64(d)
		}
		if load > int64(prob.Capacity) {
			return fmt.Errorf("its customers demand %d, more than one vehicle carries (%d), and the policy has learned tours of one", load, prob.Capacity)
		}
		left.Vehicles = 0
	}
	return left.Plain()
}

// ownOf returns a problem's limits and windows for the rules (kernel.Own). Lengths are divided by
// side, the side of the square that becomes the unit square.
func ownOf(p *vrp.Problem, set kernel.RuleSet, side float64) kernel.Own {
	if set == kernel.VRP || set == kernel.MDVRP {
		return variedOf(p, side)
	}
	if p.MaxDuration > 0 {
		return kernel.Own{Limit: float32(p.MaxDuration / side)}
	}
	return kernel.Own{Limit: float32(math.Inf(1))}
}
