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

// column is a column of a table: its name, and the place of the field that it holds.
type column struct {
	name  string
	field []int
	again bool // an earlier column holds the same: it is written under both names, and read from that one
}

// table is the columns and curves of one kind of record, read from the tags of its rows. The first
// column counts what the rows are in order of.
type table struct {
	row     reflect.Type
	columns []column
	curves  []column // TensorBoard's
}

// tableOf reads the tags of a row's type. A field that no column can hold is a mistake of the
// recipe's.
func tableOf(row any) *table {
	t := &table{row: reflect.TypeOf(row).Elem()}
	t.columns = append(t.columns, t.walk(t.row, nil)...)
	if len(t.columns) == 0 || t.row.FieldByIndex(t.columns[0].field).Type.Kind() != reflect.Int {
		panic("report: the first column of " + t.row.String() + " must be an int")
	}
	return t
}

// curvesOf is the curves of a row that is kept in no table.
func curvesOf(row any) *table {
	v := reflect.TypeOf(row)
	if v == nil || v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return &table{}
	}
	t := &table{row: v.Elem()}
	t.walk(t.row, nil)
	return t
}

// walk returns the columns that repeat others under the names that JSON has for them (tag also):
// they stand behind all others.
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

// of is a pointer to the row's field.
func (c *column) of(row reflect.Value) any { return row.FieldByIndex(c.field).Addr().Interface() }

// cells writes a row with as many digits as bring every number back.
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

// at is where in the run a row belongs.
func (t *table) at(row any) int { return *t.columns[0].of(reflect.ValueOf(row).Elem()).(*int) }

// parse reads what cells wrote.
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
	_ = w.WriteAll(rows) // a strings.Builder takes everything
	return []byte(b.String())
}

// open opens the CSV file and returns the rows it keeps: of a run that is not resumed none, of a
// resumed one those whose first column is at most `done`. Rows past that belong to a history that
// did not happen, and a torn row ends what is believed.
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
	// Through another file: a full disk must not cost the rows that were there.
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

// match finds each column of a file's header; -1 where the file is of a version that did not have
// it, which only one that may be empty, or that repeats another, can be.
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

// spread puts a file's cells into the order of the columns.
func (t *table) spread(text []string, of []int) []string {
	out := make([]string, len(of))
	for i, k := range of {
		switch {
		case k >= len(text):
			return nil // a torn row
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
		return nil, nil // an empty file is a history without rows
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
