package search

import (
	"haul/internal/search/model"
	"haul/internal/vrp"
)

// The price of an overloaded vehicle. If capacities leave no slack, hardly any customer fits into
// another route, and a search that always keeps them does not move. The price follows the routes,
// never a clock, and overloaded routes are never the best ones.

const (
	maxOverload        = 2 * model.MeanAmount // overload of a route at most
	penaltyUpdateEvery = 100                  // iterations between two looks at the price
	// The price rises where fewer iterations than this end without overload, and falls where more
	// do.
	targetFeasibleLow, targetFeasibleHigh = 0.3, 0.5
	// the same for small problems, each of whose annealings is short
	targetFeasibleLowSmall, targetFeasibleHighSmall = 0.7, 0.9
	penaltyIncrease, penaltyDecrease                = 1.05, 0.98
	// the price stays within this factor of the first one
	penaltySpan = 100
	// overloadPhaseIters is how many iterations those who are left out stay out, and then compete
	// again.
	overloadPhaseIters = 1000
)

// overloadRule is whether load past a vehicle's capacity is allowed.
type overloadRule uint8

const (
	noOverload     overloadRule = iota
	pricedOverload              // at a penalty
	overloadAlone               // the same, while tasks that are left out stay out
)

// overloadOf is how far a load passes the room of a kind's vehicle, weighed.
func (c *candidate) overloadOf(peak int32, t *model.VehicleType, trip, dim int) int64 {
	return int64(max(0, peak-c.tripCapacity(t, trip, dim))) * c.OverloadWeights[dim]
}

// penalizedCost is what a route costs with its penalty.
func (c *candidate) penalizedCost(s *routeState) float64 {
	return s.cost + float64(float64(s.over)*c.penalty)
}

// addChange notes a change of cost and of overload.
func (c *candidate) addChange(cost float64, over int64) {
	c.overloadChange += over
	c.costChange += cost + float64(float64(over)*c.penalty)
}

// updatePenalty lets the penalty follow the share of iterations that end without overload.
func (c *candidate) updatePenalty() {
	c.itersSinceUpdate++
	if c.overload == 0 {
		c.feasibleIters++
	}
	if c.itersSinceUpdate < penaltyUpdateEvery {
		return
	}
	was := c.penalty
	if share := float64(c.feasibleIters) / penaltyUpdateEvery; share < c.targetLow {
		c.penalty = min(c.penalty*penaltyIncrease, c.PenaltyUnit*penaltySpan)
	} else if share > c.targetHigh {
		c.penalty = max(c.penalty*penaltyDecrease, c.PenaltyUnit/penaltySpan)
	}
	c.cost += float64((c.penalty - was) * float64(c.overload))
	c.itersSinceUpdate, c.feasibleIters = 0, 0
}

// scheduleOverload says whether overload may be had at its price. As long as required customers are
// left out, a vehicle with too much on board would always seem the better way: then it may be had
// in every other stretch of iterations alone, while those who are left out stay out.
func (c *candidate) scheduleOverload(iterations int) {
	c.missed = c.leavesOutRequired()
	// A backhaul that is left out may need a linehaul which its cheapest insertion keeps in another
	// route.
	c.apart = c.missed && c.Ordered == vrp.LinehaulFirst
	if !c.Traits.Moves.Has(model.Overload) {
		return
	}
	if c.overloads == overloadAlone {
		if c.itersInPhase += iterations; c.itersInPhase >= overloadPhaseIters {
			c.endOverloadPhase()
		}
		return
	}
	if c.overloads != noOverload || !c.missed {
		c.overloads = pricedOverload
		return
	}
	if c.itersInPhase += iterations; c.itersInPhase >= overloadPhaseIters && !c.hasLockedStops() {
		c.overloads, c.itersInPhase = overloadAlone, 0
	}
}

// endOverloadPhase lets those who are left out compete for room again, from routes without
// overload.
func (c *candidate) endOverloadPhase() {
	c.overloads, c.itersInPhase = noOverload, 0
	if c.overload > 0 {
		c.set(c.best, c.bestKind, nil)
	}
}

func (c *candidate) hasLockedStops() bool {
	for _, id := range c.routes {
		if c.states[id].lock > 0 {
			return true
		}
	}
	return false
}

// leavesOutRequired reports whether the present routes leave out a required task.
func (c *candidate) leavesOutRequired() bool {
	for _, lead := range c.absent {
		if c.Locations[lead].Required {
			return true
		}
	}
	return false
}
