package agent

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"haul/internal/config"
	"haul/internal/kernel"
	"haul/internal/model"
	"haul/internal/plan"
	"haul/internal/run"
	"haul/internal/run/runtest"
	"haul/internal/world"
	"haul/internal/world/grid"
	"haul/internal/world/history"
)

// trainedAgent trains for a few iterations and loads the result.
func trainedAgent(t *testing.T, dev kernel.Device, h *history.Rooms, sets ...string) (*Agent, *runtest.Heard) {
	t.Helper()
	e, _ := trained(t, tinyAD(t, sets...), dev, h, DataAuto)
	a, err := Load(dev, e.Info.Last)
	if err != nil {
		t.Fatal(err)
	}
	return a, e
}

// TestLoadedAgent: a checkpoint's agent does what the run's own did.
func TestLoadedAgent(t *testing.T) {
	h := writeHistory(t, tinyHistory)
	a, e := trainedAgent(t, openReference(), h)
	clock := cmpopts.IgnoreFields(Evaluation{}, "Seconds", "StepsPerSecond")
	got, err := a.Evaluate(t.Context(), EvalOptions{History: h})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(summaryOf(e).Evaluation, got, clock); diff != "" {
		t.Errorf("the loaded agent does otherwise: %s", diff)
	}
	if got.Iteration != 12 || got.Agents != 2 || got.Episodes != 12 || got.Temperature != 1 || got.Seed != 42 || got.Context != 19 || !got.HeldOut {
		t.Errorf("%+v", got)
	}
	cold, seed := 0.0, uint64(7)
	greedy, err := a.Evaluate(t.Context(), EvalOptions{History: h, Goals: []int{4, 0, 2}, Agents: 3, Episodes: 5, Temperature: &cold, Seed: &seed})
	if err != nil {
		t.Fatal(err)
	}
	if len(greedy.Goals) != 3 || greedy.Goals[0].Goal != h.Goals[4] || len(greedy.Return) != 5 || greedy.Seed != 7 || greedy.HeldOut {
		t.Errorf("%+v", greedy)
	}
	for _, g := range greedy.Goals {
		if diff := cmp.Diff(make([]float64, 5), g.SE); diff != "" {
			t.Errorf("greedy agents on one goal differ: %s", diff)
		}
		if diff := cmp.Diff(h.Curve(indexOf(h.Goals, g.Goal.(grid.Goal))), g.Source); diff != "" {
			t.Errorf("the learner's curve: %s", diff)
		}
	}
	if _, err := json.Marshal(greedy); err != nil {
		t.Error(err)
	}
}

func indexOf(goals []grid.Goal, g grid.Goal) int {
	for i, x := range goals {
		if x == g {
			return i
		}
	}
	return -1
}

