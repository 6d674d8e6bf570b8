package vrp

import (
	"fmt"
	"math"
)

// checkFleet checks vehicle types. What a reader could break: a problem with a fleet may not use
// the fields that describe a plain one (Vehicles, MaxDuration, Open), or one of the two would be
// ignored.
func (p *Problem) checkFleet() error {
	if p.Fleet == nil {
		if p.DepotCount() > 1 {
			return fmt.Errorf("it has %d depots and no fleet: which depot a vehicle leaves from is not said", p.DepotCount())
		}
		return nil
	}
	switch {
	case len(p.Fleet) == 0:
		return fmt.Errorf("its fleet has no vehicle types")
	case p.Vehicles != 0:
		return fmt.Errorf("it has a fleet and a number of vehicles (%d): expected one of them", p.Vehicles)
	case p.MaxDuration != 0:
		return fmt.Errorf("it has a fleet and a limit of duration (%g) beside it: expected it in the fleet", p.MaxDuration)
	case p.Open:
		return fmt.Errorf("it has a fleet and open routes beside it: expected an open end in the fleet")
	}
	for i := range p.Fleet {
		name := fmt.Sprintf("vehicle type %d", i+1)
		if p.Fleet[i].Name != "" {
			name = "vehicle type " + quoteShort(p.Fleet[i].Name)
		}
		if err := p.checkType(&p.Fleet[i]); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func (p *Problem) checkType(t *VehicleType) error {
	if t.Count < 0 {
		return fmt.Errorf("its number of vehicles is %d", t.Count)
	}
	if t.Numbers != nil && len(t.Numbers) != t.Count {
		return fmt.Errorf("it has %d vehicles and the numbers of %d", t.Count, len(t.Numbers))
	}
	for _, list := range [][]int32{t.Capacity, t.InitialLoad} {
		if len(list) > 1+len(p.Dimensions) {
			return fmt.Errorf("it has %d capacities or loads for %d dimensions of load", len(list), 1+len(p.Dimensions))
		}
		for _, a := range list {
			if a < 0 {
				return fmt.Errorf("its capacity or initial load is %d", a)
			}
		}
	}
	for d, a := range t.InitialLoad {
		if d < len(t.Capacity) && a > t.Capacity[d] {
			return fmt.Errorf("its initial load %d is over its capacity %d", a, t.Capacity[d])
		}
	}
	for _, depot := range []int{t.Start, t.End} {
		if depot != None && (depot < 0 || depot >= p.DepotCount()) {
			return fmt.Errorf("its depot is %d: depots are 0 to %d", depot, p.DepotCount()-1)
		}
	}
	for _, depot := range t.Reloads {
		if depot < 0 || depot >= p.DepotCount() {
			return fmt.Errorf("it reloads at %d: depots are 0 to %d", depot, p.DepotCount()-1)
		}
	}
	if t.MaxReloads < 0 || t.MaxReloads > 0 && t.Reloads == nil {
		return fmt.Errorf("it may reload %d times, at %d depots", t.MaxReloads, len(t.Reloads))
	}
	if t.MaxStops < 0 {
		return fmt.Errorf("its limit of stops is %d", t.MaxStops)
	}
	if s := t.Shift; !(s.From >= 0 && s.From <= s.To) || math.IsInf(s.From, 1) {
		return fmt.Errorf("its shift begins at %g and ends at %g", s.From, s.To)
	}
	if !(t.LatestStart >= t.Shift.From) {
		return fmt.Errorf("it leaves by %g at the latest, before its shift begins at %g", t.LatestStart, t.Shift.From)
	}
	for _, l := range []struct {
		what string
		x    float64
		most float64
	}{{"limit of duration", t.MaxDuration, math.Inf(1)}, {"limit of distance", t.MaxDistance, math.Inf(1)},
		{"fixed cost", t.FixedCost, math.MaxFloat64}, {"cost per distance", t.DistanceCost, math.MaxFloat64}, {"cost per duration", t.DurationCost, math.MaxFloat64}} {
		if !(l.x >= 0 && l.x <= l.most) {
			return fmt.Errorf("its %s is %g", l.what, l.x)
		}
	}
	if t.Profile < 0 || t.Profile >= max(1, len(p.Profiles)) {
		return fmt.Errorf("its profile is %d: there are %d", t.Profile, len(p.Profiles))
	}
	for _, v := range t.Allowed {
		if !p.isCustomer(v) {
			return fmt.Errorf("it may serve %d, which is no customer", v)
		}
	}
	for i, b := range t.Breaks {
		if err := p.checkSpans(b.Windows); err != nil {
			return fmt.Errorf("break %d: %w", i+1, err)
		}
		if !(b.Duration >= 0 && b.Duration <= math.MaxFloat64) || len(b.MaxLoad) > 1+len(p.Dimensions) {
			return fmt.Errorf("break %d lasts %g and limits %d loads", i+1, b.Duration, len(b.MaxLoad))
		}
	}
	return nil
}

// checkSpans checks a list of windows: each opens before it closes, and after the one before it.
func (p *Problem) checkSpans(list []Window) error {
	for i, w := range list {
		switch {
		case !(w.From >= 0 && w.From <= math.MaxFloat64) || math.IsNaN(w.To):
			return fmt.Errorf("its window opens at %g and closes at %g", w.From, w.To)
		case w.To < w.From:
			return fmt.Errorf("its window closes at %s, before it opens at %s", p.TimeText(w.To), p.TimeText(w.From))
		case i > 0 && w.From <= list[i-1].To:
			return fmt.Errorf("its window opens at %s, and the one before it closes at %s: windows come in order, with time in between", p.TimeText(w.From), p.TimeText(list[i-1].To))
		}
	}
	return nil
}
