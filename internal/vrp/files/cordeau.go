package files

import (
	"bufio"
	"fmt"
	"io"

	"haul/internal/vrp"
)

// Cordeau's text format of problems with several depots: kind, vehicles per depot, customers and
// depots, then the limits of duration and load of each depot's vehicles, then customers, then
// depots. What a reader could break: the file lists depots last, and a Problem has them first; a
// customer keeps its place in the file as ID.

// The kinds that are read, by their number in the file.
const (
	cordeauVRP    = 0
	cordeauMD     = 2
	cordeauVRPTW  = 4
	cordeauMDTW   = 6
	cordeauFields = 5 // number x y service demand, before the visit combinations
)

// mostVehicles bounds what is kept by vehicle, so that a false number cannot cost memory.
const mostVehicles = 100_000

// isCordeau tells such a file by its numbers: four in the first line, two in the second.
func isCordeau(text []byte) bool { return shapeOf(text, 4, 2) }

// ReadCordeau reads a problem in Cordeau's format. Periods, and customers that may choose among
// visit combinations, are refused.
func ReadCordeau(r io.Reader, name string, o Options) (*vrp.Problem, error) {
	f, err := openText(r, name)
	if err != nil {
		return nil, err
	}
	l, err := f.next("kind, vehicles, customers and depots")
	if err != nil {
		return nil, err
	}
	head, err := f.numbers(l, 4, 4, "kind", "vehicles", "customers", "depots")
	if err != nil {
		return nil, err
	}
	var count [4]int
	for i, x := range head {
		n, err := f.amount(l, [4]string{"the kind", "the number of vehicles", "the number of customers", "the number of depots"}[i], x)
		if err != nil {
			return nil, err
		}
		count[i] = int(n)
	}
	kind, vehicles, customers, depots := count[0], count[1], count[2], count[3]
	switch kind {
	case cordeauVRP, cordeauMD, cordeauVRPTW, cordeauMDTW:
	default:
		return nil, f.errorf(l, "not supported: kind %d of Cordeau's (only 0 VRP, 2 MDVRP, 4 VRPTW and 6 MDVRPTW; the others have periods or sites)", kind)
	}
	if kind == cordeauVRP || kind == cordeauVRPTW {
		depots = 1
	}
	if vehicles > mostVehicles {
		return nil, f.errorf(l, "%d vehicles per depot: expected %d at most", vehicles, mostVehicles)
	}
	if customers < 1 || depots < 1 || vehicles < 1 || customers > len(f.lines) || depots > len(f.lines) {
		return nil, f.errorf(l, "%d vehicles, %d customers and %d depots: expected at least 1 of each, and a line for each place", vehicles, customers, depots)
	}
	p := &vrp.Problem{Depots: depots}
	for d := range depots {
		l, err := f.next("a depot's limits of duration and load")
		if err != nil {
			return nil, err
		}
		row, err := f.numbers(l, 2, 2, "duration", "load")
		if err != nil {
			return nil, err
		}
		load, err := f.amount(l, "the load", row[1])
		if err != nil || row[0] < 0 {
			return nil, f.errorf(l, "a duration of %g and a load of %g: expected numbers from 0 on", row[0], row[1])
		}
		t := vrp.NewVehicleType(load)
		t.Count, t.Start, t.End = vehicles, d, d
		for k := range vehicles {
			t.Numbers = append(t.Numbers, int32(d*vehicles+k))
		}
		if row[0] > 0 { // 0 stands for no limit
			t.MaxDuration = row[0]
		}
		p.Fleet = append(p.Fleet, t)
	}
	n := depots + customers
	p.X, p.Y, p.Demand, p.Service, p.IDs = make([]float64, n), make([]float64, n), make([]int32, n), make([]float64, n), make([]string, n)
	timed := kind == cordeauVRPTW || kind == cordeauMDTW
	first := 1 // the number of the first line: VRPTW lists its depot first, as 0
	if kind == cordeauVRP || kind == cordeauVRPTW {
		first = 0
	}
	for i := range n {
		l, err := f.next(fmt.Sprintf("place %d", first+i))
		if err != nil {
			return nil, err
		}
		row, err := f.numbers(l, cordeauFields, 64, "number", "x", "y", "service", "demand", "frequency", "combinations", "...")
		if err != nil {
			return nil, err
		}
		v := depots + i
		if first == 0 {
			v = i
		} else if i >= customers {
			v = i - customers
		}
		if row[0] != float64(first+i) {
			return nil, f.errorf(l, "place %g: expected %d, places are numbered in order", row[0], first+i)
		}
		if row[3] < 0 {
			return nil, f.errorf(l, "the service time of place %g is %g", row[0], row[3])
		}
		p.X[v], p.Y[v], p.Service[v], p.IDs[v] = row[1], row[2], row[3], l.words[0]
		if p.Demand[v], err = f.amount(l, "the demand", row[4]); err != nil {
			return nil, err
		}
		if v >= depots {
			if err := f.combinations(l, row, depots); err != nil {
				return nil, err
			}
		} else if len(row) > cordeauFields+1 && (row[cordeauFields] != 0 || row[cordeauFields+1] != 0) {
			p.Notes = append(p.Notes, fmt.Sprintf("line %d: the frequency %g and the combinations %g of depot %g are not read", l.number, row[cordeauFields], row[cordeauFields+1], row[0]))
		}
		if timed {
			if len(row) < cordeauFields+2 {
				return nil, f.errorf(l, "place %g has no window", row[0])
			}
			from, to := row[len(row)-2], row[len(row)-1]
			if from < 0 || to < from {
				return nil, f.errorf(l, "the window of place %g closes at %g, before it opens at %g", row[0], to, from)
			}
			byPlace(&p.Windows, n)[v] = []vrp.Window{{From: from, To: to}}
		}
	}
	if f.at < len(f.lines) {
		return nil, f.errorf(f.lines[f.at], "unexpected %s behind the last place", quoteShort(f.lines[f.at].text))
	}
	if depots == 1 {
		p.Depots = 0
	}
	return f.finish(p, o)
}

