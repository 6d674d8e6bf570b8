package files

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"haul/internal/vrp"
)

// The columns of tables. What a reader could break: no column is dropped silently. A known one
// is read into its part of the problem; one that sounds like a constraint and is not known is
// refused; any other is named in Problem.Notes, except those that only describe a place.

// column is one that a table may have: its name, what else people call it, and how a cell of it
// reads into a row. Empty cells are not read.
type column[T any] struct {
	name    string
	aliases []string
	read    func(r *reader, to *T, cell string) error
}

// place is what a table of places says of one.
type place struct {
	id, name, kind         string
	x, y                   float64
	amounts                [2][]float64 // delivered and picked up, per dimension
	ready, due             *float64
	windows                []vrp.Window
	service, setup         float64
	release, prize, late   float64
	priority               int
	required               int // 0: not said, 1: yes, -1: no
	skills                 []string
	group, shipment        string
	hasPrize               bool
	hasWindow, hasInterval bool
	where                  string // its row, in a message
}

// placeColumns is the table of those beyond id, coordinates and amounts.
var placeColumns = []column[place]{
	{"ready", []string{"ready_time", "readytime", "tw_start", "tw_early", "tw_open", "tw_from", "window_start", "time_window_start", "window_from", "open", "opens", "opening", "opening_time", "earliest", "earliest_time", "not_before"},
		func(r *reader, p *place, s string) (err error) {
			x, err := r.time(s)
			p.ready, p.hasInterval = &x, true
			return err
		}},
	{"due", []string{"due_date", "duedate", "due_time", "tw_end", "tw_late", "tw_close", "tw_to", "window_end", "time_window_end", "window_to", "close", "closes", "closing", "closing_time", "latest", "latest_time", "deadline", "not_after"},
		func(r *reader, p *place, s string) (err error) {
			x, err := r.time(s)
			p.due, p.hasInterval = &x, true
			return err
		}},
	{"windows", []string{"window", "time_window", "time_windows", "tw", "opening_hours", "delivery_window"},
		func(r *reader, p *place, s string) (err error) {
			p.windows, err = r.spans(s)
			p.windows, p.hasWindow = joined(p.windows), true
			return err
		}},
	{"service", []string{"service_time", "servicetime", "service_duration", "unloading_time", "unload_time", "stop_time", "handling_time", "dwell", "dwell_time"},
		func(r *reader, p *place, s string) (err error) { p.service, err = r.span(s); return err }},
	{"setup", []string{"setup_time", "setup_duration"},
		func(r *reader, p *place, s string) (err error) { p.setup, err = r.span(s); return err }},
	{"release", []string{"release_time", "released"},
		func(r *reader, p *place, s string) (err error) { p.release, err = r.time(s); return err }},
	{"prize", []string{"profit"},
		func(r *reader, p *place, s string) (err error) {
			p.prize, err = r.price(s)
			p.hasPrize = true
			return err
		}},
	{"required", []string{"mandatory"},
		func(_ *reader, p *place, s string) (err error) { p.required, err = yes(s); return err }},
	{"optional", nil,
		func(_ *reader, p *place, s string) (err error) { n, err := yes(s); p.required = -n; return err }},
	{"skills", []string{"skill", "needs", "required_skills"},
		func(r *reader, p *place, s string) (err error) { p.skills, err = r.needs(s); return err }},
	{"priority", nil,
		func(r *reader, p *place, s string) (err error) { p.priority, err = parseInt(r.decimal(s)); return err }},
	{"group", []string{"alternative"},
		func(_ *reader, p *place, s string) error { p.group = printable(s); return nil }},
	{"shipment", nil,
		func(_ *reader, p *place, s string) error { p.shipment = printable(s); return nil }},
	{"late_cost", []string{"lateness_cost", "late_price"},
		func(r *reader, p *place, s string) (err error) { p.late, err = r.price(s); return err }},
}

// baseColumns are those of every place; amountWords are what people call a demand.
var (
	baseColumns = []string{"id", "name", "kind", "x", "y", "lat", "lon", "demand", "pickup"}
	amountWords = []string{"quantity", "qty", "amount", "load", "weight", "volume", "units", "parcels", "pallets", "packages", "boxes", "items", "kg", "orders", "size"}
	baseAliases = map[string][]string{
		"id":     {"customer_id", "stop_id", "order_id", "node_id", "location_id", "site_id", "client_id", "no", "no.", "nr", "nr.", "#", "number", "code", "key", "ref", "reference", "customer_no", "cust_no", "cust_no.", "stop", "stop_no", "stop_no.", "stop_nr", "order_no", "order_no.", "order_nr", "order_nr.", "order_number", "order_#", "node"},
		"name":   {"customer_name", "stop_name", "site_name", "label", "title", "customer", "client", "company"},
		"kind":   {"type", "role", "node_type", "stop_type", "place_type"},
		"x":      {"xcoord", "xcoord.", "x_coord", "x_coordinate", "easting"},
		"y":      {"ycoord", "ycoord.", "y_coord", "y_coordinate", "northing"},
		"lat":    {"latitude"},
		"lon":    {"longitude", "lng", "long"},
		"demand": {"delivery", "delivery_demand", "deliver"},
		"pickup": {"pick_up", "pickup_demand", "backhaul", "collect", "collection"},
	}
)

// describing are columns that tell people of a place and ask nothing of a route.
var describing = []string{"note", "notes", "comment", "comments", "remark", "remarks", "description",
	"address", "street", "city", "town", "zip", "postcode", "postal_code", "country", "region", "phone", "email", "contact", "url", "color", "colour",
	"plate", "license_plate", "licence_plate", "number_plate", "registration", "brand", "make", "model"}

