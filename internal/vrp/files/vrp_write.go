package files

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"haul/internal/vrp"
)

// Writing .vrp files: CVRPLIB's and PyVRP's dialect. What a reader could break: a written file
// is read back as an equal problem. The format cannot express distances that are unrounded or
// rounded to a fraction: they are written as EUC_2D and read back with ExactDistance or
// DimacsDistance.

// WriteProblem writes a problem as a .vrp file, the depots as its first nodes. Explicit distances
// go out as UPPER_ROW if they are the same both ways, else as FULL_MATRIX. What the format has no
// word for is refused.
func WriteProblem(w io.Writer, p *vrp.Problem) error {
	if err := p.Check(); err != nil {
		return fmt.Errorf("write problem: %w", err)
	}
	if strings.Contains(p.Name+p.Comment, "\n") {
		return fmt.Errorf("write problem: the name or the comment holds a line break")
	}
	if p.Metric == vrp.GreatCircle {
		return fmt.Errorf("write problem: the format has no word for great-circle distances")
	}
	if err := expressible(p); err != nil {
		return fmt.Errorf("write problem: the format has no word for it: %w", err)
	}
	b := bufio.NewWriter(w)
	n := len(p.Demand)
	fmt.Fprintf(b, "NAME : %s\nCOMMENT : %s\nTYPE : %s\nDIMENSION : %d\n", quoteIfNeeded(p.Name), quoteIfNeeded(p.Comment), typeWord(p), n)
	coords := "NODE_COORD_SECTION"
	switch p.Metric {
	case vrp.Explicit:
		writeFormat(b, p)
		coords = "DISPLAY_DATA_SECTION"
	case vrp.Ceil:
		b.WriteString("EDGE_WEIGHT_TYPE : CEIL_2D\n")
	case vrp.Trunc:
		b.WriteString("EDGE_WEIGHT_TYPE : FLOOR_2D\n")
	case vrp.Geo:
		b.WriteString("EDGE_WEIGHT_TYPE : GEO\n")
	case vrp.Att:
		b.WriteString("EDGE_WEIGHT_TYPE : ATT\n")
	default:
		b.WriteString("EDGE_WEIGHT_TYPE : EUC_2D\n")
	}
	if p.Fleet == nil {
		fmt.Fprintf(b, "CAPACITY : %d\n", p.Capacity)
	}
	if p.Vehicles > 0 {
		fmt.Fprintf(b, "VEHICLES : %d\n", p.Vehicles)
	}
	if p.MaxDuration > 0 {
		fmt.Fprintf(b, "DISTANCE : %s\n", strconv.FormatFloat(p.MaxDuration, 'f', -1, 64))
	}
	if p.Metric == vrp.Explicit {
		writeWeights(b, p)
	}
	var num []byte
	if p.X != nil {
		b.WriteString(coords + "\n")
		for i := range n {
			num = append(strconv.AppendInt(num[:0], int64(i+1), 10), '\t')
			num = append(strconv.AppendFloat(num, p.X[i], 'f', -1, 64), '\t')
			b.Write(append(strconv.AppendFloat(num, p.Y[i], 'f', -1, 64), '\n'))
		}
	}
	if p.Shipments == nil {
		b.WriteString("DEMAND_SECTION\n")
		for i, d := range p.Demand {
			num = append(strconv.AppendInt(num[:0], int64(i+1), 10), '\t')
			b.Write(append(strconv.AppendInt(num, int64(d), 10), '\n'))
		}
		if p.Service != nil {
			b.WriteString("SERVICE_TIME_SECTION\n")
			for i, s := range p.Service {
				fmt.Fprintf(b, "%d\t%s\n", i+1, strconv.FormatFloat(s, 'f', -1, 64))
			}
		}
	}
	writeParts(b, p)
	writeFleet(b, p)
	b.WriteString("DEPOT_SECTION\n")
	for d := range p.DepotCount() {
		fmt.Fprintf(b, "\t%d\n", d+1)
	}
	b.WriteString("\t-1\nEOF\n")
	return b.Flush()
}

