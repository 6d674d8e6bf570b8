package files

import (
	"bytes"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"haul/internal/vrp"
)

// someParts draws a problem with each part present or not; it need not have a solution.
func someParts(r *rand.Rand) *vrp.Problem {
	n := 3 + r.IntN(5)
	p := &vrp.Problem{Name: "drawn", Capacity: 20, Metric: vrp.Metric(r.IntN(int(vrp.Att) + 1))}
	some := func() bool { return r.IntN(2) == 0 }
	ints := func(most int32) []int32 {
		out := make([]int32, n)
		for i := range out {
			if i >= p.DepotCount() {
				out[i] = r.Int32N(most)
			}
		}
		return out
	}
	numbers := func(count int) []float64 {
		out := make([]float64, count)
		for i := range out {
			out[i] = float64(r.IntN(1000)) / 8
		}
		return out
	}
	matrix := func() []float64 {
		m := numbers(n * n)
		for i := range n {
			m[i*n+i] = 0
		}
		return m
	}
	span := func() vrp.Window {
		from := float64(r.IntN(100))
		if some() {
			return vrp.Window{From: from, To: math.Inf(1)}
		}
		return vrp.Window{From: from, To: from + float64(r.IntN(50))}
	}
	if some() {
		p.Depots = 1 + r.IntN(2)
	}
	p.Demand = ints(9)
	if p.Metric == vrp.Explicit {
		p.Weights = matrix()
	}
	if p.Metric != vrp.Explicit || some() {
		p.X, p.Y = numbers(n), numbers(n)
	}
	if some() {
		p.IDs = strings.Split("depot,north,south east,ÿ,\"q\",-,c7,c8", ",")[:n]
	}
	if some() {
		p.Service, p.Setup, p.Release, p.Late = numbers(n), numbers(n), numbers(n), numbers(n)
	}
	if some() {
		p.Pickup, p.Dimensions = ints(9), []vrp.Dimension{{Name: "pallets", Delivery: ints(3)}, {Pickup: ints(4)}}
	}
	if some() {
		p.Windows = make([][]vrp.Window, n)
		for i := range p.Windows {
			p.Windows[i] = []vrp.Window{span()}
		}
	}
	if some() {
		p.Optional, p.Prize, p.Priority, p.Needs = make([]bool, n), numbers(n), make([]int, n), make([][]int32, n)
		p.Optional[n-1], p.Priority[n-1], p.Needs[n-1] = true, 7, []int32{1, 2}
		p.Groups = []vrp.Group{{Name: "either", Members: []int32{int32(n - 1)}, Required: some()}}
		p.LIFO = some()
		p.Shipments = []vrp.Shipment{{Pickup: int32(n - 2), Delivery: int32(n - 1), Amount: []int32{1}}}
	}
	if some() {
		p.Profiles = []vrp.Profile{{Name: "car", Distance: matrix()}, {Distance: matrix(), Duration: matrix()}}
		if p.Metric == vrp.Explicit {
			p.Weights = p.Profiles[0].Distance // [0] replaces it
		}
	}
	if some() {
		p.Vehicles, p.MaxDuration, p.Open, p.Speed = r.IntN(4), float64(r.IntN(100)), some(), float64(r.IntN(3))
	} else {
		t := vrp.NewVehicleType(20, 9)
		t.Name, t.Count, t.Start, t.End, t.Shift, t.LatestStart = "van", r.IntN(3), r.IntN(p.DepotCount()), vrp.None, span(), 99
		t.MaxDuration, t.MaxStops, t.FixedCost, t.DistanceCost, t.DurationCost = 77, r.IntN(4), 5, 0, 2
		t.Skills, t.Allowed, t.Reloads, t.MaxReloads, t.InitialLoad = []int32{1}, []int32{int32(n - 1)}, []int{0}, 2, []int32{3}
		t.Breaks = []vrp.Break{{Windows: []vrp.Window{span()}, Duration: 3, MaxLoad: []int32{4}}}
		p.Fleet, p.Capacity = []vrp.VehicleType{t, vrp.NewVehicleType(3)}, 0
	}
	p.Backhauls, p.Objective = vrp.BackhaulRule(r.IntN(3)), vrp.Objective(r.IntN(3))
	return p
}

// TestRoundTrip: every part that a problem can have comes back from Haul's own JSON as it was.
func TestRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 500 {
		p := someParts(r)
		var b bytes.Buffer
		if err := WriteJSON(&b, p); err != nil {
			t.Fatal(err)
		}
		var d Document
		if err := Decode(b.Bytes(), &d); err != nil {
			t.Fatalf("%d: %v in %s", i, err, b.String())
		}
		q, err := d.Problem()
		if err != nil {
			t.Fatalf("%d: %v in %s", i, err, b.String())
		}
		if diff := cmp.Diff(p, q, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("%d: %s\n%s", i, diff, b.String())
		}
		if d.Haul != Version {
			t.Fatalf("%s does not say its version", b.String())
		}
	}
}

func TestJSONIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		``:                         "it is empty",
		`{"demands":[0,1]`:         "ends in the middle",
		`{"demandz":[0,1]}`:        `unknown field "demandz"`,
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
		`{"demands":[0,1],"capacity":3,"coords":[[0,0],[1,1]],"depots":3}`:                          "depots is 3 and demands has 2 places",
		`{"demands":[0,1],"coords":[[0,0],[1,1]],"fleet":[{"capacity":[3],"shift":[1,2,3]}]}`:       "fleet[0].shift[0] has 3 numbers",
		`{"demands":[0,4],"capacity":3,"coords":[[0,0],[1,1]]}`:                                     "over the capacity",
	} {
		if _, err := ReadJSON(strings.NewReader(text), "f.json"); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "f.json") {
			t.Errorf("%s: %v, want %q", text, err, want)
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
		if err := WriteJSON(&b, someParts(r)); err != nil {
			f.Fatal(err)
		}
		f.Add(b.String())
	}
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := ReadJSON(strings.NewReader(text), "f"); err != nil && strings.ContainsAny(err.Error(), "\n\r") {
			t.Fatalf("%q", err.Error())
		}
		_, _, _ = ReadSolutionJSON(strings.NewReader(text), "f")
	})
}
