package files

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"haul/internal/vrp"
)

// From places to a problem. What a reader could break: a constraint exists only if some row has
// a value for it, so that empty columns leave a plain problem.

// fill makes the problem's places.
func (t *tables) fill() error {
	p, n := t.p, len(t.places)
	p.Demand = make([]int32, n)
	if t.count > 1 {
		p.Depots = t.count
	}
	if err := t.fractions(); err != nil {
		return err
	}
	named := false
	for v := range t.places {
		x := &t.places[v]
		p.IDs = append(p.IDs, x.id)
		if t.located {
			p.X, p.Y = append(p.X, x.x), append(p.Y, x.y)
		}
		named = named || x.name != "" && x.name != x.id
	}
	if named {
		for _, x := range t.places {
			p.Names = append(p.Names, x.name)
		}
	}
	groups, shipments := map[string]int{}, map[string][]int{}
	var shipped []string
	for v := range t.places {
		x := &t.places[v]
		if err := t.fillPlace(v, x); err != nil {
			return fmt.Errorf("%s: %s %w", x.file(), quoteShort(x.id), err)
		}
		if x.group != "" {
			g, ok := groups[x.group]
			if !ok {
				g = len(p.Groups)
				groups[x.group] = g
				p.Groups = append(p.Groups, vrp.Group{Name: x.group, Required: true})
			}
			p.Groups[g].Members = append(p.Groups[g].Members, int32(v))
		}
		if x.shipment != "" {
			if shipments[x.shipment] == nil {
				shipped = append(shipped, x.shipment)
			}
			shipments[x.shipment] = append(shipments[x.shipment], v)
		}
	}
	for _, name := range shipped {
		if err := t.shipmentOf(name, shipments[name]); err != nil {
			return fmt.Errorf("%s: %w", t.places[shipments[name][0]].file(), err)
		}
	}
	if t.clock {
		p.Clock = t.minute
	}
	return nil
}

// file is the table of a place, in a message.
func (x *place) file() string {
	name, _, _ := cutLast(x.where, ":")
	return name
}

// fractions finds how fine the amounts of each dimension are counted, and makes them whole numbers.
func (t *tables) fractions() error {
	p := t.p
	scale := make([]int32, len(t.dims))
	finer := false
	for d := range t.dims {
		most := 0
		see := func(x float64) { k, _ := decimals(x); most = max(most, k) } // judged where it was read
		for _, x := range t.places {
			see(x.amounts[0][d])
			see(x.amounts[1][d])
		}
		for _, v := range t.fleet {
			see(v.carry[d])
			see(v.initial[d])
		}
		scale[d] = int32(math.Pow10(most))
		finer = finer || most > 0
	}
	if finer {
		p.Fractions = scale
	}
	for range t.dims[1:] {
		p.Dimensions = append(p.Dimensions, vrp.Dimension{})
	}
	for d, name := range t.dims[1:] {
		p.Dimensions[d].Name = name
	}
	for v := range t.places {
		x := &t.places[v]
		for kind, list := range x.amounts {
			for d, a := range list {
				whole, err := scaled(a, scale[d])
				if err != nil {
					return fmt.Errorf("%s: an amount of %s %w", x.where, quoteShort(x.id), err)
				}
				if whole == 0 {
					continue
				}
				switch {
				case d == 0 && kind == 0:
					p.Demand[v] = whole
				case d == 0:
					byPlace(&p.Pickup, len(t.places))[v] = whole
				case kind == 0:
					byPlace(&p.Dimensions[d-1].Delivery, len(t.places))[v] = whole
				default:
					byPlace(&p.Dimensions[d-1].Pickup, len(t.places))[v] = whole
				}
			}
		}
	}
	if t.vehicles != nil {
		return nil
	}
	demanded := p.Pickup != nil || slices.ContainsFunc(p.Demand, func(d int32) bool { return d != 0 })
	if t.o.Capacity == 0 && !demanded {
		p.Capacity = 1 // which nothing fills
		return nil
	}
	if t.o.Capacity == 0 {
		return fmt.Errorf("%s: %w", t.name, ErrCapacity)
	}
	if len(t.dims) > 1 {
		return fmt.Errorf("%s: a column for %s needs a table of vehicles that says how much of it they carry", t.name, quoteShort("demand_"+t.dims[1]))
	}
	capacity, err := scaled(float64(t.o.Capacity), scale[0])
	if err != nil {
		return fmt.Errorf("%s: the capacity %w", t.name, err)
	}
	p.Capacity = capacity
	for v := range t.places {
		x := &t.places[v]
		if p.Demand[v] > capacity {
			return fmt.Errorf("%s: demand %g of %s is over the capacity %d", x.where, x.amounts[0][0], quoteShort(x.id), t.o.Capacity)
		}
		if p.Pickup != nil && p.Pickup[v] > capacity {
			return fmt.Errorf("%s: pickup %g of %s is over the capacity %d", x.where, x.amounts[1][0], quoteShort(x.id), t.o.Capacity)
		}
	}
	return nil
}

