package files

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"haul/internal/vrp"
)

// Problems as tables. What a reader could break: what a table cannot express is refused by name,
// and a written table is read back as the same problem.

// outSheet is a table to be written.
type outSheet struct {
	title string
	rows  [][]string
}

// WriteTable writes a problem of one table: places, whose depot comes first. What it does not say
// (capacity, speed) is the reader's to give.
func WriteTable(w io.Writer, p *vrp.Problem) error {
	if p.Fleet != nil || p.Profiles != nil || p.Metric == vrp.Explicit || p.LIFO || p.Vehicles > 0 || p.MaxDuration > 0 || p.Open || p.Backhauls != vrp.Mixed || p.Objective != vrp.MinCost {
		return errors.New("one table does not say all of it: vehicle types, limits of routes, matrices and rules need a spreadsheet (.xlsx) or .json")
	}
	all, err := sheetsOf(p)
	if err != nil {
		return err
	}
	for _, s := range all {
		if s.title != "customers" && s.title != "settings" {
			return fmt.Errorf("one table does not say all of it: its %s need a spreadsheet (.xlsx) or .json", s.title)
		}
	}
	out := csv.NewWriter(w)
	_ = out.WriteAll(all[0].rows) // Error tells
	return out.Error()
}

// sheetsOf are the tables of a problem: customers first.
func sheetsOf(p *vrp.Problem) ([]outSheet, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	switch {
	case len(p.Profiles) > 1:
		return nil, errors.New("a table has one matrix of distances and one of durations, and the problem has several profiles")
	case p.Metric != vrp.Exact && p.Metric != vrp.GreatCircle && p.Metric != vrp.Explicit:
		return nil, fmt.Errorf("a table's distances are exact, and these are %s: write .vrp or .json", metrics[p.Metric])
	case p.Clock != 0 && p.Clock != 1 && p.Clock != 60 && p.Clock != 1.0/60:
		return nil, fmt.Errorf("a minute has %g units of time: a table knows minutes, seconds and hours", p.Clock)
	}
	if c := p.Amount(0, int64(p.Capacity)); p.Fleet == nil && c != math.Trunc(c) {
		return nil, fmt.Errorf("a table's capacity is a whole number, and this one is %g", c)
	}
	places, err := placesOf(p)
	if err != nil {
		return nil, err
	}
	out := []outSheet{{"customers", places}}
	if p.Fleet != nil {
		rows, err := vehiclesOf(p)
		if err != nil {
			return nil, err
		}
		out = append(out, outSheet{"vehicles", rows})
	}
	if p.Shipments != nil {
		if p.Dimensions != nil {
			return nil, errors.New("a table's shipments have one kind of load, and these have several")
		}
		rows := [][]string{{"pickup", "delivery", "amount"}}
		for _, s := range p.Shipments {
			if len(s.Amount) == 0 || s.Amount[0] == 0 {
				return nil, errors.New("a table's shipments have amounts above 0, and one of these has none")
			}
			rows = append(rows, []string{p.ID(int(s.Pickup)), p.ID(int(s.Delivery)), number(p.Amount(0, int64(s.Amount[0])))})
		}
		out = append(out, outSheet{"shipments", rows})
	}
	if p.Metric == vrp.Explicit || p.Profiles != nil {
		distance, duration := p.Weights, []float64(nil)
		if p.Profiles != nil {
			distance, duration = p.Profiles[0].Distance, p.Profiles[0].Duration
		}
		out = append(out, outSheet{"distances", matrixRows(p, distance)})
		if duration != nil {
			out = append(out, outSheet{"durations", matrixRows(p, duration)})
		}
	}
	if rows := settingsOf(p); rows != nil {
		out = append(out, outSheet{"settings", append([][]string{{"setting", "value"}}, rows...)})
	}
	return out, nil
}

func matrixRows(p *vrp.Problem, m []float64) [][]string {
	n := len(p.Demand)
	rows := [][]string{{"from"}}
	for i := range n {
		rows[0] = append(rows[0], p.ID(i))
		row := []string{p.ID(i)}
		for j := range n {
			row = append(row, number(m[i*n+j]))
		}
		rows = append(rows, row)
	}
	return rows
}

// clockText is a point in time as a table has it: 08:30:00 where times are those of a day.
func clockText(p *vrp.Problem, x float64) string {
	if p.Clock > 0 {
		seconds := x / p.Clock * 60
		if whole := math.Round(seconds); math.Abs(whole-seconds) < 1e-9 && whole >= 0 && whole < 100*3600 {
			s := int(whole)
			return fmt.Sprintf("%02d:%02d:%02d", s/3600, s/60%60, s%60)
		}
	}
	return number(x)
}

