package routing

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"haul/internal/kernel"
	"haul/internal/report"
	"haul/internal/run"
	"haul/internal/run/runtest"
)

// crowded is a device without memory.
type crowded struct{ kernel.Device }

func (crowded) AvailableMemory() (int64, bool) { return 1000, true }

// forced trains in a folder that holds a run.
func forced(t *testing.T, path string, dev kernel.Device, sets ...string) error {
	t.Helper()
	o := options(tiny(t, sets...), dev)
	var err error
	if o.Dir, err = run.OpenDir(path, false, true); err != nil {
		t.Fatal(err)
	}
	defer o.Dir.Close()
	folder := report.NewFolder(func(s string) { t.Errorf("noted %q", s) })
	o.Listener = folder
	return errors.Join(run.Run(t.Context(), o), folder.Close())
}

// TestForceDestroysNothingItCannotReplace: a run that cannot start leaves the existing run
// unchanged. A run that starts deletes all of it, tables of other recipes included.
func TestForceDestroysNothingItCannotReplace(t *testing.T) {
	path := runtest.Folder(t)
	if err := forced(t, path, openCPU(t, 1), "training.num_epochs=2"); err != nil {
		t.Fatal(err)
	}
	names := []string{run.LastName, run.BestName, run.ConfigName, run.ResultName, historyGT}
	before := map[string][]byte{}
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(path, name))
		if err != nil {
			t.Fatal(err)
		}
		before[name] = data
	}
	if err := forced(t, path, crowded{openCPU(t, 1)}, "training.num_epochs=1"); err == nil || !strings.Contains(err.Error(), "memory") {
		t.Fatalf("a run that does not fit: %v", err)
	}
	for _, name := range names {
		if data, err := os.ReadFile(filepath.Join(path, name)); err != nil || !bytes.Equal(data, before[name]) {
			t.Errorf("%s of the old run is gone or changed: %v", name, err)
		}
	}
	foreign := filepath.Join(path, "csv", "history_ad.csv")
	torn := filepath.Join(path, "curves.png.tmp")
	for _, file := range []string{foreign, torn} {
		if err := os.WriteFile(file, []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := forced(t, path, openCPU(t, 1), "training.num_epochs=1"); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{foreign, torn} {
		if _, err := os.Stat(file); err == nil {
			t.Errorf("%s is still there", file)
		}
	}
	if rows, err := os.ReadFile(filepath.Join(path, historyGT)); err != nil || bytes.Count(rows, []byte("\n")) != 2 {
		t.Errorf("the history of one epoch is %q, %v", rows, err)
	}
}

// TestRecordsComeBeforeTheirCheckpoint: a row is reported before the checkpoint that counts it is
// written, so that a kill between the two loses no row.
func TestRecordsComeBeforeTheirCheckpoint(t *testing.T) {
	o := options(tiny(t), openCPU(t, 1))
	o.Dir = runtest.OpenDir(t, runtest.Folder(t), false)
	seen := 0
	o.Listener = &runtest.Heard{OnRecord: func(r *report.Record) {
		if s := runtest.Load(t, o.Dir.Last()); s.Progress.Recorded["epoch"] != r.At-1 || s.Progress.Concluded != 4*(r.At-1) {
			t.Errorf("epoch %d is told when the checkpoint stands at %+v", r.At, s.Progress)
		}
		seen++
	}}
	if err := run.Run(t.Context(), o); err != nil || seen != 3 {
		t.Fatalf("%d records, %v", seen, err)
	}
	if s := runtest.Load(t, o.Dir.Last()); s.Progress.Recorded["epoch"] != 3 {
		t.Errorf("the checkpoint counts %v", s.Progress.Recorded)
	}
}

// TestLossThatIsNoNumberStopsTheRun: a temperature near 0 makes no gradient infinite and every loss
// NaN.
func TestLossThatIsNoNumberStopsTheRun(t *testing.T) {
	for _, baseline := range []string{"rollout", "pomo"} {
		c := tiny(t, "baseline.type="+baseline)
		c.Advanced.TempStart, c.Advanced.TempMin = 1e-39, 1e-39
		o := options(c, openCPU(t, 1))
		o.Dir = runtest.OpenDir(t, runtest.Folder(t), false)
		err := run.Run(t.Context(), o)
		if bad := new(run.NonFinite); !errors.As(err, &bad) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: the run ended with %v", baseline, err)
		}
	}
}

// TestGeometricMeanOfNothing: with every customer at the depot costs are 0, and no figure is NaN.
func TestGeometricMeanOfNothing(t *testing.T) {
	e, _ := whole(t, tiny(t, "problem.num_customers=1", "problem.coord_range=1", "training.use_geometric_mean=true", "training.batch_size=40"), openCPU(t, 1))
	for _, r := range epochsOf(e) {
		for name, v := range map[string]float64{"train": r.TrainCPC, "val": *r.ValCPC, "se": *r.ValSE, "gap": *r.ValGap, "reference": r.GapToCPC, "loss": r.TrainLoss} {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				t.Errorf("epoch %d: %s is %v", r.Epoch, name, v)
			}
		}
	}
}

// TestLongerRunNotesItsRate: more epochs raise a rate that had come down, and the run says so; a
// run that is complete says that too.
func TestLongerRunNotesItsRate(t *testing.T) {
	path, dev := runtest.Folder(t), openCPU(t, 1)
	again := func(epochs string, resume bool) *runtest.Heard {
		o := options(tiny(t, "training.num_epochs="+epochs, "training_advanced.use_lr_scheduling=true", "training_advanced.scheduler_type=cosine"), dev)
		h := &runtest.Heard{}
		o.Dir, o.Resume, o.Listener = runtest.OpenDir(t, path, resume), resume, h
		if err := run.Run(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		o.Dir.Close()
		return h
	}
	again("2", false)
	if notes := strings.Join(again("6", true).Notes, "; "); !strings.Contains(notes, "the schedule aims for epoch 6 now") {
		t.Errorf("notes are %q", notes)
	}
	if notes := strings.Join(again("6", true).Notes, "; "); !strings.Contains(notes, "the run is complete") || strings.Contains(notes, "schedule") {
		t.Errorf("notes are %q", notes)
	}
}

// TestPlacePastTheEnd: if fewer epochs are asked for than the run has finished, the message names
// the number of finished epochs.
func TestPlacePastTheEnd(t *testing.T) {
	tr := &trainer{Setup: &run.Setup{Progress: &run.Progress{Updates: 12, Concluded: 12}}, cfg: tiny(t, "training.num_epochs=2")}
	if got := tr.Place(12); got != "after 3 epochs" {
		t.Errorf("it stands %s", got)
	}
	if got := tr.Place(8); got != "in epoch 2 after step 4 of 4" {
		t.Errorf("it stands %s", got)
	}
}
