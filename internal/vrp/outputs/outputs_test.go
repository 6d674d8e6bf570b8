package outputs

import (
	"bytes"
	"strings"
	"testing"

	"haul/internal/vrp"
)

// triangle is a problem of one tour through three customers.
func triangle() (*vrp.Problem, vrp.Solution) {
	return &vrp.Problem{Name: "triangle", Capacity: 9, Demand: []int32{0, 1, 1, 1}, X: []float64{0, 3, 3, 0}, Y: []float64{0, 0, 4, 4}, Metric: vrp.Exact},
		vrp.Solution{Routes: [][]int32{{1, 2, 3}}}
}

// TestOutputsWrite: every format of the table is found by its endings, writes its example, and
// refuses routes that it cannot state.
func TestOutputsWrite(t *testing.T) {
	p, one := triangle()
	two := vrp.Solution{Routes: [][]int32{{1, 2}, {3}}}
	for _, o := range Table {
		for _, ending := range o.Endings {
			if got, err := Of("a" + strings.ToUpper(ending)); err != nil || got != o {
				t.Errorf("%s: %v", ending, err)
			}
		}
		var b bytes.Buffer
		if err := o.Write(&b, Routes{Problem: p, Solution: one, Cost: 14}); err != nil || o.Example == "" || !strings.Contains(b.String(), o.Example) {
			t.Errorf("%v: %q lacks %q, %v", o.Endings, b.String(), o.Example, err)
		}
		if !strings.Contains(Endings(), o.Endings[0]) {
			t.Errorf("%s is not told", o.Endings[0])
		}
		err := o.Write(&b, Routes{Problem: p, Solution: two, Cost: 14})
		if refused := err != nil && err.Error() == o.Only; refused != (o.Only != "") {
			t.Errorf("%v: two routes: %v", o.Endings, err)
		}
		if open := (&vrp.Problem{Demand: p.Demand, Open: true}); o.Only != "" && o.Takes(open) == nil {
			t.Errorf("%v: open routes are taken", o.Endings)
		}
	}
	if _, err := Of("x.gif"); err == nil || !strings.Contains(err.Error(), `cannot write "gif", use .sol`) {
		t.Error(err)
	}
}
