package files

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"haul/internal/vrp"
)

// From a file's sections to a Problem. What a reader could break: every section moves the depot
// to node 0 in the same order (see order), and the weights' format decides which cell a number
// fills.

func (v *vrpFile) problem(o Options) (*vrp.Problem, error) {
	dim, err := v.positive("DIMENSION")
	if err != nil {
		return nil, err
	}
	kind, err := v.kind()
	if err != nil {
		return nil, err
	}
	tour := kind == "TSP" || kind == "ATSP"
	capacity := -1
	if _, ok := v.keys["CAPACITY"]; ok || kind == "CVRP" && !v.hasFleet() {
		if capacity, err = v.positive("CAPACITY"); err != nil {
			return nil, err
		}
	}
	vehicles := 0
	if _, ok := v.keys["VEHICLES"]; ok {
		if vehicles, err = v.positive("VEHICLES"); err != nil {
			return nil, err
		}
	}
	if dim < 2 {
		return nil, v.errorf(v.keys["DIMENSION"].line, "DIMENSION is %d: expected a depot and at least one customer", dim)
	}
	metric, err := v.metric(o)
	if err != nil {
		return nil, err
	}
	if err := v.sections(metric, dim, kind); err != nil {
		return nil, err
	}
	order := v.order(dim)
	p := &vrp.Problem{Name: v.keys["NAME"].value, Comment: v.keys["COMMENT"].value,
		Capacity: int32(max(capacity, 0)), Metric: metric, Vehicles: vehicles, Open: kind == "OVRP" || kind == "OVRPTW"}
	if len(v.depots) > 1 {
		p.Depots = len(v.depots)
	}
	if kind == "VRPB" || kind == "VRPBTW" {
		p.Backhauls = vrp.LinehaulFirst
	}
	if tour && capacity < 0 {
		p.Capacity = anyCapacity
		p.Vehicles = max(p.Vehicles, 1)
	}
	if err := v.fillDemand(p, order); err != nil {
		return nil, err
	}
	coords, key := v.coords, "NODE_COORD_SECTION"
	if len(coords) == 0 {
		coords, key = v.display, "DISPLAY_DATA_SECTION"
	}
	if len(coords) > 0 {
		p.X, p.Y = make([]float64, dim), make([]float64, dim)
		err := v.place(key, coords, order, func(node int, r record) { p.X[node], p.Y[node] = r.x, r.y })
		if err != nil {
			return nil, err
		}
	}
	if metric == vrp.Explicit {
		if err := v.fillWeights(p, order); err != nil {
			return nil, err
		}
	}
	if err := v.fillDurations(p, order); err != nil {
		return nil, err
	}
	if err := v.fillParts(p, order); err != nil {
		return nil, err
	}
	if v.hasFleet() || capacity < 0 && !tour {
		if p.Open {
			return nil, v.errorf(v.keys["TYPE"].line, "not supported: TYPE %s with a fleet of different vehicles", kind)
		}
		p.Vehicles = 0
		if err := v.fillFleet(p, order, vehicles, capacity); err != nil {
			return nil, err
		}
	}
	settle(p)
	if err := p.Check(); err != nil {
		return nil, v.blame(err, slices.Concat(coords, v.demands), order)
	}
	return p, nil
}

// blame gives a fault of one place the line that first tells of it and the node's number there, and
// any other the end of the file.
func (v *vrpFile) blame(err error, told []record, order []int) error {
	if at := new(vrp.PlaceError); errors.As(err, &at) {
		for _, r := range told {
			if order[r.id] == at.Node {
				return v.errorf(r.line, "%s", strings.Replace(err.Error(), at.Called, fmt.Sprintf("%s (node %d)", at.Called, r.id), 1))
			}
		}
	}
	return v.errorf(v.line, "%v", err)
}

// fillDurations reads the limit of a route's duration and the service times, which are one number
// for all customers or a section.
func (v *vrpFile) fillDurations(p *vrp.Problem, order []int) error {
	if f, ok := v.keys["DISTANCE"]; ok {
		x, err := parseFloat(f.value)
		if err == nil && x <= 0 {
			err = fmt.Errorf("is not above 0")
		}
		if err != nil {
			return v.errorf(f.line, "DISTANCE %s %v", quoteShort(f.value), err)
		}
		p.MaxDuration = x
	}
	f, all := v.keys["SERVICE_TIME"]
	line, each := v.seen["SERVICE_TIME_SECTION"]
	if !all && !each {
		return nil
	}
	p.Service = make([]float64, len(p.Demand))
	if all {
		if each {
			return v.errorf(line, "SERVICE_TIME_SECTION contradicts SERVICE_TIME on line %d", f.line)
		}
		x, err := parseFloat(f.value)
		if err == nil && x < 0 {
			err = fmt.Errorf("is negative")
		}
		if err != nil {
			return v.errorf(f.line, "SERVICE_TIME %s %v", quoteShort(f.value), err)
		}
		for c := p.DepotCount(); c < len(p.Service); c++ {
			p.Service[c] = x
		}
		return nil
	}
	return v.place("SERVICE_TIME_SECTION", v.service, order, func(node int, r record) { p.Service[node] = r.x })
}

