package files

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"haul/internal/config"
	"haul/internal/schema"
	"haul/internal/vrp"
)

// The columns of tables, whose names stand in the table of parts. What a reader could break: no
// column is dropped silently. A known one is read into its part of the problem, and an unknown one
// is refused, unless it only describes a place or the user ignores it.

// cell reads a cell of a column into a row. Empty cells are not read.
type cell[T any] = func(r *reader, to *T, text string) error

// wordsOf are the names of a sheet's columns by every word for them, as the table of parts has it.
func wordsOf(sheet schema.Sheet) map[string]string {
	out := map[string]string{}
	for _, c := range schema.ColumnsOf(sheet) {
		out[c.Name] = c.Name
		for _, also := range strings.Fields(c.Also) {
			out[also] = c.Name
		}
	}
	return out
}

var customerWords, vehicleWords = wordsOf(schema.Customers), wordsOf(schema.Vehicles)

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
var placeColumns = map[string]cell[place]{
	"ready": func(r *reader, p *place, s string) (err error) {
		x, err := r.time(s)
		p.ready, p.hasInterval = &x, true
		return err
	},
	"due": func(r *reader, p *place, s string) (err error) {
		x, err := r.time(s)
		p.due, p.hasInterval = &x, true
		return err
	},
	"windows": func(r *reader, p *place, s string) (err error) {
		p.windows, err = r.spans(s)
		p.windows, p.hasWindow = joined(p.windows), true
		return err
	},
	"service": func(r *reader, p *place, s string) (err error) { p.service, err = r.span(s); return err },
	"setup":   func(r *reader, p *place, s string) (err error) { p.setup, err = r.span(s); return err },
	"release": func(r *reader, p *place, s string) (err error) { p.release, err = r.time(s); return err },
	"prize": func(r *reader, p *place, s string) (err error) {
		p.prize, err = r.price(s)
		p.hasPrize = true
		return err
	},
	"required":  func(_ *reader, p *place, s string) (err error) { p.required, err = yes(s); return err },
	"optional":  func(_ *reader, p *place, s string) (err error) { n, err := yes(s); p.required = -n; return err },
	"skills":    func(r *reader, p *place, s string) (err error) { p.skills, err = r.needs(s); return err },
	"priority":  func(r *reader, p *place, s string) (err error) { p.priority, err = parseInt(r.decimal(s)); return err },
	"group":     func(_ *reader, p *place, s string) error { p.group = printable(s); return nil },
	"shipment":  func(_ *reader, p *place, s string) error { p.shipment = printable(s); return nil },
	"late_cost": func(r *reader, p *place, s string) (err error) { p.late, err = r.price(s); return err },
}

// amountWords are what people call a demand, or one of its dimensions.
var amountWords = []string{"quantity", "qty", "amount", "load", "weight", "volume", "units", "parcels", "pallets", "packages", "boxes", "items", "kg", "orders", "size"}

// describing are columns that tell people of a place and ask nothing of a route.
var describing = []string{"note", "notes", "comment", "comments", "remark", "remarks", "description",
	"address", "street", "city", "town", "zip", "postcode", "postal_code", "country", "region", "phone", "email", "contact", "url",
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
	if name := customerWords[full]; name != "" {
		return name, 0
	}
	if short, unit := bracketed(full); unit != "" {
		if name := customerWords[short]; name == "demand" || name == "pickup" {
			return name, 0
		}
		if slices.Contains(amountWords, short) {
			return short, 0
		}
	}
	if short, unit := withUnit(full); unit > 0 {
		if name := customerWords[short]; slices.Contains(timedColumns, name) {
			return name, unit
		}
	}
	return full, 0
}

// tells whether a key is one of a table of places.
func tells(key string) bool { return isColumn(key) || slices.Contains(amountWords, key) }

// isColumn tells whether a key is a column of customers by its name.
func isColumn(key string) bool { return key != "" && customerWords[key] == key }

// validateColumn judges a column that is not read. It is refused with the nearest one that there
// is, unless it only describes a place or the user ignores it; of a file with properties for
// others, such as GeoJSON, one is refused that sounds like a constraint.
func (t *tables) validateColumn(s *sheet, i int, sheet schema.Sheet) error {
	key := spelled(s.head[i])
	if key == "" || slices.Contains(describing, key) {
		if key == "" && slices.ContainsFunc(s.rows, func(r []string) bool { return strings.TrimSpace(r[i]) != "" }) {
			return s.errorf(s.at, "column %d holds cells and has no name", i+1)
		}
		return nil
	}
	called := quoteShort(printable(strings.TrimSpace(s.head[i])))
	ignored := slices.ContainsFunc(t.o.Ignore, func(name string) bool { return name == "*" || spelled(name) == key })
	if !ignored && (!s.foreign || SoundsConstraining(key)) {
		var names []string
		for _, c := range schema.ColumnsOf(sheet) {
			if !strings.Contains(c.Name, "NAME") {
				names = append(names, c.Name)
			}
		}
		hint := "drop it, ignore it, or name it as one of " + strings.Join(names, ", ")
		if near := config.Nearest(key, names); near != "" {
			hint = "is " + quoteShort(near) + " meant? Else drop it or ignore it"
		}
		return s.errorf(s.at, "column %s is not one that is read: %s", called, hint)
	}
	note := fmt.Sprintf("column %s is not read", called)
	switch {
	case s.beside:
		note = s.name + ": " + note
	case s.title != "":
		note = fmt.Sprintf("sheet %s: %s", quoteShort(s.title), note)
	}
	t.p.Notes = append(t.p.Notes, note)
	return nil
}

// SoundsConstraining tells whether a name in a file may be that of a constraint.
func SoundsConstraining(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(sounding, func(s string) bool { return strings.Contains(name, s) })
}
