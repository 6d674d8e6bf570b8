package files

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"haul/internal/vrp"
)

// Coordinates from a table, and routes as a table or a map. What a reader could break: a row's id
// is kept beside the number it gets here, and every output names customers by both, because a
// table's ids need not count from 1.

// Farthest is how far from 0 a coordinate may lie where distances are not rounded: its routes are
// still told apart to a ten-thousandth.
const Farthest = 1e12

// LoadCSV reads a table with a header: id, x, y, demand in any order, or lat and lon in place of x
// and y, which makes distances great circles in metres. The first row is the depot; its demand may
// be 0 or empty. Further columns are optional parts of the problem (csv_columns.go). Cells are
// separated by commas, or as spreadsheets in other languages do it, by semicolons, where a number
// may have a decimal comma, or by tabs.
func LoadCSV(path string, capacity int32) (*vrp.Problem, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p, err := ReadCSV(f, path, capacity)
	if err != nil {
		return nil, err
	}
	p.Name = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	return p, nil
}

// ReadCSV is LoadCSV from a reader. Errors begin with name and line.
func ReadCSV(r io.Reader, name string, capacity int32) (*vrp.Problem, error) {
	text := bufio.NewReaderSize(lineEnds(io.LimitReader(r, maxFile)), headWithin)
	in := csv.NewReader(text)
	start, _ := text.Peek(headWithin)
	if bad := notText(start); bad != "" {
		return nil, fmt.Errorf("%s: %s", name, bad)
	}
	in.Comma, _ = separator(start)
	in.TrimLeadingSpace = in.Comma != '\t' // or an empty cell would be none
	in.Comment = '#'
	cell := func(s string) string { // with a decimal point
		s = strings.TrimSpace(s)
		if in.Comma == ';' && !strings.Contains(s, ".") {
			s = strings.Replace(s, ",", ".", 1)
		}
		return s
	}
	number := func(s string) (float64, error) {
		return parseWithin(cell(s), Farthest, "is beyond 1e12: give coordinates in a larger unit")
	}
	head, err := in.Read()
	if err != nil {
		return nil, fmt.Errorf("%s:1: no header: expected id,x,y,demand or id,lat,lon,demand", name)
	}
	p := &vrp.Problem{Capacity: capacity, Metric: vrp.Exact}
	at := map[string]int{}
	var keys []string
	for i, h := range head {
		key := columnKey(h)
		if _, twice := at[key]; twice {
			return nil, fmt.Errorf("%s:1: column %s is given twice", name, quoteShort(key))
		}
		at[key] = i
		keys = append(keys, key)
	}
	where := func(key string) (int, bool) { i, ok := at[key]; return i, ok }
	xKey, yKey := "x", "y"
	if _, ok := where("lat"); ok {
		p.Metric, xKey, yKey = vrp.GreatCircle, "lon", "lat"
	}
	for _, key := range []string{"id", xKey, yKey, "demand"} {
		if _, ok := where(key); !ok {
			return nil, fmt.Errorf("%s:1: no column %q: expected id,x,y,demand or id,lat,lon,demand", name, key)
		}
	}
	if p.Notes, err = checkColumns(keys, head); err != nil {
		return nil, fmt.Errorf("%s:1: %w", name, err)
	}
	ids := map[string]bool{}
	var rows []row
	for {
		cells, err := in.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		var bad *csv.ParseError // of a row that may have no field yet, and so no place
		if errors.As(err, &bad) {
			return nil, fmt.Errorf("%s:%d: not a row like the header: %w", name, bad.StartLine, bad.Err)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		line, _ := in.FieldPos(0)
		fail := func(format string, args ...any) (*vrp.Problem, error) {
			return nil, fmt.Errorf("%s:%d: %s", name, line, fmt.Sprintf(format, args...))
		}
		id := printable(strings.TrimSpace(cells[at["id"]]))
		if ids[id] {
			return fail("id %s is given twice", quoteShort(id))
		}
		ids[id] = true
		var place [2]float64
		for i, key := range []string{xKey, yKey} {
			if place[i], err = number(cells[at[key]]); err != nil {
				return fail("%s %s of %s %v", key, quoteShort(cells[at[key]]), quoteShort(id), err)
			}
		}
		x, y := place[0], place[1]
		if p.Metric == vrp.GreatCircle && (math.Abs(y) > 90 || math.Abs(x) > 180) {
			return fail("lat %g, lon %g of %s lie outside ±90, ±180", y, x, quoteShort(id))
		}
		text := strings.TrimSpace(cells[at["demand"]])
		demand := 0
		_, picks := where("pickup")
		if text != "" || len(p.Demand) > 0 && !picks {
			if demand, err = parseInt(cell(text)); err != nil {
				return fail("demand %s of %s %v", quoteShort(text), quoteShort(id), err)
			}
		}
		if len(p.Demand) == 0 && demand != 0 {
			return fail("the first row is the depot, and it has demand %d: expected 0", demand)
		}
		if demand < 0 {
			return fail("demand %d of %s is negative", demand, quoteShort(id))
		}
		if demand > int(capacity) {
			return fail("demand %d of %s is over the capacity %d", demand, quoteShort(id), capacity)
		}
		r := row{ready: math.NaN(), due: math.NaN(), decimal: cell}
		for _, c := range columns {
			i, ok := where(c.name)
			if !ok {
				continue
			}
			if text := strings.TrimSpace(cells[i]); text != "" {
				if err := c.read(&r, text); err != nil {
					return fail("%s %s of %s %v", c.name, quoteShort(text), quoteShort(id), err)
				}
			}
		}
		rows = append(rows, r)
		p.IDs = append(p.IDs, id)
		p.X, p.Y, p.Demand = append(p.X, x), append(p.Y, y), append(p.Demand, int32(demand))
	}
	if len(p.Demand) < 2 {
		return nil, fmt.Errorf("%s: rows below the header: %d, expected a depot and at least one customer", name, len(p.Demand))
	}
	if err := optionalParts(p, rows); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	judged := *p
	if judged.Metric == vrp.GreatCircle {
		judged.Speed = 1 // the caller's to say
	}
	if err := judged.Check(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

// headWithin is how many bytes may stand up to the end of a header.
const headWithin = 1 << 16

// IsTable tells whether a text begins as ReadCSV takes it: its first line that is no comment names
// a column of demands.
func IsTable(text []byte) bool {
	_, is := separator(bytes.ReplaceAll(text[:min(len(text), headWithin)], []byte("\r"), []byte("\n")))
	return is
}

// StartsTable is IsTable of what a reader has, which is read as far as a header may go.
func StartsTable(r io.Reader) (bool, error) {
	head, err := io.ReadAll(io.LimitReader(r, headWithin))
	return IsTable(head), err
}

// separator is what parts the cells of a table, by its header: what makes one of them the demand.
// is tells whether anything does.
func separator(start []byte) (comma rune, is bool) {
	for line := range bytes.Lines(start) {
		if line = bytes.TrimSpace(line); len(line) == 0 || line[0] == '#' {
			continue
		}
		for _, c := range ",;\t" {
			for cell := range bytes.SplitSeq(line, []byte(string(c))) {
				if cell = bytes.Trim(cell, "\ufeff\" \t"); len(cell) < len(line) && bytes.EqualFold(cell, []byte("demand")) {
					return c, true
				}
			}
		}
		for _, c := range ",;\t" {
			if bytes.ContainsRune(line, c) {
				return c, false
			}
		}
		break
	}
	return ',', false
}