// positive is the value of a key that holds an integer of at least 1.
func (v *vrpFile) positive(key string) (int, error) {
	f, ok := v.keys[key]
	if !ok {
		return 0, v.errorf(v.line, "no %s", key)
	}
	n, err := parseInt(f.value)
	if err != nil {
		return 0, v.errorf(f.line, "%s %s %v", key, quoteShort(f.value), err)
	}
	if n < 1 {
		return 0, v.errorf(f.line, "%s is %d: expected at least 1", key, n)
	}
	return n, nil
}

// kind is the value of TYPE: a word that is known, up to what stands behind it.
func (v *vrpFile) kind() (string, error) {
	f, ok := v.keys["TYPE"]
	if !ok {
		return "", v.errorf(v.line, "no TYPE")
	}
	word, _, _ := strings.Cut(f.value, " ")
	if !slices.Contains(kinds, word) {
		return "", v.errorf(f.line, "not supported: TYPE %s (only %s)", quoteShort(f.value), strings.Join(kinds, ", "))
	}
	return word, nil
}

// metric reads the keys that say what kind of problem it is and how distances are made.
func (v *vrpFile) metric(o Options) (vrp.Metric, error) {
	if _, ok := v.keys["EDGE_WEIGHT_TYPE"]; !ok {
		return 0, v.errorf(v.line, "no EDGE_WEIGHT_TYPE")
	}
	switch f := v.keys["NODE_COORD_TYPE"]; f.value {
	case "", "TWOD_COORDS", "NO_COORDS":
	default:
		return 0, v.errorf(f.line, "not supported: NODE_COORD_TYPE %s", quoteShort(f.value))
	}
	f := v.keys["EDGE_WEIGHT_TYPE"]
	switch f.value {
	case "EUC_2D", "CEIL_2D", "FLOOR_2D", "GEO", "ATT":
		if line, ok := v.seen["EDGE_WEIGHT_SECTION"]; ok {
			return 0, v.errorf(line, "EDGE_WEIGHT_SECTION contradicts EDGE_WEIGHT_TYPE %s on line %d", f.value, f.line)
		}
		switch f.value {
		case "CEIL_2D":
			return o.Distance.metric(vrp.Ceil), nil
		case "FLOOR_2D":
			return o.Distance.metric(vrp.Trunc), nil
		case "GEO":
			return vrp.Geo, nil
		case "ATT":
			return vrp.Att, nil
		}
		return o.Distance.metric(vrp.Rounded), nil
	case "EXPLICIT":
		return vrp.Explicit, nil
	}
	return 0, v.errorf(f.line, "not supported: EDGE_WEIGHT_TYPE %s (only EUC_2D, CEIL_2D, FLOOR_2D, GEO, ATT, EXPLICIT)", quoteShort(f.value))
}

// sections checks that every section needed is there and holds a record per node. A CVRP states its
// demands and its depot; for others the depot is node 1 where none is stated, and who states no
// demand has none.
func (v *vrpFile) sections(metric vrp.Metric, dim int, kind string) error {
	needed := []string{"NODE_COORD_SECTION"}
	if kind == "CVRP" {
		needed = append(needed, "DEMAND_SECTION", "DEPOT_SECTION")
	}
	if metric == vrp.Explicit {
		needed[0] = "EDGE_WEIGHT_SECTION"
	}
	for _, s := range []struct {
		key  string
		list []record
	}{{"NODE_COORD_SECTION", v.coords}, {"DISPLAY_DATA_SECTION", v.display}, {"DEMAND_SECTION", v.demands}, {"SERVICE_TIME_SECTION", v.service}} {
		line, ok := v.seen[s.key]
		switch {
		case !ok || len(s.list) == dim:
		case v.cut == s.key && len(s.list) < dim:
			return v.errorf(v.line, "the file ends inside %s: %d of %d nodes", s.key, len(s.list), dim)
		default:
			return v.errorf(v.keys["DIMENSION"].line, "DIMENSION is %d but %s on line %d lists %d nodes", dim, s.key, line, len(s.list))
		}
	}
	for _, key := range needed {
		if _, ok := v.seen[key]; !ok {
			return v.errorf(v.line, "no %s", key)
		}
	}
	if _, ok := v.seen["DEMAND_SECTION"]; !ok && metric == vrp.Explicit && len(v.weights)/dim < (dim-1)/2 {
		return v.errorf(v.seen["EDGE_WEIGHT_SECTION"], "EDGE_WEIGHT_SECTION has %d distances, too few for DIMENSION %d", len(v.weights), dim)
	}
	if line, ok := v.seen["DEPOT_SECTION"]; !ok {
		v.depots = []record{{id: 1, line: v.line}}
	} else if len(v.depots) == 0 {
		return v.errorf(line, "DEPOT_SECTION names no depot")
	}
	if len(v.depots) >= dim {
		return v.errorf(v.depots[0].line, "%d depots of %d nodes: expected a customer", len(v.depots), dim)
	}
	for i, d := range v.depots {
		if d.id < 1 || d.id > dim {
			return v.errorf(d.line, "depot %d is not a node: DIMENSION is %d", d.id, dim)
		}
		if len(v.depots) > 1 && d.id != i+1 {
			return v.errorf(d.line, "depot %d: several depots are the nodes 1 to %d, in order", d.id, len(v.depots))
		}
	}
	return nil
}