func writeFormat(b *bufio.Writer, p *vrp.Problem) {
	format, display := "FULL_MATRIX", "NO_DISPLAY"
	if upperOnly(p) {
		format = "UPPER_ROW"
	}
	if p.X != nil {
		display = "TWOD_DISPLAY"
	}
	fmt.Fprintf(b, "EDGE_WEIGHT_TYPE : EXPLICIT\nEDGE_WEIGHT_FORMAT : %s\nDISPLAY_DATA_TYPE : %s\n", format, display)
}

// upperOnly tells whether the upper triangle without its diagonal holds all there is.
func upperOnly(p *vrp.Problem) bool {
	n := len(p.Demand)
	for i := range n {
		if p.Weights[i*n+i] != 0 {
			return false
		}
		for j := range i {
			if p.Weights[i*n+j] != p.Weights[j*n+i] {
				return false
			}
		}
	}
	return true
}

func writeWeights(b *bufio.Writer, p *vrp.Problem) {
	b.WriteString("EDGE_WEIGHT_SECTION\n")
	n, upper := len(p.Demand), upperOnly(p)
	var num []byte
	for i := range n {
		from := 0
		if upper {
			from = i + 1
		}
		for j := from; j < n; j++ {
			num = strconv.AppendFloat(num[:0], p.Weights[i*n+j], 'f', -1, 64)
			b.Write(append(num, ' '))
		}
		b.WriteByte('\n')
	}
}

// quoteIfNeeded keeps spaces at a value's ends, and quotes of its own, through a reading.
func quoteIfNeeded(s string) string {
	if s != strings.TrimSpace(s) || s != unquote(s) {
		return `"` + s + `"`
	}
	return s
}

// Sections of PyVRP's dialect. What a reader could break: a section lists every node or every
// vehicle. A constraint that only some of them have is written if a value for the others means
// the same, and refused otherwise.

// expressible says what of a problem the format cannot say.
func expressible(p *vrp.Problem) error {
	if err := p.Only("several depots", "a fleet of its own", "pickups", "time windows", "release times", "optional customers", "groups", "shipments", "backhauls last"); err != nil {
		return err
	}
	for v, list := range p.Windows {
		if len(list) != 1 || math.IsInf(list[0].To, 1) {
			return fmt.Errorf("place %d has %d windows, or one without an end: the format has one with both ends for every place", v, len(list))
		}
	}
	for v := range p.Optional {
		if p.Optional[v] != (p.Prize != nil && p.Prize[v] > 0) {
			return fmt.Errorf("customer %d is optional without a prize, or required with one", v)
		}
	}
	if p.Prize != nil && p.Optional == nil {
		return errors.New("required customers have prizes")
	}
	for _, g := range p.Groups {
		if !g.Required || g.Name != "" || len(g.Members) < 2 {
			return errors.New("a group has a name, need not be visited or has one member")
		}
	}
	switch {
	case p.Backhauls == vrp.BackhaulsLast || p.Backhauls == vrp.LinehaulFirst && p.Pickup == nil:
		return errors.New("routes of pickups alone are allowed, and linehauls come first")
	case p.Depots > 1 && p.Fleet == nil:
		return errors.New("it has several depots and no vehicles that say which is theirs")
	case p.LIFO:
		return errors.New("what was picked up last is delivered first")
	case p.Open && p.Fleet != nil:
		return errors.New("its routes are open, and its vehicles differ")
	}
	if p.Shipments != nil {
		if p.DepotCount() > 1 || 2*len(p.Shipments) != p.N() || p.Windows == nil || p.Service == nil || p.Pickup != nil {
			return errors.New("its shipments are not all there is: the format has them with windows and services for every customer")
		}
		for _, d := range p.Demand {
			if d != 0 {
				return errors.New("it has shipments and demands")
			}
		}
	}
	return expressibleFleet(p)
}

