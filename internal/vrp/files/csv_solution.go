package files

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"haul/internal/vrp"
)

// Routes as a table. What a reader could break: every row names its customer by its number and by
// its id, because a table's ids need not count from 1.

// WriteSolutionCSV writes a row per stop: route, stop, customer, id, and the coordinates where
// there are any.
func WriteSolutionCSV(w io.Writer, p *vrp.Problem, s vrp.Solution) error {
	out := csv.NewWriter(w)
	head := []string{"route", "stop", "customer", "id"}
	if p.Names != nil {
		head = append(head, "name")
	}
	head = append(head, "demand")
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
			row := []string{strconv.Itoa(number), strconv.Itoa(i + 1), strconv.Itoa(int(v)), p.ID(int(v))}
			if p.Names != nil {
				row = append(row, p.Names[v])
			}
			row = append(row, strconv.FormatFloat(p.Amount(0, int64(p.Demand[v])), 'f', -1, 64))
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

// LooksSolutionCSV tells a table of routes, as haul solve writes it.
func LooksSolutionCSV(text []byte) bool {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	head := strings.Split(strings.ToLower(strings.TrimSpace(strings.TrimPrefix(string(line), "\ufeff"))), ",")
	return slices.Contains(head, "route") && (slices.Contains(head, "customer") || slices.Contains(head, "id"))
}

// ReadSolutionCSV reads routes from a table with a row per stop, in order: route, and customer (its
// number) or id; type is the vehicle type, and kind tells customers from depots and breaks. Other
// columns are a report's and pass. The cost is not stated.
func ReadSolutionCSV(r io.Reader, name string, p *vrp.Problem) (vrp.Solution, float64, error) {
	none := vrp.Solution{}
	s, err := readCells(r, name)
	if err != nil {
		return none, 0, err
	}
	at := map[string]int{}
	for i, h := range s.head {
		at[spelled(h)] = i
	}
	places := map[string]int32{}
	for v := range p.Demand {
		places[p.ID(v)] = int32(v)
	}
	var out vrp.Solution
	numbers := map[string]int{}
	_, typed := at["type"]
	for i, cells := range s.rows {
		cell := func(key string) string {
			if c, ok := at[key]; ok {
				return strings.TrimSpace(cells[c])
			}
			return ""
		}
		kind, route := cell("kind"), cell("route")
		switch {
		case kind != "" && kind != "customer" && kind != "reload":
			continue // the ends, breaks, and who is on no route
		case route == "":
			return none, 0, s.errorf(s.lines[i], "no route")
		}
		k, ok := numbers[route]
		if !ok {
			k = len(out.Routes)
			numbers[route] = k
			out.Routes = append(out.Routes, nil)
			if typed {
				n, err := parseInt(cell("type"))
				if err != nil {
					return none, 0, s.errorf(s.lines[i], "type %s %v", quoteShort(cell("type")), err)
				}
				out.Types = append(out.Types, int32(n))
			}
		}
		var v int32
		if text := cell("customer"); text != "" {
			n, err := parseInt(text)
			if err != nil || n < 0 || n >= len(p.Demand) {
				return none, 0, s.errorf(s.lines[i], "customer %s does not exist", quoteShort(text))
			}
			v = int32(n)
		} else if v, ok = places[cell("id")]; !ok {
			return none, 0, s.errorf(s.lines[i], "id %s does not exist", quoteShort(printable(cell("id"))))
		}
		out.Routes[k] = append(out.Routes[k], v)
	}
	if out.Routes == nil {
		return none, 0, fmt.Errorf("%s has no routes", name)
	}
	return out, math.NaN(), nil
}

// readSolutionGeoJSON reads routes from the lines that haul solve writes.
func readSolutionGeoJSON(text []byte, name string) (vrp.Solution, float64, error) {
	var all struct {
		Features []struct {
			Properties struct {
				Kind      string          `json:"kind"`
				Customers json.RawMessage `json:"customers"`
				Type      *int32          `json:"type"`
			} `json:"properties"`
		} `json:"features"`
	}
	if err := json.Unmarshal(text, &all); err != nil {
		return vrp.Solution{}, 0, fmt.Errorf("%s is not the GeoJSON of routes: %s", name, mistaken(err))
	}
	var out vrp.Solution
	for i, f := range all.Features {
		if f.Properties.Kind != "route" {
			continue
		}
		var route []int32
		if err := json.Unmarshal(f.Properties.Customers, &route); err != nil {
			return vrp.Solution{}, 0, fmt.Errorf("%s: features[%d] is a route without a list of its customers", name, i)
		}
		out.Routes = append(out.Routes, route)
		if f.Properties.Type != nil {
			out.Types = append(out.Types, *f.Properties.Type)
		}
	}
	if out.Routes == nil {
		return vrp.Solution{}, 0, fmt.Errorf("%s has no routes", name)
	}
	if out.Types != nil && len(out.Types) != len(out.Routes) {
		return vrp.Solution{}, 0, fmt.Errorf("%s: %d of %d routes say their vehicle's type", name, len(out.Types), len(out.Routes))
	}
	return out, math.NaN(), nil
}
