package files

import (
	"encoding/csv"
	"io"
	"strconv"

	"haul/internal/vrp"
)

// Routes as a table. What a reader could break: every row names its customer by its number and by
// its id, because a table's ids need not count from 1.

// WriteSolutionCSV writes a row per stop: route, stop, customer, id, and the coordinates where
// there are any.
func WriteSolutionCSV(w io.Writer, p *vrp.Problem, s vrp.Solution) error {
	out := csv.NewWriter(w)
	head := []string{"route", "stop", "customer", "id", "demand"}
	switch {
	case p.X != nil && p.Metric == vrp.GreatCircle:
		head = append(head, "lon", "lat")
	case p.X != nil:
		head = append(head, "x", "y")
	}
	if err := out.Write(head); err != nil {
		return err
	}
	number := 0
	for _, r := range s.Routes {
		if len(r) == 0 {
			continue
		}
		number++
		for i, v := range r {
			row := []string{strconv.Itoa(number), strconv.Itoa(i + 1), strconv.Itoa(int(v)), p.ID(int(v)), strconv.Itoa(int(p.Demand[v]))}
			if p.X != nil {
				row = append(row, strconv.FormatFloat(p.X[v], 'f', -1, 64), strconv.FormatFloat(p.Y[v], 'f', -1, 64))
			}
			if err := out.Write(row); err != nil {
				return err
			}
		}
	}
	out.Flush()
	return out.Error()
}
