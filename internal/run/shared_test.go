package run_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"haul/internal/comm"
	"haul/internal/report"
	"haul/internal/run"
)

// TestRanksLoadWhatRankZeroReads: every rank gets the whole checkpoint, or the same error if it
// does not exist.
func TestRanksLoadWhatRankZeroReads(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	o := toyOptions(toySettings(t, "training.num_epochs=1"))
	var err error
	if o.Dir, err = run.OpenDir(path, false, false); err != nil {
		t.Fatal(err)
	}
	o.Listener = report.Silent{}
	if err := run.Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	o.Dir.Close()
	last := filepath.Join(path, run.LastName)
	want, err := run.Load(last, "")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for _, w := range comm.Local(2) {
		wg.Go(func() {
			got, err := run.LoadShared(w, last, "")
			if err != nil {
				t.Error(err)
				return
			}
			if diff := cmp.Diff(want.Progress, got.Progress); diff != "" {
				t.Errorf("rank %d: %s", w.Number(), diff)
			}
			if _, err := run.LoadShared(w, filepath.Join(path, "none"), ""); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("rank %d: %v", w.Number(), err)
			}
		})
	}
	wg.Wait()
}

// TestACheckpointIsReadSideBySide: goroutines that load one checkpoint's weights onto different
// devices, as the workers of a server do, read the same without a data race.
func TestACheckpointIsReadSideBySide(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	o := toyOptions(toySettings(t, "training.num_epochs=1"))
	var err error
	if o.Dir, err = run.OpenDir(path, false, false); err != nil {
		t.Fatal(err)
	}
	o.Listener = report.Silent{}
	if err := run.Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	o.Dir.Close()
	ck, err := run.Load(filepath.Join(path, run.LastName), "")
	if err != nil {
		t.Fatal(err)
	}
	task, err := toy{}.Open(o.Settings, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	trainer, err := task.Trainer(&run.Setup{Device: toyDevice(t, 1), Settings: o.Settings})
	if err != nil {
		t.Fatal(err)
	}
	defer trainer.Close()
	want, err := ck.Weights(trainer.Layout(), "")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 500 {
				got, err := ck.Weights(trainer.Layout(), "")
				if err != nil || !slices.Equal(got, want) {
					t.Errorf("read other weights: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
}