func expressibleFleet(p *vrp.Problem) error {
	limited := func(f func(t *vrp.VehicleType) bool) (some, all bool) {
		all = true
		for i := range p.Fleet {
			x := f(&p.Fleet[i])
			some, all = some || x, all && x
		}
		return some, all
	}
	total := int64(0)
	for i, t := range p.Fleet {
		if total += int64(t.Count); total > mostVehicles {
			return fmt.Errorf("its %d vehicles are a row each: expected %d at most", total, mostVehicles)
		}
		same := vrp.NewVehicleType(t.Capacity...)
		if t.Count == 0 || t.Start != t.End || t.Start == vrp.None || len(t.Capacity) != 1 || t.Shift != same.Shift || t.LatestStart != same.LatestStart || t.MaxStops != 0 || t.DurationCost != 0 ||
			t.Profile != 0 || t.Skills != nil || t.Breaks != nil || t.InitialLoad != nil || t.Name != "" {
			return fmt.Errorf("vehicle type %d has a name, no count, a shift, skills, breaks or another part that the format does not know", i)
		}
		if t.Allowed != nil && (len(t.Allowed) == 0 || len(t.Allowed) == p.N()) {
			return fmt.Errorf("vehicle type %d has an empty or a full list of customers", i)
		}
	}
	for what, f := range map[string]func(t *vrp.VehicleType) bool{
		"a limit of distance": func(t *vrp.VehicleType) bool { return !math.IsInf(t.MaxDistance, 1) },
		"a limit of duration": func(t *vrp.VehicleType) bool { return !math.IsInf(t.MaxDuration, 1) },
	} {
		if some, all := limited(f); some != all && p.Fleet != nil {
			return fmt.Errorf("some vehicles have %s and others none", what)
		}
	}
	some, all := limited(func(t *vrp.VehicleType) bool { return t.Reloads != nil })
	counted, _ := limited(func(t *vrp.VehicleType) bool { return t.MaxReloads > 0 })
	for i, t := range p.Fleet {
		if t.Reloads != nil && (len(t.Reloads) == 0 || t.MaxReloads == 0 && (counted || some && !all)) || t.Reloads == nil && t.MaxReloads != 0 {
			return fmt.Errorf("vehicle type %d reloads any number of times, and others do not", i)
		}
	}
	return nil
}

// typeWord is the TYPE that tells the order of pickups, and open routes.
func typeWord(p *vrp.Problem) string {
	timed := p.Windows != nil
	switch {
	case p.Shipments != nil:
		return "PDPTW"
	case p.Backhauls == vrp.LinehaulFirst && timed:
		return "VRPBTW"
	case p.Backhauls == vrp.LinehaulFirst:
		return "VRPB"
	case p.Open && timed:
		return "OVRPTW"
	case p.Open:
		return "OVRP"
	case p.Pickup != nil && timed:
		return "VRPSPDTW"
	case p.Pickup != nil:
		return "VRPSPD"
	case p.Prize != nil && timed:
		return "PCVRPTW"
	case p.Prize != nil:
		return "PCVRP"
	case p.Groups != nil:
		return "GVRP"
	case p.Depots > 1:
		return "MDVRP"
	case p.Fleet != nil:
		return "HFVRP"
	case timed:
		return "VRPTW"
	}
	return "CVRP"
}

// writeParts writes what is told by node.
func writeParts(b *bufio.Writer, p *vrp.Problem) {
	section := func(has bool, name string, row func(v int) string) {
		if !has {
			return
		}
		fmt.Fprintf(b, "%s_SECTION\n", name)
		for v := range p.Demand {
			fmt.Fprintf(b, "%d\t%s\n", v+1, row(v))
		}
	}
	of := func(list []float64) func(v int) string { return func(v int) string { return number(list[v]) } }
	window := func(v int) string { return number(p.Windows[v][0].From) + "\t" + number(p.Windows[v][0].To) }
	section(p.Pickup != nil, "BACKHAUL", func(v int) string { return itoa(int(p.Pickup[v])) })
	section(p.Windows != nil && p.Shipments == nil, "TIME_WINDOW", window)
	section(p.Release != nil, "RELEASE_TIME", of(p.Release))
	section(p.Prize != nil, "PRIZE", of(p.Prize))
	if p.Groups != nil {
		b.WriteString("MUTUALLY_EXCLUSIVE_GROUP_SECTION\n")
		for i, g := range p.Groups {
			fmt.Fprintf(b, "%d", i+1)
			for _, v := range g.Members {
				fmt.Fprintf(b, "\t%d", v+1)
			}
			b.WriteString("\n")
		}
	}
	amount, pickup, delivery := make([]int32, len(p.Demand)), make([]int32, len(p.Demand)), make([]int32, len(p.Demand))
	for _, s := range p.Shipments {
		amount[s.Pickup], amount[s.Delivery] = s.Amount[0], -s.Amount[0]
		pickup[s.Delivery], delivery[s.Pickup] = s.Pickup+1, s.Delivery+1
	}
	section(p.Shipments != nil, "PICKUP_AND_DELIVERY", func(v int) string {
		return fmt.Sprintf("%d\t%s\t%s\t%d\t%d", amount[v], window(v), number(p.Service[v]), pickup[v], delivery[v])
	})
}

