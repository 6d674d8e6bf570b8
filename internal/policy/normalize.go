package policy

import (
	"errors"
	"fmt"

	"haul/internal/config"
	"haul/internal/kernel"
	"haul/internal/kernel/host"
	"haul/internal/vrp"
)

// A policy was trained on the unit square, with demands as fractions of the capacity. Problems go
// to the device in that form. The cost of the returned routes is computed with the problem's own
// distances.

// routable returns an error if the rule set cannot express a problem.
func routable(prob *vrp.Problem, set kernel.RuleSet) error {
	switch {
	case prob.N() < 1:
		return errors.New("it has no customers")
	case len(prob.X) == 0:
		return errors.New("it has no coordinates, and a policy reads nothing else")
	}
	for c, demand := range prob.Demand {
		if demand > prob.Load() {
			return fmt.Errorf("customer %d demands %d, capacity is %d: no vehicle can serve it", c, demand, prob.Load())
		}
	}
	return unlearned(prob, set)
}

// unitRows writes the problem, scaled to the unit square, once for each symmetry that fits into the
// slices.
func unitRows(p *vrp.Problem, set kernel.RuleSet, x, y []float32, words []int32) {
	places := placesOf(p, set)
	nodes := len(places)
	px, py := p.Plane()
	minX, minY, side := unitFrame(p, px, py)
	for k := range len(x) / nodes {
		for j, at := range places {
			u, v := (px[at]-minX)/side, (py[at]-minY)/side
			if k&1 != 0 {
				u = 1 - u
			}
			if k&2 != 0 {
				v = 1 - v
			}
			if k&4 != 0 {
				u, v = v, u
			}
			x[k*nodes+j], y[k*nodes+j] = float32(u), float32(v)
		}
		wide := len(set.Columns())
		row := words[k*nodes*wide:][:nodes*wide]
		for j, at := range places {
			row[j*wide] = p.Demand[at]
			if (set == kernel.VRP || set == kernel.MDVRP) && p.Pickup != nil && p.Pickup[at] > 0 {
				row[j*wide] = -p.Pickup[at]
			}
		}
		host.Complete(set, row, x[k*nodes:][:nodes], y[k*nodes:][:nodes], ownOf(p, set, side))
	}
}

// placesOf maps each node of an instance to a location of the problem: the first depot, the
// customers, and further depots. A missing depot is the first one again.
func placesOf(p *vrp.Problem, set kernel.RuleSet) []int {
	out := make([]int, 0, set.Nodes(p.N()))
	out = append(out, 0)
	for c := range p.N() {
		out = append(out, p.DepotCount()+c)
	}
	for d := range set.Further() {
		at := 1 + d
		if at >= p.DepotCount() {
			at = 0
		}
		out = append(out, at)
	}
	return out
}

// minExtent is the least extent of a problem in the unit square for which it is not scaled.
const minExtent = 0.5

// unitFrame returns the square that becomes the unit square: the square of the scale that a file of
// Haul states; the unit square if the problem lies in it and is large enough; else the smallest
// square that holds the nodes.
func unitFrame(p *vrp.Problem, x, y []float64) (minX, minY, side float64) {
	if scale, ok := p.Scale(); ok {
		return 0, 0, float64(scale)
	}
	minX, maxX, minY, maxY := x[0], x[0], y[0], y[0]
	for j := range x {
		minX, maxX = min(minX, x[j]), max(maxX, x[j])
		minY, maxY = min(minY, y[j]), max(maxY, y[j])
	}
	side = max(maxX-minX, maxY-minY)
	switch {
	case side == 0:
		return minX, minY, 1 // every node has the same coordinates
	case minX >= 0 && minY >= 0 && maxX <= 1 && maxY <= 1 && side >= minExtent:
		return 0, 0, 1
	}
	return minX, minY, side
}

// shares holds the demands of a policy's training as fractions of the capacity.
type shares struct{ mean, most float64 }

func trainedShares(c *config.Config) shares {
	p := &c.Problem
	capacity := float64(p.VehicleCapacity)
	if p.CapacityRange[0] > 0 {
		capacity = float64(p.CapacityRange[0]) // gives the largest fractions of training
	}
	return shares{mean: float64(p.DemandRange[0]+p.DemandRange[1]) / 2 / capacity, most: float64(p.DemandRange[1]) / capacity}
}

// maxMeanExcess is the factor by which the mean demand may exceed that of training. Above it a
// policy's routes become bad. It was chosen on six of CVRPLIB's X instances.
const maxMeanExcess = 1.3

// capacity returns the divisor of demands in the policy's features. It is the problem's capacity,
// unless some demand is a larger fraction of it than in training and the mean demand exceeds that
// of training by more than `maxMeanExcess`. Then it is larger, so that all demands look smaller.
// The check whether a customer fits a vehicle uses the true demands.
func (s shares) capacity(p *vrp.Problem) float32 {
	var sum, most float64
	for _, d := range p.Demand {
		sum, most = sum+float64(d), max(most, float64(d))
	}
	capacity := float64(p.Load())
	if most <= s.most*capacity {
		return float32(capacity)
	}
	return float32(max(capacity, sum/float64(p.N())/(maxMeanExcess*s.mean)))
}

// Takes returns an error if a policy with these settings cannot route a problem: by its rules, or
// because of an attribute that was not in training.
func Takes(c *config.Config, prob *vrp.Problem) error {
	src := SourceOf(c, 0)
	set := rulesOf(src)
	if src.File != "" {
		return fmt.Errorf("the policy has learned the problem file %s, and routes only what that draws", set)
	}
	if err := routable(prob, set); err != nil || src.Mix == 0 {
		return err
	}
	a, _ := prob.Variant()
	if !src.Mix.Has(a) {
		return fmt.Errorf("it is of the variant %s, and the policy has learned %s", a, c.Problem.Attributes)
	}
	return nil
}

func (p *Policy) takes(prob *vrp.Problem) error { return Takes(p.Config, prob) }
