package files

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"haul/internal/vrp"
)

// The columns of a table beyond id, place and demand. What a reader could break: no column is
// dropped in silence. One that is known is read into its part of the problem; one that sounds like
// a constraint and is not known is refused; any other is named in Problem.Notes, but for those that
// only describe a place.

// column is one that a table may have: its name, what else people call it, and how a cell of it
// reads into a row. Empty cells are not read.
type column struct {
	name    string
	aliases []string
	read    func(r *row, cell string) error
}

// row is what the optional columns say of one place.
type row struct {
	ready, due             float64 // NaN: not said
	windows                []vrp.Window
	service, setup         float64
	release, prize, late   float64
	pickup, priority       int
	required               int // 0: not said, 1: yes, -1: no
	skills                 []int32
	group, shipment        string
	decimal                func(string) string // a cell with a decimal point
	hasPrize, hasPriority  bool
	hasWindow, hasInterval bool
}

// columns is the table of them.
var columns = []column{
	{"ready", []string{"ready_time", "readytime", "tw_start", "tw_early", "tw_open", "window_start", "time_window_start", "open", "opens", "opening", "opening_time", "earliest"},
		func(r *row, s string) (err error) { r.ready, err = r.time(s); r.hasInterval = true; return err }},
	{"due", []string{"due_date", "duedate", "due_time", "tw_end", "tw_late", "tw_close", "window_end", "time_window_end", "close", "closes", "closing", "closing_time", "latest", "deadline"},
		func(r *row, s string) (err error) { r.due, err = r.time(s); r.hasInterval = true; return err }},
	{"windows", []string{"window", "time_window", "time_windows", "tw", "opening_hours"},
		func(r *row, s string) (err error) { r.windows, err = r.spans(s); r.hasWindow = true; return err }},
	{"service", []string{"service_time", "servicetime", "service_duration"},
		func(r *row, s string) (err error) { r.service, err = r.span(s); return err }},
	{"setup", []string{"setup_time", "setup_duration"},
		func(r *row, s string) (err error) { r.setup, err = r.span(s); return err }},
	{"release", []string{"release_time", "released"},
		func(r *row, s string) (err error) { r.release, err = r.time(s); return err }},
	{"pickup", []string{"pick_up", "pickup_demand", "backhaul"},
		func(r *row, s string) (err error) { r.pickup, err = r.amount(s); return err }},
	{"prize", []string{"profit"},
		func(r *row, s string) (err error) { r.prize, err = r.price(s); r.hasPrize = true; return err }},
	{"required", nil, func(r *row, s string) (err error) { r.required, err = yes(s); return err }},
	{"optional", nil, func(r *row, s string) (err error) { n, err := yes(s); r.required = -n; return err }},
	{"skills", []string{"skill", "needs"},
		func(r *row, s string) (err error) { r.skills, err = skills(s); return err }},
	{"priority", nil,
		func(r *row, s string) (err error) {
			r.priority, err = parseInt(r.decimal(s))
			r.hasPriority = true
			return err
		}},
	{"group", []string{"alternative"}, func(r *row, s string) error { r.group = s; return nil }},
	{"shipment", nil, func(r *row, s string) error { r.shipment = s; return nil }},
	{"late_cost", []string{"lateness_cost", "late_price"},
		func(r *row, s string) (err error) { r.late, err = r.price(s); return err }},
}

// baseColumns are read by ReadCSV itself.
var baseColumns = []string{"id", "x", "y", "lat", "lon", "demand"}

// describing are columns that tell people of a place and ask nothing of a route.
var describing = []string{"name", "note", "notes", "comment", "comments", "remark", "remarks", "description", "label", "title",
	"address", "street", "city", "town", "zip", "postcode", "postal_code", "country", "region", "phone", "email", "contact", "customer", "company", "url", "color", "colour"}

// sounding are parts of words that a constraint's column may have.
var sounding = []string{"window", "tw", "ready", "due", "open", "clos", "earl", "late", "start", "end", "time", "hour", "from", "until", "till", "before", "after", "deadline",
	"pick", "deliver", "skill", "vehicle", "truck", "driver", "type", "prior", "release", "service", "setup", "duration", "capac", "load", "weight", "volume", "size", "quantit", "qty", "amount",
	"prize", "profit", "reward", "penal", "cost", "price", "requir", "option", "mandat", "group", "cluster", "depot", "profile", "break", "shift", "max", "min", "limit", "backhaul", "linehaul", "demand", "shipment", "order", "date", "day", "trip", "reload", "allow", "forbid", "exclu"}

