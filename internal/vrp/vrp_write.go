package vrp

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// Writing CVRPLIB's .vrp files. What a reader could break: what is written reads back equal. The
// format has no word for unrounded distances: Exact is written as EUC_2D and reads back as Exact
// with ReadOptions.ExactDistance.

// WriteProblem writes a problem in CVRPLIB's .vrp format, the depot as node 1. Explicit distances
// go out as UPPER_ROW if they are the same both ways, else as FULL_MATRIX.
func WriteProblem(w io.Writer, p *Problem) error {
	if err := checkProblem(p); err != nil {
		return fmt.Errorf("write problem: %w", err)
	}
	if strings.Contains(p.Name+p.Comment, "\n") {
		return fmt.Errorf("write problem: the name or the comment holds a line break")
	}
	if p.Metric == GreatCircle {
		return fmt.Errorf("write problem: the format has no word for great-circle distances")
	}
	if p.Open {
		return fmt.Errorf("write problem: the format has no word for open routes")
	}
	if err := p.Limited(); err != nil {
		return fmt.Errorf("write problem: the format has no word for it: %w", err)
	}
	b := bufio.NewWriter(w)
	n := len(p.Demand)
	fmt.Fprintf(b, "NAME : %s\nCOMMENT : %s\nTYPE : CVRP\nDIMENSION : %d\n", quoteIfNeeded(p.Name), quoteIfNeeded(p.Comment), n)
	coords := "NODE_COORD_SECTION"
	switch p.Metric {
	case Explicit:
		writeFormat(b, p)
		coords = "DISPLAY_DATA_SECTION"
	case Ceil:
		b.WriteString("EDGE_WEIGHT_TYPE : CEIL_2D\n")
	default:
		b.WriteString("EDGE_WEIGHT_TYPE : EUC_2D\n")
	}
	fmt.Fprintf(b, "CAPACITY : %d\n", p.Capacity)
	if p.Vehicles > 0 {
		fmt.Fprintf(b, "VEHICLES : %d\n", p.Vehicles)
	}
	if p.MaxDuration > 0 {
		fmt.Fprintf(b, "DISTANCE : %s\n", strconv.FormatFloat(p.MaxDuration, 'f', -1, 64))
	}
	if p.Metric == Explicit {
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
	b.WriteString("DEPOT_SECTION\n\t1\n\t-1\nEOF\n")
	return b.Flush()
}

func writeFormat(b *bufio.Writer, p *Problem) {
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
func upperOnly(p *Problem) bool {
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

func writeWeights(b *bufio.Writer, p *Problem) {
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

// Check says in one line what makes the problem impossible to solve, or nil.
func (p *Problem) Check() error { return checkProblem(p) }

// checkProblem says what makes a problem impossible to solve or to write, in one line.
func checkProblem(p *Problem) error {
	n := len(p.Demand)
	switch {
	case n < 2:
		return fmt.Errorf("the problem has no customers")
	case p.Capacity < 1:
		return fmt.Errorf("the capacity is %d: expected at least 1", p.Capacity)
	case p.Demand[0] != 0:
		return fmt.Errorf("the depot has demand %d: expected 0", p.Demand[0])
	case p.Metric == Explicit && len(p.Weights) != n*n:
		return fmt.Errorf("%d explicit distances for %d nodes: expected %d", len(p.Weights), n, n*n)
	case (p.Metric != Explicit || p.X != nil || p.Y != nil) && (len(p.X) != n || len(p.Y) != n):
		return fmt.Errorf("%d x and %d y coordinates for %d nodes", len(p.X), len(p.Y), n)
	}
	for v, d := range p.Demand {
		if d < 0 {
			return fmt.Errorf("demand %d of customer %d is negative", d, v)
		}
		if d > p.Capacity {
			return fmt.Errorf("demand %d of customer %d is over the capacity %d", d, v, p.Capacity)
		}
	}
	for v := range p.X {
		if !(math.Abs(p.X[v])+math.Abs(p.Y[v]) <= math.MaxFloat64) {
			return fmt.Errorf("node %d has the coordinates (%g, %g)", v, p.X[v], p.Y[v])
		}
		if p.Metric == GreatCircle && (math.Abs(p.Y[v]) > 90 || math.Abs(p.X[v]) > 180) {
			return fmt.Errorf("node %d has longitude %g and latitude %g, outside ±180, ±90", v, p.X[v], p.Y[v])
		}
	}
	if err := checkLimits(p); err != nil {
		return err
	}
	for i, w := range p.Weights {
		if !(w >= 0 && w <= math.MaxFloat64) {
			return fmt.Errorf("the distance from node %d to node %d is %g", i/n, i%n, w)
		}
	}
	return nil
}

// checkLimits judges what limits a route beside the capacity.
func checkLimits(p *Problem) error {
	if p.Service != nil && len(p.Service) != len(p.Demand) {
		return fmt.Errorf("%d service times for %d nodes", len(p.Service), len(p.Demand))
	}
	for v, s := range p.Service {
		if !(s >= 0 && s <= math.MaxFloat64) {
			return fmt.Errorf("the service time of node %d is %g", v, s)
		}
	}
	if !(p.MaxDuration >= 0 && p.MaxDuration <= math.MaxFloat64) {
		return fmt.Errorf("the limit of a route's duration is %g", p.MaxDuration)
	}
	if p.MaxDuration > 0 {
		for v := 1; v < len(p.Demand); v++ {
			need := p.Dist(0, v) + p.Leg(v, 0)
			if p.Service != nil {
				need += p.Service[v]
			}
			if need > p.MaxDuration {
				return fmt.Errorf("customer %d alone takes %g there and back, the limit of a route is %g", v, need, p.MaxDuration)
			}
		}
	}
	if p.Vehicles < 0 {
		return fmt.Errorf("the fleet is %d vehicles: expected at least 1", p.Vehicles)
	}
	if p.Vehicles > 0 {
		var total int64
		for _, d := range p.Demand {
			total += int64(d)
		}
		if total > int64(p.Vehicles)*int64(p.Capacity) {
			vehicles, carry := "vehicles", "carry"
			if p.Vehicles == 1 {
				vehicles, carry = "vehicle", "carries"
			}
			return fmt.Errorf("%d %s of capacity %d %s %d, the customers demand %d: at least %d vehicles are needed",
				p.Vehicles, vehicles, p.Capacity, carry, int64(p.Vehicles)*int64(p.Capacity), total, (total+int64(p.Capacity)-1)/int64(p.Capacity))
		}
	}
	return nil
}
