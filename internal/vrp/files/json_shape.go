package files

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"haul/internal/schema"
	"haul/internal/vrp"
)

// places is the number of places: that of coords, else of a square matrix, else of demands, else of
// the longest list.
func (d *Draft) places() int {
	if d.p.X != nil {
		return len(d.p.X)
	}
	for _, key := range []string{"distances", "durations", "profiles[0].distances"} {
		if s, ok := d.squares[key]; ok && fitsSquare(key, s.rows, len(s.rows)) == nil {
			return len(s.rows)
		}
	}
	if d.p.Demand != nil {
		return len(d.p.Demand)
	}
	n := 0
	for _, list := range d.lists {
		n = max(n, list.n)
	}
	return n
}

// Problem returns the problem that a draft states. It refuses a draft whose lists do not fit
// together; vrp.Problem.Check says whether the problem can be solved.
func (d *Draft) Problem() (*vrp.Problem, error) {
	p := d.p
	n := d.places()
	if d.given["haul"] && d.version != Version {
		return nil, fmt.Errorf("haul is %d: this program reads version %d of its JSON", d.version, Version)
	}
	if n == 0 {
		return nil, fmt.Errorf("coords is empty: the depot comes first, then the customers")
	}
	if len(p.Demand) == 0 {
		p.Demand = make([]int32, n)
	}
	if len(p.Demand) != n {
		return nil, fmt.Errorf("demands has %d numbers for %d %s: one for each, 0 for the depot", len(p.Demand), n, map[bool]string{true: "coords", false: "places"}[p.X != nil])
	}
	switch {
	case p.Capacity == 0 && p.Fleet == nil:
		return nil, fmt.Errorf("capacity is missing: what a vehicle carries at most")
	case p.Capacity != 0 && p.Fleet != nil:
		return nil, fmt.Errorf("capacity and fleet both say what vehicles carry: give it in the fleet alone")
	case p.Depots < 0 || p.DepotCount() > n:
		return nil, fmt.Errorf("depots is %d and there are %d places: the depots come first, then the customers", p.Depots, n)
	}
	for _, list := range d.lists {
		if list.n != 0 && list.n != n {
			return nil, fmt.Errorf("%s has %d entries for %d places: one for each is needed, the depot's first", list.key, list.n, n)
		}
	}
	forgetNeutral(&p)
	return &p, d.distances(&p, n)
}

// forgetNeutral drops lists by place whose entries all ask for nothing.
func forgetNeutral(p *vrp.Problem) {
	v := reflect.ValueOf(p).Elem()
	for _, m := range members[schema.Problem] {
		if m.Of == schema.Place && m.Type != schema.Point && m.Key != "demands" && !asks(v.Field(m.index)) {
			v.Field(m.index).SetZero()
		}
	}
}

// asks reports whether a list has an entry that is not zero and no empty list.
func asks(list reflect.Value) bool {
	for i := range list.Len() {
		if e := list.Index(i); e.Kind() == reflect.Slice && e.Len() > 0 || e.Kind() != reflect.Slice && !e.IsZero() {
			return true
		}
	}
	return false
}

// distances sets how far and how long the ways are.
func (d *Draft) distances(p *vrp.Problem, n int) error {
	for _, key := range slices.Sorted(maps.Keys(d.squares)) {
		if err := fitsSquare(key, d.squares[key].rows, n); err != nil {
			return err
		}
	}
	for i := range p.Profiles {
		if p.Profiles[i].Distance == nil {
			return fmt.Errorf("profiles[%d].distances is missing", i)
		}
	}
	weights, given := d.squares["distances"]
	durations, timed := d.squares["durations"]
	switch {
	case (given || timed) && p.Profiles != nil:
		return fmt.Errorf("distances and profiles both give matrices: use one of them")
	case (given || timed) && d.given["distance"]:
		return fmt.Errorf("distance and distances both say how far two places are: use one of them")
	case timed && !given:
		return fmt.Errorf("durations are given without distances: give both")
	case given:
		if timed {
			p.Profiles = []vrp.Profile{{Distance: weights.values, Duration: durations.values}}
		}
		p.Metric, p.Weights = vrp.Explicit, weights.values
	case p.Profiles != nil && !d.given["distance"]: // which the first profile says
		p.Metric, p.Weights = vrp.Explicit, p.Profiles[0].Distance
	case p.X == nil:
		return fmt.Errorf("coords is empty: places need coordinates, or distances between them")
	}
	return nil
}

// fitsSquare refuses a matrix that is not places × places.
func fitsSquare(key string, rows []int, n int) error {
	if len(rows) != n {
		return fmt.Errorf("%s has %d rows for %d places", key, len(rows), n)
	}
	for i, length := range rows {
		if length != n {
			return fmt.Errorf("%s[%d] has %d numbers for %d places", key, i, length, n)
		}
	}
	return nil
}

// jsonKind tells JSON texts apart by their keys: a plan has problem, plan or routes; GeoJSON has
// features; VROOM's has jobs or a list of vehicles; every other one is a problem of Haul's own.
func jsonKind(text []byte) (kind string, problem []byte) {
	r := &puller{text: trimMark(text)}
	kind = "json"
	stop := fmt.Errorf("told")
	_ = r.object(func(key string) error { // a fault of the JSON is for its reader to say
		first := r.next()
		switch key {
		case "coords", "demands":
			kind = "json"
			return stop
		case "features":
			kind = "geojson"
			return stop
		case "jobs":
			kind = "vroom"
			return stop
		case "vehicles":
			if first == '[' {
				kind = "vroom"
				return stop
			}
		case "problem", "plan", "routes":
			kind = "plan"
		}
		value, err := r.skip()
		if key == "problem" {
			problem = value
		}
		return err
	})
	return kind, problem
}
