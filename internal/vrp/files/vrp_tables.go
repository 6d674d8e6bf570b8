package files

import (
	"strings"

	"haul/internal/vrp"
)

// The sections of PyVRP's dialect of VRPLIB that CVRPLIB does not have. What a reader could
// break: a row's first number is its place or vehicle, counted from 1, each once; the form fixes
// how many values follow, and a row with more or fewer is refused with its line.

// tableRow is a row of such a section: what it is about, and its values.
type tableRow struct {
	id, line int
	values   []float64
}

// tableForm says what the rows of a section are about and how many values each has; 0: any number.
type tableForm struct {
	of     string // node, vehicle or group
	values int
}

var tableSections = map[string]tableForm{
	"BACKHAUL_SECTION":                    {"node", 1},
	"TIME_WINDOW_SECTION":                 {"node", 2},
	"RELEASE_TIME_SECTION":                {"node", 1},
	"PRIZE_SECTION":                       {"node", 1},
	"PICKUP_AND_DELIVERY_SECTION":         {"node", 6},
	"MUTUALLY_EXCLUSIVE_GROUP_SECTION":    {"group", 0},
	"CAPACITY_SECTION":                    {"vehicle", 1},
	"VEHICLES_ALLOWED_CLIENTS_SECTION":    {"vehicle", 0},
	"VEHICLES_DEPOT_SECTION":              {"vehicle", 1},
	"VEHICLES_RELOAD_DEPOT_SECTION":       {"vehicle", 0},
	"VEHICLES_FIXED_COST_SECTION":         {"vehicle", 1},
	"VEHICLES_MAX_DISTANCE_SECTION":       {"vehicle", 1},
	"VEHICLES_MAX_DURATION_SECTION":       {"vehicle", 1},
	"VEHICLES_MAX_RELOADS_SECTION":        {"vehicle", 1},
	"VEHICLES_UNIT_DISTANCE_COST_SECTION": {"vehicle", 1},
}

