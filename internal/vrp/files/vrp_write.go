package files

import (
	"bufio"
	"fmt"
	"io"
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
