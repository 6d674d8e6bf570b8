package files

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"

	"haul/internal/vrp"
)

// CVRPLIB's .sol files. What a reader could break: customers are numbered 1..N without the depot,
// exactly as in Solution, so numbers pass through unchanged.

// LoadSolution reads a .sol file.
func LoadSolution(path string) (vrp.Solution, float64, error) {
	f, err := os.Open(path)
	if err != nil {
		return vrp.Solution{}, 0, err
	}
	defer f.Close()
	return ReadSolution(f, path)
}

// ReadSolution reads the routes and the stated cost, NaN if the file states none. It does not
// judge them: that is Validate's work. Routes without customers vanish.
func ReadSolution(r io.Reader, name string) (vrp.Solution, float64, error) {
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
			if _, err := parseInt(strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(number), "#"))); err != nil {
				return fail("route number %s %v", quoteShort(number), err)
			}
			var route []int32
			for f := range strings.FieldsSeq(list) {
				c, err := parseInt(f)
				if err != nil {
					return fail("customer %s %v", quoteShort(f), err)
				}
				if c < 1 {
					return fail("customer %d: customers are numbered from 1, and the depot at a route's ends is implied", c)
				}
				route = append(route, int32(c))
			}
			if len(route) > 0 {
				sol.Routes = append(sol.Routes, route)
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
		case key == "TIME" || key == "RUNTIME" || key == "COMMENT":
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
	if len(sol.Routes) == 0 {
		line = max(line, 1)
		return fail("no routes in the file")
	}
	return sol, cost, nil
}

// WriteSolution writes the routes and their cost in CVRPLIB's .sol format: an integer where the
// cost is one, else with every digit it has. A cost of NaN is left out.
func WriteSolution(w io.Writer, s vrp.Solution, cost float64) error {
	if math.IsInf(cost, 0) {
		return fmt.Errorf("write solution: the cost is %g", cost)
	}
	b := bufio.NewWriter(w)
	number := 0
	for _, r := range s.Routes {
		if len(r) == 0 {
			continue
		}
		number++
		fmt.Fprintf(b, "Route #%d:", number)
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
