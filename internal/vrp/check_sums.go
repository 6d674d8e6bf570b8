package vrp

import (
	"fmt"
	"math"
)

// sumMost bounds what the cost of any routes may add up to: sums and products of what the problem
// states stay finite, and far from where a float64 ends.
const sumMost = 1e100

// checkSums refuses a problem whose distances, times or costs may add up to more than sumMost. The
// bounds hold for routes that visit each customer once and reload before each.
func (p *Problem) checkSums() error {
	n := float64(len(p.Demand))
	largest := func(lists ...[]float64) (most float64) {
		for _, list := range lists {
			for _, x := range list {
				most = max(most, math.Abs(x))
			}
		}
		return most
	}
	sum := func(list []float64) (total float64) {
		for _, x := range list {
			total += x
		}
		return total
	}
	// Metrics multiply coordinates by at most 10, and Geo's and GreatCircle's are no longer than the
	// equator.
	leg, travel := 20*(largest(p.X)+largest(p.Y))+1e8, 0.0
	if p.Metric == Explicit && p.Profiles == nil {
		leg = largest(p.Weights)
	}
	for _, f := range p.Profiles {
		leg, travel = max(leg, largest(f.Distance)), max(travel, largest(f.Duration))
	}
	travel = max(travel, leg)
	if p.Speed > 0 {
		travel = max(travel, leg/p.Speed)
	}
	closing := 0.0 // the latest moment that windows and shifts name
	latest := func(w Window) {
		if closing = max(closing, w.From); !math.IsInf(w.To, 1) {
			closing = max(closing, w.To)
		}
	}
	for _, list := range p.Windows {
		for _, w := range list {
			latest(w)
		}
	}
	rests, fixed, perDistance, perDuration := 0.0, 0.0, 1.0, 0.0
	types := p.Types()
	for i := range types {
		t := &types[i]
		latest(t.Shift)
		fixed, perDistance, perDuration = max(fixed, t.FixedCost), max(perDistance, t.DistanceCost), max(perDuration, t.DurationCost)
		most := 0.0
		for _, b := range t.Breaks {
			most += b.Duration
			for _, w := range b.Windows {
				latest(w)
			}
		}
		rests = max(rests, most)
	}
	legs := 3*n + 2
	distance := legs * leg
	// Any route ends by then, and there are at most n.
	end := closing + largest(p.Release) + legs*travel + n*largest(p.Service) + sum(p.Setup) + rests
	cost := distance*perDistance + n*(end*perDuration+fixed) + sum(p.Prize) + n*end*largest(p.Late)
	for _, s := range []struct {
		what string
		x    float64
	}{{"distances", distance}, {"times", n * end}, {"costs", cost}} {
		if !(s.x <= sumMost) {
			return fmt.Errorf("its %s may add up to %.3g, more than %g: give them in a larger unit", s.what, s.x, sumMost)
		}
	}
	return nil
}
