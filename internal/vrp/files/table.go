package files

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"haul/internal/limits"
	"haul/internal/schema"
	"haul/internal/vrp"
)

// A problem from tables: customers, and beside them vehicles, depots, shipments and matrices, as
// sheets of one file or as files. What a reader could break: a row's id is kept beside the
// number it gets here, and every output names customers by it. Amounts with decimals become
// integers of a fraction, which Problem.Fractions states.

// Input is a file that is read beside another.
type Input struct {
	Name string
	Data []byte
}

// ErrCapacity says that a table of customers needs what it does not have.
var ErrCapacity = errors.New("the capacity is missing: a table of stops does not say what a vehicle carries; give it, or a table of vehicles")

// ErrSpeed says that a table with times needs to know how long a way takes.
var ErrSpeed = errors.New("it has times, and nothing says how long a way takes: a speed is needed (--speed, in km/h), or durations (--durations)")

// tables are those of one problem.
type tables struct {
	reader
	p     *vrp.Problem
	o     Options
	tally *tally

	customers, depots, vehicles, shipments, distances, durations, settings *sheet

	places   []place
	count    int      // depots
	dims     []string // names of the dimensions of load; the first may be ""
	units    []string // of the dimensions, where the customers' columns state one in brackets; it may be shorter
	byID     map[string]int
	located  bool
	metres   bool
	fleet    []vehicle
	capacity bool // the vehicles say what they carry
	name     string
}

// ReadTable reads a problem from tables. Errors begin with the table's name and line.
func ReadTable(r io.Reader, name string, o Options) (*vrp.Problem, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(data) > maxFile {
		return nil, tooLarge(name)
	}
	count := newTally(o)
	book, err := readBook(data, name, count)
	if err != nil {
		return nil, err
	}
	return buildTables(book, name, o, count)
}

func buildTables(book []*sheet, name string, o Options, count *tally) (*vrp.Problem, error) {
	if err := KnownTimes(o.Times); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	t := &tables{p: &vrp.Problem{Metric: vrp.Exact}, o: o, byID: map[string]int{}, name: name, tally: count}
	t.minute = 1 / timeUnits[o.Times]
	for _, step := range []func() error{func() error { return t.sort(book) }, t.readSettings, t.readDims, t.readDepots, t.readCustomers, t.readShipments, t.settleDepots, t.readVehicles,
		t.undate, t.fill, t.readMatrices, t.readFleet, t.speed, t.check} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return t.p, nil
}

// sheetNames are what people call the sheets.
var sheetNames = map[string][]string{
	"customers": {"customers", "customer", "stops", "orders", "clients", "jobs", "deliveries", "locations", "places", "nodes", "sites", "addresses", "points", "data"},
	"depots":    {"depots", "depot", "warehouses", "warehouse", "hubs", "bases"},
	"vehicles":  {"vehicles", "vehicle", "fleet", "trucks", "vans", "cars", "drivers", "vehicle_types"},
	"shipments": {"shipments", "shipment", "pickups_and_deliveries", "transports", "requests"},
	"distances": {"distances", "distance", "distance_matrix", "matrix"},
	"settings":  {"settings", "options", "parameters"},
	"durations": {"durations", "duration", "times", "travel_times", "time_matrix", "duration_matrix"},
}

