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

// LooksSolutionCSV tells a table of routes, as haul solve writes it or a spreadsheet saves it
// again.
func LooksSolutionCSV(text []byte) bool {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	head := strings.FieldsFunc(strings.TrimPrefix(string(line), "\ufeff"), func(c rune) bool { return strings.ContainsRune(",;\t", c) })
	return headsStops(head)
}

// headsStops tells the header of a table with a row per stop.
func headsStops(head []string) bool {
	has := func(key string) bool {
		return slices.ContainsFunc(head, func(h string) bool { return spelled(strings.Trim(h, "\" \r")) == key })
	}
	return has("route") && (has("customer") || has("id"))
}

// ReadSolutionCSV reads routes from a table with a row per stop, in order: route, and customer
// (its number) or id; type or vehicle is the vehicle type, and kind tells customers from depots
// and breaks. What a table says twice must agree; other columns are a report's and pass. The cost
// is not stated.
func ReadSolutionCSV(r io.Reader, name string, p *vrp.Problem) (vrp.Solution, float64, error) {
	s, err := readCells(r, name, newTally(Options{}))
	if err != nil {
		return vrp.Solution{}, 0, err
	}
	return readStops(s, p)
}

// LooksSolutionXLSX tells the archive that a spreadsheet is.
func LooksSolutionXLSX(text []byte) bool { return isArchive(text) }

// ReadSolutionXLSX reads routes from the sheet of a spreadsheet that has a row per stop, as
// ReadSolutionCSV does.
func ReadSolutionXLSX(r io.Reader, name string, p *vrp.Problem) (vrp.Solution, float64, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxFile))
	if err != nil {
		return vrp.Solution{}, 0, fmt.Errorf("%s: %w", name, err)
	}
	book, err := readXLSX(text, name, newTally(Options{}))
	if err != nil {
		return vrp.Solution{}, 0, err
	}
	for _, s := range book {
		if headsStops(s.head) {
			return readStops(s, p)
		}
	}
	return vrp.Solution{}, 0, fmt.Errorf("%s: none of its sheets has a row per stop: the columns route, and customer or id", name)
}

// readStops reads the rows of a table of routes.
func readStops(s *sheet, p *vrp.Problem) (vrp.Solution, float64, error) {
	none := vrp.Solution{}
	at := map[string]int{}
	for i, h := range s.head {
		at[spelled(h)] = i
	}
	places := map[string]int32{}
	for v := range p.Demand {
		if _, twice := places[p.ID(v)]; twice {
			places[p.ID(v)] = vrp.None
			continue
		}
		places[p.ID(v)] = int32(v)
	}
	out := vrp.Solution{Routes: [][]int32{}}
	numbers, orders := map[string]int{}, []float64{}
	typed, told := typesOf(at, p), false
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
			told = true
			continue // the ends, breaks, and who is on no route
		case route == "":
			return none, 0, s.errorf(s.lines[i], "no route")
		}
		k, ok := numbers[route]
		if !ok {
			k = len(out.Routes)
			numbers[route] = k
			out.Routes, orders = append(out.Routes, nil), append(orders, math.Inf(-1))
		}
		if typed != nil {
			kind, err := typed(cell("type"), cell("vehicle"))
			if err != nil {
				return none, 0, s.errorf(s.lines[i], "%v", err)
			}
			if k == len(out.Types) {
				out.Types = append(out.Types, kind)
			}
			if out.Types[k] != kind {
				return none, 0, s.errorf(s.lines[i], "route %s has another vehicle here than in its rows before", quoteShort(printable(route)))
			}
		}
		if text := cell("stop"); text != "" {
			x, err := strconv.ParseFloat(s.decimal(text), 64)
			if err != nil {
				return none, 0, s.errorf(s.lines[i], "stop %s is not a number", quoteShort(printable(text)))
			}
			if x < orders[k] {
				return none, 0, s.errorf(s.lines[i], "stop %s of route %s stands behind stop %g: sort the rows by route and stop, or leave the column out",
					quoteShort(text), quoteShort(printable(route)), orders[k])
			}
			orders[k] = x
		}
		v, err := placeOf(cell("customer"), cell("id"), places, p)
		if err != nil {
			return none, 0, s.errorf(s.lines[i], "%v", err)
		}
		out.Routes[k] = append(out.Routes[k], v)
	}
	if len(out.Routes) == 0 && !told { // rows of those who are not served are a plan that serves nobody
		return none, 0, fmt.Errorf("%s has no routes", s.name)
	}
	return out, math.NaN(), nil
}

// placeOf is the place that a row names, by its number, its id or both.
func placeOf(customer, id string, places map[string]int32, p *vrp.Problem) (int32, error) {
	named, known := places[id]
	if customer == "" {
		if !known {
			return 0, fmt.Errorf("id %s does not exist", quoteShort(printable(id)))
		}
		if named == vrp.None {
			return 0, fmt.Errorf("id %s is that of several places: give their numbers, as customer", quoteShort(printable(id)))
		}
		return named, nil
	}
	n, err := parseInt(customer)
	if err != nil || n < 0 || n >= len(p.Demand) {
		return 0, fmt.Errorf("customer %s does not exist", quoteShort(customer))
	}
	if id != "" && !sameCell(id, p.ID(n)) {
		return 0, fmt.Errorf("customer %d has the id %s, and the row says %s: leave one of the two columns out", n, quoteShort(p.ID(n)), quoteShort(printable(id)))
	}
	return int32(n), nil
}

// sameCell says whether a cell holds a text, or the number that a spreadsheet makes of it: 7 of
// 007.
func sameCell(cell, text string) bool {
	if text = strings.TrimSpace(text); cell == text {
		return true
	}
	x, err := strconv.ParseFloat(cell, 64)
	y, err2 := strconv.ParseFloat(text, 64)
	return err == nil && err2 == nil && x == y
}

// typesOf is how a table of routes says the type of a row's vehicle: by its index, by its name or
// both; nil: it does not, or all are of one type.
func typesOf(at map[string]int, p *vrp.Problem) func(index, name string) (int32, error) {
	_, indexed := at["type"]
	_, named := at["vehicle"]
	types := p.Types()
	called := func(k int) string {
		if types[k].Name != "" {
			return types[k].Name
		}
		return itoa(k + 1)
	}
	if !indexed && (!named || len(types) < 2) {
		return nil
	}
	return func(index, name string) (int32, error) {
		if !indexed {
			for k := range types {
				if called(k) == name {
					return int32(k), nil
				}
			}
			return 0, fmt.Errorf("vehicle %s is none of the fleet", quoteShort(printable(name)))
		}
		n, err := parseInt(index)
		if err != nil {
			return 0, fmt.Errorf("type %s %v", quoteShort(printable(index)), err)
		}
		if name != "" && n >= 0 && n < len(types) && !sameCell(name, called(n)) {
			return 0, fmt.Errorf("type %d is the vehicle %s, and the row says %s: leave one of the two columns out", n, quoteShort(called(n)), quoteShort(printable(name)))
		}
		return int32(n), nil
	}
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
	out, told := vrp.Solution{Routes: [][]int32{}}, false
	for i, f := range all.Features {
		if told = told || f.Properties.Kind == "unserved"; f.Properties.Kind != "route" {
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
	if len(out.Routes) == 0 && !told {
		return vrp.Solution{}, 0, fmt.Errorf("%s has no routes", name)
	}
	if out.Types != nil && len(out.Types) != len(out.Routes) {
		return vrp.Solution{}, 0, fmt.Errorf("%s: %d of %d routes say their vehicle's type", name, len(out.Types), len(out.Routes))
	}
	return out, math.NaN(), nil
}
