package runtest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"haul/internal/run"
	"haul/internal/safetensors"
)

// everyField resumes from a checkpoint in which no field of Progress or of the recipe's state is
// zero, and compares each with the checkpoint that the resumed run writes. A field that is added
// later is checked too, because a zero field fails the test.
func (c Case) everyField(t *testing.T) {
	counter := &Counting{Device: c.Device(t, 1)}
	Whole(t, c.options(t, c.Settings, counter))
	path := Folder(t)
	ctx, cancel := context.WithCancel(t.Context())
	o := c.options(t, c.Settings, &Counting{Device: counter.Device, StopAt: counter.Runs / 2, Stop: cancel})
	o.Dir = OpenDir(t, path, false)
	if err := run.Run(ctx, o); !errors.As(err, new(*run.Interrupted)) {
		t.Fatalf("stopped in the middle: %v", err)
	}
	o.Dir.Close()

	best := 0.625
	var want run.Progress
	f := edit(t, o.Dir.Last(), func(f *safetensors.File) {
		if err := json.Unmarshal([]byte(f.Metadata["haul.progress"]), &want); err != nil {
			t.Fatal(err)
		}
		want.Concluded, want.Since = want.Updates, 1
		want.Sums.Steps, want.Sums.GradNorm = 1, 0.375
		want.Seconds, want.Waited, want.Elapsed = 1000, 500, 2000
		want.Best, want.BestAt = &best, 1
		want.Began = []run.Past{{Settings: "first", Updates: 2, Rows: 64, Seconds: 3}}
		f.Metadata["haul.progress"], f.Metadata["haul.state"] = text(t, want), text(t, c.State)
	})
	nonZero(t, want, "Stopped") // a run that has stopped saves no more
	nonZero(t, c.State)

	ended, stop := context.WithCancel(t.Context())
	stop()
	again := c.options(t, c.Settings, counter.Device)
	again.Dir, again.Resume = OpenDir(t, path, true), true
	if err := run.Run(ended, again); !errors.As(err, new(*run.Interrupted)) {
		t.Fatalf("resumed and stopped at once: %v", err)
	}
	if info, err := os.Stat(again.Dir.Last()); err != nil || os.SameFile(info, f) {
		t.Fatalf("the resumed run has saved nothing: %v", err)
	}
	file, err := safetensors.Load(again.Dir.Last())
	if err != nil {
		t.Fatal(err)
	}
	var got run.Progress
	own := reflect.New(reflect.TypeOf(c.State).Elem()).Interface()
	if err := errors.Join(json.Unmarshal([]byte(file.Metadata["haul.progress"]), &got), json.Unmarshal([]byte(file.Metadata["haul.state"]), own)); err != nil {
		t.Fatal(err)
	}
	for name, pair := range map[string][2]*float64{"seconds": {&want.Seconds, &got.Seconds}, "waited": {&want.Waited, &got.Waited}, "elapsed": {&want.Elapsed, &got.Elapsed}} {
		if *pair[1] < *pair[0] || *pair[1] > *pair[0]+100 {
			t.Errorf("%s went from %v to %v", name, *pair[0], *pair[1])
		}
		*pair[1] = *pair[0] // times differ between runs
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("progress was lost: %s", diff)
	}
	if !reflect.DeepEqual(c.State, own) {
		t.Errorf("the recipe's state was lost: %+v, want %+v", own, c.State)
	}
}

// edit changes a checkpoint in place and returns the new file's description.
func edit(t *testing.T, path string, change func(*safetensors.File)) os.FileInfo {
	t.Helper()
	f, err := safetensors.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	change(f)
	if err := run.WriteAtomic(path, func(w io.Writer) error { return safetensors.Write(w, f) }); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func text(t *testing.T, v any) string {
	t.Helper()
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// nonZero fails if a field is zero, except for the named ones.
func nonZero(t *testing.T, v any, but ...string) {
	t.Helper()
	r := reflect.Indirect(reflect.ValueOf(v))
	for i := range r.NumField() {
		name := r.Type().Field(i).Name
		skip := false
		for _, b := range but {
			skip = skip || b == name
		}
		if !skip && r.Field(i).IsZero() {
			t.Errorf("%T.%s is zero: nobody would see it lost", v, name)
		}
	}
}
