package report

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// column is a column of a table: its name, and the index of its field.
type column struct {
	name  string
	field []int
	again bool // an earlier column has the same field: both are written, and the earlier one is read
}

// table holds the columns and curves of a kind of record, from the tags of its row type. Rows are
// in the order of the first column.
type table struct {
	row     reflect.Type
	columns []column
	curves  []column // curves of TensorBoard
}

// tableOf reads the tags of a row's type. It panics if a field's type fits no column.
func tableOf(row any) *table {
	t := &table{row: reflect.TypeOf(row).Elem()}
	t.columns = append(t.columns, t.walk(t.row, nil)...)
	if len(t.columns) == 0 || t.row.FieldByIndex(t.columns[0].field).Type.Kind() != reflect.Int {
		panic("report: the first column of " + t.row.String() + " must be an int")
	}
	return t
}

// curvesOf returns the curves of a row that has no table.
func curvesOf(row any) *table {
	v := reflect.TypeOf(row)
	if v == nil || v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return &table{}
	}
	t := &table{row: v.Elem()}
	t.walk(t.row, nil)
	return t
}

// walk adds the columns of struct type s. It returns repeated columns under their names in JSON
// (tag also); they come after all others.
func (t *table) walk(s reflect.Type, at []int) (again []column) {
	for i := range s.NumField() {
		f, place := s.Field(i), append(slices.Clone(at), i)
		name, curve := f.Tag.Get("csv"), f.Tag.Get("tb")
		if name == "" && curve == "" && f.Type.Kind() == reflect.Struct {
			again = append(again, t.walk(f.Type, place)...)
		}
		if name != "" {
			switch reflect.New(f.Type).Interface().(type) {
			case *int, **int, *int64, *float64, **float64, *bool, *string:
			default:
				panic("report: no column holds " + f.Type.String() + " " + f.Name)
			}
			t.columns = append(t.columns, column{name: name, field: place})
		}
		if also := f.Tag.Get("also"); also != "" {
			again = append(again, column{name: also, field: place, again: true})
		}
		if curve != "" {
			t.curves = append(t.curves, column{name: curve, field: place})
		}
	}
	return again
}

func (t *table) header() []string {
	names := make([]string, len(t.columns))
	for i := range names {
		names[i] = t.columns[i].name
	}
	return names
}

// of returns a pointer to the column's field of a row.
func (c *column) of(row reflect.Value) any { return row.FieldByIndex(c.field).Addr().Interface() }

// cells formats a row; numbers have enough digits to restore their bits.
func (t *table) cells(row any) []string {
	out, v := make([]string, len(t.columns)), reflect.ValueOf(row).Elem()
	for i := range t.columns {
		switch v := t.columns[i].of(v).(type) {
		case *int:
			out[i] = strconv.Itoa(*v)
		case **int:
			if *v != nil {
				out[i] = strconv.Itoa(**v)
			}
		case *int64:
			out[i] = strconv.FormatInt(*v, 10)
		case *float64:
			out[i] = strconv.FormatFloat(*v, 'g', -1, 64)
		case **float64:
			if *v != nil {
				out[i] = strconv.FormatFloat(**v, 'g', -1, 64)
			}
		case *bool:
			out[i] = strconv.FormatBool(*v)
		case *string:
			out[i] = *v
		}
	}
	return out
}

// at returns the position of a row in the run.
func (t *table) at(row any) int { return *t.columns[0].of(reflect.ValueOf(row).Elem()).(*int) }

// parse parses the output of cells.
func (t *table) parse(text []string) (row any, err error) {
	if len(text) != len(t.columns) {
		return nil, fmt.Errorf("%d cells, want %d", len(text), len(t.columns))
	}
	fresh := reflect.New(t.row)
	for i, s := range text {
		if t.columns[i].again {
			continue
		}
		switch v := t.columns[i].of(fresh.Elem()).(type) {
		case *int:
			*v, err = strconv.Atoi(s)
		case **int:
			if s != "" {
				*v = new(int)
				**v, err = strconv.Atoi(s)
			}
		case *int64:
			*v, err = strconv.ParseInt(s, 10, 64)
		case *float64:
			*v, err = strconv.ParseFloat(s, 64)
		case **float64:
			if s != "" {
				*v = new(float64)
				**v, err = strconv.ParseFloat(s, 64)
			}
		case *bool:
			*v, err = strconv.ParseBool(s)
		case *string:
			*v = s
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.columns[i].name, err)
		}
	}
	return fresh.Interface(), nil
}

func encode(rows ...[]string) []byte {
	var b strings.Builder
	w := csv.NewWriter(&b)
	_ = w.WriteAll(rows) // a strings.Builder does not fail
	return []byte(b.String())
}

// open opens the CSV file and returns the rows that stay: none for a new run, and for a resumed run
// the rows whose first column is at most `done`. Reading stops at the first incomplete row.
func (t *table) open(path string, done int) (*appendFile, []any, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, nil, err
	}
	var rows []any
	if done > 0 {
		var err error
		if rows, err = t.read(path, done); err != nil {
			return nil, nil, err
		}
	}
	text := [][]string{t.header()}
	for _, row := range rows {
		text = append(text, t.cells(row))
	}
	// A temporary file, so that a full disk does not lose the existing rows.
	temp := path + ".tmp"
	if err := os.WriteFile(temp, encode(text...), 0o644); err != nil {
		return nil, nil, errors.Join(err, os.Remove(temp))
	}
	if err := os.Rename(temp, path); err != nil {
		return nil, nil, err
	}
	f, err := openAppend(path, 0)
	return f, rows, err
}

// match returns each column's index in a file's header, or -1 if the file lacks it. ok is false if
// a column is missing that is neither optional nor repeated.
func (t *table) match(names []string) (of []int, ok bool) {
	of = make([]int, len(t.columns))
	found := 0
	for i := range t.columns {
		if of[i] = slices.Index(names, t.columns[i].name); of[i] >= 0 {
			found++
			continue
		}
		if !t.columns[i].again && t.row.FieldByIndex(t.columns[i].field).Type.Kind() != reflect.Pointer {
			return nil, false
		}
	}
	return of, found == len(names)
}

// spread reorders a row's cells into the order of the columns. It returns nil for an incomplete
// row.
func (t *table) spread(text []string, of []int) []string {
	out := make([]string, len(of))
	for i, k := range of {
		switch {
		case k >= len(text):
			return nil // an incomplete row
		case k >= 0:
			out[i] = text[k]
		}
	}
	return out
}

func (t *table) read(path string, done int) ([]any, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.FieldsPerRecord = -1
	names, err := r.Read()
	if err == io.EOF {
		return nil, nil // an empty file has no rows
	}
	of, known := t.match(names)
	if err != nil || !known {
		return nil, errors.New("no history of this version: its columns differ; move it away")
	}
	var rows []any
	for {
		text, err := r.Read()
		if err == io.EOF {
			return rows, nil
		}
		row, bad := t.parse(t.spread(text, of))
		if err != nil || bad != nil || t.at(row) > done {
			return rows, nil
		}
		rows = append(rows, row)
	}
}
