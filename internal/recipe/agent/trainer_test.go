package agent

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"haul/internal/config"
	"haul/internal/device"
	"haul/internal/kernel"
	"haul/internal/kernel/reference"
	"haul/internal/rng"
	"haul/internal/run"
	"haul/internal/run/runtest"
	"haul/internal/world/grid"
	"haul/internal/world/history"
)

// historySpec is a file of learners that explore less and less.
type historySpec struct {
	room           grid.Room
	streams, steps int
	ratio          float64
}

var tinyHistory = historySpec{grid.Room{Size: 3, Horizon: 4}, 3, 120, 0.8}

func writeHistory(t testing.TB, h historySpec) *history.Rooms {
	t.Helper()
	out, err := history.OpenRooms(historyFile(t, h))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Close() })
	return out
}

// historyFile writes them and names the file.
func historyFile(t testing.TB, h historySpec) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "x.hist")
	goals := h.room.Goals()
	w, err := history.Create(path, history.Header{Room: h.room, Goals: goals, TrainRatio: h.ratio, Streams: h.streams, Steps: h.steps})
	if err != nil {
		t.Fatal(err)
	}
	for g, goal := range goals {
		var all []grid.Step
		for s := range h.streams {
			at, rule := grid.StateOf(h.room.Start(), 0), goal.Rule()
			for i := range h.steps {
				words := rng.At(11, uint64(g*h.streams+s), uint32(i), rng.Learner)
				cell, aim := at.Cell(), goal.Key()
				if at.Stage() > 0 {
					aim = goal.Cell()
				}
				action := grid.Towards(cell, aim)
				if rng.Below(words[0], 100) >= uint32(i) {
					action = uint8(rng.Below(words[1], grid.NumActions))
				}
				var reward uint8
				at, reward = rule.Enter(at, h.room.Move(cell, action))
				all = append(all, grid.MakeStep(cell, action, reward))
				if (i+1)%h.room.Horizon == 0 {
					at = grid.StateOf(h.room.Start(), 0)
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
	return path
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

func openCPU(t testing.TB, workers int) kernel.Device { return openIn(t, "fp32", workers) }

func openBF16(t testing.TB, workers int) kernel.Device { return openIn(t, "bf16", workers) }

func openIn(t testing.TB, precision string, workers int) kernel.Device {
	t.Helper()
	dev, err := device.Open("cpu", device.Options{Workers: workers, Precision: precision})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Close() })
	return dev
}

// options are a run's.
func options(c *config.AD, dev kernel.Device, h history.History, data string) run.Options {
	return run.Options{Recipe: Recipe{}, Task: &Task{History: h, Data: data}, Settings: c, Device: dev}
}

// trained is a run from start to end.
func trained(t testing.TB, c *config.AD, dev kernel.Device, h history.History, data string) (*runtest.Heard, *runtest.State) {
	t.Helper()
	return runtest.Whole(t, options(c, dev, h, data))
}

func viewOf(h *runtest.Heard) *view        { return h.Info.View.(*view) }
func summaryOf(h *runtest.Heard) *Summary  { return h.Ending.Row.(*Summary) }
func reportsOf(h *runtest.Heard) []*Report { return runtest.Rows[Report](h) }
func testsOf(h *runtest.Heard) []*Test     { return runtest.Rows[Test](h) }

// TestSuite: what every recipe's runs must hold, with rows drawn on the device and made on the
// host.
func TestSuite(t *testing.T) {
	h := writeHistory(t, tinyHistory)
	sets := []string{"eval_episodes=2", "gen_interval=6", "gradient_accumulation_steps=2"}
	values := append(slices.Clone(sets), "method=iql")
	rotary := append(slices.Clone(sets), "tf_positions=rotary")
	mean := append(slices.Clone(sets), "average_decay=0.6", "average_interval=2")
	seek := append(slices.Clone(sets), "labels=seek")
	grouped := append(slices.Clone(sets), "tf_n_kv_head=1")
	for _, c := range []struct {
		name, data string
		open       func(testing.TB, int) kernel.Device
		sets       []string
		stops      int
	}{{"device", DataDevice, openCPU, sets, 12}, {"host", DataHost, openCPU, sets, 0}, {"bf16", DataDevice, openBF16, sets, 8}, {"mean", DataDevice, openCPU, mean, 12}, {"values", DataHost, openCPU, values, 6}, {"rotary", DataDevice, openCPU, rotary, 2}, {"seek", DataAuto, openCPU, seek, 2},
		{"grouped", DataDevice, openCPU, grouped, 2}} {
		t.Run(c.name, func(t *testing.T) {
			data, sets := c.data, c.sets
			d, err := newDataset(h, tinyAD(t, sets...))
			if err != nil {
				t.Fatal(err)
			}
			at, err := newState(d, "/where/they/lie.hist")
			if err != nil {
				t.Fatal(err)
			}
			runtest.Suite(t, runtest.Case{Recipe: Recipe{}, Settings: tinyAD(t, sets...), Device: c.open, Stops: c.stops,
				Open: func(testing.TB, config.Settings) run.Task {
					return &Task{History: h, Data: data, Path: "/where/they/lie.hist"}
				},
				Other: tinyAD(t, append(sets, "lr=0.5")...), Differs: "lr: 0.01",
				State: &at})
		})
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
			e, ck := trained(t, cfg, openReference(), h, DataAuto)
			if ck.Progress.Updates != 12 || ck.Progress.Device.Step != 12 || ck.Progress.Device.Instances != uint64(60*cfg.GradientAccumulationSteps) {
				t.Errorf("stands at %+v", ck.Progress)
			}
			reports, tests, evals := reportsOf(e), testsOf(e), runtest.Rows[Evaluation](e)
			if len(reports) != 3 || len(tests) != 2 || len(evals) != 1 || e.Ending == nil {
				t.Fatalf("%d reports, %d tests, %d evaluations, ending %v", len(reports), len(tests), len(evals), e.Ending)
			}
			if v := viewOf(e); v.dataset.trainSpec.Tokens != c.tokens || len(v.dataset.learned) != 7 || v.dataset.trainSpec.Streams != 14 || v.host {
				t.Errorf("odd start: %+v", e.Info)
			}
			typed := cfg.UseCompressedContext
			for _, r := range reports {
				if r.Since != 4 || !(r.LossAction > 0.5 && r.LossAction < 3) || (r.LossTokenType > 0) != typed || r.AccAction <= 0 || r.GradNorm <= 0 || r.WaitShare != 0 || r.BusyShare != 1 {
					t.Errorf("odd report: %+v", r)
				}
			}
			if lr := reports[2].LR; lr != 0.001 {
				t.Errorf("the last rate is %g", lr)
			}
			sum := summaryOf(e)
			ev := sum.Evaluation
			if ev != evals[0] || ev.Iteration != 12 || len(ev.Goals) != 2 || len(ev.Return) != 12 || ev.Optimal <= 0 || (ev.Regions.Ended > 0) != typed {
				t.Errorf("odd evaluation: %+v", ev)
			}
			for _, v := range []any{reports, sum} {
				if _, err := json.Marshal(v); err != nil {
					t.Error(err)
				}
			}
			best := runtest.Load(t, e.Info.Best)
			if best.Progress.Updates != sum.BestIteration || *best.Progress.Best != sum.BestLoss {
				t.Errorf("the best checkpoint is of iteration %d", best.Progress.Updates)
			}
		})
	}
}