// scaled is an amount in whole numbers of a fraction.
func scaled(x float64, by int32) (int32, error) {
	y := math.Round(x * float64(by))
	if y > math.MaxInt32 {
		return 0, fmt.Errorf("is beyond 32 bits: %g counted in 1/%d", x, by)
	}
	return int32(y), nil
}

// fillPlace puts what a row says into the problem.
func (t *tables) fillPlace(v int, x *place) error {
	p, n := t.p, len(t.places)
	w, err := x.window(t)
	if err != nil {
		return err
	}
	if len(w) > 0 {
		byPlace(&p.Windows, n)[v] = w
	}
	for _, part := range []struct {
		value float64
		to    *[]float64
	}{{x.service, &p.Service}, {x.setup, &p.Setup}, {x.release, &p.Release}, {x.late, &p.Late}} {
		if part.value != 0 {
			byPlace(part.to, n)[v] = part.value
		}
	}
	if v < t.count && x.shipment != "" {
		return fmt.Errorf("is the depot and belongs to shipment %s", quoteShort(x.shipment))
	}
	if v < t.count && (x.hasPrize || x.required == -1 || x.group != "" || len(x.skills) > 0) {
		return errors.New("is the depot, and asks for what only a customer can")
	}
	if x.hasPrize && x.required != 1 {
		byPlace(&p.Prize, n)[v] = x.prize
		byPlace(&p.Optional, n)[v] = true
	} else if x.required == -1 {
		byPlace(&p.Optional, n)[v] = true
	}
	if len(x.skills) > 0 {
		byPlace(&p.Needs, n)[v] = t.numbered(x.skills)
	}
	if x.priority != 0 {
		byPlace(&p.Priority, n)[v] = x.priority
	}
	return nil
}

// window is when the row's place may be served.
func (x *place) window(t *tables) ([]vrp.Window, error) {
	if x.hasWindow && x.hasInterval {
		return nil, errors.New("has windows and ready or due: give one of them")
	}
	if x.hasWindow {
		return x.windows, nil
	}
	w := vrp.Always
	if x.ready != nil {
		w.From = *x.ready
	}
	if x.due != nil {
		w.To = *x.due
	}
	if w == vrp.Always {
		return nil, nil
	}
	if w.To < w.From {
		return nil, errors.New("is due before it is ready" + t.midnight())
	}
	return []vrp.Window{w}, nil
}

// shipmentOf makes a shipment of the rows that name it: one with a pickup and one with a demand, of
// the same amounts.
func (t *tables) shipmentOf(name string, at []int) error {
	p := t.p
	if len(at) != 2 {
		return fmt.Errorf("shipment %s is named by %d rows: expected two, its pickup and its delivery", quoteShort(name), len(at))
	}
	from, to := at[0], at[1]
	if none(t.places[from].amounts[1]) {
		from, to = to, from
	}
	a, b := t.places[from].amounts, t.places[to].amounts
	if none(a[1]) || !none(a[0]) || !none(b[1]) || !slices.Equal(a[1], b[0]) {
		return fmt.Errorf("the halves of shipment %s contradict: %s picks up %g and takes %g, %s picks up %g and takes %g; expected one row with a pickup and one with the same demand",
			quoteShort(name), quoteShort(p.ID(from)), a[1][0], a[0][0], quoteShort(p.ID(to)), b[1][0], b[0][0])
	}
	s := vrp.Shipment{Pickup: int32(from), Delivery: int32(to), Amount: make([]int32, len(t.dims))}
	for d := range t.dims {
		if d == 0 {
			s.Amount[d] = p.Demand[to]
			p.Demand[to] = 0
			if p.Pickup != nil {
				p.Pickup[from] = 0
			}
			continue
		}
		x := &p.Dimensions[d-1]
		if x.Delivery != nil {
			s.Amount[d], x.Delivery[to] = x.Delivery[to], 0
		}
		if x.Pickup != nil {
			x.Pickup[from] = 0
		}
	}
	if !slices.ContainsFunc(p.Pickup, func(a int32) bool { return a != 0 }) {
		p.Pickup = nil
	}
	p.Shipments = append(p.Shipments, s)
	return nil
}

