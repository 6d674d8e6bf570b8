package files

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"haul/internal/npy"
	"haul/internal/vrp"
)

// Matrices of distances and durations beside tables: .csv, .npy, a sheet, or answers of OSRM's
// and Valhalla's table services. What a reader could break: a road engine counts metres and
// seconds, and its answer is converted to the table's unit of time; everything else is taken
// unchanged. Rows and columns that are named by ids are put into the order of the places.

// matrices are what one file gives: either may be nil.
type matrices struct {
	distance, duration []float64
	engine             bool // metres and seconds
}

func (t *tables) readMatrices() error {
	n := len(t.places)
	var distance, duration []float64
	for _, in := range []struct {
		what  string
		file  *Input
		sheet *sheet
		to    *[]float64
	}{{"distances", t.o.Distances, t.distances, &distance}, {"durations", t.o.Durations, t.durations, &duration}} {
		if in.sheet != nil && in.file != nil {
			return fmt.Errorf("%s: the %s are given twice, first by %s", in.file.Name, in.what, in.sheet.name)
		}
		var m matrices
		var err error
		switch {
		case in.sheet != nil:
			m.distance, err = t.fromSheet(in.sheet, n)
		case in.file != nil:
			m, err = t.fromFile(in.file, n)
		default:
			continue
		}
		if err != nil {
			return err
		}
		if m.engine {
			for i := range m.duration {
				m.duration[i] = m.duration[i] / 60 * t.minute
			}
			t.metres = t.metres || m.distance != nil
			if in.what == "durations" {
				duration = m.duration
			} else {
				distance = m.distance
				if duration == nil && t.o.Durations == nil && t.durations == nil {
					duration = m.duration // of the same answer
				}
			}
			if *in.to == nil {
				return fmt.Errorf("%s: it has no %s", in.file.Name, in.what)
			}
			continue
		}
		*in.to = m.distance
	}
	if distance == nil && duration == nil {
		return nil
	}
	if distance == nil {
		distance, t.metres = duration, false // what a way costs is the time that it takes
	}
	t.p.Metric, t.p.Weights = vrp.Explicit, distance
	if duration != nil {
		t.p.Profiles = []vrp.Profile{{Distance: distance, Duration: duration}}
	}
	return nil
}

// fromFile reads a matrix by what is in the file.
func (t *tables) fromFile(in *Input, n int) (m matrices, err error) {
	switch {
	case bytes.HasPrefix(in.Data, []byte("\x93NUMPY")):
		m.distance, err = fromNumPy(in, n)
	case LooksJSON(in.Data), bytes.HasPrefix(bytes.TrimSpace(in.Data), []byte("[")):
		return fromEngine(in, n)
	default:
		var book []*sheet
		if book, err = readBook(in.Data, in.Name, t.tally); err != nil {
			return m, err
		}
		if len(book) > 1 {
			return m, fmt.Errorf("%s: it has %d sheets: expected one", in.Name, len(book))
		}
		m.distance, err = t.fromSheet(book[0], n)
	}
	return m, err
}

// fromNumPy reads an array of n × n numbers.
func fromNumPy(in *Input, n int) ([]float64, error) {
	a, err := npy.Read(bytes.NewReader(in.Data), in.Name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", in.Name, err)
	}
	if !slices.Equal(a.Shape, []int{n, n}) {
		return nil, fmt.Errorf("%s: an array of shape %v for %d places: expected %d × %d", in.Name, a.Shape, n, n, n)
	}
	out := make([]float64, n*n)
	if err := a.Next(out); err != nil {
		return nil, fmt.Errorf("%s: %w", in.Name, err)
	}
	return out, validateMatrix(in.Name, out, n)
}

// validateMatrix refuses what is no distance.
func validateMatrix(name string, m []float64, n int) error {
	for i, x := range m {
		if !(x >= 0 && x <= math.MaxFloat64) {
			return fmt.Errorf("%s: row %d, column %d is %g: expected a number from 0 on", name, i/n+1, i%n+1, x)
		}
	}
	return nil
}