// TestADDataPathsAgree: rows drawn on the device, or made by any number of workers, teach the same
// weights.
func TestADDataPathsAgree(t *testing.T) {
	h := writeHistory(t, tinyHistory)
	cfg := tinyAD(t, "gradient_accumulation_steps=2")
	_, want := trained(t, cfg, openReference(), h, DataDevice)
	for _, workers := range []string{"0", "1", "3"} {
		c := tinyAD(t, "gradient_accumulation_steps=2", "num_workers="+workers, "prefetch="+workers)
		e, got := trained(t, c, openReference(), h, DataHost)
		if !viewOf(e).host {
			t.Error("the rows came from the device")
		}
		got.Settings = want.Settings
		runtest.Same(t, want, got)
	}
}

// TestADLearns: a small model gets better at what its histories' learners do, and at ending
// regions.
func TestADLearns(t *testing.T) {
	h := writeHistory(t, historySpec{grid.Room{Size: 3, Horizon: 4}, 4, 160, 0.8})
	cfg := tinyAD(t, "train_timesteps=150", "train_n_stream=4", "train_source_timesteps=160", "train_batch_size=24", "tf_n_embd=16", "num_warmup_steps=10", "lr=0.01",
		"summary_interval=50", "eval_interval=50", "ckpt_interval=150", "gen_interval=150", "tf_dropout=0", "tf_attn_dropout=0", "test_batch_size=64")
	e, _ := trained(t, cfg, openCPU(t, 2), h, DataAuto)
	reports, tests := reportsOf(e), testsOf(e)
	first, last := reports[0], reports[2]
	if last.LossAction > first.LossAction-0.1 || last.LossTokenType > first.LossTokenType-0.1 || last.AccAction <= first.AccAction || tests[2].LossAction >= tests[0].LossAction {
		t.Errorf("nothing was learned: %+v, then %+v", first, last)
	}
}

