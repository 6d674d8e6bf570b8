package files

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"haul/internal/schema"
	"haul/internal/vrp"
)

// Vehicles of a table: a row per type, or per vehicle. What a reader could break: costs per
// kilometre and per hour are brought to the problem's units, which only distances in metres and a
// known unit of time allow.

// vehicle is a row of vehicles.
type vehicle struct {
	vrp.VehicleType
	carry, initial []float64 // per dimension
	start, end     string    // depots by id; "": not said
	depot          string
	skills         []string
	allowed        []string
	reloads        []string
	breaks         []vrp.Window
	rest           float64
	rested         bool // how long a break takes is said
	perKm, perHour bool
	where          string
}

// vehicleColumns reads the cells of the columns of vehicles, beyond what they carry.
var vehicleColumns = map[string]cell[vehicle]{
	"name": func(_ *reader, v *vehicle, s string) error { v.Name = printable(s); return nil },
	"count": func(r *reader, v *vehicle, s string) (err error) {
		if v.Count, err = r.natural(s); err == nil && v.Count == 0 {
			err = errors.New("is no number of vehicles: leave the row out")
		}
		return err
	},
	"start":       func(_ *reader, v *vehicle, s string) error { v.start = printable(s); return nil },
	"end":         func(_ *reader, v *vehicle, s string) error { v.end = printable(s); return nil },
	"depot":       func(_ *reader, v *vehicle, s string) error { v.depot = printable(s); return nil },
	"shift_start": func(r *reader, v *vehicle, s string) (err error) { v.Shift.From, err = r.time(s); return err },
	"shift_end":   func(r *reader, v *vehicle, s string) (err error) { v.Shift.To, err = r.time(s); return err },
	"shift": func(r *reader, v *vehicle, s string) error {
		list, err := r.spans(s)
		if err == nil && len(list) != 1 {
			err = errors.New("is not one span: expected 08:00-17:00")
		}
		if err == nil {
			v.Shift = list[0]
		}
		return err
	},
	"latest_start":  func(r *reader, v *vehicle, s string) (err error) { v.LatestStart, err = r.time(s); return err },
	"max_duration":  func(r *reader, v *vehicle, s string) (err error) { v.MaxDuration, err = r.span(s); return err },
	"max_distance":  func(r *reader, v *vehicle, s string) (err error) { v.MaxDistance, err = r.price(s); return err },
	"max_stops":     func(r *reader, v *vehicle, s string) (err error) { v.MaxStops, err = r.natural(s); return err },
	"fixed_cost":    func(r *reader, v *vehicle, s string) (err error) { v.FixedCost, err = r.price(s); return err },
	"distance_cost": func(r *reader, v *vehicle, s string) (err error) { v.DistanceCost, err = r.price(s); return err },
	"cost_per_km": func(r *reader, v *vehicle, s string) (err error) {
		v.DistanceCost, err = r.price(s)
		v.perKm = true
		return err
	},
	"duration_cost": func(r *reader, v *vehicle, s string) (err error) { v.DurationCost, err = r.price(s); return err },
	"cost_per_hour": func(r *reader, v *vehicle, s string) (err error) {
		v.DurationCost, err = r.price(s)
		v.perHour = true
		return err
	},
	"skills":      func(r *reader, v *vehicle, s string) (err error) { v.skills, err = r.needs(s); return err },
	"allowed":     func(_ *reader, v *vehicle, s string) error { v.allowed = idsOf(s); return nil },
	"reloads":     func(_ *reader, v *vehicle, s string) error { v.reloads = idsOf(s); return nil },
	"max_reloads": func(r *reader, v *vehicle, s string) (err error) { v.MaxReloads, err = r.natural(s); return err },
	"break":       func(r *reader, v *vehicle, s string) (err error) { v.breaks, err = r.spans(s); return err },
	"break_duration": func(r *reader, v *vehicle, s string) (err error) {
		v.rest, err = r.span(s)
		v.rested = true
		return err
	},
}

// idsOf are ids of a list, which may hold blanks and are separated by bars, semicolons or commas.
func idsOf(s string) (out []string) {
	for _, f := range strings.FieldsFunc(s, func(c rune) bool { return c == '|' || c == ';' || c == ',' }) {
		if f = printable(strings.TrimSpace(f)); f != "" {
			out = append(out, f)
		}
	}
	return out
}

