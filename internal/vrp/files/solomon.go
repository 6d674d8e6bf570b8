package files

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"haul/internal/vrp"
)

// Solomon's text format, which Gehring and Homberger's problems use too: a name, the number and
// the capacity of vehicles, then a row per place with its window and its service time. What a
// reader could break: this literature minimises vehicles first, but a file does not say so; the
// objective is FewestVehicles only if the caller asks for it.

// isSolomon tells such a file by its words.
func isSolomon(text []byte) bool {
	head := strings.ToUpper(string(text[:min(len(text), 2048)]))
	vehicle := strings.Index(head, "VEHICLE")
	return vehicle >= 0 && !strings.Contains(head, "_SECTION") && !strings.Contains(head, ":") &&
		strings.Contains(head[vehicle:], "NUMBER") && strings.Contains(head[vehicle:], "CAPACITY")
}

// ReadSolomon reads a problem in Solomon's format.
func ReadSolomon(r io.Reader, name string, o Options) (*vrp.Problem, error) {
	f, err := openText(r, name)
	if err != nil {
		return nil, err
	}
	l, err := f.next("a name")
	if err != nil {
		return nil, err
	}
	p := &vrp.Problem{Name: printable(l.text)}
	for _, words := range []string{"VEHICLE", "NUMBER"} {
		if l, err = f.next(words); err != nil {
			return nil, err
		}
		if !strings.EqualFold(l.words[0], words) {
			return nil, f.errorf(l, "expected %s, found %s", words, quoteShort(l.text))
		}
	}
	if l, err = f.next("number and capacity of vehicles"); err != nil {
		return nil, err
	}
	row, err := f.numbers(l, 2, 2, "number", "capacity")
	if err != nil {
		return nil, err
	}
	vehicles, err := f.amount(l, "the number of vehicles", row[0])
	if err != nil {
		return nil, err
	}
	if p.Capacity, err = f.amount(l, "the capacity", row[1]); err != nil {
		return nil, err
	}
	p.Vehicles = int(vehicles)
	for _, words := range []string{"CUSTOMER", "CUST"} {
		if l, err = f.next(words); err != nil {
			return nil, err
		}
		if !strings.EqualFold(l.words[0], words) {
			return nil, f.errorf(l, "expected %s, found %s", words, quoteShort(l.text))
		}
	}
	for f.at < len(f.lines) {
		l, _ := f.next("a place")
		row, err := f.numbers(l, 7, 7, "number", "x", "y", "demand", "ready", "due", "service")
		if err != nil {
			return nil, err
		}
		if err := f.timed(p, l, row); err != nil {
			return nil, err
		}
		d, err := f.amount(l, "the demand", row[3])
		if err != nil {
			return nil, err
		}
		p.Demand = append(p.Demand, d)
	}
	return f.finish(p, o)
}

// WriteSolomon writes a problem in Solomon's format.
func WriteSolomon(w io.Writer, p *vrp.Problem) error {
	if err := p.Check(); err != nil {
		return fmt.Errorf("write problem: %w", err)
	}
	if err := p.Only("time windows"); err != nil {
		return fmt.Errorf("write problem: Solomon's format has windows, services and a number of vehicles: %w", err)
	}
	if p.MaxDuration != 0 || p.Open || p.X == nil || p.Metric == vrp.GreatCircle || p.Metric == vrp.Explicit {
		return fmt.Errorf("write problem: Solomon's format has no word for open routes, a limit of duration, or distances that are not Euclidean")
	}
	b := bufio.NewWriter(w)
	n := p.Vehicles
	if n == 0 {
		n = p.N()
	}
	fmt.Fprintf(b, "%s\n\nVEHICLE\nNUMBER CAPACITY\n%d %d\n\nCUSTOMER\nCUST NO. XCOORD. YCOORD. DEMAND READY DUE SERVICE\n\n", oneLine(p.Name, "problem"), n, p.Capacity)
	for v := range p.Demand {
		from, to, service, err := oneWindow(p, v)
		if err != nil {
			return err
		}
		fmt.Fprintf(b, "%d %s %s %d %s %s %s\n", v, number(p.X[v]), number(p.Y[v]), p.Demand[v], number(from), number(to), number(service))
	}
	return b.Flush()
}

// endless is a window's end for a format that must state one.
const endless = 1_000_000_000

// oneWindow is a place's window and service in a format that has one of each.
func oneWindow(p *vrp.Problem, v int) (from, to, service float64, err error) {
	to = endless
	if p.Windows != nil {
		switch list := p.Windows[v]; {
		case len(list) > 1:
			return 0, 0, 0, fmt.Errorf("write problem: place %d has %d windows, and the format has one", v, len(list))
		case len(list) == 1:
			from, to = list[0].From, min(list[0].To, endless)
		}
	}
	if p.Service != nil {
		service = p.Service[v]
	}
	return from, to, service, nil
}

func number(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// oneLine is a name that fits a line of its own.
func oneLine(s, empty string) string {
	if s = strings.TrimSpace(strings.Map(func(r rune) rune {
		if r == '\n' || r == '\r' {
			return ' '
		}
		return r
	}, s)); s == "" {
		return empty
	}
	return s
}