// sort gives each sheet its part, and takes the files beside.
func (t *tables) sort(book []*sheet) error {
	parts := map[string]**sheet{"customers": &t.customers, "depots": &t.depots, "vehicles": &t.vehicles, "shipments": &t.shipments, "distances": &t.distances, "durations": &t.durations, "settings": &t.settings}
	put := func(part string, s *sheet) error {
		if *parts[part] != nil {
			return fmt.Errorf("%s: the %s are given twice, first by %s", s.name, part, (*parts[part]).name)
		}
		*parts[part] = s
		return nil
	}
	var other []*sheet
	for _, s := range book {
		part := ""
		for name, words := range sheetNames {
			if slices.Contains(words, spelled(s.title)) {
				part = name
			}
		}
		if part == "" {
			other = append(other, s)
			continue
		}
		if err := put(part, s); err != nil {
			return err
		}
	}
	for _, s := range book {
		for _, title := range s.titles {
			note := quoteShort(printable(title)) + " stands above the header and is not read"
			if s.title != "" {
				note = fmt.Sprintf("sheet %s: %s", quoteShort(s.title), note)
			}
			t.p.Notes = append(t.p.Notes, note)
		}
	}
	for _, s := range book {
		notes, err := s.thousands()
		if err != nil {
			return err
		}
		t.p.Notes = append(t.p.Notes, notes...)
	}
	for _, title := range book[0].hidden {
		t.p.Notes = append(t.p.Notes, fmt.Sprintf("sheet %s is hidden and is not read", quoteShort(title)))
	}
	for _, s := range book {
		if len(s.hashed) > 0 {
			t.p.Notes = append(t.p.Notes, hashNote(s))
		}
	}
	for i, s := range other {
		if t.customers == nil && (i == 0 || looksPlaces(s)) && (len(other) == 1 || looksPlaces(s)) {
			t.customers = s
			continue
		}
		t.p.Notes = append(t.p.Notes, fmt.Sprintf("sheet %s is not read: its name is none of customers, vehicles, depots, shipments, distances, durations, settings", quoteShort(s.title)))
	}
	for part, in := range map[string]*Input{"vehicles": t.o.Fleet, "depots": t.o.Depots, "shipments": t.o.Shipments} {
		if in == nil {
			continue
		}
		more, err := readBook(in.Data, in.Name, t.tally)
		if err != nil {
			return err
		}
		if len(more) > 1 {
			return fmt.Errorf("%s: it has %d sheets: give the file as the problem, or one of a single sheet", in.Name, len(more))
		}
		more[0].beside = true
		if err := put(part, more[0]); err != nil {
			return err
		}
		if len(more[0].hashed) > 0 {
			t.p.Notes = append(t.p.Notes, in.Name+": "+hashNote(more[0]))
		}
	}
	if t.customers == nil && t.shipments == nil {
		return fmt.Errorf("%s: no sheet has customers: expected one called customers, or with the columns id, x, y, demand", t.name)
	}
	return nil
}

// hashNote says that rows which begin as comments do were read.
func hashNote(s *sheet) string {
	if len(s.hashed) == 1 {
		return fmt.Sprintf("line %d begins with # and is read: it has as many cells as the header", s.hashed[0])
	}
	return fmt.Sprintf("%d lines that begin with # are read, the first is line %d: they have as many cells as the header", len(s.hashed), s.hashed[0])
}

// looksPlaces tells whether a header has two columns of a table of places.
func looksPlaces(s *sheet) bool {
	known := 0
	for _, h := range s.head {
		if tells(columnKey(h)) {
			known++
		}
	}
	return known >= 2
}

// at enters a sheet: its numbers have their own decimal point.
func (t *tables) at(s *sheet) { t.decimal, t.unit = s.decimal, 0 }

// placeKeys are the columns of a table of places: keys by column, and the columns by key.
func (t *tables) placeKeys(s *sheet) (keys []string, units []float64, at map[string]int, err error) {
	at = map[string]int{}
	for i, h := range s.head {
		key, unit := columnUnit(h)
		if _, twice := at[key]; twice {
			switch {
			case (key == "id" || key == "name") && spelled(h) != key:
				key, unit = spelled(h), 0 // one more word for it
			case (key == "id" || key == "name") && spelled(s.head[at[key]]) != key:
				keys[at[key]] = spelled(s.head[at[key]])
			default:
				return nil, nil, nil, s.errorf(s.at, "column %s is given twice", quoteShort(key))
			}
		}
		at[key] = i
		keys, units = append(keys, key), append(units, unit)
	}
	return keys, units, at, nil
}

