package testset

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"haul/internal/pickle"
	"haul/internal/vrp"
	"haul/internal/vrp/files"
)

// TestReadMVMoE: a limit, windows and open routes are what the validator holds routes to.
func TestReadMVMoE(t *testing.T) {
	list := func(v ...float64) (out []any) {
		for _, x := range v {
			out = append(out, x)
		}
		return out
	}
	// two customers one and two to the right of the depot
	plain := pickle.Tuple{[]any{list(0, 0)}, []any{list(1, 0), list(2, 0)}, list(3, 4), 40.0}
	windows := []any{list(0.2, 0.3), list(0.5, 0.5), list(1.3, 4.0)}
	there, back := []int32{1, 2}, []int32{2, 1}
	for _, c := range []struct {
		name    string
		more    []any
		valid   [][]int32 // routes of all customers that are allowed
		invalid [][]int32
		cost    float64 // of the first valid one
	}{
		{"cvrp50_uniform.pkl", nil, [][]int32{there, back}, nil, 4},
		{"kool.pkl", []any{1.0, 2.0, 1.0}, [][]int32{there, back}, nil, 4},
		{"ovrp50_uniform.pkl", nil, [][]int32{there, back}, nil, 2},
		{"vrpl50_uniform.pkl", []any{4.0}, [][]int32{there}, nil, 4},
		{"vrpl_short.pkl", []any{3.9}, nil, [][]int32{there}, 0},
		{"OVRPL50_uniform.pkl", []any{3.9}, [][]int32{there, back}, nil, 2},
		// served until 1.2, within a window that ends at 1.3; the other way round it is too late
		{"vrptw50_uniform.pkl", windows, [][]int32{there}, [][]int32{back}, 4},
		{"vrptw_early.pkl", []any{list(0.31, 0.2), list(0.5, 0.5), list(1.3, 4.0)}, nil, [][]int32{there}, 0}, // until 1.31
		{"vrptw_back.pkl", []any{list(0.2, 0.3), list(0.5, 2.4), list(1.3, 4.0)}, nil, [][]int32{there}, 0},   // back at 4.7
		{"ovrptw_back.pkl", []any{list(0.2, 0.3), list(0.5, 2.4), list(1.3, 4.0)}, [][]int32{there}, nil, 2},
		{"ovrpltw50_uniform.pkl", append([]any{1.9}, windows...), nil, [][]int32{there}, 0},
	} {
		path := filepath.Join(t.TempDir(), c.name)
		var text bytes.Buffer
		if err := pickle.Encode(&text, []any{append(append(pickle.Tuple{}, plain...), c.more...)}); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Load(path, files.Options{})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if open := strings.HasPrefix(strings.ToLower(c.name), "o"); (s.Note != "") != open {
			t.Errorf("%s: it says %q", c.name, s.Note)
		}
		p := s.Problems[0]
		for k, route := range append(c.valid, c.invalid...) {
			sol := vrp.Solution{Routes: [][]int32{route}}
			if err := vrp.Validate(p, sol); (err == nil) != (k < len(c.valid)) {
				t.Errorf("%s: route %v: %v", c.name, route, err)
			} else if err == nil && k == 0 && p.Cost(sol) != c.cost {
				t.Errorf("%s: %v costs %g", c.name, route, p.Cost(sol))
			}
		}
	}
	for want, more := range map[string][]any{
		"2 parts follow its capacity": {1.0, 2.0}, "limit of a route's length is no number above 0": {0.0},
		"its ends of windows: no list of numbers": {list(1, 1), list(1, 1), 7.0}, "2 customers, 1 services": {list(1), list(1, 1), list(1, 1)},
		"is no number above": {list(1, 2)}} {
		var text bytes.Buffer
		if err := pickle.Encode(&text, []any{append(append(pickle.Tuple{}, plain...), more...)}); err != nil {
			t.Fatal(err)
		}
		if _, err := readPickle(text.Bytes()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", more, err, want)
		}
	}
	plain[2] = list(3, -4)
	var text bytes.Buffer
	if err := pickle.Encode(&text, []any{plain}); err != nil {
		t.Fatal(err)
	}
	if _, err := readPickle(text.Bytes()); err == nil || !strings.Contains(err.Error(), "the demand of customer 2 is negative, -4: backhauls") {
		t.Errorf("backhauls: %v", err)
	}
}