// readVehicles reads the rows; their depots and skills are looked up when all are known.
func (t *tables) readVehicles() error {
	s := t.vehicles
	if s == nil {
		return nil
	}
	t.at(s)
	keys, units := make([]string, len(s.head)), make([]float64, len(s.head))
	dims := make([]int, len(s.head))
	at := map[string]int{}
	for i, h := range s.head {
		full := spelled(h)
		dims[i] = -1
		short, stated := bracketed(full)
		for d, dim := range t.dims {
			unit := ""
			if d < len(t.units) {
				unit = t.units[d]
			}
			if d == 0 && len(t.dims) == 1 && stated != "" && unit != "" && stated != unit && vehicleWords[short] == "capacity" {
				return s.errorf(s.at, "column %s counts %s, and the customers' amounts count %s: use one unit", quoteShort(printable(h)), quoteShort(printable(stated)), quoteShort(printable(unit)))
			}
			plain := d == 0 && (vehicleWords[full] == "capacity" || len(t.dims) == 1 && dim == "" && vehicleWords[short] == "capacity")
			if dim != "" && carries(full, dim) || unit != "" && holds(full, unit) || plain {
				dims[i], keys[i] = d, "capacity "+dim
			}
			if dim != "" && full == "initial_load_"+dim || d == 0 && full == "initial_load" {
				dims[i], keys[i] = d, "initial_load "+dim
			}
		}
		if dims[i] < 0 {
			name := vehicleWords[full]
			ok := vehicleColumns[name] != nil
			if !ok {
				var short string
				if short, units[i] = withUnit(full); units[i] > 0 {
					name = vehicleWords[short]
					ok = vehicleColumns[name] != nil && (slices.Contains(timedColumns, name) || full == "max_distance_m" || full == "max_distance_(m)")
				}
			}
			if !ok {
				units[i] = 0
				if strings.Contains(full, "speed") {
					return s.errorf(s.at, "column %s is not read: all vehicles of a table are equally fast, by a speed that is given for all of them, or by durations", quoteShort(printable(h)))
				}
				if err := t.validateColumn(s, i, schema.Vehicles); err != nil {
					return err
				}
				continue
			}
			keys[i] = name
		}
		if first, twice := at[keys[i]]; twice {
			if keys[i] == "name" { // an id and a type: the first names it
				keys[i] = ""
				continue
			}
			return s.errorf(s.at, "column %s is given twice, first as %s", quoteShort(printable(h)), quoteShort(printable(s.head[first])))
		}
		at[keys[i]] = i
	}
	for d, dim := range t.dims {
		if _, ok := at["capacity "+dim]; !ok && d > 0 {
			return s.errorf(s.at, "no column %q: the customers demand %s, and nothing says how much of it a vehicle carries", "capacity_"+dim, dim)
		} else if ok {
			t.capacity = true
		}
	}
	for i, cells := range s.rows {
		v := vehicle{VehicleType: vrp.NewVehicleType(), where: s.where(i), carry: make([]float64, len(t.dims)), initial: make([]float64, len(t.dims))}
		if _, ok := at["count"]; !ok {
			v.Count = 1 // a row per vehicle
		}
		for c, key := range keys {
			text := strings.TrimSpace(cells[c])
			if key == "" || text == "" {
				continue
			}
			t.unit = units[c]
			if err := t.vehicleCell(&v, key, dims[c], text); err != nil {
				return s.errorf(s.lines[i], "%s %s %v", strings.TrimSpace(key), quoteShort(text), err)
			}
		}
		if c, ok := at["capacity "+t.dims[0]]; ok && strings.TrimSpace(cells[c]) == "" {
			return s.errorf(s.lines[i], "the capacity is empty")
		}
		t.fleet = append(t.fleet, v)
	}
	if len(t.fleet) == 0 {
		return s.errorf(s.at, "there are no vehicles below the header")
	}
	if _, ok := at["capacity "+t.dims[0]]; !ok && !t.undemanding() {
		return s.errorf(s.at, "no column %q: nothing says how much a vehicle carries", "capacity")
	}
	return nil
}

// undemanding tells whether no place demands anything.
func (t *tables) undemanding() bool {
	return !slices.ContainsFunc(t.places, func(x place) bool { return sum(x.amounts) != 0 })
}

