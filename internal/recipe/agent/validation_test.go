package agent

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"haul/internal/config"
	"haul/internal/run"
	"haul/internal/run/runtest"
	"haul/internal/safetensors"
	"haul/internal/world/grid"
)

// TestValidationGoals: validation goals are neither learned from nor held out, and choose the best
// weights. The held-out goals choose nothing.
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

// TestTheBestHoldsTheMean: agents are judged by the mean of the weights, and the best checkpoint
// holds it under the weights' own names.
func TestTheBestHoldsTheMean(t *testing.T) {
	h := writeHistory(t, tinyHistory)
	c := tinyAD(t, "validation_goals=3", "average_decay=0.6", "average_interval=2", "gen_interval=1000")
	o := options(c, openCPU(t, 2), h, DataAuto)
	o.Dir = runtest.OpenDir(t, runtest.Folder(t), false)
	heard := &runtest.Heard{}
	o.Listener = heard
	if err := run.Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	best, err := safetensors.Load(o.Dir.Best())
	if err != nil {
		t.Fatal(err)
	}
	last, err := safetensors.Load(o.Dir.Last())
	if err != nil {
		t.Fatal(err)
	}
	differ := false
	for _, x := range best.Tensors {
		mean, ok := last.Tensor(run.PrefixAverage + x.Name)
		own, _ := last.Tensor(x.Name)
		if !ok || string(mean.Data) != string(x.Data) {
			t.Errorf("%s of the best is not the mean", x.Name)
			continue
		}
		differ = differ || string(own.Data) != string(x.Data)
	}
	if !differ {
		t.Error("the mean is the weights themselves")
	}
	a, err := Load(o.Device, o.Dir.Best())
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	_, validation, _ := goals(h, c)
	e, err := a.Evaluate(t.Context(), EvalOptions{History: h, Goals: validation})
	if err != nil {
		t.Fatal(err)
	}
	rows := runtest.Rows[Evaluation](heard)
	if got := rows[len(rows)-1]; !slices.Equal(got.Return, e.Return) {
		t.Errorf("the run's agents earned %v, those of its best checkpoint %v", got.Return, e.Return)
	}
}

// TestTune: the temperature is chosen on the goals kept for validation, and used on the others.
func TestTune(t *testing.T) {
	h := writeHistory(t, tinyHistory)
	a, _ := trainedAgent(t, openReference(), h, "validation_goals=3")
	tries := []temperatures{{0, 0}, {0.5, 2}, {2, 0.5}}
	tuned, err := a.tune(t.Context(), EvalOptions{History: h, Agents: 3, Episodes: 6}, tries)
	if err != nil || len(tuned) != 3 {
		t.Fatal(tuned, err)
	}
	_, validation, _ := goals(h, a.Config)
	atOnce, err := a.evaluateAll(t.Context(), EvalOptions{History: h, Goals: validation, Agents: 3, Episodes: 6, tries: tries})
	if err != nil || len(atOnce) != 3 {
		t.Fatal(atOnce, err)
	}
	for i, trial := range tuned {
		one := atOnce[i]
		if one.Share != trial.Share || one.ShareSE != trial.ShareSE || (temperatures{one.Temperature, one.Search}) != tries[i] {
			t.Errorf("%+v, where all are tried at once %g ± %g at %g and %g", trial, one.Share, one.ShareSE, one.Temperature, one.Search)
		}
		e, err := a.Evaluate(t.Context(), EvalOptions{History: h, Goals: validation, Agents: 3, Episodes: 6, Temperature: &tries[i].use, Search: &tries[i].search})
		if err != nil || trial.Share != e.Share || trial.ShareSE != e.ShareSE || (temperatures{trial.Temperature, trial.Search}) != tries[i] {
			t.Errorf("%+v: %v, on the goals themselves %v", trial, err, e.Share)
		}
	}
	if tuned[0].Share == tuned[1].Share && tuned[1].Share == tuned[2].Share {
		t.Error("all temperatures earn the same: the test cannot tell them apart")
	}
	if b := bestTrial([]Trial{{1, 1, 0.5, 0}, {2, 1, 0.7, 0}, {3, 1, 0.7, 0}}); b.Temperature != 2 {
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
		{flagMap{"tune": "0.5:-1"}, "write temperatures"},
		{flagMap{"tune": "0.5:"}, "write temperatures"},
		{flagMap{"tune": "0.5", "search": 1.0}, "use one of them"},
		{flagMap{"tune": "0.5", "temperature": 1.0}, "use one of them"},
	} {
		if _, err := parseTemperatures(c.f); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v", c.f, err)
		}
	}
	if got, err := parseTemperatures(flagMap{"tune": "0.5, 1:1.5"}); err != nil || !slices.Equal(got, []temperatures{{0.5, 0.5}, {1, 1.5}}) {
		t.Error(got, err)
	}
}