func TestEvaluationErrors(t *testing.T) {
	h := writeHistory(t, tinyHistory)
	a, _ := trainedAgent(t, openReference(), h)
	wide := tinyHistory
	wide.room.Size = 4
	hot := math.NaN()
	for _, c := range []struct {
		name string
		o    EvalOptions
		want string
	}{
		{"no file", EvalOptions{}, "no learning histories"},
		{"room", EvalOptions{History: writeHistory(t, wide)}, "trained in another world"},
		{"split", EvalOptions{History: writeHistory(t, historySpec{tinyHistory.room, 3, 120, 0.3})}, "hold out goals that the agent has learned from"},
		{"goal", EvalOptions{History: h, Goals: []int{9}}, "no goal 9, the histories have 9"},
		{"no goal", EvalOptions{History: h, Goals: []int{}}, "0 goals"},
		{"agents", EvalOptions{History: h, Agents: -1}, "-1 agents"},
		{"temperature", EvalOptions{History: h, Temperature: &hot}, "temperature NaN"},
	} {
		if _, err := a.Evaluate(t.Context(), c.o); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v; want one line with %q", c.name, err, c.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := a.Evaluate(ctx, EvalOptions{History: h, Progress: func(int, int) { cancel() }}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestContextReadInTurnsEqualsOneReading: an agent's context that is read token by token, and again
// after pruning, has the same logits as one pass over the same tokens in training.
func TestContextReadInTurnsEqualsOneReading(t *testing.T) {
	for _, sets := range [][]string{nil, {"use_compressed_context=false", "n_transit=10"}, {"tf_positions=rotary"}, {"tf_n_kv_head=1"}, {"tf_n_head=4", "tf_n_kv_head=2", "tf_positions=rotary"}} {
		cfg := tinyAD(t, sets...)
		m, err := newModel(cfg, grid.Room{Size: 3, Horizon: 4}.Space())
		if err != nil {
			t.Fatal(err)
		}
		dev := openReference()
		store, err := dev.NewStore(m.Layout(), false)
		if err != nil {
			t.Fatal(err)
		}
		if err := store.WriteWeights(model.Initial(m.Layout(), 5)); err != nil {
			t.Fatal(err)
		}
		rules, err := newContextRules(cfg, 2, 4)
		if err != nil {
			t.Fatal(err)
		}
		net, err := newNetwork(dev, m, store, 3, 3, rules.capacity, "eval_agents")
		if err != nil {
			t.Fatal(err)
		}
		once := newWholeReader(t, dev, cfg, m, store)
		c := newEvalBatch(grid.Room{Size: 3, Horizon: 4}, tasks(grid.Goal(grid.At(2, 0))), 3, 12, &rules, net)
		c.reset(1, temperatures{1, 1})
		for c.live > 0 {
			was := make([][]int32, len(c.agents))
			for i := range c.agents {
				was[i] = slices.Clone(c.agents[i].context.words)
			}
			if err := c.turn(); err != nil {
				t.Fatal(err)
			}
			for i := range c.agents {
				if c.agents[i].acting {
					want := once.read(t, was[i])
					if diff := cmp.Diff(want, net.hostLogits[i*c.width:][:c.width], cmpopts.EquateApprox(1e-4, 1e-5)); diff != "" {
						t.Fatalf("agent %d after %d steps with %d tokens: %s", i, c.agents[i].steps, len(was[i])/rules.width, diff)
					}
				}
			}
		}
		if c.agents[1].context.prunes < 3 {
			t.Errorf("only %d prunes", c.agents[1].context.prunes)
		}
	}
}

// wholeReader runs the network over a whole row at once.
type wholeReader struct {
	runner kernel.Runner
	in     model.Sequences
	logits *kernel.Tensor
	tokens int
}

func newWholeReader(t *testing.T, dev kernel.Device, c *config.AD, m *model.AD, store kernel.Store) *wholeReader {
	t.Helper()
	p := plan.New("whole", dev, 1, c.Tokens(), m.Layout())
	r := &wholeReader{in: hostRows(p, m, c.Tokens()), tokens: c.Tokens()}
	r.logits = m.Encode(p, r.in, false)
	r.logits.Space = kernel.Batch
	var err error
	if r.runner, err = p.Compile(dev, store); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *wholeReader) read(t *testing.T, words []int32) []float32 {
	t.Helper()
	index := make([]int32, r.tokens*model.TokenFields(2))
	for i := range index {
		index[i] = -1
	}
	tokens := 0
	for token := range slices.Chunk(words, 5) {
		copy(index[tokens*model.TokenFields(2):], append(slices.Clone(token), int32(tokens)))
		tokens++
	}
	width := r.logits.Cols()
	out := make([]float32, r.tokens*width)
	if err := errors.Join(r.runner.WriteBatch(r.in.Index, index), r.runner.WriteBatch(r.in.First, make([]int32, r.tokens)), r.runner.Run(), r.runner.ReadBatch(r.logits, out)); err != nil {
		t.Fatal(err)
	}
	return out[(tokens-1)*width:][:width]
}

// TestThousandEpisodesOnADevice: an agent that prunes its own context lives 1,000 episodes without
// growth.
func TestThousandEpisodesOnADevice(t *testing.T) {
	h := writeHistory(t, tinyHistory)
	dev := openCPU(t, 1)
	a, _ := trainedAgent(t, dev, h)
	rules, err := newContextRules(a.Config, 2, 4)
	if err != nil {
		t.Fatal(err)
	}
	net, err := newNetwork(dev, a.model, a.store, 2, 2, rules.capacity, "eval_agents")
	if err != nil {
		t.Fatal(err)
	}
	defer net.runner.Close()
	c := newEvalBatch(a.World.(world.Game), tasks(0), 2, 1000, &rules, net)
	memory := net.runner.Memory()
	allocated := dev.Counters().Allocations
	allocs := runtest.Allocations(1, func() {
		c.reset(7, temperatures{1, 1})
		for c.live > 0 {
			if err := c.turn(); err != nil {
				t.Fatal(err)
			}
			for i := range c.agents {
				if c.agents[i].context.tokens() > rules.capacity {
					t.Fatal("a context has grown")
				}
			}
		}
	})
	if allocs != 0 || net.runner.Memory() != memory || dev.Counters().Allocations != allocated {
		t.Errorf("%v allocations, memory %d to %d bytes", allocs, memory, net.runner.Memory())
	}
	if c.agents[0].context.prunes < 400 || c.regions.longest > a.Config.CompressInterval {
		t.Errorf("%d prunes, regions %+v", c.agents[0].context.prunes, c.regions)
	}
}

// TestCompiledADStep: the compiled step is the step that a run trains with.
func TestCompiledADStep(t *testing.T) {
	h := writeHistory(t, tinyHistory)
	cfg := tinyAD(t)
	_, want := trained(t, cfg, openReference(), h, DataAuto)
	dev := openReference()
	s, err := CompileStep(dev, cfg, h)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Runner.Close()
	for range cfg.TrainTimesteps {
		if err := s.Runner.Run(); err != nil {
			t.Fatal(err)
		}
	}
	state, err := s.Runner.State()
	if err != nil || !cmp.Equal(state, want.Progress.Device) {
		t.Errorf("state is %+v, a run's %+v, %v", state, want.Progress.Device, err)
	}
	m, err := newModel(cfg, grid.Room{Size: 3, Horizon: 4}.Space())
	if err != nil {
		t.Fatal(err)
	}
	if flops, err := s.FLOPs(); err != nil || flops != 12*5*3*m.FLOPs(20) {
		t.Errorf("%d operations, %v", flops, err)
	}
	if flops, err := s.FLOPs(); err != nil || flops != 0 {
		t.Errorf("%d operations without a step, %v", flops, err)
	}
	if s, err = (Recipe{}).Step(openCPU(t, 1), cfg); err != nil {
		t.Fatal(err)
	}
	if seconds, err := s.Trial(t.Context()); err != nil || seconds <= 0 {
		t.Errorf("%g seconds, %v", seconds, err)
	}
}

// Agents on the same goal counted as independent: a hundred times as many that do the same made the
// standard error ten times smaller.
func TestAgentsOnAGoalAreNotIndependent(t *testing.T) {
	h := writeHistory(t, tinyHistory)
	rules, err := newContextRules(tinyAD(t), 2, h.Room.Horizon)
	if err != nil {
		t.Fatal(err)
	}
	goals := []int{0, 4, 7}
	evaluate := func(each int) *Evaluation {
		c := newEvalBatch(h.Room, tasks(h.Goals[0], h.Goals[4], h.Goals[7]), each, 1, &rules, nil)
		for i := range c.returns {
			c.returns[i] = []float64{1, 4, 1}[i/each]
		}
		return c.results(h, goals, each)
	}
	few, many := evaluate(2), evaluate(200)
	if few.LastSE != many.LastSE || few.SE[0] != many.SE[0] || few.ShareSE != many.ShareSE {
		t.Errorf("more agents that do the same move the error from %g to %g", few.LastSE, many.LastSE)
	}
	// Returns 1, 4 and 1: mean 2, variance 3, standard error 1.
	if few.Last != 2 || math.Abs(few.LastSE-1) > 1e-12 || few.SEOver != "goals" || !strings.Contains(inUse(few), "2.00 ± 1.00") || !strings.Contains(inUse(few), "± is over goals") {
		t.Errorf("%g ± %g over %s: %s", few.Last, few.LastSE, few.SEOver, inUse(few))
	}

	// Goals that all end at the same share of their optimum leave no doubt about it, however far apart
	// they are.
	even := &Evaluation{Episodes: 1}
	for _, best := range []float64{4, 8, 15} {
		even.Goals = append(even.Goals, GoalResult{Optimal: best, Return: []float64{best / 2}, Last: best / 2})
	}
	if even.overGoals(); even.Share != 0.5 || even.ShareSE > 1e-12 || even.LastSE == 0 {
		t.Errorf("share %g ± %g, return ± %g", even.Share, even.ShareSE, even.LastSE)
	}
	one := &Evaluation{Episodes: 1, Agents: 9, Goals: even.Goals[:1]}
	if one.overGoals(); one.LastSE != 0 || strings.Contains(inUse(one), "±") {
		t.Errorf("one goal speaks for others: %s", inUse(one))
	}
}

// TestFlagsReachAnEvaluation: the flags of haul eval configure the agents.
func TestFlagsReachAnEvaluation(t *testing.T) {
	dev, path := openReference(), historyFile(t, tinyHistory)
	_, e := trainedAgent(t, dev, writeHistory(t, tinyHistory))
	for _, want := range []float64{1, 0.25} {
		flags := flagMap{"history": path, "goals": "all", "agents": 2, "episodes": 3}
		if want != 1 {
			flags["temperature"] = want
		}
		got, err := evaluate(t.Context(), &run.Evaluation{Path: e.Info.Last, Settings: tinyAD(t), Device: func() (kernel.Device, error) { return dev, nil }, Workers: 1, Flags: flags})
		if err != nil || got.Temperature != want || got.Agents != 2 || got.Episodes != 3 {
			t.Errorf("%v: %+v, %v", flags, got, err)
		}
	}
}

// TestGoalsThatChoseTheTemperatureAreNamed: a report on goals that also chose the temperature says
// so, and no other does.
func TestGoalsThatChoseTheTemperatureAreNamed(t *testing.T) {
	dev, path := openReference(), historyFile(t, tinyHistory)
	_, e := trainedAgent(t, dev, writeHistory(t, tinyHistory), "validation_goals=2")
	for goals, want := range map[string]bool{"validation": true, "all": true, "train": false, "held-out": false} {
		for _, tune := range []string{"0.5,1", ""} {
			flags := flagMap{"history": path, "goals": goals, "agents": 1, "episodes": 2}
			if tune != "" {
				flags["tune"] = tune
			}
			got, err := evaluate(t.Context(), &run.Evaluation{Path: e.Info.Last, Settings: tinyAD(t), Device: func() (kernel.Device, error) { return dev, nil }, Workers: 1, Flags: flags})
			if err != nil {
				t.Fatal(err)
			}
			var text strings.Builder
			if err := got.Text(&text, func(s string) string { return s }); err != nil {
				t.Fatal(err)
			}
			if said := strings.Contains(text.String(), "include those that chose this temperature"); said != (want && tune != "") {
				t.Errorf("--goals %s --tune %q says so: %v", goals, tune, said)
			}
		}
	}
	for _, bad := range []float64{-1, math.NaN(), math.Inf(1)} {
		for _, name := range []string{"temperature", "search"} {
			if err := notBelowZero(flagMap{name: bad}, name); err == nil || !strings.Contains(err.Error(), "must be finite and not below 0") {
				t.Errorf("--%s %g: %v", name, bad, err)
			}
		}
	}
}

// lives is a history with only tasks and learners' curves.
type lives struct {
	history.History
	tasks  []world.Task
	curves [][]float64
}

func (l lives) Tasks() []world.Task   { return l.tasks }
func (l lives) Curve(i int) []float64 { return l.curves[i] }

// TestLearnersOfUnequalLives: the mean return of an episode is over the learners that reached it.
func TestLearnersOfUnequalLives(t *testing.T) {
	rules, err := newContextRules(tinyAD(t), 2, testRoom.Horizon)
	if err != nil {
		t.Fatal(err)
	}
	at := tasks(0, 1, 2)
	c := newEvalBatch(testRoom, at, 1, 1, &rules, nil)
	got := c.results(lives{tasks: at, curves: [][]float64{{1, 2}, {3, 4, 5, 6}, {5, 6, 7}}}, []int{0, 1, 2}, 1).Source
	if diff := cmp.Diff([]float64{3, 4, 6, 6}, got); diff != "" {
		t.Error(diff)
	}
}