// order maps the file's node numbers to ours: the depot is 0, the others follow in turn. Called
// once sections found dim coordinates, demands or distances, so its size is bounded by the file's.
func (v *vrpFile) order(dim int) []int {
	order := make([]int, dim+1)
	if len(v.depots) > 1 { // the first nodes
		for id := range order {
			order[id] = id - 1
		}
		return order
	}
	depot := v.depots[0].id
	for id := 1; id <= dim; id++ {
		switch {
		case id < depot:
			order[id] = id
		case id > depot:
			order[id] = id - 1
		}
	}
	return order
}

// place hands each record of a section to fill under our node number, each node once.
func (v *vrpFile) place(key string, list []record, order []int, fill func(int, record)) error {
	first := make([]int, len(order))
	for _, r := range list {
		if r.id < 1 || r.id >= len(order) {
			return v.errorf(r.line, "%s: node %d is unknown: DIMENSION is %d", key, r.id, len(order)-1)
		}
		if first[r.id] != 0 {
			return v.errorf(r.line, "%s: node %d is given twice, first on line %d", key, r.id, first[r.id])
		}
		first[r.id] = r.line
		fill(order[r.id], r)
	}
	return nil
}

func (v *vrpFile) fillDemand(p *vrp.Problem, order []int) error {
	p.Demand = make([]int32, len(order)-1)
	err := v.place("DEMAND_SECTION", v.demands, order, func(node int, r record) { p.Demand[node] = int32(r.x) })
	if err != nil {
		return err
	}
	for _, r := range v.demands {
		node, d := order[r.id], int32(r.x)
		if node < p.DepotCount() && d != 0 {
			return v.errorf(r.line, "the depot (node %d) has demand %d: expected 0", r.id, d)
		}
		if d > p.Capacity && p.Capacity > 0 {
			return v.errorf(r.line, "demand %d of customer %d (node %d) is over the capacity %d", d, node, r.id, p.Capacity)
		}
	}
	return nil
}

// fillWeights spreads the numbers over the matrix as EDGE_WEIGHT_FORMAT says.
func (v *vrpFile) fillWeights(p *vrp.Problem, order []int) error {
	f, ok := v.keys["EDGE_WEIGHT_FORMAT"]
	if !ok {
		return v.errorf(v.keys["EDGE_WEIGHT_TYPE"].line, "EDGE_WEIGHT_TYPE EXPLICIT needs an EDGE_WEIGHT_FORMAT")
	}
	// LOWER_ROW is taken at its word in set E's files too (E-n13-k4, E-n31-k7): their numbers look
	// like a triangle by columns, but CVRPLIB's optimum, 247 for E-n13-k4, is that of the rows.
	n := len(order) - 1
	// A lower triangle by columns is the upper one by rows with the indices exchanged, and the
	// distances are then the same both ways.
	var from func(i int) (lo, hi int)
	size := n * (n - 1) / 2
	switch f.value {
	case "FULL_MATRIX":
		from, size = func(int) (int, int) { return 0, n }, n*n
	case "UPPER_ROW", "LOWER_COL":
		from = func(i int) (int, int) { return i + 1, n }
	case "UPPER_DIAG_ROW", "LOWER_DIAG_COL":
		from, size = func(i int) (int, int) { return i, n }, size+n
	case "LOWER_ROW", "UPPER_COL":
		from = func(i int) (int, int) { return 0, i }
	case "LOWER_DIAG_ROW", "UPPER_DIAG_COL":
		from, size = func(i int) (int, int) { return 0, i + 1 }, size+n
	default:
		return v.errorf(f.line, "not supported: EDGE_WEIGHT_FORMAT %s", quoteShort(f.value))
	}
	switch line := v.seen["EDGE_WEIGHT_SECTION"]; {
	case len(v.weights) == size:
	case v.cut == "EDGE_WEIGHT_SECTION" && len(v.weights) < size:
		return v.errorf(v.line, "the file ends inside EDGE_WEIGHT_SECTION: %d of %d distances", len(v.weights), size)
	default:
		return v.errorf(line, "EDGE_WEIGHT_SECTION has %d distances: %s with DIMENSION %d takes %d", len(v.weights), f.value, n, size)
	}
	p.Weights = make([]float64, n*n)
	next := 0
	for i := range n {
		lo, hi := from(i)
		for j := lo; j < hi; j++ {
			a, b, w := order[i+1], order[j+1], v.weights[next]
			next++
			p.Weights[a*n+b] = w
			if f.value != "FULL_MATRIX" {
				p.Weights[b*n+a] = w
			}
		}
	}
	return nil
}
