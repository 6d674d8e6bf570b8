// Package runtest holds what tests of recipes share: a run that is listened to, what two runs must
// have in common, and one suite that every recipe passes.
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

// Heard is what a run told.
type Heard struct {
	report.Silent
	Info     *report.Info
	Records  []report.Record
	Notes    []string
	Ending   *report.Ending
	OnRecord func(*report.Record) // may be nil
}

// Start keeps the run's description.
func (h *Heard) Start(i *report.Info) { h.Info = i }

// Note keeps a note.
func (h *Heard) Note(s string) { h.Notes = append(h.Notes, s) }

// Done keeps the ending.
func (h *Heard) Done(e *report.Ending) { h.Ending = e }

// Record keeps a record.
func (h *Heard) Record(r *report.Record) {
	h.Records = append(h.Records, *r)
	if h.OnRecord != nil {
		h.OnRecord(r)
	}
}

// Rows are the rows of type T that were told.
func Rows[T any](h *Heard) []*T {
	var out []*T
	for _, r := range h.Records {
		if row, ok := r.Row.(*T); ok {
			out = append(out, row)
		}
	}
	return out
}

// cached are the tests whose cache is a folder of their own.
var cached sync.Map

// Folder keeps the user's cache out of a test, which has one of its own for all of its runs, and
// returns a folder that does not exist yet.
func Folder(t testing.TB) string {
	t.Helper()
	if _, own := cached.LoadOrStore(t, true); !own {
		t.Setenv("XDG_CACHE_HOME", t.TempDir())
		t.Setenv("HOME", t.TempDir())
		t.Cleanup(func() { cached.Delete(t) })
	}
	return filepath.Join(t.TempDir(), "run")
}

// OpenDir opens a run folder for the test's life.
func OpenDir(t testing.TB, path string, resume bool) *run.Dir {
	t.Helper()
	d, err := run.OpenDir(path, resume, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// Whole trains from start to end in a folder of its own and returns what was told and what was
// left.
func Whole(t testing.TB, o run.Options) (*Heard, *State) {
	t.Helper()
	h := &Heard{}
	o.Dir, o.Listener = OpenDir(t, Folder(t), false), h
	if err := run.Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	return h, Load(t, o.Dir.Last())
}

// State is a checkpoint taken apart: all that a run continues from, and not the clock.
type State struct {
	Settings string
	Progress run.Progress
	Own      string
	Tensors  map[string]string // by name: shape and bytes
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

// Same wants two runs at the same place, bit for bit.
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

// timed are the parts of names of figures that depend on the clock or on where a process began.
var timed = []string{"second", "flops", "share", "launches", "waits", "copies", "allocations", "memory"}

// SameRecords compares what was told. Sums of an interval in two parts are added in another order.
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

// Counting is a device that calls Stop at one replay of any of its programs.
type Counting struct {
	kernel.Device
	Runs   int
	StopAt int
	Stop   func()
}

// Precision is the device's own.
func (c *Counting) Precision() string { return run.Precision(c.Device) }

type countingRunner struct {
	kernel.Runner
	c *Counting
}

// Compile counts the replays of what it compiles.
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

// Case is a recipe's smallest run, as the suite takes it.
type Case struct {
	Recipe   run.Recipe
	Settings config.Settings
	Open     Opener
	Device   func(t testing.TB, workers int) kernel.Device
	Other    config.Settings // differs in what a resumed run may not change
	Differs  string          // what the refusal must say
	First    int             // replays before there is anything to save
	Stops    int             // replays at which a run is stopped and resumed, at most; 0: 60
	State    any             // a pointer to the recipe's own state with something in every field
}

func (c *Case) options(t testing.TB, s config.Settings, dev kernel.Device) run.Options {
	return run.Options{Recipe: c.Recipe, Task: c.Open(t, s), Settings: s, Device: dev}
}

// Suite is what every recipe's runs must hold.
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

// interrupted stops a run at every replay it makes, be it an update, a test or a validation,
// resumes it, and wants the state of the run that nobody stopped. A long run, and one of a recipe
// that another case stops everywhere, is stopped at some of its replays.
func (c Case) interrupted(t *testing.T) {
	counter := &Counting{Device: c.Device(t, 2)}
	full, want := Whole(t, c.options(t, c.Settings, counter))
	stops := cmp.Or(c.Stops, 60)
	if testing.Short() { // a stop shares with the run's goroutines what any other shares
		stops = min(stops, 6)
	}
	stride := max(1, counter.Runs/stops)
	for at := 1; at < counter.Runs; at += stride {
		path := Folder(t)
		ctx, cancel := context.WithCancel(t.Context())
		o := c.options(t, c.Settings, &Counting{Device: counter.Device, StopAt: at, Stop: cancel})
		told := &Heard{}
		o.Dir, o.Listener = OpenDir(t, path, false), told
		err := run.Run(ctx, o)
		cancel()
		o.Dir.Close()
		if at <= c.First && err != nil {
			continue // nothing has begun
		}
		if stopped := new(run.Interrupted); err != nil && (!errors.As(err, &stopped) || stopped.Dir != path) {
			t.Fatalf("stopped at replay %d: %v", at, err)
		}
		if err == nil && at < counter.Runs-stride {
			continue // the last replays belong to an evaluation that was finished
		}
		again := c.options(t, c.Settings, counter.Device)
		again.Dir, again.Resume, again.Listener = OpenDir(t, path, true), true, told
		if err := run.Run(t.Context(), again); err != nil {
			t.Fatalf("resumed after replay %d: %v", at, err)
		}
		Same(t, want, Load(t, again.Dir.Last()))
		SameRecords(t, full.Records, told.Records)
		again.Dir.Close()
	}
}

// killed resumes from what kill -9 leaves: an earlier checkpoint, and a temporary half written.
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
	told := &Heard{}
	again.Dir, again.Resume, again.Listener = OpenDir(t, path, true), true, told
	if err := run.Run(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	Same(t, want, Load(t, again.Dir.Last()))
	if !told.Info.Resumed || told.Ending == nil {
		t.Errorf("resumed as %+v", told.Info)
	}
}

// lengthened: a run that is over goes on when more is asked for, ends at once when not, and refuses
// less.
func (c Case) lengthened(t *testing.T) {
	path, dev := Folder(t), c.Device(t, 1)
	n := c.Recipe.Length(c.Settings)
	for i, step := range []struct {
		length int
		want   string // of the error
	}{{n, ""}, {n + 2, ""}, {n + 2, ""}, {n, "past the end of what is asked for"}} {
		o := c.options(t, c.Recipe.Lengthen(c.Settings, step.length), dev)
		told := &Heard{}
		o.Dir, o.Resume, o.Listener = OpenDir(t, path, i > 0), i > 0, told
		err := run.Run(t.Context(), o)
		if step.want != "" {
			if err == nil || !strings.Contains(err.Error(), step.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("run %d: %v; want one line with %q", i, err, step.want)
			}
		} else if err != nil || told.Ending == nil || (len(told.Records) > 0) != (i < 2) {
			t.Errorf("run %d told of %d records, ended with %v, %v", i, len(told.Records), told.Ending, err)
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

// allocations: the loop around the device's replay makes no garbage.
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

// Allocations is what f takes from Go's heap per run: the least of a few tries, since objects of
// the runtime's own are counted with f's, now and then. What f itself allocates is in every try.
func Allocations(runs int, f func()) float64 {
	least := math.Inf(1)
	for try := 0; try < 4 && least > 0; try++ {
		least = min(least, testing.AllocsPerRun(runs, f))
	}
	return least
}