// columnKey is a header's cell as a key.
func columnKey(head string) string {
	key := strings.ToLower(strings.TrimSpace(strings.TrimPrefix(head, "\ufeff")))
	key = strings.Map(func(r rune) rune {
		if r == ' ' || r == '-' {
			return '_'
		}
		return r
	}, key)
	if short, ok := map[string]string{"latitude": "lat", "longitude": "lon", "lng": "lon"}[key]; ok {
		key = short
	}
	for _, c := range columns {
		if slices.Contains(c.aliases, key) {
			return c.name
		}
	}
	return key
}

// checkColumns refuses columns that sound like a constraint and are not read, and names the other
// unknown ones.
func checkColumns(keys, head []string) (notes []string, err error) {
	for i, key := range keys {
		known := slices.ContainsFunc(columns, func(c column) bool { return c.name == key })
		if known || key == "" || slices.Contains(baseColumns, key) || slices.Contains(describing, key) {
			continue
		}
		if SoundsConstraining(key) {
			return nil, fmt.Errorf("column %s sounds like a constraint and is not one that is read: drop it, or name it as one of %s", quoteShort(printable(strings.TrimSpace(head[i]))), columnNames())
		}
		notes = append(notes, fmt.Sprintf("column %s is not read", quoteShort(printable(strings.TrimSpace(head[i])))))
	}
	return notes, nil
}

// SoundsConstraining tells whether a name in a file may be that of a constraint.
func SoundsConstraining(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(sounding, func(s string) bool { return strings.Contains(name, s) })
}

func columnNames() string {
	var names []string
	for _, c := range columns {
		names = append(names, c.name)
	}
	return strings.Join(names, ", ")
}

// time reads a point in time: a number, or a clock's 08:30 or 08:30:15 in minutes.
func (r *row) time(s string) (float64, error) {
	h, rest, clock := strings.Cut(s, ":")
	if !clock {
		x, err := parseFloat(r.decimal(s))
		if err == nil && x < 0 {
			err = errors.New("is negative")
		}
		return x, err
	}
	m, sec, _ := strings.Cut(rest, ":")
	total, unit := 0.0, 60.0
	for i, part := range []string{h, m, sec} {
		if i == 2 && strings.Count(s, ":") == 1 {
			break
		}
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 || len(part) > 2 || i > 0 && n > 59 || strings.HasPrefix(part, "+") {
			return 0, errors.New("is not a time: expected a number, or hours and minutes as 08:30")
		}
		total += float64(n) * unit
		unit /= 60
	}
	return total, nil
}

// span reads a length of time.
func (r *row) span(s string) (float64, error) { return r.time(s) }

func (r *row) price(s string) (float64, error) {
	x, err := parseFloat(r.decimal(s))
	if err == nil && x < 0 {
		err = errors.New("is negative")
	}
	return x, err
}

func (r *row) amount(s string) (int, error) {
	n, err := parseInt(r.decimal(s))
	if err == nil && n < 0 {
		err = errors.New("is negative")
	}
	return n, err
}

// spans reads windows as 08:00-10:00 14:00-16:00.
func (r *row) spans(s string) ([]vrp.Window, error) {
	var list []vrp.Window
	for _, f := range strings.FieldsFunc(s, func(c rune) bool { return c == ' ' || c == '|' || c == '+' }) {
		from, to, ok := strings.Cut(f, "-")
		if !ok {
			return nil, errors.New("is not a list of windows: expected 08:00-10:00 14:00-16:00")
		}
		a, err := r.time(from)
		if err != nil {
			return nil, err
		}
		b, err := r.time(to)
		if err != nil {
			return nil, err
		}
		list = append(list, vrp.Window{From: a, To: b})
	}
	return list, nil
}

// yes reads a word for yes (1) or no (-1).
func yes(s string) (int, error) {
	switch strings.ToLower(s) {
	case "yes", "y", "true", "1":
		return 1, nil
	case "no", "n", "false", "0":
		return -1, nil
	}
	return 0, errors.New("is neither yes nor no")
}

// skills reads numbers separated by blanks, bars or plus signs.
func skills(s string) ([]int32, error) {
	var list []int32
	for _, f := range strings.FieldsFunc(s, func(c rune) bool { return c == ' ' || c == '|' || c == '+' }) {
		n, err := parseInt(f)
		if err != nil || n < 0 {
			return nil, errors.New("is not a list of skills: expected numbers such as 1 3")
		}
		if !slices.Contains(list, int32(n)) {
			list = append(list, int32(n))
		}
	}
	slices.Sort(list)
	return list, nil
}