func none(list []float64) bool {
	return !slices.ContainsFunc(list, func(a float64) bool { return a != 0 })
}

// speed says how fast vehicles are.
func (t *tables) speed() error {
	p, o := t.p, t.o
	timed := p.Windows != nil || p.Release != nil || p.Service != nil || p.Setup != nil || p.MaxDuration > 0
	for _, v := range p.Fleet {
		timed = timed || v.Shift != vrp.Always || !math.IsInf(v.MaxDuration, 1) || v.Breaks != nil || v.DurationCost != 0 || !math.IsInf(v.LatestStart, 1)
	}
	durations := p.Profiles != nil && p.Profiles[0].Duration != nil
	switch {
	case o.Speed > 0 && durations:
		return fmt.Errorf("%s: a speed and durations both say how long a way takes: use one of them", t.name)
	case o.Speed > 0 && t.metres:
		p.Speed = o.Speed * 1000 / 60 / t.minute
	case o.Speed > 0:
		p.Speed = o.Speed
	case timed && !durations && (t.metres || p.Metric == vrp.Explicit):
		return fmt.Errorf("%s: %w", t.name, ErrSpeed)
	}
	return nil
}

// check judges the whole.
func (t *tables) check() error {
	if err := t.p.Check(); err != nil {
		return fmt.Errorf("%s: %w", t.name, err)
	}
	t.nowhere()
	t.hundreds()
	if t.worded() {
		t.p.SkillWords = t.skills
	}
	return nil
}

// hundreds tells of times such as 800 and 1715 that count minutes and look like those of a day,
// past whose end some of them lie.
func (t *tables) hundreds() {
	const day, most, least = 24 * 60, 2400, 4 // minutes; how many of them tell
	if t.clock || t.minute != 1 {
		return
	}
	last, count := 0.0, 0
	for _, list := range t.p.Windows {
		for _, w := range list {
			for _, x := range []float64{w.From, w.To} {
				if x == 0 || math.IsInf(x, 1) {
					continue
				}
				if x != math.Trunc(x) || math.Mod(x, 5) != 0 || math.Mod(x, 100) >= 60 || x > most {
					return
				}
				last, count = max(last, x), count+1
			}
		}
	}
	if last > day && count >= least {
		t.p.Notes = append(t.p.Notes, fmt.Sprintf("times such as %g count minutes, and look like those of a day: write %02d:%02d where that is meant", last, int(last)/100, int(last)%100))
	}
}

// nowhere tells of places at latitude 0 and longitude 0 that are far from all others: whoever looks
// up addresses puts those there that were not found.
func (t *tables) nowhere() {
	const far = 1e6 // metres
	p := t.p
	if p.Metric != vrp.GreatCircle {
		return
	}
	var lost []string
	at, near := -1, len(p.X) < 2
	for v := range p.X {
		if p.X[v] == 0 && p.Y[v] == 0 {
			lost, at = append(lost, quoteShort(p.ID(v))), v
		}
	}
	for v := range p.X {
		near = near || at >= 0 && (p.X[v] != 0 || p.Y[v] != 0) && p.Dist(at, v) < far
	}
	if len(lost) == 0 || near || len(lost) == len(p.X) {
		return
	}
	said := lost[0] + " lies"
	if len(lost) > 1 {
		said = fmt.Sprintf("%s and %d more lie", lost[0], len(lost)-1)
	}
	p.Notes = append(p.Notes, said+" at latitude 0, longitude 0, more than 1,000 km from all others: was the address found?")
}

// byPlace is a slice by place, made where it is not there yet.
func byPlace[T any](s *[]T, n int) []T {
	if *s == nil {
		*s = make([]T, n)
	}
	return *s
}
