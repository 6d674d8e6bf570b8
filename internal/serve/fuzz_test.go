package serve

import (
	"encoding/json"
	"strings"
	"testing"

	"haul/internal/limits/limitstest"
	"haul/internal/vrp"
)

// Whatever a CSV file holds, its rows are JSON that a browser reads, each as long as the header.
func FuzzTable(f *testing.F) {
	for _, seed := range []string{"", "epoch,a\n1,2\n", "epoch,a\n1,NaN\n2,1e999\n3,0x1p4\n4,1_0\n5,\"<b>\"\n", "a\n\"", "a,b\n1\n1,2,3\n", "epoch\n-0\n+1\n.5\n1e5\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		limitstest.Reading(t, limitstest.Unpacked([]byte(text)), func() {
			var tab table
			tab.parse([]byte(text))
			for _, row := range tab.Rows {
				var cells []any
				if err := json.Unmarshal(row, &cells); err != nil || len(cells) != len(tab.Columns) {
					t.Fatalf("%s: %v", row, err)
				}
			}
			if _, err := json.Marshal(tab.figures()); err != nil {
				t.Fatal(err)
			}
		}, text)
	})
}

// Whatever a request says, it is refused in a line or is a problem that can be solved.
func FuzzSolveRequest(f *testing.F) {
	for _, seed := range []string{`{}`, strings.ReplaceAll(square, "%q", `"exact"`), `{"coords": [[0,0],[1,1]], "demands": [0,1], "capacity": 1, "service": [1]}`,
		`{"coords": [[0,0],[1,1]], "demands": [0,-1], "capacity": -1, "vehicles": -1, "max_duration": -1, "start": [[7]]}`} {
		f.Add(seed)
	}
	limits := Limits{Customers: 50}.orDefault()
	f.Fuzz(func(t *testing.T, text string) {
		limitstest.Reading(t, limitstest.Unpacked([]byte(text)), func() {
			var ask solveRequest
			if ask.decode([]byte(text), &ask) != nil {
				return
			}
			p, _, err := ask.check(limits)
			if err != nil {
				if q := asProblem(err); q.Status < 400 || q.Status >= 500 || strings.ContainsAny(q.Detail, "\n\r") || q.Detail == "" {
					t.Fatalf("%+v", q)
				}
				return
			}
			if p.N() > 8 || p.Plain() != nil {
				return
			}
			_, all, err := vrp.OptimalSolutions(t.Context(), []*vrp.Problem{p}, 1, nil)
			if err != nil || vrp.Validate(p, all[0]) != nil {
				t.Fatalf("%s was accepted and cannot be solved: %v", text, err)
			}
		}, text)
	})
}
