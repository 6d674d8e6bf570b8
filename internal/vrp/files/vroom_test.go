package files

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"haul/internal/vrp"
)

// planOf is a plan with a break, a shipment, setup at a shared place, two dimensions and a job that
// nobody can do. VROOM 1.15's own answer to it is the truth of TestVROOMPlan.
const planOf = `{"vehicles":[{"id":1,"start_index":0,"end_index":0,"time_window":[0,1000],"breaks":[{"id":7,"time_windows":[[100,200]],"service":30}],"capacity":[5,2],"costs":{"fixed":10},
 "steps":[{"type":"start"},{"type":"pickup","id":1},{"type":"delivery","id":1},{"type":"break","id":7},{"type":"job","id":4},{"type":"end"}]}],
"jobs":[{"id":4,"location_index":1,"delivery":[2,0],"service":5,"setup":3,"time_windows":[[300,400]],"description":"x","priority":3},{"id":5,"location_index":2,"skills":[3]}],
"shipments":[{"amount":[1,1],"pickup":{"id":1,"location_index":2},"delivery":{"id":1,"location_index":1}}],
"matrices":{"car":{"durations":[[0,10,20],[10,0,15],[20,15,0]],"distances":[[0,100,200],[100,0,150],[200,150,0]]}},
"options":{"c":true}}`

