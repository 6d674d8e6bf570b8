package vrp

import (
	"errors"
	"fmt"
	"math"
)

// Load is what a vehicle of the problem's first type carries, in the first dimension.
func (p *Problem) Load() int32 {
	if p.Fleet != nil && len(p.Fleet[0].Capacity) > 0 {
		return p.Fleet[0].Capacity[0]
	}
	return p.Capacity
}

// Variant is which of the variants that trained policies route a problem is, or in one line what
// keeps it from being one. A number of vehicles does not: who routes without it must be validated.
func (p *Problem) Variant() (Attributes, error) {
	t, plain := p.Types()[0], *p
	var a Attributes
	if p.DepotCount() > 1 {
		if err := p.depotsAlike(); err != nil {
			return 0, err
		}
		a |= SeveralDepots
		plain.Depots, plain.Fleet = 1, p.Types()[:1]
	}
	if len(plain.Types()) > 1 {
		return 0, errors.New("it has several types of vehicles, which no policy here has learned")
	}
	if t.End == None {
		a |= OpenRoutes
	}
	if p.Pickup != nil {
		a |= WithBackhauls
		if p.Backhauls != BackhaulsLast {
			a |= MixedBackhauls
		}
		for c, amount := range p.Pickup {
			if amount > 0 && p.Demand[c] > 0 {
				return 0, fmt.Errorf("customer %d has goods delivered and picked up, which no policy here has learned", c)
			}
		}
	}
	if !math.IsInf(t.MaxDistance, 1) {
		a |= LimitedLength
	}
	if p.Windows != nil || p.Service != nil {
		a |= TimeWindows
		for c, w := range p.Windows {
			if len(w) > 1 {
				return 0, fmt.Errorf("customer %d has several windows, which no policy here has learned", c)
			}
		}
	}
	if a&(LimitedLength|TimeWindows) != 0 {
		switch p.Metric {
		case Exact, Thousandths, Tenths, Trunc: // no way is longer than the straight line, but for a hair
		default:
			return 0, errors.New("its distances are not those of straight lines, by which a policy keeps limits and windows")
		}
	}
	if p.Fleet != nil {
		want := NewVehicleType(p.Load())
		want.MaxDistance, want.End, want.Name, want.Count = t.MaxDistance, t.End, t.Name, t.Count
		if a&SeveralDepots != 0 {
			want.Start = t.Start
		}
		if fmt.Sprint(t) != fmt.Sprint(want) {
			return 0, errors.New("its fleet has more than a capacity, a number and a limit of length")
		}
		plain.Fleet, plain.Capacity = nil, p.Load()
	}
	plain.Open, plain.Pickup, plain.Backhauls, plain.Windows, plain.Service, plain.Vehicles = false, nil, 0, nil, nil, 0
	return a, plain.Plain()
}