// TestARunEndsOnTheGoalsHeldOut: with eval_tune a run ends with an evaluation of its best weights
// on the held-out goals, at the temperatures with the highest return on the validation goals. haul
// eval prints the same result for the file.
func TestARunEndsOnTheGoalsHeldOut(t *testing.T) {
	h := writeHistory(t, tinyHistory)
	a, e := trainedAgent(t, openReference(), h, "validation_goals=3", "eval_tune=true", "gen_interval=4", "eval_episodes=6")
	sum := summaryOf(e)
	out := sum.HeldOut
	if out == nil || len(out.Tuned) != 9 || !out.HeldOut || out.Iteration != sum.BestIteration {
		t.Fatalf("it ends with %+v", sum)
	}
	_, _, held := goals(h, a.Config)
	for i, g := range held {
		if out.Goals[i].Goal != h.Goals[g] {
			t.Errorf("goal %v is judged, %v is held out", out.Goals[i].Goal, h.Goals[g])
		}
	}
	best := bestTrial(out.Tuned)
	if out.Temperature != best.Temperature || out.Search != best.Search {
		t.Errorf("judged at %g and %g, tuned to %+v", out.Temperature, out.Search, best)
	}
	if !about.UseBest(a.Config) || about.UseBest(tinyAD(t)) {
		t.Error("the best weights are put to use where they were chosen on goals of their own, and there alone")
	}
	words := fmt.Sprint(e.Ending.Rows)
	if !strings.Contains(words, "held out") || !strings.Contains(words, "chosen on other goals") {
		t.Errorf("it ends with %s", words)
	}
}

// TestAnAgentSearchesAtATemperatureOfItsOwn: while its context holds no reward above the lowest one
// temperature holds, and after it another, until what was paid is pruned away.
func TestAnAgentSearchesAtATemperatureOfItsOwn(t *testing.T) {
	rules := contextRules{observed: 2, width: 5, capacity: 4, keep: 2}
	x := newAgentContext(&rules)
	at := temperatures{use: 0.5, search: 2}
	for i, c := range []struct {
		reward int
		want   float64
	}{{-1, 2}, {0, 2}, {1, 0.5}, {0, 0.5}, {0, 0.5}, {0, 0.5}, {0, 2}, {1, 0.5}} {
		x.observe(0, c.reward)
		if got := at.of(&x); got != c.want {
			t.Errorf("after transition %d: temperature %g, want %g", i, got, c.want)
		}
	}
	x.observe(0, 1)
	if x.reset(); at.of(&x) != 2 {
		t.Error("a context that is begun again remembers a reward")
	}
	c := tinyAD(t, "eval_temperature=0.5")
	two, three := 2.0, 3.0
	for _, e := range []struct {
		o    EvalOptions
		c    *config.AD
		want temperatures
	}{
		{EvalOptions{}, c, temperatures{0.5, 0.5}}, {EvalOptions{Temperature: &two}, c, temperatures{2, 2}}, {EvalOptions{Search: &three}, c, temperatures{0.5, 3}},
		{EvalOptions{}, tinyAD(t, "eval_temperature=0.5", "eval_search=1.5"), temperatures{0.5, 1.5}},
		{EvalOptions{Temperature: &two}, tinyAD(t, "eval_search=1.5"), temperatures{2, 2}},
		{EvalOptions{Temperature: &two, Search: &three}, c, temperatures{2, 3}},
	} {
		if got := e.o.temperatures(e.c); got != e.want {
			t.Errorf("%v, want %v", got, e.want)
		}
	}
}

// flagMap are the flags that were given.
type flagMap map[string]any

func (f flagMap) Changed(name string) bool  { _, ok := f[name]; return ok }
func (f flagMap) String(name string) string { s, _ := f[name].(string); return s }
func (f flagMap) Int(name string) int       { n, _ := f[name].(int); return n }
func (f flagMap) Float(name string) float64 { x, _ := f[name].(float64); return x }

var _ run.Flags = flagMap{}
