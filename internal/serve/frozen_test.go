package serve

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite golden files")

// frozenAsks are requests whose answers are the same on every machine: of each operation that takes
// or gives a problem, what is answered and what is refused.
var frozenAsks = []struct{ name, ask, body string }{
	{"drawn", "GET /api/v1/instances/random?customers=5&capacity=12&seed=3", ""},
	{"drawn, refused", "GET /api/v1/instances/random?customers=-1", ""},
	{"json", "POST /api/v1/instances?name=a.json", every},
	{"json with fractions and a clock", "POST /api/v1/instances?name=b.json", `{"coords":[[0,0],[3,4]],"demands":[0,5],"capacity":20,"fractions":[10],"clock":60,"windows":[[],[[28800,36000]]]}`},
	{"table", "POST /api/v1/instances?name=t.csv&capacity=9", "id,x,y,demand,ready,due,service,city\nd,0,0,,,,,Bern\na,3,4,2,10,60,5,Genf\nb,6,8,1.5,,,,Thun\n"},
	{"table with words of skills", "POST /api/v1/instances?name=t.csv&capacity=9", "id,x,y,demand,skills\nd,0,0,,\na,3,4,2,3|7\nb,6,8,1,3\n"},
	{"table without a capacity", "POST /api/v1/instances?name=t.csv", "id,x,y,demand\nd,0,0,\na,3,4,2\n"},
	{"table with a strange column", "POST /api/v1/instances?name=t.csv&capacity=9", "id,x,y,demand,vehicle_hint\nd,0,0,,\na,3,4,2,x\n"},
	{"geojson", "POST /api/v1/instances?name=m.geojson&capacity=9&speed=36", `{"type":"FeatureCollection","features":[{"type":"Feature","geometry":{"type":"Point","coordinates":[1,2]},"properties":{"id":"a","demand":2,"due":"10:00"}},{"type":"Feature","geometry":{"type":"Point","coordinates":[3,4]},"properties":{"id":"d","kind":"depot"}}]}`},
	{"vrplib", "POST /api/v1/instances?name=v.vrp", "NAME : v\nTYPE : CVRP\nDIMENSION : 3\nEDGE_WEIGHT_TYPE : EUC_2D\nCAPACITY : 5\nNODE_COORD_SECTION\n1 0 0\n2 3 4\n3 6 8\nDEMAND_SECTION\n1 0\n2 2\n3 3\nDEPOT_SECTION\n1\n-1\nEOF\n"},
	{"vrplib with an unknown section", "POST /api/v1/instances?name=v.vrp", "NAME : v\nDIMENSION : 2\nCAPACITY : 5\nEDGE_WEIGHT_TYPE : EUC_2D\nNODE_COORD_SECTION\n1 0 0\n2 3 4\nCOLOUR_SECTION\n1 0\nEOF\n"},
	{"vroom as a file", "POST /api/v1/instances?name=v.json", frozenVROOM},
	{"exact", "POST /api/v1/solve", `{"coords":[[0,0],[3,4],[6,8],[-3,4]],"demands":[0,2,3,4],"capacity":5,"method":"exact","gap":true}`},
	{"rounded", "POST /api/v1/solve", `{"coords":[[0,0],[3,4.2]],"demands":[0,2],"capacity":5,"distance":"rounded","method":"exact"}`},
	{"windows", "POST /api/v1/solve", `{"coords":[[0,0],[3,4],[6,8]],"demands":[0,1,1],"capacity":5,"windows":[[],[[5,6]],[[30,40],[50,60]]],"service":[0,1,2],"ids":["d","a","b"],"names":["","A","B"],"time":0.05}`},
	{"fleet", "POST /api/v1/solve", `{"coords":[[0,0],[3,4],[6,8]],"demands":[0,4,4],"fleet":[{"name":"van","count":1,"capacity":[4],"fixed_cost":3,"breaks":[{"windows":[[0,50]],"duration":2}],"shift":[1,90]},{"name":"lorry","count":1,"capacity":[5],"fixed_cost":9,"shift":[2,90]}],"time":0.05}`},
	{"a shipment", "POST /api/v1/solve", `{"coords":[[0,0],[3,4],[6,8]],"demands":[0,0,0],"capacity":5,"shipments":[{"pickup":1,"delivery":2,"amount":[2]}],"time":0.05}`},
	{"nobody can reach it", "POST /api/v1/solve", `{"coords":[[0,0],[3,4],[30,40]],"demands":[0,1,1],"capacity":3,"windows":[[],[],[[0,9]]],"time":0.05}`},
	{"matrices", "POST /api/v1/solve", `{"demands":[0,1,1],"capacity":3,"distances":[[0,1,9],[9,0,1],[1,9,0]],"durations":[[0,2,9],[9,0,2],[2,9,0]],"time":0.05}`},
	{"every part", "POST /api/v1/export/json", strings.TrimSuffix(every, "}") + `,"routes":[[2,3,4]]}`},
	{"every part, as a table", "POST /api/v1/export/csv", strings.TrimSuffix(every, "}") + `,"routes":[[2,3,4]]}`},
	{"every part, on a map", "POST /api/v1/export/geojson", strings.TrimSuffix(every, "}") + `,"routes":[[2,3,4]]}`},
	{"every part, as VRPLIB", "POST /api/v1/export/vrp", strings.TrimSuffix(every, "}") + `,"routes":[[2,3,4]]}`},
	{"routes", "POST /api/v1/export/sol", `{"coords":[[0,0],[3,4],[6,8]],"demands":[0,1,1],"capacity":5,"routes":[[1,2]]}`},
	{"problem", "POST /api/v1/export/vrp", `{"coords":[[0,0],[3,4],[6,8]],"demands":[0,1,1],"capacity":5,"distance":"rounded","routes":[[1,2]]}`},
	{"wrong routes", "POST /api/v1/export/csv", `{"coords":[[0,0],[3,4],[6,8]],"demands":[0,1,1],"capacity":5,"routes":[[1]]}`},
	{"unknown key", "POST /api/v1/solve", `{"coords":[[0,0],[1,1]],"demandz":[0,1],"capacity":3}`},
	{"a short list", "POST /api/v1/solve", `{"coords":[[0,0],[1,1]],"demands":[0,1],"capacity":3,"service":[1]}`},
	{"a null in a list", "POST /api/v1/solve", `{"coords":[[0,0],[1,1]],"demands":[0,null],"capacity":3}`},
	{"a text for a number", "POST /api/v1/solve", `{"coords":[[0,0],[1,1]],"demands":[0,"1"],"capacity":3}`},
	{"an evaluation without a policy", "POST /api/v1/evaluate", `{"policy":"none"}`},
	{"vroom", "POST /", frozenVROOM},
	{"vroom, refused", "POST /optimization", `{"vehicles":[{"id":1,"start":[1,2]}],"jobs":[{"id":1}]}`},
	{"vroom, unknown key", "POST /", `{"vehicles":[{"id":1,"start":[1,2]}],"jobs":[{"id":1,"colour":"red"}]}`},
}

