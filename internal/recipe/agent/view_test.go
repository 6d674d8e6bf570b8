package agent

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"haul/internal/draw"
	"haul/internal/kernel"
	"haul/internal/report"
	"haul/internal/world/grid"
)

// infoOf returns the description of a run that listeners receive.
func infoOf(t *testing.T, dir string) (*report.Info, *view) {
	v := &view{cfg: tinyAD(t, "train_timesteps=40", "train_batch_size=64"), flops: 1e9,
		dataset: &dataset{world: grid.Room{Size: 3, Horizon: 2}, train: make([]int32, 100), trainSpec: kernel.RegionSpec{Tokens: 80, Streams: 80}}}
	v.info = &report.Info{Recipe: Name, Config: "ad_dr", Parameters: 122504, Device: "cpu (avx512, 2 workers)", Precision: "fp32", Memory: 1 << 26, Dir: dir, Tables: tables(), View: v}
	return v.info, v
}

func evaluationOf(iteration int, heldOut bool) *Evaluation {
	walk := Episode{Goal: grid.Goal(grid.At(2, 1)), Cells: [][]int32{{1, 1}, {2, 1}, {2, 1}}, Return: 2}
	return &Evaluation{Game: grid.Room{Size: 3, Horizon: 2}, Iteration: iteration, Agents: 4, Episodes: 2, Size: 3, Horizon: 2, Temperature: 1, HeldOut: heldOut,
		Goals: []GoalResult{{Goal: walk.Goal, Optimal: 2, Last: 1.5, Share: 0.75}}, Return: []float64{1, 2}, SE: []float64{0.1, 0.1}, Source: []float64{0.5, 1, 1.5}, Optimal: 2,
		First: 1, Last: 1.5, LastSE: 0.1, Share: 0.75, ShareSE: 0.05, Regions: Regions{Ended: 4, Forced: 1, Mean: 10}, Context: 80, FirstEpisode: walk, LastEpisode: walk}
}

// play reports the iterations from one number to another: a report every ten, a test and an
// evaluation every twenty.
func play(l report.Listener, v *view, from, to int) {
	send := func(kind string, at int, row any) {
		r := &report.Record{Kind: kind, At: at, Row: row}
		v.Add(r, false)
		l.Record(r)
	}
	for i := from + 1; i <= to; i++ {
		l.Tick(report.Tick{Updates: i, Total: 40, PerSecond: 12.5, WaitShare: 0.004})
		if i%10 == 0 {
			send("train", i, &Report{Iteration: i, Iterations: 40, Since: 10, Seconds: 0.8, LossAction: 1.5 - float64(i)/100, AccAction: 0.4, LR: 1e-4, PerSecond: 12.5, BusyShare: 0.97})
		}
		if i%20 == 0 {
			send("test", i, &Test{Iteration: i, LossAction: 1.4, AccAction: 0.5, LossTokenType: 0.1, AccTokenType: 0.9, Best: true})
			send("in_context", i, evaluationOf(i, true))
		}
	}
}

func lines(t *testing.T, path string) []string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(raw)), "\n")
}

// TestFolderKeepsTheRecord: a run that resumes drops what lies past its checkpoint from all three
// tables, and goes on behind it.
func TestFolderKeepsTheRecord(t *testing.T) {
	dir := t.TempDir()
	f := report.NewFolder(func(s string) { t.Errorf("noted %q", s) })
	i, v := infoOf(t, dir)
	f.Start(i)
	play(f, v, 0, 40)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"curves.svg", "curves.png", "in_context.svg", "in_context.png", "episodes.svg", "episodes.png"} {
		if st, err := os.Stat(filepath.Join(dir, name)); err != nil || st.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	g := report.NewFolder(func(s string) { t.Errorf("noted %q", s) })
	i, v = infoOf(t, dir)
	i.Resumed, i.At = true, 25
	g.Start(i)
	for k, kept := range []int{2, 1, 1} {
		if got := lines(t, filepath.Join(dir, tables()[k].File)); len(got) != 1+kept {
			t.Errorf("%s keeps %d rows of iterations up to 25, want %d", tables()[k].File, len(got)-1, kept)
		}
	}
	if past := v.reports; len(past) != 2 || past[1].Iteration != 20 || past[1].LossAction != 1.3 || v.total.iterations != 0 {
		t.Errorf("the past is %+v", past)
	}
	play(g, v, 25, 40)
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	if got := lines(t, filepath.Join(dir, tables()[0].File)); len(got) != 5 || !strings.HasPrefix(got[4], "40,1.1,0.4,") {
		t.Errorf("the history is %q", got)
	}
	if events, err := filepath.Glob(filepath.Join(dir, "events.out.tfevents.*")); err != nil || len(events) != 2 {
		t.Errorf("event files: %v, %v", events, err)
	}
}

