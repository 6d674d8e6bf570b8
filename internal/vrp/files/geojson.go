package files

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"math"

	"haul/internal/vrp"
)

// Routes as a map. What a reader could break: a route across the date line is cut there, or a
// map draws its line once around the world.

// WriteSolutionGeoJSON writes a LineString per route with its customers, and the depot as a Point.
// Coordinates are the problem's own, which is a map where they are degrees: a route over the date
// line is then cut there, into a MultiLineString, as RFC 7946 asks, or a map would lead it once
// around the world.
func WriteSolutionGeoJSON(w io.Writer, p *vrp.Problem, s vrp.Solution) error {
	if p.X == nil {
		return errors.New("GeoJSON needs coordinates, and the problem gives distances alone")
	}
	point := func(v int) []float64 { return []float64{p.X[v], p.Y[v]} }
	all := []feature{{"Feature", geometry{"Point", point(0)}, map[string]any{"kind": "depot", "id": p.ID(0)}}}
	for i, r := range s.Routes {
		if len(r) == 0 {
			continue
		}
		line := [][]float64{point(0)}
		var ids []string
		load := 0
		for _, v := range r {
			line = append(line, point(int(v)))
			ids = append(ids, p.ID(int(v)))
			load += int(p.Demand[v])
		}
		if !p.Open {
			line = append(line, point(0))
		}
		shape := geometry{"LineString", line}
		if p.Metric == vrp.GreatCircle {
			shape = lineOf(line)
		}
		all = append(all, feature{"Feature", shape, map[string]any{"kind": "route", "route": i + 1, "customers": r,
			"ids": ids, "load": p.Amount(0, int64(load)), "cost": p.Cost(vrp.Solution{Routes: [][]int32{r}})}})
	}
	b := bufio.NewWriter(w)
	e := json.NewEncoder(b)
	if err := e.Encode(map[string]any{"type": "FeatureCollection", "features": all}); err != nil {
		return err
	}
	return b.Flush()
}

// lineOf is a line of longitudes and latitudes, cut where it crosses the date line.
func lineOf(line [][]float64) geometry {
	switch parts := cutAtDateLine(line); len(parts) {
	case 0: // up and down the date line: a point
		return geometry{"LineString", line}
	case 1:
		return geometry{"LineString", parts[0]}
	default:
		return geometry{"MultiLineString", parts}
	}
}

// cutAtDateLine parts a line of longitudes and latitudes wherever the short way to its next point
// leads over ±180°.
func cutAtDateLine(line [][]float64) [][][]float64 {
	var parts [][][]float64
	part := line[:1:1]
	end := func() {
		if len(part) > 1 { // one point is no line
			parts = append(parts, part)
		}
	}
	for i, to := range line[1:] {
		from := line[i]
		if math.Abs(to[0]-from[0]) > 180 {
			edge := math.Copysign(180, from[0])
			over := from[1]
			if way := shortWay(to[0] - from[0]); way != 0 {
				over += (edge - from[0]) / way * (to[1] - from[1])
			}
			if from[0] != edge {
				part = append(part, []float64{edge, over})
			}
			end()
			part = nil
			if to[0] != -edge {
				part = append(part, []float64{-edge, over})
			}
		}
		part = append(part, to)
	}
	end()
	return parts
}

// shortWay is a difference of longitudes within ±180°.
func shortWay(degrees float64) float64 { return math.Remainder(degrees, 360) }