// placesOf is the table of depots and customers.
func placesOf(p *vrp.Problem) ([][]string, error) {
	n := len(p.Demand)
	type col struct {
		name string
		cell func(v int) string
	}
	var cols []col
	add := func(has bool, name string, cell func(v int) string) {
		if has {
			cols = append(cols, col{name, cell})
		}
	}
	ids := map[string]bool{}
	for v := range n {
		id := p.ID(v)
		if ids[id] || id != strings.TrimSpace(id) || id == "" {
			return nil, fmt.Errorf("a table's ids differ and are not empty, and %s does not", quoteShort(id))
		}
		ids[id] = true
	}
	nonzero := func(x float64) string {
		if x == 0 {
			return ""
		}
		return number(x)
	}
	add(true, "id", p.ID)
	add(p.Names != nil, "name", p.Called)
	// Who is the depot is told where it is not the first row alone, or a later row is called so.
	called := func(v int) bool {
		return slices.Contains(depotWords, strings.ToLower(p.ID(v))) || slices.Contains(depotWords, strings.ToLower(p.Called(v)))
	}
	kinds := p.DepotCount() > 1
	for v := 1; v < n; v++ {
		kinds = kinds || called(v)
	}
	add(kinds, "kind", func(v int) string { return map[bool]string{true: "depot", false: "customer"}[v < p.DepotCount()] })
	if p.X != nil {
		x, y := "x", "y"
		if p.Metric == vrp.GreatCircle {
			x, y = "lon", "lat"
		}
		add(true, x, func(v int) string { return strconv.FormatFloat(p.X[v], 'f', -1, 64) })
		add(true, y, func(v int) string { return strconv.FormatFloat(p.Y[v], 'f', -1, 64) })
	}
	for d := range 1 + len(p.Dimensions) {
		deliver, pick, suffix := p.Demand, p.Pickup, ""
		if d > 0 {
			deliver, pick = p.Dimensions[d-1].Delivery, p.Dimensions[d-1].Pickup
			if suffix = "_" + p.Dimensions[d-1].Name; suffix != "_"+spelled(suffix[1:]) || suffix == "_" {
				return nil, fmt.Errorf("dimension %s has no name that a column could have", quoteShort(p.Dimensions[d-1].Name))
			}
		}
		amount := func(list []int32) func(v int) string {
			return func(v int) string {
				if list == nil || v < p.DepotCount() {
					return ""
				}
				return number(p.Amount(d, int64(list[v])))
			}
		}
		add(true, "demand"+suffix, func(v int) string {
			if deliver == nil && v >= p.DepotCount() {
				return "0"
			}
			return amount(deliver)(v)
		})
		add(pick != nil, "pickup"+suffix, amount(pick))
	}
	several := slices.ContainsFunc(p.Windows, func(list []vrp.Window) bool {
		return len(list) > 1 || slices.ContainsFunc(list, func(w vrp.Window) bool { return math.IsInf(w.To, 1) && w.From == 0 })
	})
	span := func(w vrp.Window) string { return clockText(p, w.From) + "-" + clockText(p, w.To) }
	add(several, "windows", func(v int) string {
		var list []string
		for _, w := range p.Windows[v] {
			if math.IsInf(w.To, 1) {
				w.To = 1e9
			}
			list = append(list, span(w))
		}
		return strings.Join(list, " ")
	})
	if several {
		for _, list := range p.Windows {
			for _, w := range list {
				if math.IsInf(w.To, 1) {
					return nil, errors.New("a table's list of windows has ends, and one of these has none")
				}
			}
		}
	}
	windows := p.Windows != nil && !several
	add(windows, "ready", func(v int) string {
		if len(p.Windows[v]) == 0 {
			return ""
		}
		return clockText(p, p.Windows[v][0].From)
	})
	add(windows, "due", func(v int) string {
		if len(p.Windows[v]) == 0 || math.IsInf(p.Windows[v][0].To, 1) {
			return ""
		}
		return clockText(p, p.Windows[v][0].To)
	})
	for _, part := range []struct {
		name string
		list []float64
	}{{"service", p.Service}, {"setup", p.Setup}, {"release", p.Release}, {"late_cost", p.Late}} {
		add(part.list != nil, part.name, func(v int) string { return nonzero(part.list[v]) })
	}
	optional := func(v int) bool { return p.Optional != nil && p.Optional[v] }
	add(p.Prize != nil, "prize", func(v int) string {
		if optional(v) {
			return number(p.Prize[v])
		}
		return nonzero(p.Prize[v])
	})
	add(p.Optional != nil && p.Prize == nil, "optional", func(v int) string { return map[bool]string{true: "yes", false: ""}[optional(v)] })
	if p.Prize != nil {
		for v := range n {
			if p.Prize[v] != 0 && !optional(v) {
				return nil, errors.New("a table's prizes are those of optional customers, and a required one has a prize")
			}
		}
	}
	add(p.Needs != nil, "skills", func(v int) string { return words(p.Needs[v]) })
	add(p.Priority != nil, "priority", func(v int) string { return nonzero(float64(p.Priority[v])) })
	if p.Groups != nil {
		of := make([]string, n)
		for i, g := range p.Groups {
			name := g.Name
			if name == "" {
				name = itoa(i + 1)
			}
			if !g.Required {
				return nil, errors.New("a table's groups are required, and one of these is not")
			}
			for _, v := range g.Members {
				if of[v] != "" {
					return nil, fmt.Errorf("a table gives a customer one group, and %s has two", quoteShort(p.ID(int(v))))
				}
				of[v] = name
			}
		}
		add(true, "group", func(v int) string { return of[v] })
	}
	rows := [][]string{{}}
	for _, c := range cols {
		rows[0] = append(rows[0], c.name)
	}
	for v := range n {
		var row []string
		for _, c := range cols {
			row = append(row, c.cell(v))
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func words(list []int32) string {
	var out []string
	for _, x := range list {
		out = append(out, itoa(int(x)))
	}
	return strings.Join(out, " ")
}

// vehiclesOf is the table of vehicle types.
func vehiclesOf(p *vrp.Problem) ([][]string, error) {
	rows := [][]string{{"name", "count"}}
	for d := range 1 + len(p.Dimensions) {
		if p.Fleet[0].Capacity != nil {
			rows[0] = append(rows[0], "capacity"+columnSuffix(p, d))
		}
		rows[0] = append(rows[0], "initial_load"+columnSuffix(p, d))
	}
	rows[0] = append(rows[0], "start", "end", "shift_start", "shift_end", "latest_start", "max_duration", "max_distance", "max_stops", "fixed_cost", "distance_cost", "duration_cost",
		"skills", "allowed", "reloads", "max_reloads", "break", "break_duration")
	limit := func(x float64, say func(float64) string) string {
		if math.IsInf(x, 1) {
			return ""
		}
		return say(x)
	}
	nonzero := func(x float64) string {
		if x == 0 {
			return ""
		}
		return number(x)
	}
	clock := func(x float64) string { return clockText(p, x) }
	depot := func(d int) string {
		if d == vrp.None {
			return "none"
		}
		return p.ID(d)
	}
	next := int32(0)
	for i, t := range p.Fleet {
		fail := func(what string) ([][]string, error) {
			return nil, fmt.Errorf("a table does not say %s, which vehicle type %d has", what, i)
		}
		count := itoa(t.Count)
		if t.Count == 0 {
			count = ""
		}
		for _, k := range t.Numbers {
			if k != next {
				return fail("the order of single vehicles")
			}
			next++
		}
		row := []string{t.Name, count}
		for d := range 1 + len(p.Dimensions) {
			if (t.Capacity == nil) != (p.Fleet[0].Capacity == nil) {
				return fail("no limit of its load beside others")
			}
			if t.Capacity != nil {
				row = append(row, number(p.Amount(d, int64(t.Capacity[d]))))
			}
			initial := ""
			if t.InitialLoad != nil {
				initial = number(p.Amount(d, int64(t.InitialLoad[d])))
			}
			row = append(row, initial)
		}
		if t.Profile != 0 {
			return fail("a profile")
		}
		var from string
		if t.Shift.From != 0 {
			from = clock(t.Shift.From)
		}
		var allowed, reloads, breaks []string
		for _, v := range t.Allowed {
			allowed = append(allowed, p.ID(int(v)))
		}
		for _, d := range t.Reloads {
			reloads = append(reloads, p.ID(d))
		}
		for _, list := range [][]string{allowed, reloads} {
			if slices.ContainsFunc(list, func(id string) bool { return strings.ContainsAny(id, "|;,") }) {
				return fail("ids with commas in a list")
			}
		}
		if t.Allowed != nil && allowed == nil || t.Reloads != nil && reloads == nil {
			return fail("an empty list")
		}
		rest := 0.0
		for k, b := range t.Breaks {
			if len(b.Windows) != 1 || b.MaxLoad != nil || k > 0 && b.Duration != rest || math.IsInf(b.Windows[0].To, 1) {
				return fail("breaks with several windows, limits of load or different lengths")
			}
			rest = b.Duration
			breaks = append(breaks, clock(b.Windows[0].From)+"-"+clock(b.Windows[0].To))
		}
		cost, lasting := "", ""
		if t.Breaks != nil {
			lasting = number(rest)
		}
		if t.DistanceCost != 1 {
			cost = number(t.DistanceCost)
		}
		stops, reload := nonzero(float64(t.MaxStops)), nonzero(float64(t.MaxReloads))
		rows = append(rows, append(row, depot(t.Start), depot(t.End), from, limit(t.Shift.To, clock), limit(t.LatestStart, clock), limit(t.MaxDuration, number), limit(t.MaxDistance, number),
			stops, nonzero(t.FixedCost), cost, nonzero(t.DurationCost), words(t.Skills), strings.Join(allowed, "|"), strings.Join(reloads, "|"), reload, strings.Join(breaks, " "), lasting))
	}
	return rows, nil
}

func columnSuffix(p *vrp.Problem, d int) string {
	if d == 0 {
		return ""
	}
	return "_" + p.Dimensions[d-1].Name
}
