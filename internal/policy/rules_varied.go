package policy

import (
	"errors"
	"fmt"
	"math"

	"haul/internal/kernel"
	"haul/internal/vrp"
)

// What a policy of many kinds of problems (kernel.VRP) makes of a given one. What a reader could
// break: routes are judged by exact numbers, and a device adds up float32, so limits and windows go
// to the device a little tighter than they are. A vehicle at the depot is not held to them.

// tighter is by how much, of the longest sums.
const tighter = 1e-5

// fleetOf is the one vehicle type of a problem that such a policy can take.
func fleetOf(p *vrp.Problem) vrp.VehicleType { return p.Types()[0] }

// capacityOf is what a vehicle carries.
func capacityOf(p *vrp.Problem) int32 {
	if t := fleetOf(p); p.Fleet != nil && len(t.Capacity) > 0 {
		return t.Capacity[0]
	}
	return p.Capacity
}

// attributesOf are the attributes of a problem, or what keeps it from having a name.
func attributesOf(p *vrp.Problem) (vrp.Attributes, error) {
	t, plain := fleetOf(p), *p
	var a vrp.Attributes
	if p.DepotCount() > 1 {
		return 0, errors.New("it has several depots, which no policy here has learned")
	}
	if len(p.Types()) > 1 {
		return 0, errors.New("it has several types of vehicles, which no policy here has learned")
	}
	if t.End == vrp.None {
		a |= vrp.OpenRoutes
	}
	if p.Pickup != nil {
		a |= vrp.WithBackhauls
		if p.Backhauls != vrp.BackhaulsLast {
			a |= vrp.MixedBackhauls
		}
		for c, amount := range p.Pickup {
			if amount > 0 && p.Demand[c] > 0 {
				return 0, fmt.Errorf("customer %d has goods delivered and picked up, which no policy here has learned", c)
			}
		}
	}
	if !math.IsInf(t.MaxDistance, 1) {
		a |= vrp.LimitedLength
	}
	if p.Windows != nil || p.Service != nil {
		a |= vrp.TimeWindows
		for c, w := range p.Windows {
			if len(w) > 1 {
				return 0, fmt.Errorf("customer %d has several windows, which no policy here has learned", c)
			}
		}
	}
	if p.Fleet != nil {
		want := vrp.NewVehicleType(capacityOf(p))
		want.MaxDistance, want.End, want.Name, want.Count = t.MaxDistance, t.End, t.Name, t.Count
		if t.Count > 0 || fmt.Sprint(t) != fmt.Sprint(want) {
			return 0, errors.New("its fleet has more than a capacity and a limit of length")
		}
		plain.Fleet, plain.Capacity = nil, capacityOf(p)
	}
	plain.Open, plain.Pickup, plain.Backhauls, plain.Windows, plain.Service = false, nil, 0, nil, nil
	return a, plain.Plain()
}

// variedParts says what keeps a policy of many kinds from a problem.
func variedParts(p *vrp.Problem) error {
	_, err := attributesOf(p)
	return err
}

// variedOf is ownOf for such a policy.
func variedOf(p *vrp.Problem, side float64) kernel.Own {
	a, _ := attributesOf(p)
	own := kernel.Own{Attributes: kernel.Attributes(a), Limit: float32(math.Inf(1)), End: float32(math.Inf(1))}
	if a&vrp.LimitedLength != 0 {
		own.Limit = float32(fleetOf(p).MaxDistance / side * (1 - tighter))
	}
	if a&vrp.TimeWindows == 0 {
		return own
	}
	own.Windows = make([]kernel.Window, len(p.Demand))
	for j := range own.Windows {
		w := kernel.Window{Late: float32(math.Inf(1))}
		if p.Windows != nil && len(p.Windows[j]) == 1 {
			w.Early, w.Late = float32(p.Windows[j][0].From/side), float32(p.Windows[j][0].To/side-tighter)
		}
		if p.Service != nil {
			w.Service = float32(p.Service[j] / side)
		}
		own.Windows[j] = w
	}
	// Of open routes too, as in training: whoever is served in time could be back in time.
	own.End = own.Windows[0].Late
	return own
}

// Learned says whether a policy that was trained on a source's instances knows the variant of
// RouteFinder's that has that name.
func Learned(src vrp.Source, variant string) bool {
	m, err := vrp.ParseMix(variant)
	switch {
	case err != nil || variant == "all":
		return false
	case src.Mix != 0:
		return src.Mix&m == m
	}
	return m == 1 // plain
}
