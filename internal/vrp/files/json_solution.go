package files

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"haul/internal/vrp"
)

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
