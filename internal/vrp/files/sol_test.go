package files

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"haul/internal/limits/limitstest"
	"haul/internal/vrp"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestReadSolutionForms(t *testing.T) {
	want := vrp.Solution{Routes: [][]int32{{1, 2, 3}, {5, 4}}}
	for name, c := range map[string]struct {
		text string
		cost float64
	}{
		"plain":       {"Route #1: 1 2 3\nRoute #2: 5 4\nCost 27591\n", 27591},
		"lower case":  {"route #1: 1 2 3\nroute #2: 5 4\ncost 2.5", 2.5},
		"spaces":      {"\n  Route  # 1 :\t1  2 3 \r\nRoute 2:5 4\r\n\r\n Cost : 7\r\n", 7},
		"CR alone":    {"Route #1: 1 2 3\rRoute #2: 5 4\rCost 3\r", 3},
		"cost first":  {"Cost 1\nRoute #1: 1 2 3\nRoute #2: 5 4\n", 1},
		"no cost":     {"Route #1: 1 2 3\nRoute #2: 5 4", math.NaN()},
		"times":       {"Route #1: 1 2 3\nRoute #2: 5 4\nCost: 7\nTime: 1.5\n", 7},
		"empty route": {"Route #1: 1 2 3\nRoute #2:\nRoute #3: 5 4", math.NaN()},
	} {
		s, cost, err := ReadSolution(strings.NewReader(c.text), "s.sol", nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(want, s) + cmp.Diff(c.cost, cost, cmpopts.EquateNaNs()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestReadSolutionErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "s.sol:1: no routes in the file"},
		{"Comment: none\n", "s.sol:1: no routes in the file"},
		{"Route #1: 1 x\n", `s.sol:1: customer "x" is not a number`},
		{"Route #1: 1\nRoute #2: 0 3\n", "s.sol:2: customer 0: customers are numbered from 1, and the depot at a route's ends is implied"},
		{"Route #1: 99999999999\n", `s.sol:1: customer "99999999999" is beyond 32 bits`},
		{"Route 1 2 3\n", `s.sol:1: expected "Route #1: 1 2 3", found "Route 1 2 3"`},
		{"Route #a: 1\n", `s.sol:1: route number "#a" is not a number`},
		{"Route #1: 1\nCost inf\n", `s.sol:2: cost "inf" is not a number`},
		{"Route #1: 1\nCost 1\nCost 1\n", "s.sol:3: Cost is given twice, first on line 2"},
		{"NAME : x\n", `s.sol:1: this is a problem (.vrp), not a solution: found "NAME : x"`},
		{"Tour 1 2\n", `s.sol:1: expected a Route or Cost line, found "Tour 1 2"`},
	} {
		if _, _, err := ReadSolution(strings.NewReader(c.text), "s.sol", nil); err == nil || err.Error() != c.want {
			t.Errorf("%q:\ngot  %v\nwant %s", c.text, err, c.want)
		}
	}
}

// TestNobodyServedIsReadAgain: where nobody can be served, a plan has a cost and no routes.
func TestNobodyServedIsReadAgain(t *testing.T) {
	var b bytes.Buffer
	if err := WriteSolution(&b, nil, vrp.Solution{}, 0); err != nil {
		t.Fatal(err)
	}
	if s, cost, err := ReadSolution(&b, "s.sol", nil); err != nil || len(s.Routes) != 0 || cost != 0 {
		t.Errorf("%v at %v, %v", s, cost, err)
	}
}

func TestWriteSolution(t *testing.T) {
	s := vrp.Solution{Routes: [][]int32{{3, 1}, nil, {2}}}
	for cost, last := range map[float64]string{27591: "Cost 27591\n", 524.6111: "Cost 524.6111\n", 1e15: "Cost 1000000000000000\n", math.NaN(): ""} {
		var b bytes.Buffer
		if err := WriteSolution(&b, nil, s, cost); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff("Route #1: 3 1\nRoute #2: 2\n"+last, b.String()); diff != "" {
			t.Error(diff)
		}
	}
	if err := WriteSolution(&bytes.Buffer{}, nil, s, math.Inf(1)); err == nil {
		t.Error("an infinite cost was written")
	}
}

func FuzzReadSolution(f *testing.F) {
	f.Add([]byte("Route #1: 1 2 3\nRoute #2: 5 4\nCost 27591\n"))
	f.Add([]byte("route 1:7\ncost: 0.125"))
	f.Fuzz(func(t *testing.T, data []byte) {
		limitstest.Reading(t, limitstest.Unpacked(data), func() {
			s, cost, err := ReadSolution(bytes.NewReader(data), "s.sol", nil)
			if err != nil {
				if !strings.HasPrefix(err.Error(), "s.sol:") || strings.Contains(err.Error(), "\n") {
					t.Fatalf("not one line with its place: %q", err)
				}
				return
			}
			var b bytes.Buffer
			if err := WriteSolution(&b, nil, s, cost); err != nil {
				t.Fatalf("what was read does not write: %v", err)
			}
			s2, cost2, err := ReadSolution(&b, "back.sol", nil)
			if err != nil {
				t.Fatalf("what was written does not read: %v", err)
			}
			if diff := cmp.Diff(s, s2) + cmp.Diff(cost, cost2, cmpopts.EquateNaNs()); diff != "" {
				t.Fatal(diff)
			}
		}, data)
	})
}
