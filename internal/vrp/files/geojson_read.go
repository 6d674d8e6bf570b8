package files

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"haul/internal/vrp"
)

// Places of a map: a GeoJSON collection of points, whose properties are the columns of a table.
// What a reader could break: features that are not points are named, not dropped.

// LooksGeoJSON reports whether a text is a collection of features.
func LooksGeoJSON(text []byte) bool {
	kind, _ := jsonKind(text)
	return LooksJSON(text) && kind == "geojson"
}

// readGeoJSON reads a problem from points with properties: id, demand, ready, due ..., as the
// columns of a table; "kind": "depot" marks depots, else the first point is it.
func readGeoJSON(r io.Reader, name string, o Options) (*vrp.Problem, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	if deep, _ := scan(text); deep {
		return nil, fmt.Errorf("%s: it nests more than %d deep", name, MaxDepth)
	}
	var all struct {
		Features []struct {
			ID       json.RawMessage `json:"id"`
			Geometry *struct {
				Type        string          `json:"type"`
				Coordinates json.RawMessage `json:"coordinates"`
			} `json:"geometry"`
			Properties json.RawMessage `json:"properties"`
		} `json:"features"`
	}
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("%s is not GeoJSON: %s", name, mistaken(err))
	}
	s := &sheet{foreign: true, name: name, at: 1, head: []string{"lon", "lat"}, decimal: func(s string) string { return s }}
	at := map[string]int{"lon": 0, "lat": 1}
	type cell struct {
		column int
		text   string
	}
	var features [][]cell
	others, count := 0, newTally(o)
	for i, f := range all.Features {
		if f.Geometry == nil || f.Geometry.Type != "Point" {
			others++
			continue
		}
		fail := func(format string, args ...any) (*vrp.Problem, error) {
			return nil, fmt.Errorf("%s: features[%d]: %s", name, i, fmt.Sprintf(format, args...))
		}
		var point []float64
		if err := json.Unmarshal(f.Geometry.Coordinates, &point); err != nil || len(point) < 2 {
			return fail("coordinates are %s: expected longitude and latitude", quoteShort(string(f.Geometry.Coordinates)))
		}
		row := []cell{{0, strconv.FormatFloat(point[0], 'g', -1, 64)}, {1, strconv.FormatFloat(point[1], 'g', -1, 64)}}
		keys, values, err := properties(f.Properties)
		if err != nil {
			return fail("%v", err)
		}
		if f.ID != nil && !slices.Contains(keys, "id") {
			keys, values = append(keys, "id"), append(values, unquote(string(f.ID)))
		}
		for k, key := range keys {
			if key == "lon" || key == "lat" {
				return fail("a property is called %s, which its geometry says", key)
			}
			c, ok := at[key]
			if !ok {
				c = len(s.head)
				at[key] = c
				s.head = append(s.head, key)
			}
			row = append(row, cell{c, values[k]})
		}
		features, s.lines = append(features, row), append(s.lines, i+1)
	}
	// A row has room for the properties of all features, so it is counted before it is made.
	for _, cells := range features {
		if err := count.row(len(s.head)); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		row := make([]string, len(s.head))
		for _, c := range cells {
			row[c.column] = c.text
		}
		s.rows = append(s.rows, row)
	}
	p, err := buildTables([]*sheet{s}, name, o, count)
	if err == nil && others > 0 {
		p.Notes = append(p.Notes, fmt.Sprintf("%d of %d features are no points and are not read", others, len(all.Features)))
	}
	return p, err
}

// properties are a feature's, in their order, as cells.
func properties(text json.RawMessage) (keys, values []string, err error) {
	if text == nil || string(bytes.TrimSpace(text)) == "null" {
		return nil, nil, nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, nil, errors.New("its properties are no object")
	}
	seen := map[string]bool{}
	for d.More() {
		t, err := d.Token()
		key, ok := t.(string)
		if err != nil || !ok {
			return nil, nil, errors.New("its properties are no object")
		}
		var v any
		if err := d.Decode(&v); err != nil {
			return nil, nil, fmt.Errorf("property %s: %w", quoteShort(key), err)
		}
		cell, err := cellOf(v)
		if err != nil {
			return nil, nil, fmt.Errorf("property %s %w", quoteShort(printable(key)), err)
		}
		if seen[key] {
			return nil, nil, fmt.Errorf("property %s is given twice", quoteShort(printable(key)))
		}
		seen[key] = true
		keys, values = append(keys, key), append(values, cell)
	}
	return keys, values, nil
}

// cellOf is a value as a cell: a list has its entries with bars between them.
func cellOf(v any) (string, error) {
	switch v := v.(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	case json.Number:
		return v.String(), nil
	case bool:
		return map[bool]string{true: "yes", false: "no"}[v], nil
	case []any:
		out := ""
		for i, x := range v {
			s, err := cellOf(x)
			if err != nil {
				return "", err
			}
			if i > 0 {
				out += "|"
			}
			out += s
		}
		return out, nil
	}
	return "", errors.New("is an object, which no column reads")
}
