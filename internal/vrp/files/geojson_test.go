package files

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"haul/internal/vrp"
)

// TestRoutesOverTheDateLine: on a map they are cut there, and no line leads around the world.
func TestRoutesOverTheDateLine(t *testing.T) {
	for _, c := range []struct {
		rows string
		want string
	}{
		{"179,0\n-179,2", `{"type":"MultiLineString","coordinates":[[[179,0],[180,1]],[[-180,1],[-179,2],[-180,1]],[[180,1],[179,0]]]}`},
		{"-179,0\n178,3", `{"type":"MultiLineString","coordinates":[[[-179,0],[-180,1]],[[180,1],[178,3],[180,1]],[[-180,1],[-179,0]]]}`},
		{"180,0\n-179,2", `{"type":"LineString","coordinates":[[-180,0],[-179,2],[-180,0]]}`},
		{"-180,0\n180,0", `{"type":"LineString","coordinates":[[-180,0],[180,0],[-180,0]]}`},
		{"90,0\n-90,0", `{"type":"LineString","coordinates":[[90,0],[-90,0],[90,0]]}`},
		{"179,0\n180,1\n-179,2", `{"type":"MultiLineString","coordinates":[[[179,0],[180,1]],[[-180,1],[-179,2],[-180,1]],[[180,1],[179,0]]]}`},
		{"179,0\n-180,1\n-179,2", `{"type":"MultiLineString","coordinates":[[[179,0],[180,1]],[[-180,1],[-179,2],[-180,1]],[[180,1],[179,0]]]}`},
	} {
		table, route := "id,lon,lat,demand\n", []int32(nil)
		for i, row := range strings.Split(c.rows, "\n") {
			table += string(rune('a'+i)) + "," + row + ",0\n"
			if i > 0 {
				route = append(route, int32(i))
			}
		}
		p, err := readCSV(strings.NewReader(table), "a.csv", 1)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := WriteSolutionGeoJSON(&b, p, vrp.Solution{Routes: [][]int32{route}}); err != nil {
			t.Fatal(err)
		}
		var v struct {
			Features []struct{ Geometry json.RawMessage }
		}
		if err := json.Unmarshal(b.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, string(v.Features[1].Geometry)); diff != "" {
			t.Errorf("%q: %s", c.rows, diff)
		}
	}
}
