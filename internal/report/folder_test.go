package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"haul/internal/env/cvrp"
	"haul/internal/train"
)

func infoOf(dir string) train.Info {
	return train.Info{Name: "quick", Model: "GT+RL", Parameters: 594700, Device: "cpu (avx512, 2 workers)", Precision: "fp32", Memory: 1 << 27, Customers: 2,
		Batch: 128, Shard: 16, Starts: 2, Baseline: "pomo", Steps: 100, Epochs: 10, StepFLOPs: 6.5e9, Dir: dir}
}

func summaryOf(dir string) train.Summary {
	s := cvrp.Solution{Routes: [][]int32{{1, 2}}}
	p := &cvrp.Problem{Name: "test instance 0", Capacity: 9, Demand: []int32{0, 1, 2}, X: []float64{0, 1, 1}, Y: []float64{0, 0, 1}}
	return train.Summary{Epochs: 10, Instances: 1000, Seconds: 33, BestEpoch: 9, BestCPC: 0.41, TestInstances: 10000, TestGap: 0.055, GapTo: "optimum",
		Dir: dir, Best: filepath.Join(dir, "best.safetensors"), Last: filepath.Join(dir, "last.safetensors"),
		Example: train.Example{Problem: p, Policy: s, Reference: s, PolicyCost: 3.4, ReferenceCost: 3.4}}
}

func TestFolderKeepsTheRecord(t *testing.T) {
	dir := t.TempDir()
	f := NewFolder(func(s string) { t.Errorf("noted %q", s) })
	f.Start(infoOf(dir))
	for e := 1; e <= 3; e++ {
		f.Epoch(reportOf(e))
	}
	f.Done(summaryOf(dir))
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{historyName, "curves.svg", "curves.png", "routes.svg", "routes.png"} {
		if st, err := os.Stat(filepath.Join(dir, name)); err != nil || st.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	routes, err := os.ReadFile(filepath.Join(dir, "routes.svg"))
	if err != nil || !bytes.Contains(routes, []byte("optimum")) || !bytes.Contains(routes, []byte("GT+RL · gap +0.00 %")) {
		t.Errorf("routes.svg names not both sides, %v", err)
	}

	// The run resumes after its second epoch: the third did not happen.
	g := NewFolder(func(s string) { t.Errorf("noted %q", s) })
	i := infoOf(dir)
	i.Resumed, i.EpochsDone = true, 2
	g.Start(i)
	if len(g.Rows()) != 2 {
		t.Errorf("%d rows are left, want 2", len(g.Rows()))
	}
	g.Epoch(reportOf(3))
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	if rows, err := epochs.read(filepath.Join(dir, historyName), 100); err != nil || len(rows) != 3 {
		t.Errorf("%d rows, %v", len(rows), err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.tmp")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// A disk that fails is noted once a file, training goes on, and the end tells.
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
	f.Start(infoOf(dir))
	f.Epoch(reportOf(1))
	f.Epoch(reportOf(2))
	err := f.Close()
	if err == nil || !strings.Contains(err.Error(), historyName) || !strings.Contains(err.Error(), "curves.png") || !strings.Contains(err.Error(), "checkpoints are whole") {
		t.Errorf("error is %v", err)
	}
	if len(notes) != 2 {
		t.Errorf("notes are %q; want one a file", notes)
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

// A piece that fails stays pending and goes out whole with the next.
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
	blind := reportOf(1)
	blind.ValCPC = nil
	for _, l := range []train.Listener{All(o)} {
		l.Start(infoOf("x"))
		l.Tick(train.Progress{})
		l.Note("a word")
		l.Epoch(blind)
		l.Epoch(reportOf(2))
		l.Done(summaryOf("x"))
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 || o.Close() != nil {
		t.Fatalf("%d lines, %v", len(lines), o.Close())
	}
	for _, line := range lines {
		var v map[string]any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"epoch", "seconds", "instances", "train_cpc", "val_cpc", "val_gap", "baseline_cpc", "lr", "val_seconds", "baseline_seconds"} {
			if _, ok := v[key]; !ok {
				t.Errorf("%s is missing in %s", key, line)
			}
		}
	}
	if !strings.Contains(lines[0], `"val_cpc":null`) {
		t.Errorf("an epoch without validation says %s", lines[0])
	}
	o = NewObjects(broken{})
	o.Epoch(blind)
	o.Epoch(blind)
	if o.Close() == nil {
		t.Error("a broken pipe went unnoticed")
	}
}
