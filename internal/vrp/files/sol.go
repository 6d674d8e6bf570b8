package files

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"haul/internal/vrp"
)

// .sol files, by CVRPLIB's convention and PyVRP's, which extends it. What a reader could break:
// places are numbered as in Solution, from 0, depots first, so numbers pass through unchanged; and
// where a problem's vehicles differ, Route #k is that of its file's k-th vehicle, so that unused
// vehicles have empty lines.

// LoadSolution reads a .sol file; p as in ReadSolution.
func LoadSolution(path string, p *vrp.Problem) (vrp.Solution, float64, error) {
	f, err := os.Open(path)
	if err != nil {
		return vrp.Solution{}, 0, err
	}
	defer f.Close()
	return ReadSolution(f, path, p)
}

// ReadSolution reads the routes and the stated cost, NaN if the file states none. It does not
// judge them: that is Validate's work. Routes without customers vanish. p is the problem that the
// routes are for, whose vehicles and reload depots they name; nil: a plain one.
func ReadSolution(r io.Reader, name string, p *vrp.Problem) (vrp.Solution, float64, error) {
	reloads := p != nil && slices.ContainsFunc(p.Fleet, func(t vrp.VehicleType) bool { return t.Reloads != nil })
	kinds, err := vehicles(p)
	if err != nil {
		return vrp.Solution{}, 0, fmt.Errorf("%s: %w", name, err)
	}
	var sol vrp.Solution
	cost, line, costLine := math.NaN(), 0, 0
	fail := func(format string, args ...any) (vrp.Solution, float64, error) {
		return vrp.Solution{}, 0, fmt.Errorf("%s:%d: %s", name, line, fmt.Sprintf(format, args...))
	}
	in := bufio.NewReader(lineEnds(r))
	if start, _ := in.Peek(512); notText(start) != "" {
		return vrp.Solution{}, 0, fmt.Errorf("%s: %s", name, notText(start))
	}
	sc := bufio.NewScanner(in)
	sc.Buffer(nil, 64<<20)
	for sc.Scan() {
		line++
		text := strings.TrimSpace(strings.TrimPrefix(sc.Text(), "\ufeff"))
		key, value := splitKey(text)
		switch {
		case text == "":
		case key == "ROUTE":
			number, list, ok := strings.Cut(value, ":")
			if !ok {
				return fail("expected \"Route #1: 1 2 3\", found %s", quoteShort(text))
			}
			k, err := parseInt(strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(number), "#")))
			if err != nil {
				return fail("route number %s %v", quoteShort(number), err)
			}
			var route []int32
			for f := range strings.FieldsSeq(list) {
				c, err := parseInt(f)
				if err != nil {
					return fail("customer %s %v", quoteShort(f), err)
				}
				if c < 1 && !(c == 0 && reloads) {
					return fail("customer %d: customers are numbered from 1, and the depot at a route's ends is implied", c)
				}
				route = append(route, int32(c))
			}
			if len(route) == 0 {
				continue
			}
			sol.Routes = append(sol.Routes, route)
			if kinds != nil {
				if k < 1 || k > len(kinds) {
					return fail("route #%d: the problem has the vehicles 1 to %d", k, len(kinds))
				}
				sol.Types = append(sol.Types, kinds[k-1])
			}
		case key == "COST":
			if costLine != 0 {
				return fail("Cost is given twice, first on line %d", costLine)
			}
			x, err := strconv.ParseFloat(value, 64)
			if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
				return fail("cost %s is not a number", quoteShort(value))
			}
			cost, costLine = x, line
		case key == "TIME" || key == "RUNTIME" || key == "COMMENT" || key == "OPTIMAL":
			// What other programs add: how long they took, and notes.
		case key == "NAME" || key == "DIMENSION" || key == "TYPE":
			return fail("this is a problem (.vrp), not a solution: found %s", quoteShort(text))
		default:
			return fail("expected a Route or Cost line, found %s", quoteShort(text))
		}
	}
	if err := sc.Err(); err != nil {
		return vrp.Solution{}, 0, fmt.Errorf("%s: %w", name, err)
	}
	if len(sol.Routes) == 0 && costLine == 0 { // a cost alone is a plan that serves nobody
		line = max(line, 1)
		return fail("no routes in the file")
	}
	return sol, cost, nil
}

// NumbersVehicles says why a .sol file cannot have the problem's routes: it numbers vehicles, and
// of one of several types there may be any number.
func NumbersVehicles(p *vrp.Problem) error {
	_, err := vehicles(p)
	return err
}

