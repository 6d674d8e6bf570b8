package train

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"haul/internal/config"
	"haul/internal/env/darkroom"
	"haul/internal/kernel"
	"haul/internal/kernel/reference"
	"haul/internal/rng"
)

// historySpec is a file of learners that explore less and less.
type historySpec struct {
	room           darkroom.Room
	streams, steps int
	ratio          float64
}

var tinyHistory = historySpec{darkroom.Room{Size: 3, Horizon: 4}, 3, 120, 0.8}

func writeHistory(t testing.TB, h historySpec) *darkroom.History {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.hist")
	goals := h.room.Goals()
	w, err := darkroom.Create(path, darkroom.Header{Room: h.room, Goals: goals, TrainRatio: h.ratio, Streams: h.streams, Steps: h.steps})
	if err != nil {
		t.Fatal(err)
	}
	for g, goal := range goals {
		var all []darkroom.Step
		for s := range h.streams {
			cell := h.room.Start()
			for i := range h.steps {
				words := rng.At(11, uint64(g*h.streams+s), uint32(i), rng.Learner)
				action := darkroom.Towards(cell, goal)
				if rng.Below(words[0], 100) >= uint32(i) {
					action = uint8(rng.Below(words[1], darkroom.NumActions))
				}
				next := h.room.Move(cell, action)
				reward := uint8(0)
				if next == goal {
					reward = 1
				}
				all = append(all, darkroom.MakeStep(cell, action, reward))
				if cell = next; (i+1)%h.room.Horizon == 0 {
					cell = h.room.Start()
				}
			}
		}
		if err := w.WriteGoal(g, all); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	out, err := darkroom.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Close() })
	return out
}