// fromSheet reads n rows of n numbers, which ids may head and begin.
func (t *tables) fromSheet(s *sheet, n int) ([]float64, error) {
	rows := append([][]string{s.head}, s.rows...)
	lines := append([]int{s.at}, s.lines...)
	order := make([]int, n) // of places, by column
	for i := range order {
		order[i] = i
	}
	to := order
	named := len(s.head) == n+1 && len(s.rows) == n
	headed := named
	if !named && len(s.head) == n && len(s.rows) == n {
		headed = true
	}
	find := func(line int, cells []string) ([]int, error) {
		out := make([]int, n)
		seen := map[int]bool{}
		for i, c := range cells {
			at, ok := t.byID[printable(strings.TrimSpace(c))]
			if !ok || seen[at] {
				return nil, s.errorf(line, "%s is the id of no place, or stands there twice", quoteShort(printable(strings.TrimSpace(c))))
			}
			out[i], seen[at] = at, true
		}
		return out, nil
	}
	var err error
	if headed {
		head := s.head
		if named {
			head = head[1:]
		}
		if to, err = find(s.at, head); err != nil {
			return nil, err
		}
		rows, lines = rows[1:], lines[1:]
	}
	if len(rows) != n {
		return nil, fmt.Errorf("%s: %d rows for %d places: expected one for each, the depots' first, or a row and a column of ids", s.name, len(rows), n)
	}
	from := order
	if named {
		var ids []string
		for _, r := range rows {
			ids = append(ids, r[0])
		}
		if from, err = find(lines[0], ids); err != nil {
			return nil, err
		}
	}
	out := make([]float64, n*n)
	for i, cells := range rows {
		if named {
			cells = cells[1:]
		}
		if len(cells) != n {
			return nil, s.errorf(lines[i], "%d numbers for %d places", len(cells), n)
		}
		for j, c := range cells {
			x, err := parseWithin(s.decimal(c), 1<<53, "is too large")
			if err == nil && x < 0 {
				err = fmt.Errorf("is negative")
			}
			if err != nil {
				return nil, s.errorf(lines[i], "%s from %s to %s %v", quoteShort(strings.TrimSpace(c)), quoteShort(t.places[from[i]].id), quoteShort(t.places[to[j]].id), err)
			}
			out[from[i]*n+to[j]] = x
		}
	}
	return out, nil
}

// fromEngine reads the answer of OSRM's or Valhalla's table service, or a bare list of rows.
func fromEngine(in *Input, n int) (m matrices, err error) {
	fail := func(format string, args ...any) (matrices, error) {
		return matrices{}, fmt.Errorf("%s: %s", in.Name, fmt.Sprintf(format, args...))
	}
	if deep, _ := scan(in.Data); deep {
		return fail("it nests more than %d deep", MaxDepth)
	}
	text := bytes.TrimPrefix(in.Data, []byte("\ufeff"))
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("[")) {
		var rows [][]*float64
		if err := json.Unmarshal(text, &rows); err != nil {
			return fail("%s", mistaken(err))
		}
		m.distance, err = whole2(in.Name, rows, n, 1)
		return m, err
	}
	var answer struct {
		Code      string          `json:"code"`
		Message   string          `json:"message"`
		Error     string          `json:"error"`
		Durations [][]*float64    `json:"durations"`
		Distances [][]*float64    `json:"distances"`
		Units     string          `json:"units"`
		Table     json.RawMessage `json:"sources_to_targets"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return fail("%s", mistaken(err))
	}
	m.engine = true
	far := 1.0
	switch {
	case answer.Code != "" && answer.Code != "Ok":
		return fail("the road engine answered %s: %s", quoteShort(printable(answer.Code)), printable(answer.Message))
	case answer.Error != "":
		return fail("the road engine answered: %s", printable(answer.Error))
	case answer.Table != nil:
		far = 1000
		if answer.Units == "miles" {
			far = 1609.344
		}
		if err := valhalla(answer.Table, &answer.Durations, &answer.Distances); err != nil {
			return fail("sources_to_targets: %v", err)
		}
	case answer.Durations == nil && answer.Distances == nil:
		return fail("it has neither durations, distances nor sources_to_targets: expected the answer of OSRM's or Valhalla's table service")
	}
	if answer.Distances != nil {
		if m.distance, err = whole2(in.Name+": distances", answer.Distances, n, far); err != nil {
			return m, err
		}
	}
	if answer.Durations != nil {
		m.duration, err = whole2(in.Name+": durations", answer.Durations, n, 1)
	}
	return m, err
}

// valhalla reads either form of Valhalla's matrix: a cell per pair, or lists of numbers.
func valhalla(table json.RawMessage, durations, distances *[][]*float64) error {
	var cells [][]struct {
		Distance *float64 `json:"distance"`
		Time     *float64 `json:"time"`
	}
	if json.Unmarshal(table, &cells) == nil {
		for _, row := range cells {
			var d, t []*float64
			for _, c := range row {
				d, t = append(d, c.Distance), append(t, c.Time)
			}
			*distances, *durations = append(*distances, d), append(*durations, t)
		}
		return nil
	}
	var lists struct {
		Durations [][]*float64 `json:"durations"`
		Distances [][]*float64 `json:"distances"`
	}
	if err := json.Unmarshal(table, &lists); err != nil {
		return fmt.Errorf("%s", mistaken(err))
	}
	*durations, *distances = lists.Durations, lists.Distances
	return nil
}

// whole2 is a square matrix in one row, every pair of which has a number.
func whole2(name string, rows [][]*float64, n int, by float64) ([]float64, error) {
	if len(rows) != n {
		return nil, fmt.Errorf("%s: %d rows for %d places: expected one for each, the depots' first", name, len(rows), n)
	}
	out := make([]float64, 0, n*n)
	for i, row := range rows {
		if len(row) != n {
			return nil, fmt.Errorf("%s: row %d has %d numbers for %d places", name, i+1, len(row), n)
		}
		for j, x := range row {
			if x == nil {
				return nil, fmt.Errorf("%s: row %d, column %d is null: there is no way from place %d to place %d", name, i+1, j+1, i, j)
			}
			out = append(out, *x*by)
		}
	}
	return out, validateMatrix(name, out, n)
}