// table reads the rows of such a section up to the next keyword.
func (v *vrpFile) table(key string, form tableForm) ([]tableRow, error) {
	var rows []tableRow
	first := map[int]int{}
	for v.next() && isData(v.text) {
		f := strings.Fields(v.text)
		if form.values > 0 && len(f) != form.values+1 {
			return nil, v.errorf(v.line, "%s: expected a %s and %d values, found %s", key, form.of, form.values, quoteShort(v.text))
		}
		r := tableRow{line: v.line, values: make([]float64, 0, len(f)-1)}
		var err error
		if r.id, err = parseInt(f[0]); err != nil {
			return nil, v.errorf(v.line, "%s: %s %s %v", key, form.of, quoteShort(f[0]), err)
		}
		if old, twice := first[r.id]; twice {
			return nil, v.errorf(v.line, "%s: %s %d is given twice, first on line %d", key, form.of, r.id, old)
		}
		first[r.id] = v.line
		for i, word := range f[1:] {
			x, err := parseWithin(word, 1<<53, "is too large")
			if err == nil && x < 0 && !(key == "PICKUP_AND_DELIVERY_SECTION" && i == 0) {
				return nil, v.errorf(v.line, "%s: %s of %s %d is negative", key, word, form.of, r.id)
			}
			if err != nil {
				return nil, v.errorf(v.line, "%s: %s of %s %d %v", key, quoteShort(word), form.of, r.id, err)
			}
			r.values = append(r.values, x)
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// byNode hands each row of a section to fill under our place's number; every node has one.
func (v *vrpFile) byNode(key string, order []int, fill func(node int, r tableRow) error) error {
	rows := v.tables[key]
	if line, ok := v.seen[key]; !ok {
		return nil
	} else if len(rows) != len(order)-1 {
		return v.errorf(line, "%s lists %d nodes: DIMENSION is %d", key, len(rows), len(order)-1)
	}
	for _, r := range rows {
		if r.id < 1 || r.id >= len(order) {
			return v.errorf(r.line, "%s: node %d is unknown: DIMENSION is %d", key, r.id, len(order)-1)
		}
		if err := fill(order[r.id], r); err != nil {
			return err
		}
	}
	return nil
}

// whole is a value of a row that must be an integer of 32 bits.
func (v *vrpFile) whole(key string, r tableRow, i int) (int32, error) {
	x := r.values[i]
	if x != float64(int32(x)) {
		return 0, v.errorf(r.line, "%s: %g is not an integer of 32 bits", key, x)
	}
	return int32(x), nil
}

// fillParts reads the optional parts that are told by node.
func (v *vrpFile) fillParts(p *vrp.Problem, order []int) error {
	n := len(p.Demand)
	if err := v.byNode("BACKHAUL_SECTION", order, func(node int, r tableRow) error {
		amount, err := v.whole("BACKHAUL_SECTION", r, 0)
		byPlace(&p.Pickup, n)[node] = amount
		return err
	}); err != nil {
		return err
	}
	if err := v.byNode("TIME_WINDOW_SECTION", order, func(node int, r tableRow) error {
		if r.values[1] < r.values[0] {
			return v.errorf(r.line, "TIME_WINDOW_SECTION: the window of node %d closes at %g, before it opens at %g", r.id, r.values[1], r.values[0])
		}
		byPlace(&p.Windows, n)[node] = []vrp.Window{{From: r.values[0], To: r.values[1]}}
		return nil
	}); err != nil {
		return err
	}
	if err := v.byNode("RELEASE_TIME_SECTION", order, func(node int, r tableRow) error {
		byPlace(&p.Release, n)[node] = r.values[0]
		return nil
	}); err != nil {
		return err
	}
	if f, ok := v.keys["RELEASE_TIME"]; ok {
		if line, both := v.seen["RELEASE_TIME_SECTION"]; both {
			return v.errorf(line, "RELEASE_TIME_SECTION contradicts RELEASE_TIME on line %d", f.line)
		}
		x, err := v.positiveOrZero("RELEASE_TIME")
		if err != nil {
			return err
		}
		for c := p.DepotCount(); c < n; c++ {
			byPlace(&p.Release, n)[c] = x
		}
	}
	if err := v.byNode("PRIZE_SECTION", order, func(node int, r tableRow) error {
		byPlace(&p.Prize, n)[node] = r.values[0]
		byPlace(&p.Optional, n)[node] = r.values[0] > 0
		return nil
	}); err != nil {
		return err
	}
	if err := v.fillGroups(p, order); err != nil {
		return err
	}
	return v.fillShipments(p, order)
}

// positiveOrZero is the value of a key that holds a number from 0 on.
func (v *vrpFile) positiveOrZero(key string) (float64, error) {
	f := v.keys[key]
	x, err := parseWithin(f.value, 1<<53, "is too large")
	if err == nil && x < 0 {
		return 0, v.errorf(f.line, "%s %s is negative", key, quoteShort(f.value))
	}
	if err != nil {
		return 0, v.errorf(f.line, "%s %s %v", key, quoteShort(f.value), err)
	}
	return x, nil
}

// lastSection is the section that stands behind all others.
func (v *vrpFile) lastSection() (last string) {
	for key, line := range v.seen {
		if line > v.seen[last] {
			last = key
		}
	}
	return last
}

// fillGroups reads groups, of each of which one customer is visited. A group of one is no choice:
// its customer stays required.
func (v *vrpFile) fillGroups(p *vrp.Problem, order []int) error {
	const key = "MUTUALLY_EXCLUSIVE_GROUP_SECTION"
	for _, r := range v.tables[key] {
		g := vrp.Group{Required: true}
		for _, x := range r.values {
			node := int(x)
			if float64(node) != x || node < 1 || node >= len(order) || order[node] < p.DepotCount() {
				return v.errorf(r.line, "%s: %g in group %d is no customer", key, x, r.id)
			}
			g.Members = append(g.Members, int32(order[node]))
		}
		if len(g.Members) > 1 {
			p.Groups = append(p.Groups, g)
		}
	}
	if v.tables[key] != nil && !v.ended && v.lastSection() == key {
		p.Notes = append(p.Notes, "no EOF behind "+key+": if the file was cut off, groups are missing")
	}
	return nil
}

// fillShipments reads the rows of shipments: amount, window, service, and the node of the other
// half, as the pickup's or as the delivery's.
func (v *vrpFile) fillShipments(p *vrp.Problem, order []int) error {
	const key = "PICKUP_AND_DELIVERY_SECTION"
	line, ok := v.seen[key]
	if !ok {
		return nil
	}
	if p.DepotCount() > 1 {
		return v.errorf(line, "not supported: %s with several depots", key)
	}
	for _, other := range []string{"DEMAND_SECTION", "TIME_WINDOW_SECTION", "SERVICE_TIME_SECTION", "BACKHAUL_SECTION"} {
		if at, both := v.seen[other]; both {
			return v.errorf(at, "%s beside %s on line %d: which of them holds is not said", other, key, line)
		}
	}
	n := len(p.Demand)
	rows := make([]tableRow, n)
	if err := v.byNode(key, order, func(node int, r tableRow) error {
		if r.values[2] < r.values[1] {
			return v.errorf(r.line, "%s: the window of node %d closes at %g, before it opens at %g", key, r.id, r.values[2], r.values[1])
		}
		byPlace(&p.Windows, n)[node] = []vrp.Window{{From: r.values[1], To: r.values[2]}}
		byPlace(&p.Service, n)[node] = r.values[3]
		rows[node] = r
		return nil
	}); err != nil {
		return err
	}
	if r := rows[0]; r.values[0] != 0 || r.values[4] != 0 || r.values[5] != 0 {
		return v.errorf(r.line, "%s: the depot has an amount of %g, the pickup %g and the delivery %g: expected 0, it ships nothing", key, r.values[0], r.values[4], r.values[5])
	}
	for node := 1; node < n; node++ {
		r := rows[node]
		from, to := r.values[4], r.values[5]
		if (from == 0) == (to == 0) {
			return v.errorf(r.line, "%s: node %d names %g as its pickup and %g as its delivery: expected one of them", key, r.id, from, to)
		}
		if to == 0 {
			continue
		}
		other := int(to)
		if float64(other) != to || other < 2 || other >= len(order) {
			return v.errorf(r.line, "%s: node %d is delivered at %g, which is no customer", key, r.id, to)
		}
		back := rows[order[other]]
		if back.values[4] != float64(r.id) || back.values[0] != -r.values[0] || r.values[0] < 0 {
			return v.errorf(r.line, "%s: the halves of a shipment contradict: node %d picks up %g for node %d, which takes %g from node %g",
				key, r.id, r.values[0], other, -back.values[0], back.values[4])
		}
		amount, err := v.whole(key, r, 0)
		if err != nil {
			return err
		}
		p.Shipments = append(p.Shipments, vrp.Shipment{Pickup: int32(node), Delivery: int32(order[other]), Amount: []int32{amount}})
	}
	if 2*len(p.Shipments) != n-1 {
		return v.errorf(line, "%s: %d shipments of %d customers: expected two customers each", key, len(p.Shipments), n-1)
	}
	return nil
}
