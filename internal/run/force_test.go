package run_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"haul/internal/report"
	"haul/internal/run"
	"haul/internal/safetensors"
)

// TestAForcedRunThatIsKilledKeepsNothingOld: a run overwrites another and is killed right after its
// first checkpoint, while the other's best checkpoint, result, tables and events still exist. The
// resumed run removes all of them, for any recipe of the other run.
func TestAForcedRunThatIsKilledKeepsNothingOld(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	begin := func(resume bool, sets ...string) run.Options {
		o := toyOptions(toySettings(t, sets...))
		dir, err := run.OpenDir(path, resume, !resume)
		if err != nil {
			t.Fatal(err)
		}
		o.Dir, o.Resume, o.Listener = dir, resume, report.Silent{}
		return o
	}
	first := begin(false, "training.num_epochs=1")
	if err := run.Run(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	first.Dir.Close()
	// The second run's first checkpoint, as a kill right after its rename leaves it.
	ctx, stop := context.WithCancel(t.Context())
	stop()
	fresh := filepath.Join(t.TempDir(), "fresh")
	o := toyOptions(toySettings(t, "training.num_epochs=1", "training.learning_rate=0.02"))
	var err error
	if o.Dir, err = run.OpenDir(fresh, false, false); err != nil {
		t.Fatal(err)
	}
	o.Listener = report.Silent{}
	_ = run.Run(ctx, o)
	o.Dir.Close()
	last, err := os.ReadFile(filepath.Join(fresh, run.LastName))
	if err != nil {
		t.Fatal(err)
	}
	if f, err := safetensors.Load(filepath.Join(fresh, run.LastName)); err != nil || !strings.Contains(f.Metadata["haul.progress"], `"updates":0`) {
		t.Fatalf("the first checkpoint is not of update 0: %v, %v", f.Metadata, err)
	}
	old := []string{run.BestName, run.ResultName, "csv/history_of_another.csv", "events.out.tfevents.0000000001.haul.000"}
	for _, name := range old {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(path, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(path, name), []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(path, run.LastName), last, 0o600); err != nil {
		t.Fatal(err)
	}
	again := begin(true, "training.num_epochs=1", "training.learning_rate=0.02")
	if err := run.Run(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	again.Dir.Close()
	for _, name := range old {
		if text, err := os.ReadFile(filepath.Join(path, name)); err == nil && string(text) == "old" {
			t.Errorf("%s is the old run's", name)
		}
	}
}

// TestMoreClearsTheStop: a run that its recipe has ended continues if it is lengthened, and its
// checkpoint is no longer marked as stopped.
func TestMoreClearsTheStop(t *testing.T) {
	for epochs, stopped := range map[string]bool{"4": true, "5": false} {
		path := filepath.Join(t.TempDir(), "a")
		o := toyOptions(toySettings(t))
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
		f, err := safetensors.Load(last)
		if err != nil {
			t.Fatal(err)
		}
		f.Metadata["haul.progress"] = strings.Replace(f.Metadata["haul.progress"], `"stopped":false`, `"stopped":true`, 1)
		if err := run.WriteAtomic(last, func(w io.Writer) error { return safetensors.Write(w, f) }); err != nil {
			t.Fatal(err)
		}
		o = toyOptions(toySettings(t, "training.num_epochs="+epochs))
		if o.Dir, err = run.OpenDir(path, true, false); err != nil {
			t.Fatal(err)
		}
		o.Resume, o.Listener = true, report.Silent{}
		if err := run.Run(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		o.Dir.Close()
		ck, err := run.Load(filepath.Join(path, run.LastName), "")
		if err != nil {
			t.Fatal(err)
		}
		if ck.Progress.Stopped != stopped {
			t.Errorf("resumed for %s epochs: stopped %v after %d updates", epochs, ck.Progress.Stopped, ck.Progress.Updates)
		}
	}
}