// sounding are parts of words that a constraint's column may have.
var sounding = []string{"window", "tw", "ready", "due", "open", "clos", "earl", "late", "start", "end", "time", "hour", "from", "until", "till", "before", "after", "deadline",
	"pick", "deliver", "skill", "vehicle", "truck", "driver", "type", "prior", "release", "service", "setup", "duration", "capac", "load", "weight", "volume", "size", "quantit", "qty", "amount",
	"prize", "profit", "reward", "penal", "cost", "price", "requir", "option", "mandat", "group", "cluster", "depot", "profile", "break", "shift", "max", "min", "limit", "backhaul", "linehaul", "demand", "shipment", "order", "date", "day", "trip", "reload", "allow", "forbid", "exclu"}

var blanks = regexp.MustCompile(`[\s\-/]+`)

// spelled is a header's cell in lower case, blanks as underscores.
func spelled(head string) string {
	key := strings.ToLower(strings.TrimSpace(strings.TrimPrefix(head, "\ufeff")))
	return blanks.ReplaceAllString(key, "_")
}

// timedColumns are those that hold times, whose names may state a unit of time. The price of an
// hour is no such time.
var timedColumns = []string{"ready", "due", "windows", "service", "setup", "release",
	"shift_start", "shift_end", "shift", "latest_start", "max_duration", "break", "break_duration"}

// withUnit parts a unit of time off a column's name: "service (min)", "service_s".
func withUnit(key string) (string, float64) {
	for _, ends := range [][2]string{{"_(", ")"}, {"(", ")"}, {"_[", "]"}, {"[", "]"}, {"_in_", ""}, {"_", ""}} {
		name, unit, ok := cutLast(key, ends[0])
		if !ok || name == "" || !strings.HasSuffix(unit, ends[1]) {
			continue
		}
		if per := unitWords[strings.TrimSuffix(unit, ends[1])]; per > 0 {
			return name, per
		}
	}
	return key, 0
}

// bracketed parts a unit of amounts off a column's name: "weight (kg)", "volume [m3]".
func bracketed(key string) (name, unit string) {
	for _, ends := range []string{"()", "[]"} {
		if name, unit, ok := cutLast(key, ends[:1]); ok && strings.Trim(name, "_") != "" && strings.HasSuffix(unit, ends[1:]) {
			if unit = strings.Trim(unit[:len(unit)-1], "_"); unit != "" && unitWords[unit] == 0 {
				return strings.Trim(name, "_"), unit
			}
		}
	}
	return key, ""
}

func cutLast(s, sep string) (before, after string, ok bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// columnKey is a header's cell of a table of places as a key; what is not known keeps its spelling.
func columnKey(head string) string {
	key, _ := columnUnit(head)
	return key
}

// columnUnit is columnKey with the minutes per unit that the name states; 0: none.
func columnUnit(head string) (string, float64) {
	full := spelled(head)
	for name, aliases := range baseAliases {
		if full == name || slices.Contains(aliases, full) {
			return name, 0
		}
	}
	if short, unit := bracketed(full); unit != "" {
		for _, name := range []string{"demand", "pickup"} {
			if short == name || slices.Contains(baseAliases[name], short) {
				return name, 0
			}
		}
		if slices.Contains(amountWords, short) {
			return short, 0
		}
	}
	if name, ok := named(placeColumns, full); ok {
		return name, 0
	}
	if short, unit := withUnit(full); unit > 0 {
		if name, ok := named(placeColumns, short); ok && slices.Contains(timedColumns, name) {
			return name, unit
		}
	}
	return full, 0
}

// named finds a column by its name or what else people call it.
func named[T any](list []column[T], key string) (string, bool) {
	for _, c := range list {
		if c.name == key || slices.Contains(c.aliases, key) {
			return c.name, true
		}
	}
	return "", false
}

// tells whether a key is one of a table of places.
func tells(key string) bool {
	_, ok := named(placeColumns, key)
	return ok || slices.Contains(baseColumns, key) || slices.Contains(amountWords, key)
}

// validateColumn refuses a column that sounds like a constraint and is not read, and names another
// that is not known.
func validateColumn(s *sheet, p *vrp.Problem, i int, names string) error {
	key := spelled(s.head[i])
	if key == "" || slices.Contains(describing, key) {
		if key == "" && slices.ContainsFunc(s.rows, func(r []string) bool { return strings.TrimSpace(r[i]) != "" }) {
			return s.errorf(s.at, "column %d holds cells and has no name", i+1)
		}
		return nil
	}
	called := quoteShort(printable(strings.TrimSpace(s.head[i])))
	if SoundsConstraining(key) {
		return s.errorf(s.at, "column %s sounds like a constraint and is not one that is read: drop it, or name it as one of %s", called, names)
	}
	note := fmt.Sprintf("column %s is not read", called)
	switch {
	case s.beside:
		note = s.name + ": " + note
	case s.title != "":
		note = fmt.Sprintf("sheet %s: %s", quoteShort(s.title), note)
	}
	p.Notes = append(p.Notes, note)
	return nil
}

// SoundsConstraining tells whether a name in a file may be that of a constraint.
func SoundsConstraining(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(sounding, func(s string) bool { return strings.Contains(name, s) })
}

func columnNames[T any](list []column[T]) string {
	var names []string
	for _, c := range list {
		names = append(names, c.name)
	}
	return strings.Join(names, ", ")
}