func TestADErrors(t *testing.T) {
	h := writeHistory(t, tinyHistory)
	dev := openReference()
	first := options(Recipe{}.Lengthen(tinyAD(t), 4).(*config.AD), dev, h, DataAuto)
	first.Dir = runtest.OpenDir(t, runtest.Folder(t), false)
	if err := run.Run(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	wide := tinyHistory
	wide.room.Size = 4
	long := tinyHistory
	long.steps = 17_000
	all := tinyHistory
	all.ratio = 1
	for _, c := range []struct {
		name    string
		sets    []string
		length  int
		history history.History
		resume  bool
		want    string
	}{
		{"no file", nil, 4, nil, false, "no learning histories"},
		{"streams", []string{"train_n_stream=4"}, 4, h, false, "train_n_stream asks for 4 streams per goal, the histories have 3"},
		{"steps", []string{"train_source_timesteps=121"}, 4, h, false, "train_source_timesteps asks for 121 transitions per stream, the histories have 120"},
		{"nothing held out", nil, 4, writeHistory(t, all), false, "9 tasks to learn from and 0 held out"},
		{"masks", []string{"use_compressed_context=false", "n_transit=17000", "train_source_timesteps=17000"}, 4, writeHistory(t, long), false, "set tf_attn_dropout to 0"},
		{"warm-up", nil, 2, h, false, "num_warmup_steps 3 is over the 2 iterations"},
		{"backwards", nil, 3, h, true, "it stands after iteration 4 of 3, past the end of what is asked for"},
		{"other room", nil, 4, writeHistory(t, wide), true, "Dark Room, 4×4"},
		{"other histories", nil, 4, writeHistory(t, historySpec{tinyHistory.room, 3, 120, 0.7}), true, "other learning histories"},
		{"other rate", []string{"lr=0.5"}, 4, h, true, "lr: 0.01"},
		{"other width", []string{"tf_n_embd=16"}, 4, h, true, "tf_n_embd: 8"},
		{"other keys", []string{"tf_n_kv_head=1"}, 4, h, true, "tf_n_kv_head: 0"},
		{"other positions", []string{"n_transit=21"}, 4, h, true, "n_transit: 20"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := options(Recipe{}.Lengthen(tinyAD(t, c.sets...), c.length).(*config.AD), dev, c.history, DataAuto)
			if o.Dir, o.Resume = first.Dir, c.resume; !c.resume {
				o.Dir = runtest.OpenDir(t, runtest.Folder(t), false)
			}
			err := run.Run(t.Context(), o)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v; want one line with %q", err, c.want)
			}
		})
	}
	// A longer file with the same streams in front is the same data, and settings read from the run's
	// folder leave it its name.
	longer := tinyHistory
	longer.steps += 20
	again := Recipe{}.Lengthen(tinyAD(t, "eval_agents=1").Named("config"), 6).(*config.AD)
	o := options(again, dev, writeHistory(t, longer), DataAuto)
	o.Dir, o.Resume = first.Dir, true
	if err := run.Run(t.Context(), o); err != nil {
		t.Error(err)
	}
	ck, err := run.Load(first.Dir.Last(), Name)
	if err != nil {
		t.Fatal(err)
	}
	if c := ck.Settings.(*config.AD); ck.Progress.Updates != 6 || c.Name != "ad_dr" || c.EvalAgents != 1 {
		t.Errorf("more iterations were asked for, %d of %s are done", ck.Progress.Updates, c.Name)
	}
}

