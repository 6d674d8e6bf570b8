package train

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"haul/internal/config"
	"haul/internal/device"
	"haul/internal/kernel"
)

// tiny is the smallest run that exercises everything.
func tiny(t testing.TB, sets ...string) *config.Config {
	t.Helper()
	sets = append([]string{"problem.num_customers=5", "training.num_batches_per_epoch=4", "training.batch_size=12", "training.num_epochs=3",
		"training.validation_instances=30", "training.validation_frequency=1", "model.hidden_dim=16", "model.num_heads=2", "model.num_layers=1",
		"baseline.eval_batches=2", "training.learning_rate=0.01", "training_advanced.use_adaptive_temperature=false"}, sets...)
	c, err := config.Load("tiny_1", sets)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func openCPU(t testing.TB, workers int) kernel.Device {
	t.Helper()
	dev, err := device.Open("cpu", device.Options{Workers: workers})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Close() })
	return dev
}

// ear keeps what a run tells, and may act on it.
type ear struct {
	silent
	info    Info
	epochs  []EpochReport
	notes   []string
	summary *Summary
	onEpoch func(EpochReport)
}

func (e *ear) Start(i Info)   { e.info = i }
func (e *ear) Note(s string)  { e.notes = append(e.notes, s) }
func (e *ear) Done(s Summary) { e.summary = &s }
func (e *ear) Epoch(r EpochReport) {
	e.epochs = append(e.epochs, r)
	if e.onEpoch != nil {
		e.onEpoch(r)
	}
}