// vehicles is the type of each vehicle of the problem's file, where they are of several types; nil
// where they are of one.
func vehicles(p *vrp.Problem) ([]int32, error) {
	if p == nil || len(p.Fleet) < 2 {
		return nil, nil
	}
	var kinds []int32
	for i, t := range p.Fleet {
		if t.Count == 0 {
			return nil, fmt.Errorf("a .sol file numbers its vehicles, and of type %d there is any number", i)
		}
		numbers := t.Numbers
		if numbers == nil && len(kinds)+t.Count > 100*mostVehicles {
			return nil, fmt.Errorf("a .sol file has a line per vehicle, and there are %d of type %d", t.Count, i)
		}
		if numbers == nil { // one type after the other
			for k := range t.Count {
				numbers = append(numbers, int32(len(kinds)+k))
			}
		}
		for _, k := range numbers {
			for int(k) >= len(kinds) {
				kinds = append(kinds, -1)
			}
			if k < 0 || kinds[k] >= 0 {
				return nil, fmt.Errorf("vehicle %d is of two types", k+1)
			}
			kinds[k] = int32(i)
		}
	}
	if i := slices.Index(kinds, -1); i >= 0 {
		return nil, fmt.Errorf("vehicle %d is of no type", i+1)
	}
	return kinds, nil
}

// WriteSolution writes the routes and their cost as a .sol file: an integer where the cost is one,
// else with every digit it has. A cost of NaN is left out. p is the problem that they are for; nil:
// a plain one.
func WriteSolution(w io.Writer, p *vrp.Problem, s vrp.Solution, cost float64) error {
	if math.IsInf(cost, 0) {
		return fmt.Errorf("write solution: the cost is %g", cost)
	}
	kinds, err := vehicles(p)
	if err != nil {
		return fmt.Errorf("write solution: %w", err)
	}
	var lines [][]int32
	for _, r := range s.Routes {
		if len(r) > 0 {
			lines = append(lines, r)
		}
	}
	if kinds != nil {
		if lines, err = byNumber(kinds, s); err != nil {
			return fmt.Errorf("write solution: %w", err)
		}
	}
	b := bufio.NewWriter(w)
	for i, r := range lines {
		fmt.Fprintf(b, "Route #%d:", i+1)
		for _, v := range r {
			b.WriteString(" " + strconv.Itoa(int(v)))
		}
		b.WriteByte('\n')
	}
	if !math.IsNaN(cost) {
		b.WriteString("Cost " + strconv.FormatFloat(cost, 'f', -1, 64) + "\n")
	}
	return b.Flush()
}

// byNumber gives each route a vehicle of its type: the first that is free.
func byNumber(kinds []int32, s vrp.Solution) ([][]int32, error) {
	lines := make([][]int32, len(kinds))
	free := map[int32][]int{} // vehicles by type
	for k, kind := range kinds {
		free[kind] = append(free[kind], k)
	}
	for i, r := range s.Routes {
		if len(r) == 0 {
			continue
		}
		var kind int32
		if s.Types != nil {
			kind = s.Types[i]
		}
		if len(free[kind]) == 0 {
			return nil, fmt.Errorf("route %d is one more than there are vehicles of type %d", i+1, kind)
		}
		lines[free[kind][0]], free[kind] = r, free[kind][1:]
	}
	return lines, nil
}

// ReadSolutionJSON reads routes from the output of haul solve --json, from what it wrote, or
// from the server's answer: of several objects the last one with routes. The cost is NaN if none
// is stated. Keys other than routes, types and cost belong to a report and are ignored.
func ReadSolutionJSON(r io.Reader, name string) (vrp.Solution, float64, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return vrp.Solution{}, 0, fmt.Errorf("%s: %w", name, err)
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	if LooksGeoJSON(text) {
		return readSolutionGeoJSON(text, name)
	}
	if deep, null := scan(text); deep || null {
		return vrp.Solution{}, 0, fmt.Errorf("%s is not the JSON of a solution: it nests too deep, or a list holds null", name)
	}
	var s vrp.Solution
	cost, found := math.NaN(), false
	for in := json.NewDecoder(bytes.NewReader(text)); ; {
		var part struct {
			Haul   int       `json:"haul"`
			Routes [][]int32 `json:"routes"`
			Types  []int32   `json:"types"`
			Cost   *float64  `json:"cost"`
		}
		if err := in.Decode(&part); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return vrp.Solution{}, 0, fmt.Errorf("%s is not the JSON of a solution: %s", name, mistaken(err))
		}
		if part.Haul != 0 && part.Haul != Version {
			return vrp.Solution{}, 0, fmt.Errorf("%s: haul is %d: this program reads version %d of its JSON", name, part.Haul, Version)
		}
		if part.Routes == nil {
			continue
		}
		if part.Types != nil && len(part.Types) != len(part.Routes) {
			return vrp.Solution{}, 0, fmt.Errorf("%s: types has %d entries for %d routes", name, len(part.Types), len(part.Routes))
		}
		found, s, cost = true, vrp.Solution{Routes: part.Routes, Types: part.Types}, math.NaN()
		if part.Cost != nil {
			cost = *part.Cost
		}
	}
	if !found {
		return vrp.Solution{}, 0, fmt.Errorf("%s has no routes", name)
	}
	return s, cost, nil
}