// TestInContextNamesItsGoals: the picture calls goals held out only where they are.
func TestInContextNamesItsGoals(t *testing.T) {
	for _, held := range []bool{true, false} {
		var b bytes.Buffer
		if err := evaluationOf(40, held).drawReturns(&b, "svg", "ad_dr"); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(b.String(), "held-out"); got != held {
			t.Errorf("held out %v, the picture says %v", held, got)
		}
	}
}

// TestTerminal: a pipe gets no control sequences, and the summary gives the speed of the run and
// the next command.
func TestTerminal(t *testing.T) {
	for _, live := range []bool{true, false} {
		var words, result bytes.Buffer
		s := &report.Terminal{Screen: report.Screen{Words: &words, Result: &result, Live: live, Width: func() int { return 60 }}}
		i, v := infoOf(t, "runs/x")
		v.host = true
		s.Start(i)
		banner := words.String()
		words.Reset()
		play(s, v, 0, 40)
		s.Done(v.ending(&Summary{Iterations: 40, Sequences: 2560, Seconds: 4, Evaluation: evaluationOf(40, true), Dir: "runs/x", Last: "runs/x/last.safetensors", Best: "runs/x/best.safetensors"}))
		if !strings.Contains(strings.Join(strings.Fields(banner), " "), "the trainer fills its own batches") {
			t.Errorf("without workers the banner says\n%s", banner)
		}
		if !strings.Contains(result.String(), "haul eval --checkpoint runs/x\n") || !strings.Contains(result.String(), "12.5 iterations/s") {
			t.Errorf("the summary is\n%s", result.String())
		}
		if want := "in the last 2 of 2 episodes, 75.0 % of the optimum"; !live && !strings.Contains(words.String(), want) {
			t.Errorf("the words do not say %q:\n%s", want, words.String())
		}
		if !live && (strings.Contains(words.String(), "\x1b") || strings.Contains(words.String(), "█")) {
			t.Errorf("a pipe gets %q", words.String())
		}
	}
}

// TestObjects: every line is one object with its kind.
func TestObjects(t *testing.T) {
	var b bytes.Buffer
	o := report.NewObjects(&b)
	_, v := infoOf(t, "runs/x")
	play(o, v, 0, 20)
	o.Done(v.ending(&Summary{Iterations: 20}))
	var events []string
	for line := range strings.Lines(b.String()) {
		var v struct{ Event string }
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatal(err)
		}
		events = append(events, v.Event)
	}
	if got := strings.Join(events, " "); got != "train train test in_context done" || o.Close() != nil {
		t.Errorf("%s, %v", got, o.Close())
	}
}

// TestGoalsStandInColumns: the name of a goal, a cell or a key and a door, does not move the
// figures next to it.
func TestGoalsStandInColumns(t *testing.T) {
	e := evaluationOf(20, true)
	at := grid.At
	for _, goal := range []grid.Goal{grid.KeyAndDoor(at(0, 1), at(2, 2)), grid.KeyAndDoor(at(15, 10), at(12, 11))} {
		e.Goals = append(e.Goals, GoalResult{Goal: goal, Optimal: 2, Last: 1.5, Share: 0.75})
	}
	var out bytes.Buffer
	if err := (&evaluated{Evaluation: e}).Text(&out, func(s string) string { return s }); err != nil {
		t.Fatal(err)
	}
	column, rows := -1, 0
	for line := range strings.Lines(out.String()) {
		for _, figure := range []string{"optimum    share", "2.00       75.0 %"} {
			if i := strings.Index(line, figure); i >= 0 {
				if rows++; column >= 0 && i != column {
					t.Errorf("%q at %d, above it at %d", line, i, column)
				}
				column = i
			}
		}
	}
	if rows != 4 {
		t.Errorf("%d rows with the header, want 4:\n%s", rows, out.String())
	}
}

// The title of the curves names tokens, batch, parameters and device, in that order.
func TestCurvesSayWhatWasTrained(t *testing.T) {
	_, v := infoOf(t, "x")
	v.dataset.trainSpec.Tokens = 1080
	var out bytes.Buffer
	if err := v.drawCurves(&out, draw.SVG); err != nil {
		t.Fatal(err)
	}
	if want := "1,080 tokens per row · batch 64 · 122,504 parameters · cpu (avx512, 2 workers)"; !strings.Contains(out.String(), want) {
		t.Errorf("the picture does not say %q", want)
	}
}
