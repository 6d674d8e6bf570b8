package files

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"

	"haul/internal/vrp"
)

// Version is that of Haul's own JSON. A reader accepts documents of this version and documents
// without one.
const Version = 1

// Document is a problem in Haul's own JSON: the same on the command line, over HTTP, in Python and
// in Go. Lists "by place" have one entry per place, depots first; what is left out asks for
// nothing. A span of time is [from, to], or [from] where it has no end.
type Document struct {
	Haul      int         `json:"haul,omitempty"` // Version
	Name      string      `json:"name,omitempty"`
	Coords    [][]float64 `json:"coords,omitempty"`
	Demands   []int32     `json:"demands"`
	Capacity  int32       `json:"capacity,omitempty"`
	Distance  string      `json:"distance,omitempty"`  // how far two places are: a name of metrics
	Distances [][]float64 `json:"distances,omitempty"` // in place of it: from each place to each
	Durations [][]float64 `json:"durations,omitempty"` // with distances: how long each takes
	IDs       []string    `json:"ids,omitempty"`
	Names     []string    `json:"names,omitempty"`
	Fractions []int32     `json:"fractions,omitempty"` // per dimension: parts of a unit that amounts count
	Clock     float64     `json:"clock,omitempty"`     // units of time per minute, where times are those of a day
	Duration  float64     `json:"max_duration,omitempty"`
	Service   []float64   `json:"service,omitempty"`
	Vehicles  int         `json:"vehicles,omitempty"`
	Open      bool        `json:"open,omitempty"`

	Depots     int         `json:"depots,omitempty"`
	Speed      float64     `json:"speed,omitempty"`
	Fleet      []Vehicle   `json:"fleet,omitempty"`
	Profiles   []Profile   `json:"profiles,omitempty"`
	Pickups    []int32     `json:"pickups,omitempty"`
	Dimensions []Dimension `json:"dimensions,omitempty"`
	Windows    [][]Span    `json:"windows,omitempty"`
	Setup      []float64   `json:"setup,omitempty"`
	Release    []float64   `json:"release,omitempty"`
	Optional   []bool      `json:"optional,omitempty"`
	Prizes     []float64   `json:"prizes,omitempty"`
	Groups     []Group     `json:"groups,omitempty"`
	Shipments  []Shipment  `json:"shipments,omitempty"`
	LIFO       bool        `json:"lifo,omitempty"`
	Skills     [][]int32   `json:"skills,omitempty"` // by place: those that its vehicle must have
	Priority   []int       `json:"priority,omitempty"`
	Backhauls  string      `json:"backhauls,omitempty"` // mixed, last, after_linehaul
	Late       []float64   `json:"late,omitempty"`
	Objective  string      `json:"objective,omitempty"` // cost, vehicles, longest_route

	// What a file of several instances says of this one. It asks for nothing.
	Index     int     `json:"index,omitempty"`
	Count     int     `json:"count,omitempty"`
	BestKnown float64 `json:"best_known,omitempty"`

	Notes []string `json:"notes,omitempty"` // what of a file was not read; they ask for nothing
}

// Span is [from, to], or [from] without an end.
type Span []float64

// Vehicle is a vehicle type.
type Vehicle struct {
	Name         string   `json:"name,omitempty"`
	Count        int      `json:"count,omitempty"`
	Numbers      []int32  `json:"numbers,omitempty"`
	Capacity     []int32  `json:"capacity,omitempty"`
	Start        int      `json:"start,omitempty"` // a depot; -1: at its first customer
	End          int      `json:"end,omitempty"`
	Shift        Span     `json:"shift,omitempty"`
	LatestStart  *float64 `json:"latest_start,omitempty"`
	MaxDuration  *float64 `json:"max_duration,omitempty"`
	MaxDistance  *float64 `json:"max_distance,omitempty"`
	MaxStops     int      `json:"max_stops,omitempty"`
	FixedCost    float64  `json:"fixed_cost,omitempty"`
	DistanceCost *float64 `json:"distance_cost,omitempty"` // 1 where it is left out
	DurationCost float64  `json:"duration_cost,omitempty"`
	Profile      int      `json:"profile,omitempty"`
	Skills       []int32  `json:"skills,omitempty"`
	Allowed      []int32  `json:"allowed,omitempty"`
	Reloads      []int    `json:"reloads,omitempty"`
	MaxReloads   int      `json:"max_reloads,omitempty"`
	Breaks       []Break  `json:"breaks,omitempty"`
	InitialLoad  []int32  `json:"initial_load,omitempty"`
}

