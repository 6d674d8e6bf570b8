package vrp

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPlaneIsAsTheGlobe: distances on the plane are those of the globe, up to its curvature, in the
// north and over the date line.
func TestPlaneIsAsTheGlobe(t *testing.T) {
	const degree = earthRadius * math.Pi / 180
	for _, place := range [][2]float64{{10, 0}, {10.7, 59.9}, {-70, -53}, {179.99, -17}, {-179.99, 66}, {180, 5}, {-180, 5}} {
		p := &Problem{Metric: GreatCircle}
		for _, by := range [][2]float64{{0, 0}, {0.1, 0}, {0, 0.1}, {-0.1, 0.05}, {0.07, -0.1}} {
			p.X, p.Y = append(p.X, math.Remainder(place[0]+by[0], 360)), append(p.Y, place[1]+by[1])
		}
		x, y := p.Plane()
		for i := range x {
			for j := range i {
				if plane, globe := degree*math.Hypot(x[i]-x[j], y[i]-y[j]), p.Dist(i, j); math.Abs(plane/globe-1) > 0.01 {
					t.Errorf("at %v, from %d to %d: %.0f m on the plane, %.0f m on the globe", place, i, j, plane, globe)
				}
			}
		}
	}
	flat := &Problem{X: []float64{-500, 200}, Y: []float64{95, 1}}
	if x, y := flat.Plane(); !slices.Equal(x, flat.X) || !slices.Equal(y, flat.Y) {
		t.Errorf("coordinates of a plane were changed: %v, %v", x, y)
	}
}

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
		p, err := ReadCSV(strings.NewReader(table), "a.csv", 1)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := WriteSolutionGeoJSON(&b, p, Solution{Routes: [][]int32{route}}); err != nil {
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
