// Package runtest is the suite that tests of every recipe run (Suite). It also has helpers that
// record a run's events and compare the states of two runs.
package runtest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"haul/internal/config"
	"haul/internal/kernel"
	"haul/internal/kernel/kerneltest"
	"haul/internal/report"
	"haul/internal/run"
	"haul/internal/safetensors"
)

// Heard records the events of a run.
type Heard struct {
	report.Silent
	Info     *report.Info
	Records  []report.Record
	Notes    []string
	Ending   *report.Ending
	OnRecord func(*report.Record) // called for every record; may be nil
}

// Start records the run's description.
func (h *Heard) Start(i *report.Info) { h.Info = i }

// Note records a note.
func (h *Heard) Note(s string) { h.Notes = append(h.Notes, s) }

// Done records the summary.
func (h *Heard) Done(e *report.Ending) { h.Ending = e }

// Record records a record.
func (h *Heard) Record(r *report.Record) {
	h.Records = append(h.Records, *r)
	if h.OnRecord != nil {
		h.OnRecord(r)
	}
}

// Rows returns the recorded rows of type T.
func Rows[T any](h *Heard) []*T {
	var out []*T
	for _, r := range h.Records {
		if row, ok := r.Row.(*T); ok {
			out = append(out, row)
		}
	}
	return out
}

// cached holds the tests that have a private cache folder.
var cached sync.Map

// Folder returns the path of a folder that does not exist yet. It also replaces the user's cache
// folder by a private one for the test's runs.
func Folder(t testing.TB) string {
	t.Helper()
	if _, own := cached.LoadOrStore(t, true); !own {
		t.Setenv("XDG_CACHE_HOME", t.TempDir())
		t.Setenv("HOME", t.TempDir())
		t.Cleanup(func() { cached.Delete(t) })
	}
	return filepath.Join(t.TempDir(), "run")
}

