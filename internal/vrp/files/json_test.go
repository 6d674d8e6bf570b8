package files

import (
	"bytes"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"haul/internal/limits/limitstest"
	"haul/internal/vrp"
	"haul/internal/vrp/vrptest"
)

// TestRoundTrip: every part that a problem can have comes back from Haul's own JSON as it was.
func TestRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 2000 {
		p := vrptest.Draw(r)
		var b bytes.Buffer
		if err := WriteJSON(&b, p); err != nil {
			t.Fatal(err)
		}
		text := b.String()
		q, err := ReadJSON(&b, "f")
		if err != nil {
			t.Fatalf("%d: %v in %s", i, err, text)
		}
		forgetNeutral(p)
		if diff := cmp.Diff(p, q, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("%d: %s\n%s", i, diff, text)
		}
		if !strings.HasPrefix(text, `{"haul":1,`) {
			t.Fatalf("%s does not say its version", text)
		}
	}
}

func TestJSONIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		``:                         "it is empty",
		`{"demands":[0,1]`:         "ends in the middle",
		`{"demandz":[0,1]}`:        `unknown key "demandz": is "demands" meant?`,
		`{"demands":[0,1]} {}`:     "more than one JSON object",
		`{"demands":[0,null]}`:     "holds null",
		`{"demands":[0,1.5]}`:      "demands takes whole numbers",
		`{}`:                       "coords is empty",
		`{"haul":2,"demands":[0]}`: "haul is 2: this program reads version 1",
		`{"demands":[0,1],"coords":[[0,0],[1,1]]}`:                                                  "capacity is missing",
		`{"demands":[0,1],"capacity":3}`:                                                            "places need coordinates, or distances",
		`{"demands":[0,1],"capacity":3,"distances":[[0,1]]}`:                                        "distances has 1 rows for 2 places",
		`{"demands":[0,1],"capacity":3,"distances":[[0,1],[1]]}`:                                    "distances[1] has 1 numbers for 2 places",
		`{"demands":[0,1],"capacity":3,"durations":[[0,1],[1,0]]}`:                                  "durations are given without distances",
		`{"demands":[0,1],"capacity":3,"distances":[[0,1],[1,0]],"distance":"exact"}`:               "use one of them",
		`{"demands":[0,1],"capacity":3,"distances":[[0,1],[1,0]],"profiles":[{"distances":[[0]]}]}`: "profiles[0].distances has 1 rows",
		`{"demands":[0,1],"capacity":3,"coords":[[0,0],[1,1]],"windows":[[[0,1]]]}`:                 "windows has 1 entries for 2 places",
		`{"demands":[0,1],"capacity":3,"coords":[[0,0],[1,1]],"windows":[[],[[5,4]]]}`:              "windows[1][0] closes at 4, before it opens at 5",
		`{"demands":[0,1],"capacity":3,"coords":[[0,0],[1,1]],"windows":[[],[[]]]}`:                 "windows[1][0] has 0 numbers",
		`{"demands":[0,1],"capacity":3,"coords":[[0,0],[1,1]],"objective":"fame"}`:                  `objective is "fame": use cost, vehicles or longest_route`,
		`{"demands":[0,1],"capacity":3,"coords":[[0,0],[1,1]],"depots":3}`:                          "depots is 3 and there are 2 places",
		`{"demands":[0,1],"coords":[[0,0],[1,1]],"fleet":[{"capacity":[3],"shift":[1,2,3]}]}`:       "fleet[0].shift[0] has 3 numbers",
		`{"demands":[0,4],"capacity":3,"coords":[[0,0],[1,1]]}`:                                     "over the capacity",
	} {
		if _, err := ReadJSON(strings.NewReader(text), "f.json"); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "f.json") {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestOneRuleForNumbers: on every surface 63.0 is 63, a key whose value is null is left out, and a
// null in a list is refused.
func TestOneRuleForNumbers(t *testing.T) {
	for before, want := range map[string]string{`[1.0, 2.50, -3.0e2,"4.0\"5.0"]`: `[1, 2.50, -300,"4.0\"5.0"]`, `[1,2.5]`: `[1,2.5]`, `[1e300]`: `[1e300]`, `1.0`: `1`, `[1.0.0]`: `[1.0.0]`} {
		if got := string(wholeNumbers([]byte(before))); got != want {
			t.Errorf("%s becomes %s, want %s", before, got, want)
		}
	}
	p, err := ReadJSON(strings.NewReader(`{"coords":[[0,0],[1.0,1]],"demands":[0.0,63.0],"capacity":6.4e1,"fleet":null,"name":null}`), "f")
	if err != nil || p.Demand[1] != 63 || p.Capacity != 64 || p.Fleet != nil {
		t.Errorf("%v: %+v", err, p)
	}
	var v struct {
		A int   `json:"a"`
		B []int `json:"b"`
	}
	if err := Decode([]byte(`{"a":63.0,"b":null}`), &v); err != nil || v.A != 63 {
		t.Errorf("%v: %+v", err, v)
	}
	for _, text := range []string{`{"a":63.5}`, `{"b":[null]}`} {
		if err := Decode([]byte(text), &v); err == nil {
			t.Errorf("%s is read", text)
		}
	}
	for text, want := range map[string]string{
		`{"demands":[0,2147483648]}`:                         "demands takes whole numbers of 32 bits, not 2147483648",
		`{"demands":[0,-2147483649]}`:                        "demands takes whole numbers of 32 bits, not -2147483649",
		`{"priority":[9223372036854775808]}`:                 "priority takes whole numbers of 64 bits, not 9223372036854775808",
		`{"clock":1e999}`:                                    "clock takes numbers, not 1e999",
		`{"clock":01}`:                                       `"01" is no number`,
		`{"clock":-}`:                                        `"-" is no number`,
		`{"clock":1.}`:                                       `"1." is no number`,
		`{"clock":.5}`:                                       "invalid character '.'",
		`{"name":"a` + "\n" + `b"}`:                          `invalid character '\n' in string literal`,
		`{"name":"a`:                                         "ends in the middle",
		`{"coords":[[0,0],[1,1]],"coords":[]}`:               `"coords" is given twice`,
		`{"fleet":[{"capasity":[1]}]}`:                       `unknown key "fleet[0].capasity": is "capacity" meant?`,
		`{"fleet":[{"allowed":[]}]}`:                         "fleet[0].allowed is empty",
		`{"capacity":3,"fleet":[{}],"coords":[[0,0],[1,1]]}`: "capacity and fleet both say what vehicles carry",
		`{"open":tru}`:                                       "in literal true or false",
	} {
		if _, err := ReadJSON(strings.NewReader(text), "f"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	p, err = ReadJSON(strings.NewReader(`{"coords":[[0,0],[1,1]],"capacity":2147483647,"priority":[0,9007199254740993],"demands":[0,2147483647]}`), "f")
	if err != nil || p.Priority[1] != 9007199254740993 || p.Demand[1] != 2147483647 {
		t.Errorf("%v: %+v", err, p)
	}
}

// TestWhichJSON: the keys of a text tell what it is, in any order.
func TestWhichJSON(t *testing.T) {
	for text, want := range map[string]string{
		`{"shipments":[{"pickup":1,"delivery":2}],"capacity":3,"coords":[[0,0],[1,1],[2,2]]}`:          "json",
		`{"shipments":[{"pickup":1,"delivery":2}],"distances":[[0,1,1],[1,0,1],[1,1,0]],"capacity":3}`: "json",
		`{"vehicles":2,"shipments":[],"capacity":3}`:                                                   "json",
		`{"haul":1}`: "json", `{}`: "json", `{"a"`: "json",
		`{"vehicles":[{"id":1}]}`: "vroom", `{"jobs":[]}`: "vroom", `{"shipments":[],"vehicles":[]}`: "vroom",
		`{"haul":1,"routes":[]}`: "plan", `{"plan":{}}`: "plan", `{"routes":[],"problem":{}}`: "plan",
		`{"type":"FeatureCollection","features":[]}`: "geojson", `{"features":[]}`: "geojson",
	} {
		if got, _ := jsonKind([]byte(text)); got != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
	for _, text := range []string{`{"shipments":[{"pickup":1,"delivery":2}],"capacity":3,"coords":[[0,0],[1,1],[2,2]]}`,
		`{"shipments":[{"pickup":1,"delivery":2}],"distances":[[0,1,1],[1,0,1],[1,1,0]],"capacity":3}`,
		`{"haul":1,"cost":2,"routes":[[1,2]],"problem":{"shipments":[{"pickup":1,"delivery":2}],"capacity":3,"coords":[[0,0],[1,1],[2,2]]}}`} {
		if p, err := ReadProblem(strings.NewReader(text), "f.json", Options{}); err != nil || p.N() != 2 || len(p.Demand) != 3 || len(p.Shipments) != 1 {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := ReadProblem(strings.NewReader(`{"haul":1,"routes":[[1]]}`), "f.json", Options{}); err == nil || !strings.Contains(err.Error(), "has routes and not their problem") {
		t.Error(err)
	}
}

// TestPlanCarriesItsProblem: the JSON of a plan is read as the problem that was solved.
func TestPlanCarriesItsProblem(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		p := vrptest.Draw(r)
		s := vrp.Solution{Routes: [][]int32{{int32(p.DepotCount())}}}
		plan, err := NewPlan(p, s, nil)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := WriteSolutionJSON(&b, p, s, plan); err != nil {
			t.Fatal(err)
		}
		text := b.String()
		q, err := ReadProblem(strings.NewReader(text), "plan.json", Options{})
		if err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		forgetNeutral(p)
		if diff := cmp.Diff(p, q, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
		if got, _, err := ReadSolutionJSON(strings.NewReader(text), "plan.json"); err != nil || !cmp.Equal(got.Routes, s.Routes) {
			t.Fatalf("%v, %v", got, err)
		}
	}
}

func TestSolutionJSON(t *testing.T) {
	for _, c := range []struct {
		text   string
		routes int
		cost   float64
		want   string
	}{
		{`{"routes":[[1,2],[3]],"cost":7.5,"method":"search"}`, 2, 7.5, ""},
		{"{\"event\":\"progress\",\"cost\":9}\n{\"routes\":[[1]],\"cost\":8}\n", 1, 8, ""},
		{`{"routes":[[1]]}`, 1, math.NaN(), ""},
		{`{"cost":1}`, 0, 0, "has no routes"},
		{`{"routes":[[1]],"types":[0,1]}`, 0, 0, "types has 2 entries for 1 routes"},
		{`{"haul":9,"routes":[[1]]}`, 0, 0, "reads version 1"},
		{`{"routes":[[1`, 0, 0, "ends in the middle"},
		{`{"routes":[[null]]}`, 0, 0, "null"},
	} {
		s, cost, err := ReadSolutionJSON(strings.NewReader(c.text), "s.json")
		switch {
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", c.text, err, c.want)
		case c.want == "" && (err != nil || len(s.Routes) != c.routes || !(cost == c.cost || math.IsNaN(cost) && math.IsNaN(c.cost))):
			t.Errorf("%s: %v, %v, %v", c.text, s, cost, err)
		}
	}
}

// FuzzJSON: any text is a problem or is refused in one line.
func FuzzJSON(f *testing.F) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		var b bytes.Buffer
		if err := WriteJSON(&b, vrptest.Draw(r)); err != nil {
			f.Fatal(err)
		}
		f.Add(b.String())
	}
	f.Fuzz(func(t *testing.T, text string) {
		limitstest.Reading(t, limitstest.Unpacked([]byte(text)), func() {
			if _, err := ReadJSON(strings.NewReader(text), "f"); err != nil && strings.ContainsAny(err.Error(), "\n\r") {
				t.Fatalf("%q", err.Error())
			}
			_, _, _ = ReadSolutionJSON(strings.NewReader(text), "f")
		}, text)
	})
}