func (t *tables) vehicleCell(v *vehicle, key string, dim int, text string) error {
	if dim < 0 {
		if (key == "start" || key == "end") && strings.Contains(text, ":") {
			key = "shift_" + key // a time, not a depot
		}
		return vehicleColumns[key](&t.reader, v, text)
	}
	x, err := t.price(text)
	if err == nil {
		_, err = decimals(x)
	}
	if strings.HasPrefix(key, "initial_load") {
		v.initial[dim] = x
	} else {
		v.carry[dim] = x
	}
	return err
}

// readFleet makes the vehicle types.
func (t *tables) readFleet() error {
	p := t.p
	scale := p.Fractions
	if scale == nil {
		scale = slices.Repeat([]int32{1}, len(t.dims))
	}
	for i := range t.fleet {
		v := &t.fleet[i]
		fail := func(format string, args ...any) error {
			return fmt.Errorf("%s: %s", v.where, fmt.Sprintf(format, args...))
		}
		if t.capacity {
			for d, x := range v.carry {
				whole, err := scaled(x, scale[d])
				if err != nil {
					return fail("the capacity %v", err)
				}
				v.Capacity = append(v.Capacity, whole)
			}
		}
		if !none(v.initial) {
			for d, x := range v.initial {
				whole, err := scaled(x, scale[d])
				if err != nil {
					return fail("the initial load %v", err)
				}
				v.InitialLoad = append(v.InitialLoad, whole)
			}
		}
		for _, end := range []struct {
			id string
			to *int
		}{{v.depot, &v.Start}, {v.depot, &v.End}, {v.start, &v.Start}, {v.end, &v.End}} {
			switch strings.ToLower(end.id) {
			case "":
				continue
			case "none", "-", "open", "anywhere":
				*end.to = vrp.None
				continue
			}
			at, ok := t.byID[end.id]
			if !ok || at >= t.count {
				return fail("%s is no depot: there are %s", quoteShort(end.id), t.depotList())
			}
			*end.to = at
		}
		for _, id := range v.reloads {
			at, ok := t.byID[id]
			if ok && at < t.count {
				v.Reloads = append(v.Reloads, at)
				continue
			}
			if n, err := yes(id); err == nil && len(v.reloads) == 1 { // at its own depot
				if n > 0 && v.Start != vrp.None {
					v.Reloads = []int{v.Start}
				}
				continue
			}
			return fail("%s is no depot to reload at: there are %s", quoteShort(id), t.depotList())
		}
		for _, id := range v.allowed {
			at, ok := t.byID[id]
			if !ok || at < t.count {
				return fail("allowed names %s, which is no customer", quoteShort(id))
			}
			v.Allowed = append(v.Allowed, int32(at))
		}
		v.Skills = t.numbered(v.skills)
		for _, w := range v.breaks {
			v.Breaks = append(v.Breaks, vrp.Break{Windows: []vrp.Window{w}, Duration: v.rest})
		}
		if v.breaks != nil && !v.rested {
			return fail("a break is given, and no break_duration says how long it takes")
		}
		if v.rest > 0 && v.breaks == nil {
			return fail("a break takes %g, and no column break says when it is taken", v.rest)
		}
		if v.perKm {
			if !t.metres {
				return fail("a cost per km needs distances in metres: places with lat and lon, or a road engine's matrix; else use distance_cost")
			}
			v.DistanceCost /= 1000
		}
		if v.perHour {
			v.DurationCost /= 60 * t.minute
		}
		if v.Shift.To < v.Shift.From {
			return fail("the shift ends at %s, before it begins at %s%s", p.TimeText(v.Shift.To), p.TimeText(v.Shift.From), t.midnight())
		}
		if math.IsNaN(v.DistanceCost) {
			return fail("the cost is not a number")
		}
		p.Fleet = append(p.Fleet, v.VehicleType)
	}
	if p.Fleet != nil && t.o.Capacity > 0 {
		return fmt.Errorf("%s: a capacity is given, and a table of vehicles that says it: use one of them", t.name)
	}
	return nil
}

func (t *tables) depotList() string {
	var list []string
	for _, x := range t.places[:min(t.count, 5)] {
		list = append(list, quoteShort(x.id))
	}
	if t.count > 5 {
		list = append(list, "...")
	}
	return strings.Join(list, ", ")
}
