package serve

import (
	"encoding/json"
	"strings"
	"testing"
)

// vroomPlan is a plan of two jobs, as a client of VROOM sends it.
const vroomPlan = `{"vehicles":[{"id":7,"profile":"car","start":[2.35,48.85],"end":[2.35,48.85],"steps":[{"type":"start"},{"type":"job","id":1},{"type":"end"}]}],
 "jobs":[{"id":1,"location":[2.30,48.90],"service":300},{"id":2,"location":[2.40,48.80],"skills":[1]}],"options":{"g":true,"c":true}}`

// TestVROOMRequest: POST / speaks VROOM's JSON, and its refusals are VROOM's.
func TestVROOMRequest(t *testing.T) {
	x := open(t, nil)
	var got struct {
		Code    int
		Error   string
		Summary struct{ Routes, Unassigned, Service int }
		Routes  []struct {
			Vehicle int
			Steps   []struct{ Type string }
		}
		Unassigned []struct {
			ID     int
			Type   string
			Reason string
		}
	}
	a := x.do("POST", "/", vroomPlan)
	a.json(t, &got)
	if a.status != 200 || got.Code != 0 || got.Summary.Routes != 1 || got.Summary.Unassigned != 1 || got.Summary.Service != 300 || got.Routes[0].Vehicle != 7 ||
		len(got.Routes[0].Steps) != 3 || got.Unassigned[0].ID != 2 || got.Unassigned[0].Reason == "" {
		t.Errorf("%d %s", a.status, a.body)
	}
	for body, want := range map[string]string{
		`{`: "ends in the middle",
		strings.Replace(vroomPlan, `"c":true`, `"l":1e9`, 1):          "options.l is 1e+09",
		strings.Replace(vroomPlan, `"c":true`, `"l":-1`, 1):           "options.l is -1",
		strings.Replace(vroomPlan, `"skills":[1]`, `"skillz":[1]`, 1): `unknown field "skillz"`,
		strings.Replace(vroomPlan, `"location":[2.30,48.90],`, ``, 1): "job 1 has no location, and there are no matrices",
		strings.Replace(vroomPlan, `[2.30,48.90]`, `[2.30,98.90]`, 1): "longitude and latitude",
	} {
		a := x.do("POST", "/", body)
		var no struct {
			Code  int
			Error string
		}
		if err := json.Unmarshal([]byte(a.body), &no); err != nil || a.status != 400 || no.Code != 2 || !strings.Contains(no.Error, want) {
			t.Errorf("%d %s, want %q", a.status, a.body, want)
		}
	}
	for body, want := range map[string]int{vroomPlan: 200, `{`: 400} {
		if a := x.do("POST", "/optimization", body); a.status != want {
			t.Errorf("as openrouteservice's client asks: %d %s", a.status, a.body)
		}
	}
	if a := x.do("GET", "/optimization", ""); a.status != 405 || a.header.Get("Allow") != "POST" {
		t.Errorf("GET where openrouteservice's client posts: %d %s", a.status, a.body)
	}
	if a := x.do("GET", "/", ""); a.status >= 400 {
		t.Errorf("the page is gone: %d", a.status)
	}
}