// readDims finds the dimensions of load: the columns of demands, and those of what vehicles carry.
func (t *tables) readDims() error {
	if t.customers == nil {
		t.dims = []string{""}
		return nil
	}
	keys, _, at, err := t.placeKeys(t.customers)
	if err != nil {
		return err
	}
	if _, ok := at["demand"]; ok {
		t.dims = append(t.dims, "")
	}
	for _, key := range keys {
		if name, ok := strings.CutPrefix(key, "demand_"); ok && name != "" && !slices.Contains(t.dims, name) {
			t.dims = append(t.dims, name)
			if err := t.o.Limits.Over(limits.Dimensions, int64(len(t.dims)-1)); err != nil {
				return fmt.Errorf("%s: %w", t.customers.name, err)
			}
		}
	}
	var bare []string
	units := map[string]string{} // of the columns' names, by key
	for i, key := range keys {
		if _, units[key] = bracketed(spelled(t.customers.head[i])); !slices.Contains(amountWords, key) || slices.Contains(t.dims, key) {
			continue
		}
		if t.vehicles != nil && slices.ContainsFunc(t.vehicles.head, func(h string) bool { return carries(spelled(h), key) }) {
			t.dims = append(t.dims, key)
		} else {
			bare = append(bare, key)
		}
	}
	switch {
	case len(t.dims) == 0 && len(bare) == 1:
		t.dims = []string{""}
		t.units = []string{units[bare[0]]}
	case len(t.dims) == 1 && t.dims[0] == "":
		t.units = []string{units["demand"]}
	default: // several: the unit tells which of them a vehicle's column is about
		for _, key := range bare {
			if unit := units[key]; unit != "" && t.vehicles != nil && slices.ContainsFunc(t.vehicles.head, func(h string) bool { return holds(spelled(h), unit) }) {
				t.dims = append(t.dims, key)
			}
		}
		for _, dim := range t.dims {
			t.units = append(t.units, units[dim])
		}
	}
	return nil
}

// holds tells whether a column of vehicles is a capacity in a unit: "capacity (kg)".
func holds(key, unit string) bool {
	name, stated := bracketed(key)
	return stated == unit && vehicleWords[name] == "capacity"
}

// carries tells whether a column of vehicles is what they carry of a dimension.
func carries(key, dim string) bool {
	return key == "capacity_"+dim || key == dim+"_capacity" || key == "max_"+dim || key == "capacity_("+dim+")"
}

// amountOf says which dimension a column of places states, and whether as a pickup.
func (t *tables) amountOf(key string, at map[string]int) (dim int, pickup, ok bool) {
	find := func(name string) (int, bool) { i := slices.Index(t.dims, name); return i, i >= 0 }
	switch {
	case key == "demand":
		dim, ok = find("")
	case key == "pickup":
		if dim, ok = find(""); !ok && len(t.dims) <= 1 {
			dim, ok = 0, true
		}
		pickup = true
	case strings.HasPrefix(key, "demand_"):
		dim, ok = find(key[len("demand_"):])
	case strings.HasPrefix(key, "pickup_"):
		dim, ok = find(key[len("pickup_"):])
		pickup = true
	case slices.Contains(amountWords, key):
		if dim, ok = find(key); !ok {
			_, plain := at["demand"]
			dim, ok = 0, !plain && len(t.dims) == 1 && t.dims[0] == ""
		}
	}
	return dim, pickup, ok
}

func (t *tables) readDepots() error {
	if t.depots == nil {
		return nil
	}
	return t.readPlaces(t.depots, true)
}

func (t *tables) readCustomers() error {
	if t.customers == nil {
		return nil
	}
	return t.readPlaces(t.customers, false)
}

const expected = "expected id,x,y,demand or id,lat,lon,demand"