// tinyAD is the smallest run that exercises everything.
func tinyAD(t testing.TB, sets ...string) *config.AD {
	t.Helper()
	sets = append([]string{"use_compressed_context=true", "compress_interval=8", "compress_min=4", "n_transit=20", "tf_n_embd=8", "tf_n_head=2", "tf_n_layer=1", "tf_dim_feedforward=16",
		"train_n_stream=2", "train_source_timesteps=100", "train_timesteps=12", "train_batch_size=5", "num_warmup_steps=3", "lr=0.01", "min_lr=0.001", "region_ahead=2",
		"summary_interval=4", "eval_interval=6", "gen_interval=12", "ckpt_interval=5", "test_batch_size=6", "eval_episodes=12", "eval_agents=2", "num_workers=2"}, sets...)
	c, err := config.LoadAD("ad_dr", sets)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func openReference() kernel.Device { return reference.New[float32](2) }

// adEar keeps what a run tells, and may act on it.
type adEar struct {
	silentAD
	info     ADInfo
	reports  []ADReport
	tests    []ADTest
	evals    []*ADEvaluation
	notes    []string
	summary  *ADSummary
	onReport func(ADReport)
}

func (e *adEar) Start(i ADInfo)            { e.info = i }
func (e *adEar) Note(s string)             { e.notes = append(e.notes, s) }
func (e *adEar) Done(s ADSummary)          { e.summary = &s }
func (e *adEar) Test(t ADTest)             { e.tests = append(e.tests, t) }
func (e *adEar) Evaluated(v *ADEvaluation) { e.evals = append(e.evals, v) }
func (e *adEar) Report(r ADReport) {
	e.reports = append(e.reports, r)
	if e.onReport != nil {
		e.onReport(r)
	}
}

// wholeAD trains from start to end.
func wholeAD(t testing.TB, o ADOptions) (*adEar, *adCheckpoint) {
	t.Helper()
	o.Dir = openDir(t, setup(t), false)
	e := &adEar{}
	o.Listener = e
	if err := RunAD(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	return e, loadAD(t, o.Dir.Last())
}

func loadAD(t testing.TB, path string) *adCheckpoint {
	t.Helper()
	ck, _, err := loadADCheckpoint(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return ck
}

// sameAD compares all that a run continues from bit by bit; only sums for the next report may be added up in another order.
func sameAD(t *testing.T, want, got *adCheckpoint) {
	t.Helper()
	clean := func(c *adCheckpoint) adCheckpoint {
		k := *c
		k.Device, k.Progress.Elapsed, k.Progress.Seconds, k.Progress.Waited, k.Progress.Sums = "", 0, 0, 0, kernel.Metrics{}
		return k
	}
	if diff := cmp.Diff(want.Progress.Sums, got.Progress.Sums, close12); diff != "" {
		t.Errorf("the sums differ: %s", diff)
	}
	if diff := cmp.Diff(clean(want), clean(got)); diff != "" {
		t.Errorf("the runs differ: %.2000s", diff)
	}
}

func TestADRuns(t *testing.T) {
	h := writeHistory(t, tinyHistory)
	for _, c := range []struct {
		name   string
		sets   []string
		tokens int
	}{
		{"compressed", nil, 20},
		{"plain", []string{"use_compressed_context=false", "n_transit=10"}, 10},
		{"parts", []string{"gradient_accumulation_steps=3"}, 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := tinyAD(t, c.sets...)
			e, ck := wholeAD(t, ADOptions{Config: cfg, Device: openReference(), History: h})
			if ck.Progress.Iteration != 12 || ck.Progress.Device.Step != 12 || ck.Progress.Device.Instances != uint64(60*cfg.GradientAccumulationSteps) {
				t.Errorf("stands at %+v", ck.Progress)
			}
			if len(e.reports) != 3 || len(e.tests) != 2 || len(e.evals) != 1 || e.summary == nil {
				t.Fatalf("%d reports, %d tests, %d evaluations, summary %v", len(e.reports), len(e.tests), len(e.evals), e.summary)
			}
			if e.info.Tokens != c.tokens || e.info.Goals != 7 || e.info.Streams != 14 || e.info.Data != DataDevice {
				t.Errorf("odd start: %+v", e.info)
			}
			typed := cfg.UseCompressedContext
			for _, r := range e.reports {
				if r.Since != 4 || !(r.LossAction > 0.5 && r.LossAction < 3) || (r.LossTokenType > 0) != typed || r.AccAction <= 0 || r.GradNorm <= 0 || r.WaitShare != 0 || r.BusyShare != 1 {
					t.Errorf("odd report: %+v", r)
				}
			}
			if lr := e.reports[2].LR; lr != 0.001 {
				t.Errorf("the last rate is %g", lr)
			}
			ev := e.summary.Evaluation
			if ev != e.evals[0] || ev.Iteration != 12 || len(ev.Goals) != 2 || len(ev.Return) != 12 || ev.Optimal <= 0 || (ev.Regions.Ended > 0) != typed {
				t.Errorf("odd evaluation: %+v", ev)
			}
			for _, v := range []any{e.info, e.reports, e.summary} {
				if _, err := json.Marshal(v); err != nil {
					t.Error(err)
				}
			}
			best := loadAD(t, e.info.Best)
			if best.Progress.Iteration != e.summary.BestIteration || *best.Progress.Best != e.summary.BestLoss {
				t.Errorf("the best checkpoint is of iteration %d", best.Progress.Iteration)
			}
		})
	}
}

// TestADDataPathsAgree: rows drawn on the device, or made by any number of workers, teach the same weights.
func TestADDataPathsAgree(t *testing.T) {
	h := writeHistory(t, tinyHistory)
	cfg := tinyAD(t, "gradient_accumulation_steps=2")
	_, want := wholeAD(t, ADOptions{Config: cfg, Device: openReference(), History: h, Data: DataDevice})
	for _, workers := range []string{"0", "1", "3"} {
		c := tinyAD(t, "gradient_accumulation_steps=2", "num_workers="+workers, "prefetch="+workers)
		e, got := wholeAD(t, ADOptions{Config: c, Device: openReference(), History: h, Data: DataHost})
		if e.info.Data != DataHost {
			t.Errorf("the rows came from the %s", e.info.Data)
		}
		got.Config = want.Config
		sameAD(t, want, got)
	}
}

// TestADInterruptedAnywhere stops a run at replays all over it, be they steps, tests or an agent's turns, resumes it, and wants the state of
// the run that nobody stopped.
func TestADInterruptedAnywhere(t *testing.T) {
	h := writeHistory(t, tinyHistory)
	for _, data := range []string{DataDevice, DataHost} {
		cfg := tinyAD(t, "eval_episodes=2", "gen_interval=6", "gradient_accumulation_steps=2")
		counter := &counting{Device: openCPU(t, 2)}
		full, want := wholeAD(t, ADOptions{Config: cfg, Device: feeding{counter}, History: h, Data: data})
		for stopAt := 1; stopAt < counter.runs; stopAt += 9 {
			path := setup(t)
			ctx, cancel := context.WithCancel(t.Context())
			dev := &counting{Device: counter.Device, stopAt: stopAt, stop: cancel}
			d := openDir(t, path, false)
			told := &adEar{}
			err := RunAD(ctx, ADOptions{Config: cfg, Device: feeding{dev}, Dir: d, History: h, Data: data, Listener: told})
			d.Close()
			var stopped *Interrupted
			if !errors.As(err, &stopped) || !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "interrupted after iteration") {
				t.Fatalf("stopped at replay %d of %d: %v", stopAt, counter.runs, err)
			}
			d = openDir(t, path, true)
			if err := RunAD(t.Context(), ADOptions{Device: counter.Device, Dir: d, History: h, Data: data, Resume: true, Listener: told}); err != nil {
				t.Fatalf("resumed after replay %d: %v", stopAt, err)
			}
			sameAD(t, want, loadAD(t, d.Last()))
			sameADReports(t, full, told)
			d.Close()
			cancel()
		}
	}
}

// feeding counts replays of a runner that is fed, too.
type feeding struct{ *counting }

func (f feeding) Compile(p *kernel.Program, sets []kernel.Store) (kernel.Runner, error) {
	r, err := f.Device.Compile(p, sets)
	return feedingRunner{countingRunner{r, f.counting}, r.(kernel.Feeder)}, err
}

type feedingRunner struct {
	countingRunner
	kernel.Feeder
}

func (r feedingRunner) Feed(s *kernel.Slab) error {
	if r.c.runs++; r.c.runs == r.c.stopAt {
		r.c.stop()
	}
	return r.Feeder.Feed(s)
}

// sameADReports compares what was told, the clock apart.
func sameADReports(t *testing.T, want, got *adEar) {
	t.Helper()
	figures := func(e *adEar) (out [][]float64) {
		for _, r := range e.reports {
			out = append(out, []float64{float64(r.Iteration), float64(r.Since), r.LossAction, r.AccAction, r.LossTokenType, r.AccTokenType, r.LR, r.GradNorm})
		}
		for _, r := range e.tests {
			out = append(out, []float64{float64(r.Iteration), r.LossAction, r.AccAction, r.LossTokenType, r.AccTokenType})
		}
		for _, r := range e.evals {
			out = append(out, append([]float64{float64(r.Iteration), r.Last, float64(r.Prunes)}, r.Return...))
		}
		return out
	}
	if diff := cmp.Diff(figures(want), figures(got), close12); diff != "" {
		t.Errorf("the reports differ: %s", diff)
	}
}

// TestADLearns: a small model gets better at what its histories' learners do, and at ending regions.
func TestADLearns(t *testing.T) {
	h := writeHistory(t, historySpec{darkroom.Room{Size: 3, Horizon: 4}, 4, 160, 0.8})
	cfg := tinyAD(t, "train_timesteps=150", "train_n_stream=4", "train_source_timesteps=160", "train_batch_size=24", "tf_n_embd=16", "num_warmup_steps=10", "lr=0.01",
		"summary_interval=50", "eval_interval=50", "ckpt_interval=150", "gen_interval=150", "tf_dropout=0", "tf_attn_dropout=0", "test_batch_size=64")
	e, _ := wholeAD(t, ADOptions{Config: cfg, Device: openCPU(t, 2), History: h})
	first, last := e.reports[0], e.reports[2]
	if last.LossAction > first.LossAction-0.1 || last.LossTokenType > first.LossTokenType-0.1 || last.AccAction <= first.AccAction || e.tests[2].LossAction >= e.tests[0].LossAction {
		t.Errorf("nothing was learned: %+v, then %+v", first, last)
	}
}

// TestADIterationsAllocateNothing: neither way of feeding a step makes garbage or takes device memory.
func TestADIterationsAllocateNothing(t *testing.T) {
	h := writeHistory(t, tinyHistory)
	for _, data := range []string{DataDevice, DataHost} {
		dev := openCPU(t, 2)
		r := &adRun{ADOptions: ADOptions{Config: tinyAD(t), Device: dev, Dir: openDir(t, setup(t), false), History: h, Data: data, Listener: silentAD{}}}
		if err := r.prepare(); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		stretch := func() {
			r.at.Iteration = 0
			if err := r.stretch(ctx, 12); err != nil {
				t.Fatal(err)
			}
		}
		stretch() // brings the loader under way
		before := dev.Counters().Allocations
		if allocs := testing.AllocsPerRun(5, stretch); allocs != 0 {
			t.Errorf("%s: %v allocations in 12 iterations", data, allocs)
		}
		if n := dev.Counters().Allocations - before; n != 0 {
			t.Errorf("%s: %d device allocations", data, n)
		}
		cancel()
		if err := r.close(); err != nil {
			t.Error(err)
		}
	}
}

func TestADErrors(t *testing.T) {
	h := writeHistory(t, tinyHistory)
	dev := openReference()
	trained := openDir(t, setup(t), false)
	if err := RunAD(t.Context(), ADOptions{Config: tinyAD(t), Device: dev, Dir: trained, History: h, Iterations: 4}); err != nil {
		t.Fatal(err)
	}
	wide := tinyHistory
	wide.room.Size = 4
	long := tinyHistory
	long.steps = 9000
	all := tinyHistory
	all.ratio = 1
	for _, c := range []struct {
		name string
		o    ADOptions
		want string
	}{
		{"no file", ADOptions{Config: tinyAD(t)}, "no learning histories"},
		{"streams", ADOptions{Config: tinyAD(t, "train_n_stream=4"), History: h}, "train_n_stream asks for 4 streams a goal, the histories have 3"},
		{"steps", ADOptions{Config: tinyAD(t, "train_source_timesteps=121"), History: h}, "train_source_timesteps asks for 121 transitions a stream, the histories have 120"},
		{"nothing held out", ADOptions{Config: tinyAD(t), History: writeHistory(t, all)}, "9 goals to learn from and 0 held out"},
		{"masks", ADOptions{Config: tinyAD(t, "use_compressed_context=false", "n_transit=9000", "train_source_timesteps=9000"), History: writeHistory(t, long)}, "set tf_attn_dropout to 0"},
		{"place", ADOptions{Config: tinyAD(t), History: h, Data: "cloud"}, `"cloud"`},
		{"warm-up", ADOptions{Config: tinyAD(t), History: h, Iterations: 2}, "num_warmup_steps 3 is over the 2 iterations"},
		{"backwards", ADOptions{Resume: true, History: h, Iterations: 3}, "it has done 4 iterations, more than the 3 asked for"},
		{"other room", ADOptions{Resume: true, History: writeHistory(t, wide)}, "4×4 room"},
		{"other histories", ADOptions{Resume: true, History: writeHistory(t, historySpec{tinyHistory.room, 3, 120, 0.7})}, "other learning histories"},
		{"other rate", ADOptions{Resume: true, History: h, Config: tinyAD(t, "lr=0.5")}, "lr: 0.01"},
		{"other width", ADOptions{Resume: true, History: h, Config: tinyAD(t, "tf_n_embd=16")}, "tf_n_embd differs"},
		{"other positions", ADOptions{Resume: true, History: h, Config: tinyAD(t, "n_transit=21")}, "n_transit differs"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.o.Device, c.o.Dir = dev, trained
			if !c.o.Resume {
				c.o.Dir = openDir(t, setup(t), false)
			}
			err := RunAD(t.Context(), c.o)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v; want one line with %q", err, c.want)
			}
		})
	}
	// A longer file with the same streams in front is the same data, and settings read from the run's folder leave it its name.
	longer := tinyHistory
	longer.steps += 20
	again := tinyAD(t, "eval_agents=1")
	again.Name = "config"
	o := ADOptions{Config: again, Device: dev, Dir: trained, History: writeHistory(t, longer), Resume: true, Iterations: 6}
	if err := RunAD(t.Context(), o); err != nil {
		t.Error(err)
	}
	if ck := loadAD(t, trained.Last()); ck.Progress.Iteration != 6 || ck.Config.Name != "ad_dr" || ck.Config.EvalAgents != 1 {
		t.Errorf("more iterations were asked for, %d of %s are done", ck.Progress.Iteration, ck.Config.Name)
	}
}