// OpenDir opens a run folder until the end of the test.
func OpenDir(t testing.TB, path string, resume bool) *run.Dir {
	t.Helper()
	d, err := run.OpenDir(path, resume, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// Whole trains from start to end in a new folder and returns the events and the final state.
func Whole(t testing.TB, o run.Options) (*Heard, *State) {
	t.Helper()
	h := &Heard{}
	o.Dir, o.Listener = OpenDir(t, Folder(t), false), h
	if err := run.Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	return h, Load(t, o.Dir.Last())
}

// State is the content of a checkpoint, without times.
type State struct {
	Settings string
	Progress run.Progress
	Own      string
	Tensors  map[string]string // shape and bytes, by name
}

// Load reads a checkpoint.
func Load(t testing.TB, path string) *State {
	t.Helper()
	f, err := safetensors.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	s := &State{Settings: f.Metadata["haul.config"], Own: f.Metadata["haul.state"], Tensors: map[string]string{}}
	if err := json.Unmarshal([]byte(f.Metadata["haul.progress"]), &s.Progress); err != nil {
		t.Fatal(err)
	}
	s.Progress.Elapsed, s.Progress.Seconds, s.Progress.Waited = 0, 0, 0
	for _, tensor := range f.Tensors {
		s.Tensors[tensor.Name] = fmt.Sprint(tensor.Shape, string(tensor.Data))
	}
	return s
}

// Same fails unless two runs have the same state, bit for bit.
func Same(t *testing.T, want, got *State) {
	t.Helper()
	for name, data := range want.Tensors {
		if got.Tensors[name] != data {
			t.Errorf("%s differs", name)
		}
	}
	if len(want.Tensors) != len(got.Tensors) {
		t.Errorf("%d tensors, want %d", len(got.Tensors), len(want.Tensors))
	}
	a, b := *want, *got
	a.Tensors, b.Tensors = nil, nil
	if diff := gocmp.Diff(a, b); diff != "" {
		t.Errorf("the runs differ: %.2000s", diff)
	}
}

// timed lists parts of the names of figures that depend on time or on where a process began.
var timed = []string{"second", "flops", "share", "launches", "waits", "copies", "allocations", "memory"}

// SameRecords compares records. Sums of an interval in two processes are added in another order.
func SameRecords(t *testing.T, want, got []report.Record) {
	t.Helper()
	figures := func(records []report.Record) (out []map[string]any) {
		for _, r := range records {
			text, err := json.Marshal(r.Row)
			if err != nil {
				t.Fatal(err)
			}
			row := map[string]any{"kind": r.Kind}
			if err := json.Unmarshal(text, &row); err != nil {
				t.Fatal(err)
			}
			for key := range row {
				if slices.ContainsFunc(timed, func(part string) bool { return strings.Contains(key, part) }) {
					delete(row, key)
				}
			}
			out = append(out, row)
		}
		return out
	}
	near := gocmp.Comparer(func(a, b float64) bool { return a == b || math.Abs(a-b) <= 1e-12*(math.Abs(a)+math.Abs(b)) })
	if diff := gocmp.Diff(figures(want), figures(got), near); diff != "" {
		t.Errorf("the records differ: %.2000s", diff)
	}
}

// Counting is a device that calls Stop at one replay, counted over all of its programs.
type Counting struct {
	kernel.Device
	Runs   int
	StopAt int
	Stop   func()
}

// Precision returns the precision of the device.
func (c *Counting) Precision() string { return run.Precision(c.Device) }

type countingRunner struct {
	kernel.Runner
	c *Counting
}

// Compile compiles a program whose replays are counted.
func (c *Counting) Compile(p *kernel.Program, sets []kernel.Store) (kernel.Runner, error) {
	r, err := c.Device.Compile(p, sets)
	if f, ok := r.(kernel.Feeder); ok {
		return fedRunner{countingRunner{r, c}, f}, err
	}
	return countingRunner{r, c}, err
}

func (c *Counting) count() {
	if c.Runs++; c.Runs == c.StopAt {
		c.Stop()
	}
}

func (r countingRunner) Run() error {
	r.c.count()
	return r.Runner.Run()
}

type fedRunner struct {
	countingRunner
	kernel.Feeder
}

func (r fedRunner) Feed(s *kernel.Slab) error {
	r.c.count()
	return r.Feeder.Feed(s)
}

// Opener opens the data of a run with these settings.
type Opener func(t testing.TB, s config.Settings) run.Task

// Case is the smallest run of a recipe, for the suite.
type Case struct {
	Recipe   run.Recipe
	Settings config.Settings
	Open     Opener
	Device   func(t testing.TB, workers int) kernel.Device
	Other    config.Settings // settings that a resumed run must refuse
	Differs  string          // text of the refusal
	First    int             // replays before the first checkpoint
	Stops    int             // the largest number of replays at which a run is stopped and resumed; 0: 60
	State    any             // a pointer to the recipe's state, with a value in every field
}

func (c *Case) options(t testing.TB, s config.Settings, dev kernel.Device) run.Options {
	return run.Options{Recipe: c.Recipe, Task: c.Open(t, s), Settings: s, Device: dev}
}

// Suite checks the properties that the runs of every recipe must have.
func Suite(t *testing.T, c Case) {
	t.Run("workers change nothing", c.workers)
	t.Run("interrupted anywhere", c.interrupted)
	t.Run("in pieces", c.pieces)
	t.Run("killed", c.killed)
	t.Run("every field is resumed", c.everyField)
	t.Run("more and fewer on resume", c.lengthened)
	t.Run("other settings", c.others)
	t.Run("updates allocate nothing", c.allocations)
	t.Run("every store is closed", c.stores)
	t.Run("runs leave nothing behind", c.nothingLeft)
}

func (c Case) workers(t *testing.T) {
	kerneltest.AllCores(t)
	_, one := Whole(t, c.options(t, c.Settings, c.Device(t, 1)))
	for _, n := range []int{2, 4} {
		_, got := Whole(t, c.options(t, c.Settings, c.Device(t, n)))
		Same(t, one, got)
	}
}

// interrupted stops a run at every replay of an update, a test or a validation, resumes it, and
// compares the state with that of an uninterrupted run. A long run is stopped at some replays only,
// and so is a recipe that another case stops at all of them.
func (c Case) interrupted(t *testing.T) {
	counter := &Counting{Device: c.Device(t, 2)}
	full, want := Whole(t, c.options(t, c.Settings, counter))
	stops := cmp.Or(c.Stops, 60)
	if testing.Short() { // every stop meets the same goroutines and locks: a few are enough
		stops = min(stops, 6)
	}
	stride := max(1, counter.Runs/stops)
	for at := 1; at < counter.Runs; at += stride {
		path := Folder(t)
		ctx, cancel := context.WithCancel(t.Context())
		o := c.options(t, c.Settings, &Counting{Device: counter.Device, StopAt: at, Stop: cancel})
		events := &Heard{}
		o.Dir, o.Listener = OpenDir(t, path, false), events
		err := run.Run(ctx, o)
		cancel()
		o.Dir.Close()
		if at <= c.First && err != nil {
			continue // the run has not begun
		}
		if stopped := new(run.Interrupted); err != nil && (!errors.As(err, &stopped) || stopped.Dir != path) {
			t.Fatalf("stopped at replay %d: %v", at, err)
		}
		if err == nil && at < counter.Runs-stride {
			continue // the last replays belong to an evaluation that was complete
		}
		again := c.options(t, c.Settings, counter.Device)
		again.Dir, again.Resume, again.Listener = OpenDir(t, path, true), true, events
		if err := run.Run(t.Context(), again); err != nil {
			t.Fatalf("resumed after replay %d: %v", at, err)
		}
		Same(t, want, Load(t, again.Dir.Last()))
		SameRecords(t, full.Records, events.Records)
		again.Dir.Close()
	}
}

// killed resumes from what kill -9 leaves: an earlier checkpoint and an incomplete temporary file.
func (c Case) killed(t *testing.T) {
	dev := c.Device(t, 2)
	path := Folder(t)
	o := c.options(t, c.Settings, dev)
	o.Dir = OpenDir(t, path, false)
	var early []byte
	full := &Heard{OnRecord: func(*report.Record) {
		if data, err := os.ReadFile(o.Dir.Last()); early == nil && err == nil {
			early = data
		}
	}}
	o.Listener = full
	if err := run.Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	want := Load(t, o.Dir.Last())
	o.Dir.Close()
	for file, data := range map[string][]byte{run.LastName: early, run.LastName + ".tmp": early[:100]} {
		if err := os.WriteFile(filepath.Join(path, file), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	again := c.options(t, c.Settings, dev)
	events := &Heard{}
	again.Dir, again.Resume, again.Listener = OpenDir(t, path, true), true, events
	if err := run.Run(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	Same(t, want, Load(t, again.Dir.Last()))
	if !events.Info.Resumed || events.Ending == nil {
		t.Errorf("resumed as %+v", events.Info)
	}
}

// lengthened: a completed run continues if more updates are asked for, ends at once if the same
// number is, and refuses fewer.
func (c Case) lengthened(t *testing.T) {
	path, dev := Folder(t), c.Device(t, 1)
	n := c.Recipe.Length(c.Settings)
	for i, step := range []struct {
		length int
		want   string // text of the error
	}{{n, ""}, {n + 2, ""}, {n + 2, ""}, {n, "past the end of what is asked for"}} {
		o := c.options(t, c.Recipe.Lengthen(c.Settings, step.length), dev)
		events := &Heard{}
		o.Dir, o.Resume, o.Listener = OpenDir(t, path, i > 0), i > 0, events
		err := run.Run(t.Context(), o)
		if step.want != "" {
			if err == nil || !strings.Contains(err.Error(), step.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("run %d: %v; want one line with %q", i, err, step.want)
			}
		} else if err != nil || events.Ending == nil || (len(events.Records) > 0) != (i < 2) {
			t.Errorf("run %d told of %d records, ended with %v, %v", i, len(events.Records), events.Ending, err)
		}
		o.Dir.Close()
	}
}

func (c Case) others(t *testing.T) {
	path, dev := Folder(t), c.Device(t, 1)
	o := c.options(t, c.Settings, dev)
	o.Dir = OpenDir(t, path, false)
	if err := run.Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	o = run.Options{Recipe: c.Recipe, Task: c.Open(t, c.Other), Settings: c.Other, Device: dev, Dir: o.Dir, Resume: true}
	if err := run.Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), c.Differs) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v; want one line with %q", err, c.Differs)
	}
}

// allocations: the loop around the device's replay does not allocate.
func (c Case) allocations(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector, whose run is the short one, allocates too")
	}
	s := &run.Setup{Settings: c.Settings, Device: c.Device(t, 2), Dir: OpenDir(t, Folder(t), false), Progress: &run.Progress{}, Note: func(string) {}}
	trainer, err := c.Open(t, c.Settings).Trainer(s)
	if err != nil {
		t.Fatal(err)
	}
	defer trainer.Close()
	if err := trainer.Restore(t.Context(), nil, false); err != nil {
		t.Fatal(err)
	}
	if err := trainer.Begin(); err != nil {
		t.Fatal(err)
	}
	least := Allocations(5, func() {
		if err := trainer.Update(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
	if least != 0 {
		t.Errorf("%v allocations per update", least)
	}
}

// Allocations returns the allocations of f per run. It takes the least of a few tries, because the
// runtime's own allocations are counted in some of them.
func Allocations(runs int, f func()) float64 {
	least := math.Inf(1)
	for try := 0; try < 4 && least > 0; try++ {
		least = min(least, testing.AllocsPerRun(runs, f))
	}
	return least
}
