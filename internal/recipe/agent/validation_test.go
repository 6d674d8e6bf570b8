package agent

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"haul/internal/run"
	"haul/internal/run/runtest"
	"haul/internal/world/grid"
)

// TestValidationGoals: goals kept for validation are learned from by nobody, are none of those held
// out, and choose the best weights; the goals held out choose nothing.
func TestValidationGoals(t *testing.T) {
	h := writeHistory(t, tinyHistory)
	all, heldOut := h.Split()
	train, validation, held := goals(h, tinyAD(t))
	if diff := cmp.Diff(all, train) + cmp.Diff(heldOut, held); diff != "" || len(validation) != 0 {
		t.Errorf("without validation goals: %s, %v", diff, validation)
	}
	c := tinyAD(t, "validation_goals=3", "gen_interval=4")
	train, validation, held = goals(h, c)
	if len(validation) != 3 || len(train) != len(all)-3 {
		t.Fatalf("%v and %v of %v", train, validation, all)
	}
	together := slices.Concat(train, validation)
	slices.Sort(together)
	want := slices.Sorted(slices.Values(all))
	if diff := cmp.Diff(want, together) + cmp.Diff(heldOut, held); diff != "" {
		t.Error(diff)
	}
	seen := map[string]bool{}
	for seed := range 10 {
		_, other, _ := goals(h, tinyAD(t, "validation_goals=3", fmt.Sprint("seed=", seed)))
		seen[fmt.Sprint(other)] = true
	}
	if len(seen) < 5 { // of 35
		t.Errorf("ten seeds keep %v", seen)
	}

	e, ck := trained(t, c, openReference(), h, DataAuto)
	if len(viewOf(e).dataset.learned) != len(train) {
		t.Errorf("%d goals are learned from", len(viewOf(e).dataset.learned))
	}
	evals := runtest.Rows[Evaluation](e)
	best := 0.0
	for _, v := range evals {
		var on []int
		for _, g := range v.Goals {
			on = append(on, indexOf(h.Goals, g.Goal.(grid.Goal)))
		}
		if !slices.Equal(on, validation) || !v.HeldOut {
			t.Errorf("evaluated on %v, kept are %v", on, validation)
		}
		best = max(best, v.Share)
	}
	sum := summaryOf(e)
	if len(evals) != 3 || sum.BestShare == nil || *sum.BestShare != best || ck.Progress.Best == nil || *ck.Progress.Best != -best || sum.BestLoss != 0 {
		t.Errorf("%d evaluations, the best %v, summed up as %+v", len(evals), best, sum)
	}
	for _, test := range testsOf(e) {
		if test.Best {
			t.Error("a loss has chosen the best")
		}
	}
	says := fmt.Sprintf("best agents earn %.1f %% of the optimum, at iteration", 100*best)
	if row := e.Ending.Rows[0]; row[0] != "validation" || !strings.Contains(row[1], says) {
		t.Errorf("it ends with %q, which does not say %q", row, says)
	}
}

// TestTune: the temperature is chosen on the goals kept for validation, and used on the others.
func TestTune(t *testing.T) {
	h := writeHistory(t, tinyHistory)
	a, _ := trainedAgent(t, openReference(), h, "validation_goals=3")
	tries := []float64{0, 0.5, 2}
	tuned, err := a.tune(t.Context(), EvalOptions{History: h, Agents: 3, Episodes: 6}, tries)
	if err != nil || len(tuned) != 3 {
		t.Fatal(tuned, err)
	}
	_, validation, _ := goals(h, a.Config)
	for i, trial := range tuned {
		e, err := a.Evaluate(t.Context(), EvalOptions{History: h, Goals: validation, Agents: 3, Episodes: 6, Temperature: &tries[i]})
		if err != nil || trial.Share != e.Share || trial.ShareSE != e.ShareSE || trial.Temperature != tries[i] {
			t.Errorf("%+v: %v, on the goals themselves %v", trial, err, e.Share)
		}
	}
	if b := bestTrial([]Trial{{1, 0.5, 0}, {2, 0.7, 0}, {3, 0.7, 0}}); b.Temperature != 2 {
		t.Errorf("%+v", b)
	}
	if err := Check(h, tinyAD(t, "validation_goals=99")); err == nil || !strings.Contains(err.Error(), "validation_goals keeps 99 goals") {
		t.Error(err)
	}
	for _, c := range []struct {
		f    flagMap
		want string
	}{
		{flagMap{"tune": "0.5,x"}, "write temperatures"},
		{flagMap{"tune": "0.5,-1"}, "write temperatures"},
		{flagMap{"tune": "0.5", "temperature": 1.0}, "use one of them"},
	} {
		if _, err := temperatures(c.f); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v", c.f, err)
		}
	}
	if got, err := temperatures(flagMap{"tune": "0.5, 1"}); err != nil || !slices.Equal(got, []float64{0.5, 1}) {
		t.Error(got, err)
	}
}

// flagMap are the flags that were given.
type flagMap map[string]any

func (f flagMap) Changed(name string) bool  { _, ok := f[name]; return ok }
func (f flagMap) String(name string) string { s, _ := f[name].(string); return s }
func (f flagMap) Int(name string) int       { n, _ := f[name].(int); return n }
func (f flagMap) Float(name string) float64 { x, _ := f[name].(float64); return x }

var _ run.Flags = flagMap{}