// Break is a rest of a vehicle.
type Break struct {
	Windows  []Span  `json:"windows"`
	Duration float64 `json:"duration,omitempty"`
	MaxLoad  []int32 `json:"max_load,omitempty"`
}

// Profile has the matrices of a kind of vehicle.
type Profile struct {
	Name      string      `json:"name,omitempty"`
	Distances [][]float64 `json:"distances"`
	Durations [][]float64 `json:"durations,omitempty"`
}

// Dimension is one more kind of load, by place.
type Dimension struct {
	Name    string  `json:"name,omitempty"`
	Demands []int32 `json:"demands,omitempty"`
	Pickups []int32 `json:"pickups,omitempty"`
}

// Group is customers of which one is visited.
type Group struct {
	Name     string  `json:"name,omitempty"`
	Members  []int32 `json:"members"`
	Required bool    `json:"required,omitempty"`
}

// Shipment is an amount from one customer to another.
type Shipment struct {
	Pickup   int32   `json:"pickup"`
	Delivery int32   `json:"delivery"`
	Amount   []int32 `json:"amount,omitempty"`
}

// names are a choice's words in JSON, in the order of its values; those without a word are "".
type names []string

var (
	metrics    = names{vrp.Exact: "exact", vrp.Rounded: "rounded", vrp.Ceil: "ceil", vrp.Explicit: "", vrp.GreatCircle: "metres", vrp.Tenths: "dimacs", vrp.Thousandths: "thousandths", vrp.Trunc: "floor", vrp.Geo: "geo", vrp.Att: "att"}
	backhauls  = names{vrp.Mixed: "mixed", vrp.BackhaulsLast: "last", vrp.LinehaulFirst: "after_linehaul"}
	objectives = names{vrp.MinCost: "cost", vrp.FewestVehicles: "vehicles", vrp.ShortestRoute: "longest_route"}
)

// ParseObjective is the objective of a word; "" is the cost.
func ParseObjective(word string) (vrp.Objective, error) {
	n, err := objectives.of("objective", word)
	return vrp.Objective(n), err
}

// of is the value of a word; "" is the first.
func (n names) of(key, word string) (int, error) {
	if word == "" {
		return 0, nil
	}
	var all []string
	for i, name := range n {
		if name == word {
			return i, nil
		}
		if name != "" {
			all = append(all, name)
		}
	}
	return 0, fmt.Errorf("%s is %q: use %s or %s", key, word, strings.Join(all[:len(all)-1], ", "), all[len(all)-1])
}