// TestUnknownPlaceForHistories: the flag is wrong use, found before anything is opened.
func TestUnknownPlaceForHistories(t *testing.T) {
	_, err := Recipe{}.Open(tinyAD(t), flags{"data": "cloud"}, nil)
	if use := new(run.UsageError); !errors.As(err, &use) || !strings.Contains(err.Error(), `"cloud"`) {
		t.Errorf("got %v", err)
	}
}

// TestARunRemembersTheWholePath: it may be resumed from another folder.
func TestARunRemembersTheWholePath(t *testing.T) {
	dir := filepath.Dir(t.TempDir())
	writeHistory(t, tinyHistory) // in a folder next to it
	t.Chdir(dir)
	names, err := filepath.Glob("*/x.hist")
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	h, path, err := new(state).history(flags{"history": names[0]}, new(config.AD))
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if path != filepath.Join(dir, names[0]) {
		t.Errorf("%s", path)
	}
}

// flags are the values of some flags.
type flags map[string]string

func (f flags) Changed(name string) bool  { return f[name] != "" }
func (f flags) String(name string) string { return f[name] }
func (f flags) Int(string) int            { return 0 }
func (f flags) Float(string) float64      { return 0 }

func TestADNonFinite(t *testing.T) {
	o := options(tinyAD(t, "lr=1e30", "num_warmup_steps=0"), openReference(), writeHistory(t, tinyHistory), DataAuto)
	o.Dir = runtest.OpenDir(t, runtest.Folder(t), false)
	err := run.Run(t.Context(), o)
	var bad *run.NonFinite
	if !errors.As(err, &bad) || bad.Op == "" || bad.Step < 2 || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "lower lr") {
		t.Fatalf("got %v", err)
	}
	if ck := runtest.Load(t, o.Dir.Last()); ck.Progress.Updates != 0 {
		t.Errorf("the last good checkpoint is lost: iteration %d", ck.Progress.Updates)
	}
}

// TestADKindsAreKeptApart: one recipe's checkpoint does not open as another's, and a torn one not
// at all.
func TestADKindsAreKeptApart(t *testing.T) {
	e, _ := trained(t, Recipe{}.Lengthen(tinyAD(t), 3).(*config.AD), openReference(), writeHistory(t, tinyHistory), DataAuto)
	if _, err := run.Load(e.Info.Last, config.RecipeGT); err == nil || !strings.Contains(err.Error(), `model "AD", not GT+RL`) {
		t.Errorf("got %v", err)
	}
	raw, err := os.ReadFile(e.Info.Last)
	if err != nil {
		t.Fatal(err)
	}
	cut := filepath.Join(t.TempDir(), "cut.safetensors")
	if err := os.WriteFile(cut, raw[:len(raw)-9], 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(openReference(), cut); err == nil || !strings.Contains(err.Error(), "truncated") {
		t.Errorf("got %v", err)
	}
}

// TestAFinishedRunIsDrawn: a run that is resumed when all is done has its pictures drawn again.
func TestAFinishedRunIsDrawn(t *testing.T) {
	h, dev := writeHistory(t, tinyHistory), openReference()
	o := options(tinyAD(t), dev, h, DataAuto)
	path := runtest.Folder(t)
	for _, resume := range []bool{false, true} {
		heard := &runtest.Heard{}
		o.Dir, o.Resume, o.Listener = runtest.OpenDir(t, path, resume), resume, heard
		if err := run.Run(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		o.Dir.Close()
		var names []string
		for _, p := range heard.Info.View.Pictures() {
			names = append(names, p.Name)
		}
		want := "curves in_context episodes"
		if resume {
			want = "in_context episodes" // this listener reads no past reports
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("resumed %v: pictures are %q, want %q", resume, got, want)
		}
	}
}