// combinations judges that a customer is visited once, and may be by any depot's vehicles.
func (f *textFile) combinations(l textLine, row []float64, depots int) error {
	if len(row) < cordeauFields+2 {
		return nil
	}
	frequency, count := row[cordeauFields], int(row[cordeauFields+1])
	if frequency != 1 || count < 0 || len(row) < cordeauFields+2+count {
		return f.errorf(l, "not supported: place %g is visited %g times, by %d combinations", row[0], frequency, count)
	}
	var any float64
	for _, c := range row[cordeauFields+2 : cordeauFields+2+count] {
		any += c
	}
	if depots > 1 && any != float64(int(1)<<depots-1) {
		return f.errorf(l, "not supported: place %g may be served from some depots only", row[0])
	}
	return nil
}

// WriteCordeau writes a problem with several depots in Cordeau's format.
func WriteCordeau(w io.Writer, p *vrp.Problem) error {
	if err := p.Check(); err != nil {
		return fmt.Errorf("write problem: %w", err)
	}
	if err := p.Only("several depots", "a fleet of its own", "time windows"); err != nil {
		return fmt.Errorf("write problem: Cordeau's format has depots, their vehicles and windows: %w", err)
	}
	if p.X == nil || p.Metric == vrp.GreatCircle || p.Metric == vrp.Explicit || len(p.Fleet) != p.DepotCount() || p.DepotCount() > 20 {
		return fmt.Errorf("write problem: Cordeau's format has one kind of vehicle per depot, on a plane")
	}
	b := bufio.NewWriter(w)
	kind := cordeauMD
	if p.Windows != nil {
		kind = cordeauMDTW
	}
	fmt.Fprintf(b, "%d %d %d %d\n", kind, p.Fleet[0].Count, p.N(), p.DepotCount())
	for d, t := range p.Fleet {
		plain := vrp.NewVehicleType(t.Capacity...)
		plain.Count, plain.Numbers, plain.Start, plain.End, plain.MaxDuration = t.Count, t.Numbers, d, d, t.MaxDuration
		if fmt.Sprint(plain) != fmt.Sprint(t) || len(t.Capacity) != 1 || t.Count < 1 || t.Count != p.Fleet[0].Count {
			return fmt.Errorf("write problem: the vehicles of depot %d are not what Cordeau's format can say: a number, a capacity and a limit of duration", d)
		}
		limit := t.MaxDuration
		if noLimit(limit) {
			limit = 0
		}
		fmt.Fprintf(b, "%s %d\n", number(limit), t.Capacity[0])
	}
	place := func(id, v int) error {
		from, to, service, err := oneWindow(p, v)
		if err != nil {
			return err
		}
		fmt.Fprintf(b, "%d %s %s %s %d", id, number(p.X[v]), number(p.Y[v]), number(service), p.Demand[v])
		if v >= p.DepotCount() {
			fmt.Fprintf(b, " 1 %d", p.DepotCount())
			for d := range p.DepotCount() {
				fmt.Fprintf(b, " %d", 1<<d)
			}
		} else {
			b.WriteString(" 0 0")
		}
		if p.Windows != nil {
			fmt.Fprintf(b, " %s %s", number(from), number(to))
		}
		b.WriteByte('\n')
		return nil
	}
	for i := range len(p.Demand) {
		v := (i + p.DepotCount()) % len(p.Demand)
		if err := place(i+1, v); err != nil {
			return err
		}
	}
	return b.Flush()
}