// readPlaces reads the rows of a table of places.
func (t *tables) readPlaces(s *sheet, depots bool) error {
	t.at(s)
	keys, units, at, err := t.placeKeys(s)
	if err != nil {
		return err
	}
	xKey, yKey, err := t.coordinates(s, at)
	if err != nil {
		return err
	}
	demands := false
	for i, key := range keys {
		_, _, amount := t.amountOf(key, at)
		demands = demands || amount
		if amount && !depots || isColumn(key) {
			continue
		}
		if err := t.validateColumn(s, i, schema.Customers); err != nil {
			return err
		}
	}
	if !depots && !demands && (t.o.Capacity > 0 || t.vehicles != nil && slices.ContainsFunc(t.vehicles.head, func(h string) bool { return strings.Contains(spelled(h), "capacity") })) {
		return s.errorf(s.at, "no column %q: %s", "demand", expected)
	}
	if !depots && len(t.dims) == 0 {
		t.dims = []string{""} // nobody demands anything
	}
	for i, cells := range s.rows {
		x, err := t.readPlace(s, i, cells, keys, units, at, xKey, yKey, depots)
		if err != nil {
			return err
		}
		if first, twice := t.byID[x.id]; twice {
			if s == t.depots || t.depots == nil || t.places[first].where != "" && strings.HasPrefix(t.places[first].where, s.name+":") {
				return s.errorf(s.lines[i], "id %s is given twice", quoteShort(x.id))
			}
			return s.errorf(s.lines[i], "id %s is given twice, first at %s", quoteShort(x.id), t.places[first].where)
		}
		t.byID[x.id] = len(t.places)
		t.places = append(t.places, *x)
	}
	if depots {
		t.count = len(t.places)
	}
	return nil
}

// coordinates finds the columns of coordinates; none are needed where there are matrices.
func (t *tables) coordinates(s *sheet, at map[string]int) (x, y string, err error) {
	has := func(key string) bool { _, ok := at[key]; return ok }
	x, y = "x", "y"
	if has("lat") {
		x, y = "lon", "lat"
	}
	if !has("x") && !has("y") && !has("lat") && !has("lon") && (t.distances != nil || t.durations != nil || t.o.Distances != nil || t.o.Durations != nil) {
		return "", "", nil
	}
	for _, key := range []string{x, y} {
		if !has(key) {
			return "", "", s.errorf(s.at, "no column %q: %s", key, expected)
		}
	}
	globe := x == "lon"
	if t.located && globe != (t.p.Metric == vrp.GreatCircle) {
		return "", "", s.errorf(s.at, "one table has x and y, another lat and lon")
	}
	if t.located = true; globe {
		t.p.Metric, t.metres = vrp.GreatCircle, true
	}
	return x, y, nil
}

func (t *tables) readPlace(s *sheet, i int, cells, keys []string, units []float64, at map[string]int, xKey, yKey string, depots bool) (*place, error) {
	x := &place{where: s.where(i)}
	cell := func(key string) string {
		if c, ok := at[key]; ok && keys[c] == key {
			return strings.TrimSpace(cells[c])
		}
		return ""
	}
	x.id, x.name, x.kind = printable(cell("id")), printable(cell("name")), strings.ToLower(cell("kind"))
	if _, own := at["id"]; !own {
		if x.id = x.name; x.id == "" {
			x.id = itoa(len(t.places))
		}
		if _, taken := t.byID[x.id]; taken {
			x.id = fmt.Sprintf("%s (%d)", x.id, s.lines[i])
		}
	}
	fail := func(format string, args ...any) (*place, error) {
		return nil, s.errorf(s.lines[i], format, args...)
	}
	if xKey != "" {
		for k, key := range []string{xKey, yKey} {
			v, err := parseWithin(t.decimal(cell(key)), Farthest, "is beyond 1e12: give coordinates in a larger unit")
			if err != nil {
				return fail("%s %s of %s %v", key, quoteShort(cell(key)), quoteShort(x.id), err)
			}
			*[]*float64{&x.x, &x.y}[k] = v
		}
		if xKey == "lon" && (math.Abs(x.y) > 90 || math.Abs(x.x) > 180) {
			return fail("lat %g, lon %g of %s lie outside ±90, ±180", x.y, x.x, quoteShort(x.id))
		}
	}
	x.amounts = [2][]float64{make([]float64, len(t.dims)), make([]float64, len(t.dims))}
	first := !depots && t.depots == nil && len(t.places) == 0
	picks := slices.ContainsFunc(keys, func(k string) bool { return strings.HasPrefix(k, "pickup") })
	for c, key := range keys {
		text := strings.TrimSpace(cells[c])
		if dim, pickup, ok := t.amountOf(key, at); ok && !depots {
			if text == "" && (first || picks || pickup || x.isDepot() || len(t.dims) > 1) {
				continue
			}
			if err := t.amount(x, dim, pickup, text); err != nil {
				return fail("%s %s of %s %v", key, quoteShort(text), quoteShort(x.id), err)
			}
			continue
		}
		if read := placeColumns[key]; read != nil && text != "" {
			t.unit = units[c]
			if err := read(&t.reader, x, text); err != nil {
				return fail("%s %s of %s %v", key, quoteShort(text), quoteShort(x.id), err)
			}
		}
	}
	return x, nil
}

