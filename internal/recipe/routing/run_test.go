package routing

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"haul/internal/config"
	"haul/internal/device"
	"haul/internal/kernel"
	"haul/internal/policy"
	"haul/internal/run"
	"haul/internal/run/runtest"
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
func options(c *config.Config, dev kernel.Device) run.Options {
	return run.Options{Recipe: Recipe{}, Task: task{}, Settings: c, Device: dev}
}

// whole trains from start to end.
func whole(t testing.TB, c *config.Config, dev kernel.Device) (*runtest.Heard, *runtest.State) {
	t.Helper()
	return runtest.Whole(t, options(c, dev))
}

func epochsOf(h *runtest.Heard) []*Epoch { return runtest.Rows[Epoch](h) }

// leaders compares the routes of eight symmetries and weights a uniquely best one more.
var leaders = []string{"baseline.type=pomo", "baseline.advantage=preference", "baseline.leader_weight=9", "baseline.leader_alone=true", "baseline.symmetries=8"}

// TestSuite: what every recipe's runs must hold.
func TestSuite(t *testing.T) {
	for name, sets := range map[string][]string{
		"rollout": {"training_advanced.use_adaptive_temperature=true", "model.transformer_dropout=0.1"},
		"ema":     {"baseline.type=ema", "training.num_epochs=2"},
		"average": {"baseline.type=pomo", "training_advanced.average_decay=0.6", "training.validation_frequency=1"},
		"bf16":    {"baseline.type=pomo", "training.num_epochs=2"},
		"leaders": append([]string{"training.batch_size=40", "training.num_epochs=2"}, leaders...),
		"muon":    {"baseline.type=pomo", "training.num_epochs=2", "training_advanced.optimizer=muon"},
		"mixed":   {"baseline.type=pomo", "training.num_epochs=2", "problem.attributes=all", "problem.distribution=uniform", "training.validation_instances=6"},
		"views":   append([]string{"training.num_epochs=2", "training.validation_decode=pomo"}, views...),
		"sizes":   {"problem.num_customers=[4, 6]", "training.num_epochs=2"},
	} {
		t.Run(name, func(t *testing.T) {
			first, mark, open, stops := 0, 0.6, openCPU, 12
			if name == "rollout" {
				first = 1 // the baseline's first costs
			}
			if name == "sizes" {
				first = 2 // at both ends
			}
			if name == "bf16" {
				open = openBF16
			}
			if name == "rollout" || name == "average" { // which keep the most between two updates
				stops = 0
			}
			runtest.Suite(t, runtest.Case{Recipe: Recipe{}, Settings: tiny(t, sets...), Device: open, First: first, Stops: stops,
				Open:  func(testing.TB, config.Settings) run.Task { return task{} },
				Other: tiny(t, append(sets, "training.learning_rate=0.5")...), Differs: "learning_rate: 0.01",
				State: &state{Temperature: 1.25, Window: []float64{0.7, 0.65}, StopBest: &mark, StopCount: 2}})
		})
	}
}

// TestSuiteGAT: the same for the other encoder.
func TestSuiteGAT(t *testing.T) {
	settings := func(rate string) *config.Config {
		c, err := config.LoadAny(config.RecipeGAT, "", []string{"problem.num_customers=5", "training.num_batches_per_epoch=4", "training.batch_size=12", "training.num_epochs=2",
			"training.validation_instances=30", "model_gat.gat_hidden_dim=16", "model.num_heads=2", "model_gat.gat_layers=1", "model_gat.gat_dropout=0.1", "gat_training.learning_rate=" + rate})
		if err != nil {
			t.Fatal(err)
		}
		return c.(*config.Config)
	}
	runtest.Suite(t, runtest.Case{Recipe: Recipe{GAT: true}, Settings: settings("0.01"), Device: openCPU,
		Open:  func(testing.TB, config.Settings) run.Task { return task{} },
		Other: settings("0.5"), Differs: "learning_rate: 0.01", State: &state{Temperature: 1.25, Window: []float64{0.7}, StopBest: new(float64), StopCount: 2}})
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
			epochs := epochsOf(e)
			if len(epochs) != 3 || e.Ending == nil || ck.Progress.Concluded != 12 {
				t.Fatalf("%d epochs told, ending %v, checkpoint of update %d", len(epochs), e.Ending, ck.Progress.Concluded)
			}
			for _, r := range epochs {
				if r.ValGap == nil || *r.ValGap < -1e-5 && r.GapTo == policy.Optimum || r.TrainCPC <= 0 || r.Instances != 48 || r.BaselineCPC <= 0 || r.Launches != 4 || *r.GapInstances != cfg.Training.ValidationInstances {
					t.Errorf("odd report: %+v", r)
				}
				if _, err := json.Marshal(r); err != nil {
					t.Error(err)
				}
			}
			x := e.Info.View.(*view).example
			if s := e.Ending.Row.(*Summary); s.Instances != 144 || s.GapInstances != s.TestInstances || s.TestGap < -1e-5 && s.GapTo == policy.Optimum || x.PolicyCost < x.ReferenceCost-1e-6 && s.GapTo == policy.Optimum {
				t.Errorf("odd summary: %+v", s)
			}
		})
	}
}