func answer(t *testing.T, text string) (out vroomOutput) {
	t.Helper()
	v, err := ReadVROOM([]byte(text), 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := v.Answer(*v.Start, map[int32]string{2: "no skill"}, vrp.Violations(v.Problem, *v.Start), 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestVROOMPlan: the figures of a given plan are those that VROOM states for it.
func TestVROOMPlan(t *testing.T) {
	out := answer(t, planOf)
	s := out.Summary
	if s.Cost != 55 || s.Routes != 1 || s.Unassigned != 1 || s.Setup != 0 || s.Service != 35 || s.Duration != 45 || s.Waiting != 70 || s.Priority != 3 || *s.Distance != 450 {
		t.Errorf("%+v", s)
	}
	if out.Unassigned[0].ID != 5 || out.Unassigned[0].Type != "job" || *out.Unassigned[0].Index != 2 || out.Unassigned[0].Reason != "no skill" {
		t.Errorf("%+v", out.Unassigned)
	}
	want := []struct {
		kind     string
		arrival  int64
		duration int64
		load     int64
	}{{"start", 165, 0, 2}, {"pickup", 185, 20, 3}, {"break", 200, 35, 3}, {"delivery", 230, 35, 2}, {"job", 230, 35, 0}, {"end", 315, 45, 0}}
	for i, step := range out.Routes[0].Steps {
		if w := want[i]; step.Type != w.kind || step.Arrival != w.arrival || step.Duration != w.duration || step.Load[0] != w.load {
			t.Errorf("step %d: %+v, want %+v", i, step, w)
		}
	}
	if id := out.Routes[0].Steps[2].ID; id == nil || *id != 7 {
		t.Error("the break has lost its id")
	}
}

// TestVROOMViolations: a plan that breaks rules is answered with them, in VROOM's words.
func TestVROOMViolations(t *testing.T) {
	late := strings.Replace(planOf, "[[300,400]]", "[[0,20]]", 1)
	out := answer(t, strings.Replace(late, `"capacity":[5,2]`, `"capacity":[2,2]`, 1))
	found := map[string]bool{}
	for _, r := range out.Summary.Violation {
		found[r.Cause] = true
	}
	if !found["delay"] || !found["load"] {
		t.Errorf("%+v", out.Summary.Violation)
	}
}

func TestVROOMIsRefused(t *testing.T) {
	edit := func(from, to string) string {
		if !strings.Contains(planOf, from) {
			t.Fatalf("no %q", from)
		}
		return strings.Replace(planOf, from, to, 1)
	}
	for text, want := range map[string]string{
		`{"vehicles":[],"jobs":[{"id":1}]}`:                                    "vehicles is empty",
		`{"vehicles":[{"id":1,"start_index":0}]}`:                              "there are no jobs and no shipments",
		edit(`"id":5,`, `"id":4,`):                                             "jobs[1]: id 4 is given twice",
		edit(`"priority":3`, `"priority":101`):                                 "priority is 101",
		edit(`"setup":3`, `"setup_per_type":{"a":3}`):                          "setup_per_type",
		edit(`"setup":3`, `"setup":-3`):                                        "must not be below 0",
		edit(`[[300,400]]`, `[[300,200]]`):                                     "job 4.time_windows[0] closes at 200, before it opens at 300",
		edit(`"delivery":[2,0]`, `"delivery":[2,0,1]`):                         "others in 3",
		edit(`"delivery":[2,0]`, `"delivery":[2,0],"amount":[1,1]`):            "amount and delivery both say",
		edit(`"location_index":1,"delivery"`, `"delivery"`):                    "job 4 has no location_index, and there are matrices",
		edit(`"location_index":1,"delivery"`, `"location_index":3,"delivery"`): "location_index is 3, matrices.car has 3 rows",
		edit(`"costs":{"fixed":10}`, `"costs":{"per_task_hour":1}`):            "per_task_hour is not honoured",
		edit(`"costs":{"fixed":10}`, `"max_distance":10`):                      "max_distance is honoured where the vehicle pays for distance alone",
		edit(`"costs":{"fixed":10}`, `"max_tasks":0`):                          "max_tasks is 0",
		edit(`"costs":{"fixed":10}`, `"profile":"bike"`):                       `has the profile "bike", of which matrices has nothing`,
		edit(`"costs":{"fixed":10}`, `"speed_factor":0`):                       "speed_factor is 0",
		edit(`"start_index":0,"end_index":0,`, ``):                             "neither start nor end",
		edit(`{"type":"job","id":4}`, `{"type":"job","id":9}`):                 "names job 9, which does not exist",
		edit(`{"type":"job","id":4}`, `{"type":"job","id":4,"service_at":5}`):  "service_at",
		edit(`{"type":"job","id":4}`, `{"type":"pickup","id":1}`):              "stands in an earlier step",
		edit(`[20,15,0]]`, `[20,15]]`):                                         "durations[2] has 2 numbers",
		edit(`[20,15,0]]`, `[20,15,-1]]`):                                      "durations[2][2] is -1",
		edit(`"skills":[3]`, `"skils":[3]`):                                    `unknown field "skils"`,
	} {
		if _, err := ReadVROOM([]byte(text), 0, nil); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := ReadVROOM([]byte(planOf), 3, nil); err == nil || !strings.Contains(err.Error(), "4 tasks are more than the 3") {
		t.Error(err)
	}
	if _, err := ReadVROOM([]byte(planOf), 4, nil); err != nil {
		t.Error(err)
	}
}

// TestVROOMCosts: what a vehicle pays for becomes the distance, limits follow it, and vehicles that
// are alike are one type.
func TestVROOMCosts(t *testing.T) {
	read := func(vehicle string) *vrp.Problem {
		t.Helper()
		v, err := ReadVROOM([]byte(`{"vehicles":[{"id":1,"start_index":0,`+vehicle+`},{"id":2,"start_index":0,`+vehicle+`}],"jobs":[{"id":1,"location_index":1}],
			"matrices":{"car":{"durations":[[0,7200],[7200,0]],"distances":[[0,5000],[5000,0]]},"dear":{"durations":[[0,10],[10,0]],"costs":[[0,99],[99,0]]}}}`), 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		return v.Problem
	}
	for _, c := range []struct {
		vehicle     string
		cost, limit float64
	}{
		{`"description":"x"`, 7200, -1},
		{`"costs":{"per_hour":100}`, 200, -1},
		{`"costs":{"per_hour":100},"speed_factor":2`, 100, -1},
		{`"costs":{"per_hour":0,"per_km":3},"max_distance":6000`, 15, 6000},
		{`"costs":{"per_hour":100,"per_km":3}`, 215, -1},
		{`"costs":{"fixed":8},"max_travel_time":9000`, 7208, 9000},
		{`"profile":"dear"`, 99, -1},
	} {
		p := read(c.vehicle)
		if len(p.Fleet) != 1 || p.Fleet[0].Count != 2 || p.Fleet[0].End != vrp.None {
			t.Errorf("%s: %+v", c.vehicle, p.Fleet)
		}
		if got := p.Cost(vrp.Solution{Routes: [][]int32{{1}}}); got != c.cost {
			t.Errorf("%s costs %g, want %g", c.vehicle, got, c.cost)
		}
		if c.limit > 0 && p.Fleet[0].MaxDistance != c.limit {
			t.Errorf("%s: limit %g", c.vehicle, p.Fleet[0].MaxDistance)
		}
	}
}

// TestVROOMMutated: thousands of broken inputs are read or refused in one line.
func TestVROOMMutated(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	read := 0
	for range 10_000 {
		text := []byte(planOf)
		for range 1 + r.IntN(3) {
			at := r.IntN(len(text))
			switch r.IntN(3) {
			case 0:
				text[at] = "0123456789[]{},:\"-."[r.IntN(19)]
			case 1:
				text = append(text[:at:at], text[min(len(text), at+1+r.IntN(8)):]...)
			default:
				text = bytes.Join([][]byte{text[:at], text[at/2 : at/2+1], text[at:]}, nil)
			}
		}
		if _, err := ReadVROOM(text, 0, nil); err == nil {
			read++
		} else if strings.ContainsAny(err.Error(), "\n\r") {
			t.Fatalf("%q", err)
		}
	}
	if read == 0 {
		t.Error("none was read: the mutations are too coarse to test anything")
	}
}

// TestVROOMNames: a task goes by its number, and by its kind too where two have that number.
func TestVROOMNames(t *testing.T) {
	v, err := ReadVROOM([]byte(planOf), 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"depot 1", "4", "5", "pickup 1", "delivery 1"}; !slices.Equal(v.Problem.IDs, want) {
		t.Errorf("%q, want %q", v.Problem.IDs, want)
	}
}

// TestVROOMOpenEnds: vehicles without a start or an end have such steps all the same, at the task
// beside them, and what was picked up is on board at the end. The figures are VROOM 1.15's own.
func TestVROOMOpenEnds(t *testing.T) {
	out := answer(t, `{"vehicles":[{"id":7,"start_index":0,"capacity":[9],"steps":[{"type":"start"},{"type":"job","id":1},{"type":"job","id":2},{"type":"end"}]},
		{"id":8,"end_index":0,"capacity":[9],"steps":[{"type":"start"},{"type":"job","id":3},{"type":"end"}]}],
		"jobs":[{"id":1,"location_index":1,"pickup":[2],"service":5},{"id":2,"location_index":2,"delivery":[3],"service":7},{"id":3,"location_index":2,"delivery":[9],"pickup":[4],"service":7}],
		"matrices":{"car":{"durations":[[0,10,20],[10,0,15],[20,15,0]],"distances":[[0,100,200],[100,0,150],[200,150,0]]}},"options":{"c":true}}`)
	type step struct {
		kind                              string
		index                             int
		load, arrival, duration, distance int64
	}
	for i, want := range [][]step{
		{{"start", 0, 3, 0, 0, 0}, {"job", 1, 5, 10, 10, 100}, {"job", 2, 2, 30, 25, 250}, {"end", 2, 2, 37, 25, 250}},
		{{"start", 2, 9, 0, 0, 0}, {"job", 2, 4, 0, 0, 0}, {"end", 0, 4, 27, 20, 200}},
	} {
		var got []step
		for _, s := range out.Routes[i].Steps {
			got = append(got, step{s.Type, int(*s.Index), s.Load[0], s.Arrival, s.Duration, *s.Distance})
		}
		if !slices.Equal(got, want) {
			t.Errorf("vehicle %d: %v, want %v", out.Routes[i].Vehicle, got, want)
		}
	}
}