// amount reads what is delivered or picked up.
func (t *tables) amount(x *place, dim int, pickup bool, text string) error {
	v, err := t.number(text)
	if err != nil {
		return err
	}
	if _, err := decimals(v); err != nil {
		return err
	}
	kind := 0
	if pickup {
		kind = 1
	}
	if v < 0 {
		return errors.New("is negative")
	}
	if v > 0 && x.amounts[kind][dim] > 0 {
		return errors.New("is a second amount of the same kind")
	}
	x.amounts[kind][dim] += v
	return nil
}

// depotWords are what people call a depot in a column of kinds, or in place of an id.
var depotWords = []string{"depot", "warehouse", "hub", "base", "start"}

func (x *place) isDepot() bool { return slices.Contains(depotWords, x.kind) }

// settleDepots brings the depots to the front: those of their own table, those of which a column
// says so, the one called depot, or the first row.
func (t *tables) settleDepots() error {
	if t.depots != nil {
		for _, x := range t.places[t.count:] {
			if x.kind != "" && x.isDepot() {
				return fmt.Errorf("%s: kind %s of %s: the depots have a table of their own", x.where, quoteShort(x.kind), quoteShort(x.id))
			}
		}
	} else {
		var depots, rest []place
		kinds := slices.ContainsFunc(t.places, func(x place) bool { return x.kind != "" })
		for i, x := range t.places {
			called := slices.Contains(depotWords[:4], strings.ToLower(x.id)) || slices.Contains(depotWords[:4], strings.ToLower(x.name))
			switch {
			case kinds && x.isDepot(), !kinds && i > 0 && called && len(depots) == 0 && sum(x.amounts) == 0 && !t.calledDepot(0):
				depots = append(depots, x)
			case kinds && !slices.Contains([]string{"", "customer", "client", "stop", "delivery", "pickup", "job", "order"}, x.kind):
				return fmt.Errorf("%s: kind %s of %s is neither depot nor customer", x.where, quoteShort(printable(x.kind)), quoteShort(x.id))
			default:
				rest = append(rest, x)
			}
		}
		if len(depots) == 0 && len(rest) > 0 && t.customers != nil {
			if d := sum(rest[0].amounts); d != 0 {
				return fmt.Errorf("%s: the first row is the depot, and it has demand %g: expected 0", rest[0].where, d)
			}
			depots, rest = rest[:1:1], rest[1:]
		}
		for _, d := range depots {
			if sum(d.amounts) != 0 {
				return fmt.Errorf("%s: %s is a depot, and it has demand %g: expected 0", d.where, quoteShort(d.id), sum(d.amounts))
			}
		}
		t.count = len(depots)
		t.places = append(depots, rest...)
	}
	if t.count == 0 {
		return fmt.Errorf("%s: there is no depot: give a table of depots, or a row for it", t.name)
	}
	if len(t.places) <= t.count {
		return fmt.Errorf("%s: rows below the header: %d, expected a depot and at least one customer", t.name, len(t.places))
	}
	for i := range t.places {
		t.byID[t.places[i].id] = i
	}
	return nil
}

// calledDepot tells whether a row is called a depot.
func (t *tables) calledDepot(i int) bool {
	x := &t.places[i]
	return slices.Contains(depotWords, strings.ToLower(x.id)) || slices.Contains(depotWords, strings.ToLower(x.name))
}

func sum(amounts [2][]float64) (s float64) {
	for _, list := range amounts {
		for _, a := range list {
			s += a
		}
	}
	return s
}