// writeFleet writes the vehicles one by one.
func writeFleet(b *bufio.Writer, p *vrp.Problem) {
	if p.Fleet == nil {
		return
	}
	kinds, total := []int{}, 0
	for i, t := range p.Fleet {
		total += t.Count
		for k := range t.Count {
			at := len(kinds)
			if t.Numbers != nil {
				at = int(t.Numbers[k])
			}
			for len(kinds) <= at {
				kinds = append(kinds, 0)
			}
			kinds[at] = i
		}
	}
	fmt.Fprintf(b, "VEHICLES : %d\n", total)
	section := func(name string, has func(t *vrp.VehicleType) bool, row func(t *vrp.VehicleType) string) {
		some := false
		for i := range p.Fleet {
			some = some || has(&p.Fleet[i])
		}
		if !some {
			return
		}
		fmt.Fprintf(b, "%s_SECTION\n", name)
		for k, kind := range kinds {
			fmt.Fprintf(b, "%d\t%s\n", k+1, row(&p.Fleet[kind]))
		}
	}
	type kind = *vrp.VehicleType
	reloads := func(t kind) bool { return t.Reloads != nil }
	section("CAPACITY", func(kind) bool { return true }, func(t kind) string { return itoa(int(t.Capacity[0])) })
	section("VEHICLES_DEPOT", func(kind) bool { return p.DepotCount() > 1 }, func(t kind) string { return itoa(t.Start + 1) })
	section("VEHICLES_ALLOWED_CLIENTS", func(t kind) bool { return t.Allowed != nil }, func(t kind) string {
		row := ""
		for v := p.DepotCount(); v < len(p.Demand); v++ {
			if t.Allowed == nil || contains(t.Allowed, int32(v)) {
				row += itoa(v+1) + "\t"
			}
		}
		return row
	})
	section("VEHICLES_FIXED_COST", func(t kind) bool { return t.FixedCost != 0 }, func(t kind) string { return number(t.FixedCost) })
	section("VEHICLES_UNIT_DISTANCE_COST", func(t kind) bool { return t.DistanceCost != 1 }, func(t kind) string { return number(t.DistanceCost) })
	section("VEHICLES_MAX_DISTANCE", func(t kind) bool { return !math.IsInf(t.MaxDistance, 1) }, func(t kind) string { return number(t.MaxDistance) })
	section("VEHICLES_MAX_DURATION", func(t kind) bool { return !math.IsInf(t.MaxDuration, 1) }, func(t kind) string { return number(t.MaxDuration) })
	section("VEHICLES_RELOAD_DEPOT", reloads, func(t kind) string {
		row := ""
		for _, d := range t.Reloads {
			row += itoa(d+1) + "\t"
		}
		if row == "" {
			row = "1" // which its number of reloads, 0, takes back
		}
		return row
	})
	all := true
	for i := range p.Fleet {
		all = all && reloads(&p.Fleet[i])
	}
	section("VEHICLES_MAX_RELOADS", func(t kind) bool { return t.MaxReloads > 0 || reloads(t) && !all }, func(t kind) string { return itoa(t.MaxReloads) })
}

func contains(list []int32, v int32) bool {
	for _, x := range list {
		if x == v {
			return true
		}
	}
	return false
}