func TestEarlyStopping(t *testing.T) {
	cfg := tiny(t, "training.num_epochs=9", "training_advanced.use_early_stopping=true", "training_advanced.early_stopping_patience=2", "training_advanced.early_stopping_delta=100")
	e, o := &runtest.Heard{}, options(cfg, openCPU(t, 1))
	o.Dir, o.Listener = runtest.OpenDir(t, runtest.Folder(t), false), e
	if err := run.Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	ck := runtest.Load(t, o.Dir.Last())
	o.Dir.Close()
	if len(epochsOf(e)) != 3 || !e.Ending.Row.(*Summary).StoppedEarly || !ck.Progress.Stopped {
		t.Errorf("no gain can be that large, yet %d epochs ran", len(epochsOf(e)))
	}
	heard := &runtest.Heard{}
	o.Dir, o.Resume, o.Listener = runtest.OpenDir(t, o.Dir.Path(), true), true, heard
	if err := run.Run(t.Context(), o); err != nil || len(heard.Records) != 0 || heard.Ending == nil {
		t.Errorf("a run that has stopped early went on for %d epochs, %v", len(heard.Records), err)
	}
}

func TestValidationFrequency(t *testing.T) {
	e, _ := whole(t, tiny(t, "training.validation_frequency=2"), openCPU(t, 1))
	var got []bool
	for _, r := range epochsOf(e) {
		got = append(got, r.ValCPC != nil)
	}
	if diff := cmp.Diff([]bool{false, true, true}, got); diff != "" {
		t.Errorf("validated in the wrong epochs: %s", diff)
	}
	raw, _ := json.Marshal(epochsOf(e)[0])
	if !bytes.Contains(raw, []byte(`"val_cpc":null`)) {
		t.Errorf("val_cpc is not null: %s", raw)
	}
}

// TestTheBestEpochIsTheLastThatWasBest: a run's end names the epoch whose weights it keeps.
func TestTheBestEpochIsTheLastThatWasBest(t *testing.T) {
	e, _ := whole(t, tiny(t, "training.num_epochs=4"), openCPU(t, 2))
	want := 0
	for _, row := range epochsOf(e) {
		if row.Best {
			want = row.Epoch
		}
	}
	if s := e.Ending.Row.(*Summary); want == 0 || s.BestEpoch != want || s.BestCPC != *epochsOf(e)[want-1].ValCPC {
		t.Errorf("the best epoch is %d with %v, want %d with %v", s.BestEpoch, s.BestCPC, want, *epochsOf(e)[max(0, want-1)].ValCPC)
	}
}

// TestDivergedInTheLastStepOfAnEpoch: weights that the last step throws so far that the network
// computes no numbers are noticed by validation first. The words are of the learning rate, not of a
// customer who is never visited.
func TestDivergedInTheLastStepOfAnEpoch(t *testing.T) {
	d := runtest.OpenDir(t, runtest.Folder(t), false)
	o := options(tiny(t, "training.learning_rate=1e30", "training_advanced.use_lr_scheduling=false", "training_advanced.warmup_steps=0", "training.num_epochs=2", "baseline.type=pomo",
		"training.num_batches_per_epoch=1", "training.validation_frequency=1"), openCPU(t, 2))
	o.Dir = d
	err := run.Run(t.Context(), o)
	var bad *run.NonFinite
	if !errors.As(err, &bad) || bad.Op == "" || bad.Step != 0 {
		t.Fatalf("got %v", err)
	}
	for _, word := range []string{"training diverged (", "epoch 1", "training.learning_rate", d.Path()} {
		if text := err.Error(); !strings.Contains(text, word) || strings.Contains(text, "\n") || strings.Contains(text, "customer") {
			t.Errorf("%q does not say %q in one line", text, word)
		}
	}
	if ck := runtest.Load(t, d.Last()); ck.Progress.Updates != 0 {
		t.Errorf("the last good checkpoint is lost: %+v", ck.Progress)
	}
}

func TestNonFinite(t *testing.T) {
	d := runtest.OpenDir(t, runtest.Folder(t), false)
	// Weights that a first step throws this far overflow in the second.
	o := options(tiny(t, "training.learning_rate=1e30", "training_advanced.use_lr_scheduling=false", "training_advanced.warmup_steps=0", "training.num_epochs=2", "baseline.type=pomo"), openCPU(t, 2))
	o.Dir = d
	err := run.Run(t.Context(), o)
	var bad *run.NonFinite
	if !errors.As(err, &bad) || bad.Op == "" || !strings.Contains(err.Error(), "epoch 1") || strings.Contains(err.Error(), "\n") {
		t.Fatalf("got %v", err)
	}
	if ck := runtest.Load(t, d.Last()); ck.Progress.Updates != 0 {
		t.Errorf("the last good checkpoint is lost: %+v", ck.Progress)
	}
}