// every is a problem with every part that its objects can have.
const every = `{"name":"every","coords":[[0,0],[20,0],[3,4],[6,8],[9,12]],"distance":"exact","ids":["n","s","a","b","c"],"names":["","","A","",""],"depots":2,"speed":2,"demands":[0,0,2,0,0],"pickups":[0,0,1,0,0],` +
	`"dimensions":[{"name":"kg","demands":[0,0,5,0,0],"pickups":[0,0,1,0,0]}],"fractions":[1,10],"clock":1,"windows":[[],[],[[0,60],[70,200]],[[5]],[]],"service":[1,1,5,5,5],"setup":[0,0,1,0,0],"release":[0,0,2,0,0],"late":[0,0,1,0,0],` +
	`"optional":[false,false,true,false,false],"prizes":[0,0,4,0,0],"groups":[{"name":"g","members":[2],"required":true}],"shipments":[{"pickup":3,"delivery":4,"amount":[1,2]}],"lifo":true,"skills":[[],[],[3],[],[]],"priority":[0,0,7,0,0],"backhauls":"mixed","objective":"longest_route",` +
	`"fleet":[{"name":"van","count":2,"numbers":[4,5],"capacity":[9,50],"start":0,"end":1,"shift":[0,500],"latest_start":100,"max_duration":400,"max_distance":300,"max_stops":9,"fixed_cost":1,"distance_cost":2,"duration_cost":0.5,"skills":[3],"allowed":[2,3,4],"reloads":[1],"max_reloads":1,"breaks":[{"windows":[[0,90]],"duration":1,"max_load":[9]}],"initial_load":[1]}]}`

const frozenVROOM = `{"vehicles":[{"id":1,"start_index":0,"end_index":0,"capacity":[4],"time_window":[0,9000],"breaks":[{"id":1,"time_windows":[[0,5000]],"service":5}]}],"jobs":[{"id":1,"location_index":1,"delivery":[2],"time_windows":[[0,5000]],"skills":[],"service":3,"priority":4}],` +
	`"shipments":[{"amount":[1],"pickup":{"id":3,"location_index":2},"delivery":{"id":3,"location_index":3}}],"matrices":{"car":{"durations":[[0,10,60,60],[10,0,50,60],[60,50,0,10],[60,60,10,0]]}}}`

// measured are the numbers of answers that a machine's speed decides.
var measured = regexp.MustCompile(`"(seconds|iterations|loading|solving)":[0-9.e+-]+`)

// TestAnswersAreFrozen compares answers with the golden file.
func TestAnswersAreFrozen(t *testing.T) {
	x := open(t, nil)
	var got strings.Builder
	for _, c := range frozenAsks {
		method, path, _ := strings.Cut(c.ask, " ")
		a := x.do(method, path, c.body)
		fmt.Fprintf(&got, "== %s: %s\n%d %s\n%s\n", c.name, c.ask, a.status, a.header.Get("Content-Type"), measured.ReplaceAllString(strings.TrimRight(a.body, "\n"), `"$1":0`))
	}
	const path = "testdata/answers.txt"
	if *update {
		if err := os.WriteFile(path, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	was, is := strings.Split(string(want), "== "), strings.Split(got.String(), "== ")
	if len(was) != len(is) {
		t.Fatalf("%s has %d answers, these are %d: go test -update records them", path, len(was), len(is))
	}
	for i := range was {
		if was[i] != is[i] {
			t.Errorf("a change that was intended is recorded by go test -update\nwas %s\nis  %s", was[i], is[i])
		}
	}
}
