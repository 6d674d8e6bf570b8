package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFolderKeepsTheRecord(t *testing.T) {
	dir := t.TempDir()
	f := NewFolder(func(s string) { t.Errorf("noted %q", s) })
	i, v := infoOf(dir)
	f.Start(i)
	for e := 1; e <= 3; e++ {
		send(f, v, e)
	}
	f.Record(&Record{Kind: "gossip", Row: 3}) // without a table: not stored
	f.Done(endingOf(dir))
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{sampleFile, "curves.svg", "curves.png"} {
		if st, err := os.Stat(filepath.Join(dir, name)); err != nil || st.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}

	// The run resumes after its second epoch: the third is discarded.
	g := NewFolder(func(s string) { t.Errorf("noted %q", s) })
	i, v = infoOf(dir)
	i.Resumed, i.At = true, 2
	g.Start(i)
	if len(v.rows) != 2 || v.past != 2 || v.rows[1].Epoch != 2 {
		t.Errorf("the view has heard of %d rows, %d of them past; want 2", len(v.rows), v.past)
	}
	send(g, v, 3)
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	if rows, err := samples.read(filepath.Join(dir, sampleFile), 100); err != nil || len(rows) != 3 {
		t.Errorf("%d rows, %v", len(rows), err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.tmp")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// A full disk is noted once per file, training continues, and Close returns an error.
func TestFolderThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"csv", "curves.png.tmp"} {
		kind := os.WriteFile(filepath.Join(dir, name), nil, 0o644)
		if name == "curves.png.tmp" {
			kind = errors.Join(os.Remove(filepath.Join(dir, name)), os.Mkdir(filepath.Join(dir, name), 0o755))
		}
		if kind != nil {
			t.Fatal(kind)
		}
	}
	var notes []string
	f := NewFolder(func(s string) { notes = append(notes, s) })
	i, v := infoOf(dir)
	f.Start(i)
	send(f, v, 1)
	send(f, v, 2)
	err := f.Close()
	if err == nil || !strings.Contains(err.Error(), sampleFile) || !strings.Contains(err.Error(), "curves.png") || !strings.Contains(err.Error(), "checkpoints are whole") {
		t.Errorf("error is %v", err)
	}
	if len(notes) != 2 {
		t.Errorf("notes are %q; want one per file", notes)
	}
	if _, err := os.Stat(filepath.Join(dir, "curves.svg")); err != nil {
		t.Errorf("what could be written was not: %v", err)
	}
}

func TestFolderOfARunThatNeverStarted(t *testing.T) {
	if err := NewFolder(func(string) {}).Close(); err != nil {
		t.Error(err)
	}
}

// A piece whose write fails stays pending and is written whole with the next.
func TestAppendFileHeals(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	a, err := openAppend(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	good := a.f
	if a.f, err = os.Open(path); err != nil { // not writable
		t.Fatal(err)
	}
	if err := a.add([]byte("one ")); err == nil {
		t.Fatal("a read-only file took a write")
	}
	bad := a.f
	a.f = good
	if err := a.add([]byte("two")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(a.close(), bad.Close()); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "one two" {
		t.Errorf("%q, %v", got, err)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("pipe is gone") }

func TestObjects(t *testing.T) {
	var out bytes.Buffer
	o := NewObjects(&out)
	l := All(o)
	i, _ := infoOf("x")
	blind := rowOf(1)
	blind.Val = nil
	l.Start(i)
	l.Tick(Tick{})
	l.Note("a word")
	l.Record(&Record{Kind: "epoch", At: 1, Row: blind})
	l.Record(&Record{Kind: "epoch", At: 2, Row: rowOf(2)})
	l.Done(endingOf("x"))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 || o.Close() != nil {
		t.Fatalf("%d lines, %v", len(lines), o.Close())
	}
	for k, keys := range [][]string{{"epoch", "cost", "val", "launches", "hidden"}, {"epoch", "cost", "val"}, {"test_gap"}} {
		var v map[string]any
		if err := json.Unmarshal([]byte(lines[k]), &v); err != nil {
			t.Fatal(err)
		}
		for _, key := range keys {
			if _, ok := v[key]; !ok {
				t.Errorf("%s is missing in %s", key, lines[k])
			}
		}
		if want := map[bool]string{true: "done", false: "epoch"}[k == 2]; v["event"] != want {
			t.Errorf("event %v, want %s", v["event"], want)
		}
	}
	if !strings.Contains(lines[0], `"val":null`) {
		t.Errorf("an epoch without validation says %s", lines[0])
	}
	o = NewObjects(broken{})
	o.Record(&Record{Kind: "epoch", Row: blind})
	o.Record(&Record{Kind: "epoch", Row: blind})
	if o.Close() == nil {
		t.Error("a broken pipe went unnoticed")
	}
}

// TestRowsThatAreMissingAreSaid: a history with missing rows is continued, and a note reports them.
func TestRowsThatAreMissingAreSaid(t *testing.T) {
	for _, left := range []int{0, 1, 3} {
		dir := t.TempDir()
		f := NewFolder(func(s string) { t.Errorf("noted %q", s) })
		i, v := infoOf(dir)
		f.Start(i)
		for e := 1; e <= 3; e++ {
			send(f, v, e)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, sampleFile)
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		keep := strings.Join(strings.SplitAfter(string(whole), "\n")[:left+1], "")
		if left == 0 {
			keep = ""
		}
		if err := os.WriteFile(path, []byte(keep), 0o644); err != nil {
			t.Fatal(err)
		}
		var notes []string
		g := NewFolder(func(s string) { notes = append(notes, s) })
		i, v = infoOf(dir)
		i.Resumed, i.At, i.Tables[0].Recorded = true, 3, 3
		g.Start(i)
		send(g, v, 4)
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
		if said := len(notes) == 1 && strings.Contains(notes[0], "missing of 3"); said != (left < 3) {
			t.Errorf("%d rows left: notes are %q", left, notes)
		}
		if rows, err := samples.read(path, 100); err != nil || len(rows) != left+1 {
			t.Errorf("%d rows left: %d in the end, %v", left, len(rows), err)
		}
	}
}

// TestResultIsKept: the summary of a run is in its folder and among its curves.
func TestResultIsKept(t *testing.T) {
	dir := t.TempDir()
	f := NewFolder(func(s string) { t.Errorf("noted %q", s) })
	i, v := infoOf(dir)
	f.Start(i)
	send(f, v, 1)
	f.Done(&Ending{Row: &struct {
		Gap float64 `json:"test_gap" tb:"test/gap"`
	}{0.055}})
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, resultName)); err != nil || !strings.Contains(string(text), `"test_gap": 0.055`) {
		t.Errorf("%s, %v", text, err)
	}
	files, err := filepath.Glob(filepath.Join(dir, eventPrefix+"*"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	events := readEvents(t, files[0])
	if last := events[len(events)-1]; last.values["test/gap"] != 0.055 || last.step != 1 {
		t.Errorf("the last event is %+v", last)
	}
}

// TestWordsAfterTheEnd: after the run has ended, notes do not say that training continues. If the
// folder is deleted, they do not say that checkpoints are complete.
func TestWordsAfterTheEnd(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var notes []string
	f := NewFolder(func(s string) { notes = append(notes, s) })
	i, v := infoOf(dir)
	i.Last = filepath.Join(dir, "last.safetensors")
	f.Start(i)
	send(f, v, 1)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	f.Done(endingOf(dir))
	err := f.Close()
	if err == nil || strings.Contains(err.Error(), "checkpoints are whole,") || !strings.Contains(err.Error(), "the run's folder was changed") {
		t.Errorf("the error is %v", err)
	}
	for _, n := range notes {
		if strings.Contains(n, "training goes on") {
			t.Errorf("noted %q after the end", n)
		}
	}
}
