package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"haul/internal/vrp"
)

// site is a server on a real socket.
type site struct {
	*Server
	t    *testing.T
	url  string
	runs string
	stop context.CancelFunc
	gone chan error
}

func open(t *testing.T, edit func(*Options)) *site {
	t.Helper()
	o := Options{Runs: filepath.Join(t.TempDir(), "runs"), Poll: 10 * time.Millisecond, Version: "test", Limits: Limits{Grace: 300 * time.Millisecond}}
	if edit != nil {
		edit(&o)
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	x := &site{Server: s, t: t, url: "http://" + ln.Addr().String(), runs: o.Runs, stop: stop, gone: make(chan error, 1)}
	go func() { x.gone <- s.Serve(ctx, ln) }()
	t.Cleanup(func() {
		stop()
		<-x.gone
		http.DefaultClient.CloseIdleConnections()
	})
	return x
}

// answerOf is a response, read.
type answerOf struct {
	status int
	header http.Header
	body   string
}

func (a *answerOf) json(t *testing.T, dst any) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.body), dst); err != nil {
		t.Fatalf("%v in %.300s", err, a.body)
	}
}

func (x *site) do(method, path, body string, headers ...string) *answerOf {
	x.t.Helper()
	r, err := http.NewRequest(method, x.url+path, strings.NewReader(body))
	if err != nil {
		x.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
			continue
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := (&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Do(r)
	if err != nil {
		x.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		x.t.Fatal(err)
	}
	return &answerOf{resp.StatusCode, resp.Header, string(text)}
}

// refused asserts an answer in problem details.
func (x *site) refused(a *answerOf, status int, words string) {
	x.t.Helper()
	var p problem
	a.json(x.t, &p)
	if a.status != status || p.Status != status || !strings.Contains(p.Detail, words) || a.header.Get("Content-Type") != "application/problem+json" {
		x.t.Errorf("%d %s, want %d with %q", a.status, a.body, status, words)
	}
}

// makeRun writes a run's folder as a training process would.
func makeRun(t *testing.T, runs, name string, epochs int) string {
	t.Helper()
	dir := filepath.Join(runs, name)
	if err := os.MkdirAll(filepath.Join(dir, "csv"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "config.yaml"), "problem:\n    num_customers: 10\ntraining:\n    num_epochs: 9\n    batch_size: 128\n")
	text := "epoch,train_loss,val_gap,mean_type\n"
	for i := range epochs {
		text += row(i + 1)
	}
	write(t, filepath.Join(dir, "csv", "history_gt_rl.csv"), text)
	return dir
}

func row(epoch int) string {
	return fmt.Sprintf("%d,%g,%g,arithmetic\n", epoch, 1/float64(epoch), 0.1/float64(epoch))
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestWhatAMethodHasNoUseFor: a request that names no method is solved by the one that it speaks
// of, and what the method does not know is refused, where it was passed over.
func TestWhatAMethodHasNoUseFor(t *testing.T) {
	x := open(t, nil)
	const body = `{"coords": [[0,0],[10,0],[0,10],[-10,0],[0,-10]], "demands": [0,5,5,5,5], "capacity": 10%s}`
	for extra, want := range map[string]string{
		``: "exact", `, "time": 0.02`: "search", `, "start": [[1,2],[3,4]], "time": 0.02`: "search", `, "start": [[1,2]], "time": 0.02`: "search",
		`, "start": [[1,2],[3,4]], "start_types": [0,0], "time": 0.02`: "search", `, "method": "exact", "time": 0.02`: "exact",
	} {
		var got solved
		if x.do("POST", "/api/v1/solve", fmt.Sprintf(body, extra)).json(t, &got); got.Method != want || got.Cost > 68.29 || got.Missing > 0 {
			t.Errorf("%s: %+v, want %s", extra, got, want)
		}
	}
	for extra, words := range map[string]string{
		`, "policy": "mine"`:                             "there is no policy",
		`, "decode": "greedy"`:                           "no trained policy yet",
		`, "method": "search", "policy": "cvrp20"`:       "policy is about a policy, and search solves this",
		`, "method": "search", "decode": "x"`:            "decode is about a policy, and search solves this",
		`, "method": "exact", "start": [[1,2],[3,4]]`:    "start is about a search, and exact solves this",
		`, "method": "search", "start_types": [0]`:       "start_types has 1 entries for the 0 routes of start",
		`, "start": [[1,2],[3,4]], "start_types": [0]`:   "start_types has 1 entries for the 2 routes of start",
		`, "start": [[1,2],[3,4]], "start_types": [0,1]`: "vehicle type 1",
		`, "start": [[1,2,3],[4]]`:                       "start is no solution to begin with",
		`, "start": [[1,2],[3,9]]`:                       "start is no solution to begin with",
	} {
		x.refused(x.do("POST", "/api/v1/solve", fmt.Sprintf(body, extra)), 422, words)
		if !strings.Contains(words, "no trained") && !strings.Contains(words, "no policy") { // one may come before the job's turn
			x.refused(x.do("POST", "/api/v1/jobs", fmt.Sprintf(body, extra)), 422, words)
		}
	}
}

// patience is how long a test waits for what must happen, however busy the machine.
const patience = 2 * time.Minute

// soon waits for what another goroutine is about to do.
func soon(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("%s did not happen within %v", what, patience)
}

const square = `{"coords": [[0,0],[10,0],[0,10],[-10,0],[0,-10]], "demands": [0,5,5,5,5], "capacity": 10, "method": %q, "time": 0.05, "gap": true}`

func TestSolve(t *testing.T) {
	x := open(t, nil)
	for _, method := range []string{"exact", "search"} {
		var got solved
		x.do("POST", "/api/v1/solve", fmt.Sprintf(square, method)).json(t, &got)
		p := &vrp.Problem{Capacity: 10, Demand: []int32{0, 5, 5, 5, 5}, X: []float64{0, 10, 0, -10, 0}, Y: []float64{0, 0, 10, 0, -10}}
		if err := vrp.Validate(p, vrp.Solution{Routes: got.Routes}); err != nil || got.Cost > 68.29 || got.Gap == nil || *got.Gap != 0 {
			t.Errorf("%s: %v, %+v", method, err, got)
		}
	}
	x.refused(x.do("POST", "/api/v1/solve", fmt.Sprintf(square, "policy")), 422, "no trained policy yet")
	for _, c := range []struct {
		body   string
		status int
		words  string
	}{
		{`{`, 400, "not what is expected"},
		{`{"coords": 5}`, 400, "coords takes a list, not number"},
		{`{"coords": [[0,0],[null,1]], "demands": [0,1], "capacity": 3}`, 400, "a list holds null"},
		{`{"coords": [[0,0],[1,1]], "demands": [0,null], "capacity": 3}`, 400, "holds null"},
		{`{"coords": [[0,0],[Infinity,1]], "demands": [0,1], "capacity": 3}`, 400, "invalid character 'I'"}, // it has an n, and is no null
		{`{"coords": [[0,0],[1,1]], "demands": [0,1.5], "capacity": 3}`, 400, "demands takes whole numbers of 32 bits, not 1.5"},
		{`{"coords": [[0,0],[1,1]], "demands": [0,1], "capacity": 9e9}`, 400, "capacity takes whole numbers of 32 bits, not 9e9"},
		{`{"coords": [[0,0],[1,1]], "demands": [0,1], "capacity": 3, "open": "yes"}`, 400, "open takes true or false, not string"},
		{`[]`, 400, "it takes an object, not array"},
		{``, 400, "it is empty, and a JSON object is needed"},
		{`{"coords": [[0,0]`, 400, "it ends in the middle of its JSON"},
		{`{"cords": []}`, 400, `unknown key "cords": is "coords" meant?`},
		{`{"coords": []}`, 422, "coords is empty"},
		{`{"coords": [[0,0],[1]], "demands": [0,1], "capacity": 3}`, 422, "coords[1] has 1 numbers"},
		{`{"coords": [[0,0],[1,2]], "demands": [0], "capacity": 3}`, 422, "demands has 1 numbers for 2"},
		{`{"coords": [[0,0],[1,2]], "demands": [1,1], "capacity": 3}`, 422, "depot"},
		{`{"coords": [[0,0],[1,2]], "demands": [0,4], "capacity": 3}`, 422, "over the capacity"},
		{`{"coords": [[0,0],[1,2]], "demands": [0,1], "capacity": 3, "method": "magic"}`, 400, "unknown method \"magic\": use exact, search, savings or policy"},
		{`{"coords": [[0,0],[1,2]], "demands": [0,1], "capacity": 3, "method": "policy and search"}`, 400, "unknown method"},
		{`{"coords": [[0,0],[1,2]], "demands": [0,1], "capacity": 3, "time": 1e9, "method": "search"}`, 422, "time"},
		{`{"coords": [[0,0],[1,2]], "demands": [0,1], "capacity": 3, "time": -1}`, 422, "time"},
		{`{"coords": [[0,0],[1,2]], "demands": [0,1], "capacity": 3, "distance": "miles"}`, 422, "distance"},
		{`{"coords": [[0,0],[1e300,2]], "demands": [0,1], "capacity": 3}`, 422, "farther"},
		{`{"coords": [[0,0],[190,2]], "demands": [0,1], "capacity": 3, "distance": "metres"}`, 422, "node 1 has longitude 190 and latitude 2, outside ±180, ±90"},
		{`{"coords": [[0,91],[1,2]], "demands": [0,1], "capacity": 3, "distance": "metres"}`, 422, "outside"},
		{`{"coords": [[0,0],[1,2]], "demands": [0,1], "capacity": 3} {}`, 400, "more than one"},
		{`{"demands": [0,1,1], "capacity": 3, "distances": [[0,1,2],[1,0,3],[2,3]]}`, 422, "distances[2] has 2 numbers for 3 places"},
		{`{"coords": [[0,0],[1,2]], "demands": [0,1], "capacity": 3, "windows": [[],[[50,20]]]}`, 422, "windows[1][0] closes at 20, before it opens at 50"},
		{`{"coords": [[0,0],[1,2]], "demands": [0,0], "capacity": 3, "shipments": [{"pickup": 1, "delivery": 1, "amount": [2]}]}`, 422, "shipment 1 is picked up and delivered at customer 1"},
		{`{"coords": [[0,0],[1,2]], "demands": [0,1], "capacity": 3, "service": [0,-5]}`, 422, "the service time of node 1 is -5"},
		{`{"coords": [` + strings.Repeat("[0,0],", 19) + `[0,0]], "demands": [` + strings.Repeat("0,", 19) + `0], "capacity": 3, "method": "exact"}`, 422, "use search"},
	} {
		x.refused(x.do("POST", "/api/v1/solve", c.body), c.status, c.words)
	}
}

// What one request answers every request takes: an instance as it was drawn or read is solved, and
// beside the answer it is exported, with nothing taken out.
func TestAnswersAreTaken(t *testing.T) {
	x := open(t, nil)
	for _, drawn := range []*answerOf{x.do("GET", "/api/v1/instances/random?customers=8", ""),
		x.do("POST", "/api/v1/instances?name=set.json", `{"haul": 1, "coords": [[0,0],[10,0],[0,10]], "demands": [0,5,5], "capacity": 10, "ids": ["depot","a","b"]}`),
		x.do("POST", "/api/v1/instances?name=few.json", `{"haul": 1, "coords": [[0,0],[10,0],[0,10]], "demands": [0,5,6], "capacity": 10, "vehicles": 1}`)} {
		var in, out map[string]any
		drawn.json(t, &in)
		body, _ := json.Marshal(in)
		x.do("POST", "/api/v1/solve", string(body)).json(t, &out)
		maps.Copy(in, out)
		body, _ = json.Marshal(in)
		for format := range formats {
			if got := x.do("POST", "/api/v1/export/"+format, string(body)); got.status != 200 {
				t.Errorf("%s: %d %s", format, got.status, got.body)
			} else if few := out["unserved_required"] != nil; few != strings.Contains(string(got.body), "unserved") && (format == "csv" || format == "geojson") {
				t.Errorf("%s does not list who is on no route: %s", format, got.body)
			}
		}
	}
	const few = `{"coords": [[0,0],[1,0],[0,1]], "demands": [0,1,1], "capacity": 2, "routes": [[1]], "unserved_required": %d}`
	x.refused(x.do("POST", "/api/v1/export/csv", fmt.Sprintf(few, 2)), 422, "1 required customers are on no route, and unserved_required is 2")
	x.refused(x.do("POST", "/api/v1/instances?name=a.json&index=1", `{"coords": [[0,0],[1,0]], "demands": [0,1], "capacity": 2}`), 422, "index is 1: a.json is no file of many instances")
	// A part that a method does not know is refused, not passed over, and judged in what is
	// exported.
	const windows = `{"coords": [[0,0],[3,4]], "demands": [0,1], "capacity": 3, "windows": [[], [[7, 9]]], `
	x.refused(x.do("POST", "/api/v1/solve", windows+`"method": "exact"}`), 422, "it has time windows: use search")
	x.refused(x.do("POST", "/api/v1/export/sol", `{"coords": [[0,0],[3,4]], "demands": [0,1], "capacity": 3, "windows": [[], [[1, 2]]], "routes": [[1]]}`), 422, "window closes at 2")
	// A customer whom nobody can reach is listed with the reason.
	late := x.do("POST", "/api/v1/solve", `{"coords": [[0,0],[3,4],[30,40]], "demands": [0,1,1], "capacity": 3, "windows": [[],[],[[0,9]]], "time": 0.05}`)
	if late.status != 200 || !strings.Contains(string(late.body), "customer 2 is reached at 50, its window closes at 9") {
		t.Errorf("%d %s", late.status, late.body)
	}
	var got solved
	x.do("POST", "/api/v1/solve", windows+`"time": 0.05}`).json(t, &got)
	if got.Plan == nil || len(got.Plan.Routes) != 1 || got.Plan.Routes[0].Stops[1].Begin != 7 {
		t.Errorf("%+v", got)
	}
}

// Open routes end at their last customer: of the square's four corners each is a route of its own,
// or with two vehicles two are.
func TestSolveOpen(t *testing.T) {
	x := open(t, nil)
	for more, want := range map[string]float64{
		`"open": false`: 40 + 20*math.Sqrt2, `"open": true`: 40, `"open": true, "vehicles": 2`: 20 + 20*math.Sqrt2,
	} {
		body := strings.Replace(square, `"method": %q`, more, 1)
		var got solved
		x.do("POST", "/api/v1/solve", body).json(t, &got)
		if math.Abs(got.Cost-want) > 1e-9 {
			t.Errorf("%s costs %v, want %v: %+v", more, got.Cost, want, got)
		}
	}
	exact := strings.Replace(fmt.Sprintf(square, "exact"), `"gap": true`, `"open": true`, 1)
	x.refused(x.do("POST", "/api/v1/solve", exact), 422, "its routes are open: use search")
}

// A search streams routes that get better, and ends with those it would have answered.
func TestSolveStreams(t *testing.T) {
	x := open(t, nil)
	var in instance
	drawn := x.do("GET", "/api/v1/instances/random?customers=100&capacity=50&seed=3", "").body
	if err := in.decode([]byte(drawn), nil); err != nil {
		t.Fatal(err)
	}
	p, err := in.problem(&Limits{Customers: 1000})
	if err != nil {
		t.Fatal(err)
	}
	// A machine that is busy with something else improves fewer times in as many seconds.
	for _, seconds := range []float64{0.4, 3, 20} {
		if routes := x.streamed(drawn, p, seconds); routes >= 3 {
			return
		} else if seconds == 20 {
			t.Errorf("routes came %d times in %g s", routes, seconds)
		}
	}
}

// streamed has a search streamed, holds every event to the problem, and counts those with routes.
func (x *site) streamed(drawn string, p *vrp.Problem, seconds float64) int {
	t := x.t
	t.Helper()
	body := fmt.Sprintf(`{"method":"search","time":%g,`, seconds) + drawn[1:]
	a := x.do("POST", "/api/v1/solve", body, "Accept", "text/event-stream")
	events := strings.Split(strings.TrimSpace(a.body), "\n\n")
	last, routes := 0.0, 0
	for i, e := range events {
		name, data, _ := strings.Cut(strings.TrimPrefix(e, "event: "), "\ndata: ")
		if want := map[bool]string{true: "result", false: "progress"}[i == len(events)-1]; name != want {
			t.Fatalf("event %d is %q", i, name)
		}
		var got improved
		if err := json.Unmarshal([]byte(data), &got); err != nil {
			t.Fatal(err)
		}
		if last > 0 && got.Cost > last {
			t.Errorf("the cost rose from %g to %g", last, got.Cost)
		}
		last = got.Cost
		if got.Routes != nil {
			routes++
			if err := vrp.Validate(p, vrp.Solution{Routes: got.Routes}); err != nil {
				t.Error(err)
			}
		}
	}
	return routes
}

// read is what tests look at of an instance that was read.
type read struct {
	Coords   [][]float64
	Demands  []int32
	Capacity int
	Distance string
	IDs      []string
	Fleet    []struct {
		Name  string
		Count int
	}
	Skills     [][]int32
	SkillWords []string `json:"skill_words"`
	Speed      float64
	Clock      float64
	Service    []float64
	Windows    [][][]float64
	Index      int
	Count      int
	BestKnown  float64 `json:"best_known"`
	Notes      []string
}

func TestInstancesAndExport(t *testing.T) {
	x := open(t, nil)
	file := func(name string) string {
		text, err := os.ReadFile(filepath.Join("../../docs/examples", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	var vrp, stops read
	x.do("POST", "/api/v1/instances?name=grid20.vrp", file("grid20.vrp")).json(t, &vrp)
	x.do("POST", "/api/v1/instances?name=stops.csv&capacity=40", file("stops.csv")).json(t, &stops)
	if len(vrp.Coords) != 21 || vrp.Distance != "rounded" || stops.Capacity != 40 || stops.IDs == nil || len(stops.Coords) != len(stops.Demands) {
		t.Errorf("%+v\n%+v", vrp, stops)
	}
	var same struct{ Capacity, Count int }
	if x.do("POST", "/api/v1/instances?name=stops.txt&capacity=40", file("stops.csv")).json(t, &same); same.Capacity != 40 || same.Count != 1 {
		t.Errorf("a table by another name: %+v", same)
	}
	// What a vehicle carries is asked for, not made up.
	var asked problem
	x.do("POST", "/api/v1/instances?name=stops.csv", file("stops.csv")).json(t, &asked)
	if asked.Status != 422 || asked.Missing != "capacity" {
		t.Errorf("%+v", asked)
	}
	// So is how fast it drives, where there are times; a spreadsheet has its vehicles in a sheet,
	// and what was not read is named.
	x.do("POST", "/api/v1/instances?name=deliveries.xlsx", file("deliveries.xlsx")).json(t, &asked)
	if asked.Status != 422 || asked.Missing != "speed" {
		t.Errorf("%+v", asked)
	}
	var sheet read
	x.do("POST", "/api/v1/instances?name=deliveries.xlsx&speed=35", file("deliveries.xlsx")).json(t, &sheet)
	if len(sheet.Fleet) < 2 || sheet.Clock == 0 || sheet.Windows == nil || sheet.IDs == nil || len(sheet.Demands) < 100 {
		t.Errorf("%d places, fleet %+v, clock %g", len(sheet.Demands), sheet.Fleet, sheet.Clock)
	}
	var noted read
	x.do("POST", "/api/v1/instances?name=a.tsv&capacity=4&speed=60&times=hours&ignore=mood", "id\tlat\tlon\tdemand\tservice\tmood\n0\t50\t8\t0\t0\tred\na\t50.1\t8\t2\t1\tblue\n").json(t, &noted)
	if len(noted.Notes) != 1 || !strings.Contains(noted.Notes[0], "mood") || noted.Service[1] != 1 {
		t.Errorf("%+v", noted)
	}
	var points, plan read
	x.do("POST", "/api/v1/instances?name=a.geojson&capacity=4", `{"type":"FeatureCollection","features":[{"type":"Feature","geometry":{"type":"Point","coordinates":[8,50]},"properties":{"id":"d"}},{"type":"Feature","geometry":{"type":"Point","coordinates":[8.1,50]},"properties":{"id":"a","demand":2}}]}`).json(t, &points)
	x.do("POST", "/api/v1/instances?name=plan.json", `{"vehicles":[{"id":7,"start":[8,50],"end":[8,50]}],"jobs":[{"id":1,"location":[8.1,50]}]}`).json(t, &plan)
	if len(points.Demands) != 2 || points.Capacity != 4 || len(plan.Fleet) != 1 {
		t.Errorf("%+v\n%+v", points, plan)
	}
	for query, want := range map[string]string{"speed=0": "a number above 0", "speed=x": "a number above 0", "times=days": "use minutes", "times=": "use minutes", "distance=": "use exact"} {
		x.refused(x.do("POST", "/api/v1/instances?name=a.csv&"+query, ""), 400, want)
	}
	x.refused(x.do("POST", "/api/v1/instances?name=stops.csv&capacity=1&capacity=2", ""), 400, "given 2 times")
	x.refused(x.do("POST", "/api/v1/instances?name=stops.csv&capacity=", ""), 400, "a whole number")
	x.refused(x.do("POST", "/api/v1/instances?distance=miles", ""), 400, "use exact, rounded, dimacs, ceil or trunc")
	x.refused(x.do("POST", "/api/v1/solve", `{"coords": null}`), 422, "coords is empty")
	x.refused(x.do("POST", "/api/v1/instances?name=a.vrp", "nonsense"), 422, "a.vrp")
	x.refused(x.do("GET", "/api/v1/instances/random?capacity=3000000000", ""), 422, "capacity is 3000000000")
	x.refused(x.do("GET", "/api/v1/instances/random?customers=5001", ""), 422, "5001 customers")
	x.refused(x.do("GET", "/api/v1/instances/random?n=5", ""), 400, `there is no parameter "n"`)
	x.refused(x.do("POST", "/api/v1/instances?file=x.vrp", ""), 400, `there is no parameter "file"`)
	x.refused(x.do("POST", "/api/v1/instances?name=../../etc/passwd", ""), 422, "passwd")
	x.refused(x.do("POST", "/api/v1/instances?name=a.npz", "PK\x03\x04 and nothing"), 422, ".npz")
	for format, want := range map[string]string{"sol": "Route #1", "csv": "route,stop", "geojson": "FeatureCollection", "svg": "<svg", "vrp": "CAPACITY", "json": `"routes"`} {
		a := x.do("POST", "/api/v1/export/"+format, `{"coords": [[0,0],[1,0],[0,1]], "demands": [0,1,1], "capacity": 2, "routes": [[1,2]]}`)
		if a.status != 200 || !strings.Contains(a.body, want) || !strings.Contains(a.header.Get("Content-Disposition"), "attachment") {
			t.Errorf("%s: %d %.200s", format, a.status, a.body)
		}
	}
	x.refused(x.do("POST", "/api/v1/export/sol", `{"coords": [[0,0],[1,0],[0,1]], "demands": [0,1,1], "capacity": 2, "routes": [[1]]}`), 422, "no routes")
	x.refused(x.do("POST", "/api/v1/export/exe", `{}`), 404, "no format")
}

// What the doctor answers is what the command prints, and its page the command's.
func TestDoctor(t *testing.T) {
	x := open(t, nil)
	trace, err := os.ReadFile("../../docs/examples/trace.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Kind, Page string
		Report     struct {
			Findings []struct{ ID string }
			File     string
		}
	}
	x.do("POST", "/api/v1/doctor?name=trace.json.gz", string(trace)).json(t, &got)
	if got.Kind != "trace" || len(got.Report.Findings) == 0 || got.Report.Findings[0].ID != "fp32-matmul" || got.Report.File != "trace.json.gz" {
		t.Errorf("%+v", got)
	}
	page := x.do("GET", got.Page, "")
	if page.status != 200 || !strings.Contains(page.body, "fp32-matmul") || !strings.Contains(page.header.Get("Content-Security-Policy"), "script-src 'sha256-") {
		t.Errorf("%d %v %.200s", page.status, page.header, page.body)
	}
	x.refused(x.do("POST", "/api/v1/doctor?diff=2", ""), 400, "1 is what")
	for kind, files := range map[string][]string{"ranks": {"ranks/rank0.json.gz", "ranks/rank1.json.gz"}, "diff": {"before.json.gz", "after.json.gz"}} {
		query := ""
		if kind == "diff" {
			query = "?diff=1"
		}
		body, boundary := form(t, files...)
		x.do("POST", "/api/v1/doctor"+query, body, "Content-Type", boundary).json(t, &got)
		if got.Kind != kind {
			t.Errorf("%+v, want %s", got, kind)
		}
	}
	// One bad rank is left out and named.
	body, boundary := form(t, "ranks/rank0.json.gz", "grid20.vrp", "ranks/rank1.json.gz")
	var several struct {
		Kind    string
		LeftOut []string `json:"left_out"`
	}
	x.do("POST", "/api/v1/doctor", body, "Content-Type", boundary).json(t, &several)
	if several.Kind != "ranks" || len(several.LeftOut) != 1 || !strings.Contains(several.LeftOut[0], "left out: grid20.vrp: not a trace") {
		t.Errorf("%+v", several)
	}
	body, boundary = form(t, "grid20.vrp", "grid20.vrp")
	x.refused(x.do("POST", "/api/v1/doctor", body, "Content-Type", boundary), 422, "grid20.vrp: not a trace")
	body, boundary = form(t, "trace.json.gz")
	x.refused(x.do("POST", "/api/v1/doctor?diff=1", body, "Content-Type", boundary), 422, "two traces are compared")
	x.refused(x.do("POST", "/api/v1/doctor", "nonsense"), 422, "trace: not a trace")
	x.refused(x.do("POST", "/api/v1/doctor?name=..", "nonsense"), 422, "trace: not a trace")
	x.refused(x.do("POST", "/api/v1/doctor", "", "Content-Type", "multipart/form-data; boundary=x"), 400, "")
	x.refused(x.do("GET", "/api/v1/doctor/pages/none", ""), 404, "drop the trace again")
}

// form is a body with sample files.
func form(t *testing.T, files ...string) (body, kind string) {
	t.Helper()
	var b bytes.Buffer
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join("../../docs/examples", name))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "--xxx\r\nContent-Disposition: form-data; name=\"trace\"; filename=%q\r\n\r\n%s\r\n", name, text)
	}
	b.WriteString("--xxx--\r\n")
	return b.String(), "multipart/form-data; boundary=xxx"
}

// A stream hears of rows, runs and endings that another process writes; two servers on one folder
// show the same.
func TestRunsAreFollowed(t *testing.T) {
	x := open(t, nil)
	y := open(t, func(o *Options) { o.Runs = x.runs })
	resp, err := http.Get(x.url + "/api/v1/events")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	heard := make(chan string, 64)
	go func() {
		buf := make([]byte, 1<<16)
		for {
			n, err := resp.Body.Read(buf)
			if err != nil {
				close(heard)
				return
			}
			heard <- string(buf[:n])
		}
	}()
	expect := func(parts ...string) {
		t.Helper()
		deadline := time.After(patience)
		all := ""
		for {
			select {
			case text := <-heard:
				all += text
				ok := true
				for _, p := range parts {
					ok = ok && strings.Contains(all, p)
				}
				if ok {
					return
				}
			case <-deadline:
				t.Fatalf("heard %q, want %q", all, parts)
			}
		}
	}
	expect("event: hello")
	dir := makeRun(t, x.runs, "a-001", 2)
	expect("event: run", `"name":"a-001"`)
	soon(t, "the history", func() bool { r := x.Server.runs.get("a-001"); return r != nil && r.At == 2 })
	f, err := os.OpenFile(filepath.Join(dir, "csv", "history_gt_rl.csv"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := io.WriteString(f, row(3)+"4,0.2"); err != nil { // the fourth is half written
		t.Fatal(err)
	}
	expect(`"from":2,"rows":[[3,`)
	var got Run
	x.do("GET", "/api/v1/runs/a-001", "").json(t, &got)
	if got.At != 3 || got.Of != 9 || got.Unit != "epoch" || got.Model != "GT+RL" || len(got.Tables["history_gt_rl"].Rows) != 3 || got.Settings["training.batch_size"] != "128" {
		t.Errorf("%+v", got)
	}
	if _, err := io.WriteString(f, "5,0.05,arithmetic\n"); err != nil {
		t.Fatal(err)
	}
	expect(`"from":3,"rows":[[4,0.25,0.05,`)
	write(t, filepath.Join(dir, "result.json"), `{"test_gap": 0.01}`)
	expect(`"state":"done"`)
	soon(t, "agreement", func() bool {
		return x.do("GET", "/api/v1/runs/a-001", "").body == y.do("GET", "/api/v1/runs/a-001", "").body
	})
	// A resumed run cuts its history by another file under the name.
	for _, c := range []struct{ text, at string }{{row(1), `"at":1`}, {strings.Repeat(row(7), 20), `"at":7`}} {
		write(t, filepath.Join(dir, "csv", "new"), "epoch,train_loss,val_gap,mean_type\n"+c.text)
		if err := os.Rename(filepath.Join(dir, "csv", "new"), filepath.Join(dir, "csv", "history_gt_rl.csv")); err != nil {
			t.Fatal(err)
		}
		expect(c.at, `"reload":true`)
	}
	soon(t, "the other history", func() bool { return len(x.Server.runs.get("a-001").Tables["history_gt_rl"].Rows) == 20 })
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	expect("event: gone")
	x.stop()
	soon(t, "the end of the stream", func() bool {
		select {
		case _, ok := <-heard:
			return !ok
		default:
			return false
		}
	})
}

// Nobody waits for a listener: one that lags too far behind is let go, and comes back.
func TestHubWaitsForNobody(t *testing.T) {
	h := newHub()
	deaf, err := h.join(2)
	if err != nil {
		t.Fatal(err)
	}
	for range queueLength {
		h.beat()
	}
	if h.count() != 1 {
		t.Error("a listener whose queue is just full was let go")
	}
	h.beat()
	if h.count() != 0 {
		t.Error("a listener that does not read is kept")
	}
	n := 0
	for range deaf.queue {
		n++
	}
	if n != queueLength {
		t.Errorf("%d events were queued", n)
	}
	h.leave(deaf) // again: harmless
	for range 2 {
		if _, err := h.join(2); err != nil {
			t.Error(err)
		}
	}
	if _, err := h.join(2); asProblem(err).Status != 503 {
		t.Errorf("a third of two: %v", err)
	}
}

// Who goes away stops the search, and a server that stops does not wait for one.
func TestWorkEndsWithItsRequest(t *testing.T) {
	x := open(t, func(o *Options) { o.Limits.Search = time.Hour })
	ctx, cancel := context.WithCancel(t.Context())
	body := strings.Replace(fmt.Sprintf(square, "search"), "0.05", "3600", 1)
	ask := func(ctx context.Context) {
		r, err := http.NewRequestWithContext(ctx, "POST", x.url+"/api/v1/solve", strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return
		}
		if resp, err := http.DefaultClient.Do(r); err == nil {
			resp.Body.Close()
		}
	}
	go ask(ctx)
	soon(t, "the search", func() bool { return len(x.long.slots) == 1 })
	cancel()
	soon(t, "the end of the search", func() bool { return len(x.long.slots) == 0 })
	go ask(t.Context())
	soon(t, "the second search", func() bool { return len(x.long.slots) == 1 })
	x.stop()
	select {
	case err := <-x.gone:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("the server waits for a search")
	}
	x.gone <- nil // for the cleanup
}

func TestRunsFolder(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "file"), "")
	if _, err := New(Options{Runs: filepath.Join(dir, "file")}); err == nil || !strings.Contains(err.Error(), "is a file") {
		t.Error(err)
	}
	if _, err := New(Options{Runs: makeRun(t, dir, "a", 1)}); err == nil || !strings.Contains(err.Error(), "is a run itself") {
		t.Error(err)
	}
}
