package run_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"haul/internal/report"
	"haul/internal/run"
	"haul/internal/run/runtest"
)

// disk holds what a power failure leaves of a folder: content as of its last sync, and names as of
// the last sync of their folder. A name that was changed since may be the old or the new one.
// Content that was never synced is lost.
type disk struct {
	t       *testing.T
	synced  map[string][]byte // by path: content that is on the disk
	names   map[string][]byte // by path: content of the file that the name on the disk refers to
	pending map[string][]byte // renames since the last sync of the folder
	states  []map[string][]byte
}

func (d *disk) sync(path string) {
	if len(d.pending) > 0 {
		d.t.Errorf("%s is begun while %d renames before it are not on the disk: a checkpoint that was reported as saved could be lost", path, len(d.pending))
	}
	text, err := os.ReadFile(path)
	if err != nil {
		d.t.Error(err)
	}
	d.synced[path] = text
}

func (d *disk) rename(from, to string) {
	d.keep(d.names)
	d.pending[to] = d.synced[from] // nil, an empty file, if the content was not synced
	delete(d.synced, from)
	with := maps.Clone(d.names)
	maps.Copy(with, d.pending)
	d.keep(with)
}

func (d *disk) folder(string) {
	maps.Copy(d.names, d.pending)
	clear(d.pending)
	d.keep(d.names)
}

func (d *disk) keep(state map[string][]byte) { d.states = append(d.states, maps.Clone(state)) }

// TestPowerMayFailAtAnyMoment: from every state of the disk that a power failure can leave, the run
// resumes to the bits of an uninterrupted run, or reports that no checkpoint exists. What was
// reported as saved exists. HAUL_POWER_RUNS is the number of runs, four by default.
func TestPowerMayFailAtAnyMoment(t *testing.T) {
	runs, states, resumed := 0, 0, 0
	most := 4
	if n, err := strconv.Atoi(os.Getenv("HAUL_POWER_RUNS")); err == nil {
		most = n
	}
	for i := range most {
		epochs := strconv.Itoa(1 + i%4)
		c := toySettings(t, "training.num_epochs="+epochs, fmt.Sprintf("training.learning_rate=%g", 0.01*float64(i+1)/float64(most)))
		_, want := runtest.Whole(t, toyOptions(c))
		path := filepath.Join(t.TempDir(), "a")
		d := &disk{t: t, synced: map[string][]byte{}, names: map[string][]byte{}, pending: map[string][]byte{}}
		o := toyOptions(c)
		o.Dir, o.Listener = runtest.OpenDir(t, path, false), report.Silent{}
		restore := run.RecordDisk(d.sync, d.rename, d.folder)
		err := run.Run(t.Context(), o)
		restore()
		if err != nil {
			t.Fatal(err)
		}
		if len(d.pending) > 0 {
			t.Errorf("%d names are not on the disk when the run has ended", len(d.pending))
		}
		runs++
		for k, state := range d.states {
			states++
			if d.resumes(fmt.Sprintf("run %d of %s epochs, state %d", i, epochs, k), state, path, toyOptions(c), want) {
				resumed++
			}
		}
	}
	t.Logf("%d states of %d runs, %d resume", states, runs, resumed)
	if resumed < 3*runs {
		t.Errorf("only %d of %d states resume", resumed, states)
	}
}

// resumes writes a state of the disk into a folder and resumes from it.
func (d *disk) resumes(name string, state map[string][]byte, path string, o run.Options, want *runtest.State) bool {
	dir := filepath.Join(d.t.TempDir(), "b")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		d.t.Fatal(err)
	}
	for file, text := range state {
		at, err := filepath.Rel(path, file)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, at), text, 0o600)
		}
		if err != nil {
			d.t.Fatal(err)
		}
	}
	_, has := state[filepath.Join(path, run.LastName)]
	o.Dir, o.Resume, o.Listener = runtest.OpenDir(d.t, dir, true), true, report.Silent{}
	err := run.Run(d.t.Context(), o)
	switch {
	case !has:
		if err == nil {
			d.t.Errorf("%s: it resumes from nothing", name)
		}
		return false
	case err != nil:
		d.t.Errorf("%s does not resume: %v", name, err)
		return false
	}
	runtest.Same(d.t, want, runtest.Load(d.t, filepath.Join(dir, run.LastName)))
	return true
}