func openDir(t testing.TB, path string, resume bool) *Dir {
	t.Helper()
	d, err := OpenDir(path, resume, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// setup keeps the user's cache out of a test and returns a folder that does not exist yet.
func setup(t testing.TB) string {
	t.Helper()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	return filepath.Join(t.TempDir(), "run")
}

// whole trains from start to end.
func whole(t testing.TB, c *config.Config, dev kernel.Device) (*ear, *checkpoint) {
	t.Helper()
	d := openDir(t, setup(t), false)
	e := &ear{}
	if err := Run(t.Context(), Options{Config: c, Device: dev, Dir: d, Listener: e}); err != nil {
		t.Fatal(err)
	}
	ck, _, err := loadCheckpoint(d.Last(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return e, ck
}

// same compares all that a run continues from; the clock is nobody's business.
func same(t *testing.T, want, got *checkpoint) {
	t.Helper()
	clean := func(c *checkpoint) checkpoint {
		k := *c
		k.Device, k.Progress.Elapsed, k.Progress.Seconds = "", 0, 0
		return k
	}
	if diff := cmp.Diff(clean(want), clean(got)); diff != "" {
		t.Errorf("the runs differ: %.2000s", diff)
	}
}

func TestRunsOfEveryBaseline(t *testing.T) {
	for _, c := range []struct {
		name string
		sets []string
	}{
		{"rollout", nil},
		{"pomo", []string{"baseline.type=pomo"}},
		{"pomo starts", []string{"baseline.type=pomo", "baseline.starts=3"}},
		{"ema", []string{"baseline.type=ema"}},
		{"uniform dropout", []string{"problem.distribution=uniform", "model.transformer_dropout=0.1"}},
		{"geometric", []string{"training.use_geometric_mean=true"}},
		{"beyond exact", []string{"problem.num_customers=14"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := tiny(t, c.sets...)
			e, ck := whole(t, cfg, openCPU(t, 2))
			if len(e.epochs) != 3 || e.summary == nil || ck.Progress.Epoch != 3 {
				t.Fatalf("%d epochs told, summary %v, checkpoint of epoch %d", len(e.epochs), e.summary, ck.Progress.Epoch)
			}
			for _, r := range e.epochs {
				if r.ValGap == nil || *r.ValGap < -1e-5 && r.GapTo == Optimum || r.TrainCPC <= 0 || r.Instances != 48 || r.BaselineCPC <= 0 || r.Launches != 4 {
					t.Errorf("odd report: %+v", r)
				}
				if _, err := json.Marshal(r); err != nil {
					t.Error(err)
				}
			}
			if s := e.summary; s.Instances != 144 || s.TestGap < -1e-5 && s.GapTo == Optimum || s.Example.PolicyCost < s.Example.ReferenceCost-1e-6 && s.GapTo == Optimum {
				t.Errorf("odd summary: %+v", s)
			}
		})
	}
}

func TestWorkersChangeNothing(t *testing.T) {
	cfg := tiny(t, "training.batch_size=100")
	_, one := whole(t, cfg, openCPU(t, 1))
	_, two := whole(t, cfg, openCPU(t, 2))
	_, four := whole(t, cfg, openCPU(t, 4))
	same(t, one, two)
	same(t, one, four)
}

// counting ends its context after a number of steps or, by the other field, of all replays.
type counting struct {
	kernel.Device
	runs   int
	stopAt int
	stop   func()
}

type countingRunner struct {
	kernel.Runner
	c *counting
}

func (c *counting) Compile(p *kernel.Program, sets []kernel.Store) (kernel.Runner, error) {
	r, err := c.Device.Compile(p, sets)
	return countingRunner{r, c}, err
}

func (r countingRunner) Run() error {
	if r.c.runs++; r.c.runs == r.c.stopAt {
		r.c.stop()
	}
	return r.Runner.Run()
}

// sameReports compares what was told of each epoch. Sums of an epoch in two parts are added in another order.
func sameReports(t *testing.T, want, got []EpochReport) {
	t.Helper()
	figures := func(reports []EpochReport) (out [][]float64) {
		for _, r := range reports {
			out = append(out, []float64{float64(r.Epoch), float64(r.Instances), r.TrainCPC, r.TrainLoss, r.Entropy, r.GradNorm, r.BaselineCPC, *r.ValCPC, *r.ValGap, r.LR, r.Temperature})
		}
		return out
	}
	if diff := cmp.Diff(figures(want), figures(got), close12); diff != "" {
		t.Errorf("the reports differ: %s", diff)
	}
}

// TestInterruptedAnywhere stops a run at every replay it makes, be it a step, a test of the baseline or a validation, resumes it, and
// wants the state of the run that nobody stopped.
func TestInterruptedAnywhere(t *testing.T) {
	for _, sets := range [][]string{
		{"training_advanced.use_adaptive_temperature=true", "model.transformer_dropout=0.1"},
		{"baseline.type=ema", "training.num_epochs=2"},
	} {
		cfg := tiny(t, sets...)
		counter := &counting{Device: openCPU(t, 2)}
		full, want := whole(t, cfg, counter)
		for stopAt := 1; stopAt < counter.runs; stopAt++ {
			path := setup(t)
			ctx, cancel := context.WithCancel(t.Context())
			dev := &counting{Device: counter.Device, stopAt: stopAt, stop: cancel}
			d := openDir(t, path, false)
			told := &ear{}
			err := Run(ctx, Options{Config: cfg, Device: dev, Dir: d, Listener: told})
			d.Close()
			var stopped *Interrupted
			switch {
			case stopAt == 1 && sets[0] != "baseline.type=ema" && errors.Is(err, context.Canceled):
				continue // the baseline's first costs: nothing has begun
			case err == nil && stopAt == counter.runs-1:
			case !errors.As(err, &stopped) || !errors.Is(err, context.Canceled):
				t.Fatalf("stopped at replay %d: %v", stopAt, err)
			}
			d = openDir(t, path, true)
			if err := Run(t.Context(), Options{Device: counter.Device, Dir: d, Resume: true, Listener: told}); err != nil {
				t.Fatalf("resumed after replay %d: %v", stopAt, err)
			}
			got, _, err := loadCheckpoint(d.Last(), nil)
			if err != nil {
				t.Fatal(err)
			}
			same(t, want, got)
			sameReports(t, full.epochs, told.epochs)
			d.Close()
			cancel()
		}
	}
}

// TestKilled resumes from what kill -9 leaves: the last checkpoint, and a temporary half written.
func TestKilled(t *testing.T) {
	cfg := tiny(t)
	dev := openCPU(t, 2)
	full, want := whole(t, cfg, dev)
	path := setup(t)
	d := openDir(t, path, false)
	var afterOne []byte
	e := &ear{onEpoch: func(r EpochReport) {
		if r.Epoch == 1 {
			var err error
			if afterOne, err = os.ReadFile(d.Last()); err != nil {
				t.Fatal(err)
			}
		}
	}}
	if err := Run(t.Context(), Options{Config: cfg, Device: dev, Dir: d, Listener: e}); err != nil {
		t.Fatal(err)
	}
	d.Close()
	for file, data := range map[string][]byte{lastName: afterOne, lastName + ".tmp": afterOne[:100]} {
		if err := os.WriteFile(filepath.Join(path, file), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	d = openDir(t, path, true)
	again := &ear{}
	if err := Run(t.Context(), Options{Config: cfg, Device: dev, Dir: d, Resume: true, Listener: again}); err != nil {
		t.Fatal(err)
	}
	got, _, err := loadCheckpoint(d.Last(), nil)
	if err != nil {
		t.Fatal(err)
	}
	same(t, want, got)
	if !again.info.Resumed || again.info.EpochsDone != 1 || len(again.epochs) != 2 {
		t.Errorf("resumed as %+v with %d epochs", again.info, len(again.epochs))
	}
	if *again.epochs[1].ValCPC != *full.epochs[2].ValCPC || again.summary.TestCPC != full.summary.TestCPC {
		t.Error("the resumed run reports other costs")
	}
}

// TestStepsAllocateNothing: the loop around the device's replay makes no garbage.
func TestStepsAllocateNothing(t *testing.T) {
	d := openDir(t, setup(t), false)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := &run{Options: Options{Config: tiny(t), Device: openCPU(t, 2), Dir: d, Listener: silent{}}}
	if err := r.prepare(ctx); err != nil {
		t.Fatal(err)
	}
	defer r.close()
	allocs := testing.AllocsPerRun(5, func() {
		r.at.Step = 0
		if err := r.steps(ctx); err != nil {
			t.Fatal(err)
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations in an epoch's steps", allocs)
	}
}

func TestEarlyStopping(t *testing.T) {
	cfg := tiny(t, "training.num_epochs=9", "training_advanced.use_early_stopping=true", "training_advanced.early_stopping_patience=2", "training_advanced.early_stopping_delta=100")
	e, ck := whole(t, cfg, openCPU(t, 1))
	if len(e.epochs) != 3 || !e.summary.StoppedEarly || !ck.Progress.Stopped {
		t.Errorf("no gain can be that large, yet %d epochs ran", len(e.epochs))
	}
}

func TestValidationFrequency(t *testing.T) {
	e, _ := whole(t, tiny(t, "training.validation_frequency=2"), openCPU(t, 1))
	var got []bool
	for _, r := range e.epochs {
		got = append(got, r.ValCPC != nil)
	}
	if diff := cmp.Diff([]bool{false, true, true}, got); diff != "" {
		t.Errorf("validated in the wrong epochs: %s", diff)
	}
	raw, _ := json.Marshal(e.epochs[0])
	if !bytes.Contains(raw, []byte(`"val_cpc":null`)) {
		t.Errorf("val_cpc is not null: %s", raw)
	}
}

func TestMoreEpochsOnResume(t *testing.T) {
	path := setup(t)
	dev := openCPU(t, 1)
	for i, c := range []struct {
		resume bool
		epochs int
		want   int
	}{{false, 1, 1}, {true, 3, 2}, {true, 0, 0}} {
		d := openDir(t, path, c.resume)
		e := &ear{}
		var cfg *config.Config
		if !c.resume {
			cfg = tiny(t)
		}
		if err := Run(t.Context(), Options{Config: cfg, Device: dev, Dir: d, Resume: c.resume, Epochs: c.epochs, Listener: e}); err != nil {
			t.Fatal(err)
		}
		if len(e.epochs) != c.want || e.summary == nil {
			t.Errorf("run %d made %d epochs, want %d", i, len(e.epochs), c.want)
		}
		d.Close()
	}
}

func TestResumeRefusesOtherSettings(t *testing.T) {
	path := setup(t)
	dev := openCPU(t, 1)
	d := openDir(t, path, false)
	if err := Run(t.Context(), Options{Config: tiny(t), Device: dev, Dir: d, Epochs: 1}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ set, want string }{
		{"training.learning_rate=0.5", "learning_rate: 0.01"},
		{"model.hidden_dim=32", "embed.weight is 16×4 in the file, 32×4 in this run: model.hidden_dim differs"},
		{"model.num_layers=2", "layers.1.norm1.weight is missing: model.num_layers differs"},
	} {
		err := Run(t.Context(), Options{Config: tiny(t, c.set), Device: dev, Dir: d, Resume: true})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v; want one line with %q", c.set, err, c.want)
		}
	}
}

func TestNonFinite(t *testing.T) {
	path := setup(t)
	d := openDir(t, path, false)
	// Weights that a first step throws this far overflow in the second.
	cfg := tiny(t, "training.learning_rate=1e30", "training_advanced.use_lr_scheduling=false", "training_advanced.warmup_steps=0", "training.num_epochs=2", "baseline.type=pomo")
	err := Run(t.Context(), Options{Config: cfg, Device: openCPU(t, 2), Dir: d})
	var bad *NonFinite
	if !errors.As(err, &bad) || bad.Op == "" || bad.Epoch != 1 || strings.Contains(err.Error(), "\n") {
		t.Fatalf("got %v", err)
	}
	ck, _, err := loadCheckpoint(d.Last(), nil)
	if err != nil || ck.Progress.Epoch != 0 {
		t.Errorf("the last good checkpoint is lost: %v", err)
	}
}
