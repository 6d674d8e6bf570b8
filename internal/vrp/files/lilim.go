package files

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"haul/internal/vrp"
)

// Li and Lim's text format of shipments with windows: vehicles, capacity and speed, then a row
// per place with its amount (negative for a delivery), its window, its service and the numbers
// of its pickup and of its delivery. What a reader could break: the two halves of a shipment
// must agree, or the file is refused.

// isLiLim tells such a file by its numbers: three in the first line, nine in the second.
func isLiLim(text []byte) bool { return shapeOf(text, 3, 9, 9) }

// shapeOf tells whether the first lines of a text are numbers, so many of them each.
func shapeOf(text []byte, counts ...int) bool {
	at := 0
	start := strings.ReplaceAll(strings.TrimPrefix(string(text[:min(len(text), 4096)]), "\ufeff"), "\r", "\n")
	for line := range strings.Lines(start) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if len(words) != counts[at] {
			return false
		}
		for _, w := range words {
			if _, err := parseFloat(w); err != nil {
				return false
			}
		}
		if at++; at == len(counts) {
			return true
		}
	}
	return false
}

// ReadLiLim reads a problem in Li and Lim's format.
func ReadLiLim(r io.Reader, name string, o Options) (*vrp.Problem, error) {
	f, err := openText(r, name)
	if err != nil {
		return nil, err
	}
	l, err := f.next("vehicles, capacity and speed")
	if err != nil {
		return nil, err
	}
	head, err := f.numbers(l, 3, 3, "vehicles", "capacity", "speed")
	if err != nil {
		return nil, err
	}
	p := &vrp.Problem{}
	vehicles, err := f.amount(l, "the number of vehicles", head[0])
	if err != nil {
		return nil, err
	}
	if p.Capacity, err = f.amount(l, "the capacity", head[1]); err != nil {
		return nil, err
	}
	p.Vehicles = int(vehicles)
	if head[2] < 0 {
		return nil, f.errorf(l, "the speed is %g: expected a number from 0 on", head[2])
	}
	if head[2] != 1 { // 0 states none
		p.Speed = head[2]
	}
	var rows [][]float64
	var lines []textLine
	for f.at < len(f.lines) {
		l, _ := f.next("a place")
		row, err := f.numbers(l, 9, 9, "number", "x", "y", "amount", "ready", "due", "service", "pickup", "delivery")
		if err != nil {
			return nil, err
		}
		if err := f.timed(p, l, row); err != nil {
			return nil, err
		}
		p.Demand = append(p.Demand, 0)
		rows, lines = append(rows, row), append(lines, l)
	}
	if len(rows) > 0 {
		if row := rows[0]; row[3] != 0 || row[7] != 0 || row[8] != 0 {
			return nil, f.errorf(lines[0], "the depot has an amount of %g, the pickup %g and the delivery %g: expected 0, it ships nothing", row[3], row[7], row[8])
		}
	}
	for v := 1; v < len(rows); v++ {
		row, l := rows[v], lines[v]
		from, to := row[7], row[8]
		if (from == 0) == (to == 0) {
			return nil, f.errorf(l, "place %d names %g as its pickup and %g as its delivery: expected one of them", v, from, to)
		}
		if to == 0 {
			continue
		}
		other := int(to)
		if float64(other) != to || other < 1 || other >= len(rows) {
			return nil, f.errorf(l, "place %d is delivered at %g, which is no place", v, to)
		}
		if back := rows[other]; back[7] != float64(v) || back[3] != -row[3] {
			return nil, f.errorf(l, "the halves of a shipment contradict: place %d picks up %g for place %d, which takes %g from place %g", v, row[3], other, -back[3], back[7])
		}
		amount, err := f.amount(l, "the amount", row[3])
		if err != nil {
			return nil, err
		}
		p.Shipments = append(p.Shipments, vrp.Shipment{Pickup: int32(v), Delivery: int32(other), Amount: []int32{amount}})
	}
	if len(rows) != 1+2*len(p.Shipments) {
		return nil, fmt.Errorf("%s: %d shipments of %d customers: expected two customers each", name, len(p.Shipments), len(rows)-1)
	}
	return f.finish(p, o)
}

// WriteLiLim writes a problem of shipments in Li and Lim's format.
func WriteLiLim(w io.Writer, p *vrp.Problem) error {
	if err := p.Check(); err != nil {
		return fmt.Errorf("write problem: %w", err)
	}
	if err := p.Only("time windows", "shipments", "a speed"); err != nil {
		return fmt.Errorf("write problem: Li and Lim's format has windows and shipments: %w", err)
	}
	if p.MaxDuration != 0 || p.Open || p.LIFO || p.X == nil || p.Metric == vrp.GreatCircle || p.Metric == vrp.Explicit || 2*len(p.Shipments) != p.N() {
		return fmt.Errorf("write problem: Li and Lim's format has shipments of two customers each on a plane, and nothing else")
	}
	amount, from, to := make([]int32, len(p.Demand)), make([]int32, len(p.Demand)), make([]int32, len(p.Demand))
	for _, s := range p.Shipments {
		var a int32
		if len(s.Amount) > 0 {
			a = s.Amount[0]
		}
		amount[s.Pickup], amount[s.Delivery] = a, -a
		to[s.Pickup], from[s.Delivery] = s.Delivery, s.Pickup
	}
	b := bufio.NewWriter(w)
	n, speed := p.Vehicles, p.Speed
	if n == 0 {
		n = p.N()
	}
	if speed == 0 {
		speed = 1
	}
	fmt.Fprintf(b, "%d\t%d\t%s\n", n, p.Capacity, number(speed))
	for v := range p.Demand {
		if p.Demand[v] != 0 {
			return fmt.Errorf("write problem: place %d has a demand beside its shipment", v)
		}
		open, due, service, err := oneWindow(p, v)
		if err != nil {
			return err
		}
		fmt.Fprintf(b, "%d\t%s\t%s\t%d\t%s\t%s\t%s\t%d\t%d\n", v, number(p.X[v]), number(p.Y[v]), amount[v], number(open), number(due), number(service), from[v], to[v])
	}
	return b.Flush()
}
