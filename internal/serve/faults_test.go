package serve

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"haul/internal/vrp/files"
)

// TestShipmentsWithoutDemandsAreHauls: a problem with shipments and without demands is Haul's own
// JSON, not VROOM's, and demands may be left out.
func TestShipmentsWithoutDemandsAreHauls(t *testing.T) {
	x := open(t, nil)
	const problem = `{"coords":[[0,0],[3,4],[6,8]],"capacity":5,"shipments":[{"pickup":1,"delivery":2,"amount":[2]}]`
	var found solved
	x.do("POST", "/api/v1/solve", problem+`,"time":0.05}`).json(t, &found)
	if found.Cost != 20 || len(found.Routes) != 1 || !slices.Equal(found.Routes[0], []int32{1, 2}) {
		t.Errorf("%+v", found)
	}
	if a := x.do("POST", "/api/v1/instances?name=a.json", problem+"}"); a.status != 200 || !strings.Contains(a.body, `"shipments":[{"pickup":1`) {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// TestWordsOfSkillsStayWords: a skill that a table calls frost is called so in the answer, which is
// read so again.
func TestWordsOfSkillsStayWords(t *testing.T) {
	x := open(t, nil)
	a := x.do("POST", "/api/v1/instances?name=t.csv&capacity=9", "id,x,y,demand,skills\nd,0,0,,\na,3,4,2,frost\nb,6,8,1,\n")
	var got struct {
		Skills [][]int  `json:"skills"`
		Words  []string `json:"skill_words"`
	}
	a.json(t, &got)
	if !slices.Equal(got.Words, []string{"frost"}) || !slices.Equal(got.Skills[1], []int{1}) {
		t.Errorf("%s", a.body)
	}
	p, err := files.ReadProblem(strings.NewReader(a.body), "a.json", files.Options{})
	if err != nil || !slices.Equal(p.SkillWords, []string{"frost"}) {
		t.Errorf("%v, %v", p, err)
	}
}

// TestAPlanOpensAgain: the JSON of routes holds its problem, and is read as that problem again.
func TestAPlanOpensAgain(t *testing.T) {
	x := open(t, nil)
	plan := x.do("POST", "/api/v1/export/json", strings.TrimSuffix(every, "}")+`,"routes":[[2,3,4]]}`)
	a := x.do("POST", "/api/v1/instances?name=plan.json", plan.body)
	was := x.do("POST", "/api/v1/instances?name=every.json", every)
	if a.status != 200 || a.body != was.body {
		t.Errorf("%d\nwas %s\nis  %s", a.status, was.body, a.body)
	}
}

// TestOneRuleForJSON: a null, a fraction of zero, a capacity beside a fleet and a key that there is
// not are judged alike by the service and by the reader of files.
func TestOneRuleForJSON(t *testing.T) {
	x := open(t, nil)
	for _, c := range []struct{ keys, want string }{
		{`"demands":[0,63.0],"capacity":64`, ""},
		{`"demands":[0,1],"capacity":64.0,"vehicles":null,"service":null`, ""},
		{`"demands":[0,null],"capacity":64`, "null"},
		{`"demands":[0,1.5],"capacity":64`, "1.5"},
		{`"demands":[0,1],"capacity":1,"fleet":[{"capacity":[9]}]`, "capacity"},
		{`"demands":[0,1],"Capacity":1`, `is \"capacity\" meant?`},
		{`"demands":[0,1],"demands":[0,2],"capacity":9`, "demands"},
	} {
		text := `{"coords":[[0,0],[3,4]],` + c.keys + `}`
		a := x.do("POST", "/api/v1/export/vrp", text)
		p, err := files.ReadProblem(strings.NewReader(text), "a.json", files.Options{})
		if err == nil {
			err = p.Check()
		}
		said, _ := json.Marshal(fmt.Sprint(err))
		if (a.status == 200) != (c.want == "") || (err == nil) != (c.want == "") {
			t.Errorf("%s: the service says %d %s, the reader %v", c.keys, a.status, a.body, err)
		} else if c.want != "" && (!strings.Contains(a.body, c.want) || !strings.Contains(string(said), c.want)) {
			t.Errorf("%s: the service says %s, the reader %s; %q is missing", c.keys, a.body, said, c.want)
		}
	}
}