// ReadJSON reads a problem in Haul's own JSON; name stands in errors. Keys that it does not know
// are refused.
func ReadJSON(r io.Reader, name string) (*vrp.Problem, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var d Document
	if err := Decode(text, &d); err != nil {
		return nil, fmt.Errorf("%s: not the JSON of a problem: %w", name, err)
	}
	p, err := d.Problem()
	if err == nil {
		err = p.Check()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

// WriteJSON writes a problem in Haul's own JSON.
func WriteJSON(w io.Writer, p *vrp.Problem) error {
	d := FromProblem(p)
	d.Haul = Version
	text, err := json.Marshal(d)
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

// Problem is what a document says. It refuses a document whose shape is wrong; whether the problem
// can be solved is for vrp.Problem.Check to say.
func (d *Document) Problem() (*vrp.Problem, error) {
	n := len(d.Demands)
	if d.Haul != 0 && d.Haul != Version {
		return nil, fmt.Errorf("haul is %d: this program reads version %d of its JSON", d.Haul, Version)
	}
	switch {
	case n == 0 && len(d.Coords) == 0:
		return nil, fmt.Errorf("coords is empty: the depot comes first, then the customers")
	case len(d.Coords) > 0 && len(d.Coords) != n:
		return nil, fmt.Errorf("demands has %d numbers for %d coords: one for each, 0 for the depot", n, len(d.Coords))
	}
	p := &vrp.Problem{Name: printable(d.Name), Capacity: d.Capacity, Demand: d.Demands, IDs: printables(d.IDs), Names: printables(d.Names), Fractions: d.Fractions, Clock: d.Clock,
		MaxDuration: d.Duration, Service: d.Service, Vehicles: d.Vehicles, Open: d.Open, Depots: d.Depots, Speed: d.Speed,
		Pickup: d.Pickups, Setup: d.Setup, Release: d.Release, Optional: d.Optional, Prize: d.Prizes,
		LIFO: d.LIFO, Needs: d.Skills, Priority: d.Priority, Late: d.Late}
	if d.Capacity == 0 && d.Fleet == nil {
		return nil, fmt.Errorf("capacity is missing: what a vehicle carries at most")
	}
	if p.Depots < 0 || p.DepotCount() > n {
		return nil, fmt.Errorf("depots is %d and demands has %d places: the depots come first, then the customers", d.Depots, n)
	}
	for _, err := range []error{
		fits("ids", len(d.IDs), n), fits("names", len(d.Names), n), fits("service", len(d.Service), n), fits("pickups", len(d.Pickups), n), fits("windows", len(d.Windows), n),
		fits("setup", len(d.Setup), n), fits("release", len(d.Release), n), fits("optional", len(d.Optional), n), fits("prizes", len(d.Prizes), n),
		fits("skills", len(d.Skills), n), fits("priority", len(d.Priority), n), fits("late", len(d.Late), n),
	} {
		if err != nil {
			return nil, err
		}
	}
	if err := d.places(p); err != nil {
		return nil, err
	}
	if err := d.choices(p); err != nil {
		return nil, err
	}
	if err := d.parts(p); err != nil {
		return nil, err
	}
	return p, nil
}

// fits refuses a list by place that has not one entry per place; none at all asks for nothing.
func fits(key string, has, places int) error {
	if has != 0 && has != places {
		return fmt.Errorf("%s has %d entries for %d places: one for each is needed, the depot's first", key, has, places)
	}
	return nil
}

// places sets coordinates and distances.
func (d *Document) places(p *vrp.Problem) (err error) {
	n := len(d.Demands)
	for i, xy := range d.Coords {
		if len(xy) != 2 {
			return fmt.Errorf("coords[%d] has %d numbers: two are needed, x and y", i, len(xy))
		}
		if math.Abs(xy[0]) > Farthest || math.Abs(xy[1]) > Farthest {
			return fmt.Errorf("coords[%d] is farther away than 1e12: give them in a larger unit", i)
		}
		p.X, p.Y = append(p.X, xy[0]), append(p.Y, xy[1])
	}
	metric, err := metrics.of("distance", d.Distance)
	if err != nil {
		return err
	}
	p.Metric = vrp.Metric(metric)
	for i, f := range d.Profiles {
		profile := vrp.Profile{Name: f.Name}
		key := fmt.Sprintf("profiles[%d].", i)
		if profile.Distance, err = flat(key+"distances", f.Distances, n); err != nil {
			return err
		}
		if profile.Duration, err = flat(key+"durations", f.Durations, n); err != nil {
			return err
		}
		if profile.Distance == nil {
			return fmt.Errorf("%sdistances is missing", key)
		}
		p.Profiles = append(p.Profiles, profile)
	}
	given := d.Distances != nil || d.Durations != nil
	switch {
	case given && d.Profiles != nil:
		return fmt.Errorf("distances and profiles both give matrices: use one of them")
	case given && d.Distance != "":
		return fmt.Errorf("distance and distances both say how far two places are: use one of them")
	case d.Distances == nil && d.Durations != nil:
		return fmt.Errorf("durations are given without distances: give both")
	case given:
		weights, err := flat("distances", d.Distances, n)
		if err != nil {
			return err
		}
		durations, err := flat("durations", d.Durations, n)
		if err != nil {
			return err
		}
		if durations != nil {
			p.Profiles = []vrp.Profile{{Distance: weights, Duration: durations}}
		}
		p.Metric, p.Weights = vrp.Explicit, weights
	case d.Profiles != nil && d.Distance == "": // which the first profile says
		p.Metric, p.Weights = vrp.Explicit, p.Profiles[0].Distance
	case d.Coords == nil:
		return fmt.Errorf("coords is empty: places need coordinates, or distances between them")
	}
	return nil
}

// flat is a square matrix in one row.
func flat(key string, rows [][]float64, n int) ([]float64, error) {
	if rows == nil {
		return nil, nil
	}
	if len(rows) != n {
		return nil, fmt.Errorf("%s has %d rows for %d places", key, len(rows), n)
	}
	out := make([]float64, 0, n*n)
	for i, row := range rows {
		if len(row) != n {
			return nil, fmt.Errorf("%s[%d] has %d numbers for %d places", key, i, len(row), n)
		}
		out = append(out, row...)
	}
	return out, nil
}

// choices sets what has a name in JSON.
func (d *Document) choices(p *vrp.Problem) error {
	rule, err := backhauls.of("backhauls", d.Backhauls)
	if err != nil {
		return err
	}
	objective, err := objectives.of("objective", d.Objective)
	p.Backhauls, p.Objective = vrp.BackhaulRule(rule), vrp.Objective(objective)
	return err
}

// parts sets the optional parts that have a shape of their own.
func (d *Document) parts(p *vrp.Problem) error {
	for i, list := range d.Windows {
		windows, err := spans(fmt.Sprintf("windows[%d]", i), list)
		if err != nil {
			return err
		}
		p.Windows = append(p.Windows, windows)
	}
	for _, x := range d.Dimensions {
		for _, err := range []error{fits("dimensions.demands", len(x.Demands), len(d.Demands)), fits("dimensions.pickups", len(x.Pickups), len(d.Demands))} {
			if err != nil {
				return err
			}
		}
		p.Dimensions = append(p.Dimensions, vrp.Dimension{Name: printable(x.Name), Delivery: x.Demands, Pickup: x.Pickups})
	}
	for _, g := range d.Groups {
		p.Groups = append(p.Groups, vrp.Group{Name: printable(g.Name), Members: g.Members, Required: g.Required})
	}
	for _, s := range d.Shipments {
		p.Shipments = append(p.Shipments, vrp.Shipment{Pickup: s.Pickup, Delivery: s.Delivery, Amount: s.Amount})
	}
	for i, v := range d.Fleet {
		t, err := v.vehicle(fmt.Sprintf("fleet[%d]", i))
		if err != nil {
			return err
		}
		p.Fleet = append(p.Fleet, t)
	}
	return nil
}

func (v *Vehicle) vehicle(key string) (vrp.VehicleType, error) {
	t := vrp.NewVehicleType(v.Capacity...)
	t.Name, t.Count, t.Numbers, t.Start, t.End, t.MaxStops, t.FixedCost, t.DurationCost = printable(v.Name), v.Count, v.Numbers, v.Start, v.End, v.MaxStops, v.FixedCost, v.DurationCost
	t.Profile, t.Skills, t.Allowed, t.Reloads, t.MaxReloads, t.InitialLoad = v.Profile, v.Skills, v.Allowed, v.Reloads, v.MaxReloads, v.InitialLoad
	for _, x := range []struct {
		from *float64
		to   *float64
	}{{v.LatestStart, &t.LatestStart}, {v.MaxDuration, &t.MaxDuration}, {v.MaxDistance, &t.MaxDistance}, {v.DistanceCost, &t.DistanceCost}} {
		if x.from != nil {
			*x.to = *x.from
		}
	}
	if v.Shift != nil {
		shift, err := spans(key+".shift", []Span{v.Shift})
		if err != nil {
			return t, err
		}
		t.Shift = shift[0]
	}
	for i, b := range v.Breaks {
		windows, err := spans(fmt.Sprintf("%s.breaks[%d].windows", key, i), b.Windows)
		if err != nil {
			return t, err
		}
		t.Breaks = append(t.Breaks, vrp.Break{Windows: windows, Duration: b.Duration, MaxLoad: b.MaxLoad})
	}
	return t, nil
}

func spans(key string, list []Span) (out []vrp.Window, err error) {
	for i, s := range list {
		w := vrp.Always
		switch len(s) {
		case 1:
			w.From = s[0]
		case 2:
			w.From, w.To = s[0], s[1]
		default:
			return nil, fmt.Errorf("%s[%d] has %d numbers: [from, to], or [from] without an end", key, i, len(s))
		}
		if w.To < w.From {
			return nil, fmt.Errorf("%s[%d] closes at %g, before it opens at %g", key, i, w.To, w.From)
		}
		out = append(out, w)
	}
	return out, nil
}
