package serve

import (
	"fmt"
	"strings"
	"testing"
)

// TestBatch: problems are answered in their order, one that is wrong by its refusal; too many, none
// and too long a search are refused before any is solved.
func TestBatch(t *testing.T) {
	x := open(t, nil)
	far := func(at float64, more string) string {
		return fmt.Sprintf(`{"coords":[[0,0],[%g,0]],"demands":[0,1],"capacity":1%s}`, at, more)
	}
	var all []string
	for i := range 30 {
		more := `,"method":"exact"`
		if i%10 == 7 {
			more = `,"method":"search"`
		}
		all = append(all, far(float64(i+1), more))
	}
	all[3], all[4] = far(1, `,"demandz":1`), far(1, `,"service":[1]`)
	var got batchAnswers
	x.do("POST", "/api/v1/batch", `{"problems":[`+strings.Join(all, ",")+`]}`).json(t, &got)
	for i, a := range got.Answers {
		switch {
		case i == 3 && a.Solution == nil && a.Problem.Status == 400 && strings.Contains(a.Problem.Detail, "demandz"):
		case i == 4 && a.Solution == nil && a.Problem.Status == 422 && strings.Contains(a.Problem.Detail, "service"):
		case i != 3 && i != 4 && a.Problem == nil && a.Solution.Cost == 2*float64(i+1):
		default:
			t.Errorf("answer %d: %+v %+v", i, a.Solution, a.Problem)
		}
	}
	if len(got.Answers) != len(all) {
		t.Errorf("%d answers for %d problems", len(got.Answers), len(all))
	}
	one := far(1, "") + ","
	x.refused(x.do("POST", "/api/v1/batch", `{"problems":[`+strings.Repeat(one, batchMost)+far(1, "")+`]}`), 422, "send more as jobs")
	x.refused(x.do("POST", "/api/v1/batch", `{"problems":[]}`), 422, "from 1 to 100")
	x.refused(x.do("POST", "/api/v1/batch", `{"problems":[`+far(1, `,"time":40`)+","+far(1, `,"time":40`)+`]}`), 422, "80 seconds together")
	x.refused(x.do("POST", "/api/v1/batch", `{"problem":[]}`), 400, "problem")
}