// window is when the row's place may be served.
func (r *row) window() ([]vrp.Window, error) {
	if r.hasWindow && r.hasInterval {
		return nil, errors.New("has windows and ready or due: give one of them")
	}
	if r.hasWindow {
		return r.windows, nil
	}
	if !r.hasInterval {
		return nil, nil
	}
	w := vrp.Always
	if !math.IsNaN(r.ready) {
		w.From = r.ready
	}
	if !math.IsNaN(r.due) {
		w.To = r.due
	}
	if w == vrp.Always {
		return nil, nil
	}
	return []vrp.Window{w}, nil
}

// optionalParts puts the rows' optional columns into the problem: a part is there where a row says
// something of it.
func optionalParts(p *vrp.Problem, rows []row) error {
	n := len(rows)
	groups, shipments := map[string]int{}, map[string][]int{}
	var shipped []string
	for v := range rows {
		r := &rows[v]
		of := func(format string, args ...any) error {
			return fmt.Errorf("%s %s", quoteShort(p.ID(v)), fmt.Sprintf(format, args...))
		}
		w, err := r.window()
		if err != nil {
			return of("%v", err)
		}
		if len(w) > 0 {
			byPlace(&p.Windows, n)[v] = w
		}
		for _, x := range []struct {
			value float64
			to    *[]float64
		}{{r.service, &p.Service}, {r.setup, &p.Setup}, {r.release, &p.Release}, {r.late, &p.Late}} {
			if x.value != 0 {
				byPlace(x.to, n)[v] = x.value
			}
		}
		switch {
		case r.shipment != "":
			if v == 0 {
				return of("is the depot and belongs to shipment %s", quoteShort(r.shipment))
			}
			if shipments[r.shipment] == nil {
				shipped = append(shipped, r.shipment)
			}
			shipments[r.shipment] = append(shipments[r.shipment], v)
		case r.pickup > 0:
			byPlace(&p.Pickup, n)[v] = int32(r.pickup)
		}
		if r.hasPrize && r.required != 1 {
			byPlace(&p.Prize, n)[v] = r.prize
			byPlace(&p.Optional, n)[v] = true
		} else if r.required == -1 {
			byPlace(&p.Optional, n)[v] = true
		}
		if v == 0 && (r.hasPrize || r.required == -1 || r.group != "" || len(r.skills) > 0 || r.pickup > 0) {
			return of("is the depot, and asks for what only a customer can")
		}
		if len(r.skills) > 0 {
			byPlace(&p.Needs, n)[v] = r.skills
		}
		if r.hasPriority && r.priority != 0 {
			byPlace(&p.Priority, n)[v] = r.priority
		}
		if r.group != "" {
			g, ok := groups[r.group]
			if !ok {
				g = len(p.Groups)
				groups[r.group] = g
				p.Groups = append(p.Groups, vrp.Group{Name: r.group, Required: true})
			}
			p.Groups[g].Members = append(p.Groups[g].Members, int32(v))
		}
	}
	for _, name := range shipped {
		if err := shipmentOf(p, name, shipments[name], rows); err != nil {
			return err
		}
	}
	return nil
}

// shipmentOf makes a shipment of the rows that name it: one with a pickup and one with a demand, of
// the same amount.
func shipmentOf(p *vrp.Problem, name string, at []int, rows []row) error {
	if len(at) != 2 {
		return fmt.Errorf("shipment %s is named by %d rows: expected two, its pickup and its delivery", quoteShort(name), len(at))
	}
	from, to := at[0], at[1]
	if rows[from].pickup == 0 {
		from, to = to, from
	}
	amount := int32(rows[from].pickup)
	if amount == 0 || p.Demand[from] != 0 || rows[to].pickup != 0 || p.Demand[to] != amount {
		return fmt.Errorf("the halves of shipment %s contradict: %s picks up %d and takes %d, %s picks up %d and takes %d; expected one row with a pickup and one with the same demand",
			quoteShort(name), quoteShort(p.ID(from)), rows[from].pickup, p.Demand[from], quoteShort(p.ID(to)), rows[to].pickup, p.Demand[to])
	}
	p.Demand[to] = 0
	p.Shipments = append(p.Shipments, vrp.Shipment{Pickup: int32(from), Delivery: int32(to), Amount: []int32{amount}})
	return nil
}

// byPlace is a slice by place, made where it is not there yet.
func byPlace[T any](s *[]T, n int) []T {
	if *s == nil {
		*s = make([]T, n)
	}
	return *s
}