func TestADNonFinite(t *testing.T) {
	d := openDir(t, setup(t), false)
	cfg := tinyAD(t, "lr=1e30", "num_warmup_steps=0")
	err := RunAD(t.Context(), ADOptions{Config: cfg, Device: openReference(), Dir: d, History: writeHistory(t, tinyHistory)})
	var bad *NonFinite
	if !errors.As(err, &bad) || bad.Op == "" || bad.Step < 2 || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "lower lr") {
		t.Fatalf("got %v", err)
	}
	if ck := loadAD(t, d.Last()); ck.Progress.Iteration != 0 {
		t.Errorf("the last good checkpoint is lost: iteration %d", ck.Progress.Iteration)
	}
}

// TestADKindsAreKeptApart: neither model's checkpoint opens as the other's.
func TestADKindsAreKeptApart(t *testing.T) {
	d := openDir(t, setup(t), false)
	if err := RunAD(t.Context(), ADOptions{Config: tinyAD(t), Device: openReference(), Dir: d, History: writeHistory(t, tinyHistory), Iterations: 3}); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadConfig(d.Last()); err == nil || !strings.Contains(err.Error(), `model "AD", not GT+RL`) {
		t.Errorf("got %v", err)
	}
	if c, err := ReadADConfig(d.Last()); err != nil || c.TrainTimesteps != 3 || c.Name != "ad_dr" {
		t.Errorf("%+v, %v", c, err)
	}
	raw, err := os.ReadFile(d.Last())
	if err != nil {
		t.Fatal(err)
	}
	cut := filepath.Join(t.TempDir(), "cut.safetensors")
	if err := os.WriteFile(cut, raw[:len(raw)-9], 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadAgent(openReference(), cut); err == nil || !strings.Contains(err.Error(), "truncated") {
		t.Errorf("got %v", err)
	}
}
