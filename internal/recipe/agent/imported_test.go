package agent

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"haul/internal/config"
	"haul/internal/rng"
	"haul/internal/run"
	"haul/internal/run/runtest"
	"haul/internal/world"
	"haul/internal/world/history"
)

// writeRecords makes histories of a world without rules: six tasks, episodes of one to five steps,
// streams of unequal length.
func writeRecords(t testing.TB) *history.Records {
	return writeLabelled(t, []float64{-1, 0.25, 3}, false)
}

// writeLabelled is writeRecords with other rewards, and maybe with best actions.
func writeLabelled(t testing.TB, rewards []float64, labels bool) *history.Records {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.hist")
	space := world.Space{Fields: []world.Field{{Name: "a", Size: 5}, {Name: "b", Size: 256}, {Name: "c", Size: 2}}, Actions: 6, Rewards: rewards}
	w, err := history.CreateRecords(path, world.Recorded{Env: world.EnvRecorded, Title: "somebody's", Declared: space, Longest: 5}, 1, 0.7)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Discard()
	for task := range 6 {
		for stream := range 2 {
			w.Stream(int64(task))
			clock := 0
			for i := range 60 + 20*stream + task {
				draw := rng.At(3, uint64(task*2+stream), uint32(i), rng.Learner)
				ends := clock == 4 || draw[1]%4 == 0
				if labels {
					w.Label(int(draw[0]>>8) % 6)
				}
				if err := w.Add([]byte{byte(clock), byte(draw[2]), byte(task % 2)}, int(draw[0]%6), int(draw[3])%len(rewards), ends); err != nil {
					t.Fatal(err)
				}
				if clock++; ends {
					clock = 0
				}
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	h, err := history.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h.(*history.Records)
}

// TestAutoLabels: what agents learn to do follows from what the file holds: labels auto draws the
// very rows of the labels that it stands for.
func TestAutoLabels(t *testing.T) {
	for _, c := range []struct {
		rewards []float64
		labels  bool
		set     string
		want    string
	}{
		{[]float64{0, 1}, false, "method=imitate", config.LabelsActions},
		{[]float64{0, 1}, true, "method=imitate", config.LabelsFound},
		{[]float64{1}, true, "method=imitate", config.LabelsBest},
		{[]float64{1}, false, "method=imitate", config.LabelsActions},
		{[]float64{0, 1}, true, "method=iql", config.LabelsActions},
	} {
		h := writeLabelled(t, c.rewards, c.labels)
		rows := func(labels string) (out [][]int32) {
			t.Helper()
			d, err := newDataset(h, tinyAD(t, "train_n_stream=0", "train_source_timesteps=0", c.set, "labels="+labels))
			if err != nil {
				t.Fatal(err)
			}
			if d.labels != c.want {
				t.Errorf("%+v: labels %s", c, d.labels)
			}
			fill, err := d.fill()
			if err != nil {
				t.Fatal(err)
			}
			for row := range uint64(20) {
				var parts [][]int32
				for _, n := range d.trainSpec.Words() {
					parts = append(parts, make([]int32, n))
				}
				if err := fill(row, parts); err != nil {
					t.Fatal(err)
				}
				out = append(out, parts...)
			}
			return out
		}
		if !reflect.DeepEqual(rows(config.LabelsAuto), rows(c.want)) {
			t.Errorf("%+v: other rows than with labels %s", c, c.want)
		}
	}
	rooms, err := newDataset(writeHistory(t, tinyHistory), tinyAD(t, "labels="+config.LabelsAuto))
	if err != nil || rooms.labels != config.LabelsActions {
		t.Errorf("histories of rooms: %v", err)
	}
}

// TestImportedHistories: a run on histories of any world learns, is tested on held-out tasks, and
// notes that the world cannot be played. The error for a copy of a mapped file on the device names
// it.
func TestImportedHistories(t *testing.T) {
	h, dev := writeRecords(t), openCPU(t, 2)
	c := tinyAD(t, "train_n_stream=0", "train_source_timesteps=0", "train_timesteps=40", "train_batch_size=12", "validation_goals=1", "eval_tune=true")
	heard, state := trained(t, c, dev, h, DataAuto)
	reports, tests := reportsOf(heard), testsOf(heard)
	if first, last := reports[0].LossTokenType, reports[len(reports)-1].LossTokenType; !(last < first) {
		t.Errorf("the loss of token types went from %g to %g", first, last)
	}
	if len(tests) == 0 || len(runtest.Rows[Evaluation](heard)) != 0 || summaryOf(heard).Evaluation != nil || !viewOf(heard).host {
		t.Errorf("%d tests, %d evaluations, rows from the host: %v", len(tests), len(runtest.Rows[Evaluation](heard)), viewOf(heard).host)
	}
	again, other := trained(t, c, openCPU(t, 1), h, DataHost)
	if again == nil || len(other.Tensors) == 0 {
		t.Fatal("nothing was saved")
	}
	for name, want := range state.Tensors {
		if other.Tensors[name] != want {
			t.Fatalf("%s differs by the number of workers", name)
		}
	}
	o := options(c, dev, h, DataDevice)
	o.Dir = runtest.OpenDir(t, runtest.Folder(t), false)
	if err := run.Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "imported histories are read from their file") {
		t.Errorf("got %v", err)
	}
	long := tinyAD(t, "train_n_stream=0", "train_source_timesteps=0", "compress_interval=80", "n_transit=200")
	if _, err := newDataset(h, long); err == nil || !strings.Contains(err.Error(), "none of the 8 streams to learn from is long enough") || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v", err)
	}
	if err := Check(writeHistory(t, tinyHistory), tinyAD(t, "train_n_stream=0")); err == nil || !strings.Contains(err.Error(), "set train_n_stream to 3 at most and train_source_timesteps to 120 at most") {
		t.Errorf("got %v", err)
	}
	a, err := Load(dev, summaryOf(heard).Last)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if _, err := a.Evaluate(t.Context(), EvalOptions{History: h}); err == nil || !strings.Contains(err.Error(), "cannot play a recorded world \"somebody's\": haul act lets its agents act") || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v", err)
	}
	if next := viewOf(heard).ending(summaryOf(heard)).Rows; !slices.ContainsFunc(next, func(l [2]string) bool { return l[0] == "next" && strings.HasPrefix(l[1], "haul act --checkpoint ") }) {
		t.Errorf("what comes next: %q", next)
	}
}
