package report

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"haul/internal/env/darkroom"
	"haul/internal/train"
)

func agentInfoOf(dir string) train.ADInfo {
	return train.ADInfo{Name: "ad_dr", Model: "AD", Parameters: 122504, Device: "cpu (avx512, 2 workers)", Precision: "fp32", Memory: 1 << 26, Data: train.DataDevice,
		DataBytes: 1 << 20, Room: darkroom.Room{Size: 3, Horizon: 2}, Goals: 8, Streams: 80, Tokens: 80, Batch: 64, Parts: 1, Iterations: 40, FLOPs: 1e9, Dir: dir}
}

func evaluationOf(iteration int, heldOut bool) *train.ADEvaluation {
	walk := train.ADEpisode{Goal: darkroom.At(2, 1), Steps: []darkroom.Step{darkroom.MakeStep(darkroom.At(1, 1), darkroom.Right, 1), darkroom.MakeStep(darkroom.At(2, 1), darkroom.Stay, 1)}, Return: 2}
	return &train.ADEvaluation{Iteration: iteration, Agents: 4, Episodes: 2, Size: 3, Horizon: 2, Temperature: 1, HeldOut: heldOut,
		Goals: []train.ADGoal{{Goal: walk.Goal, Optimal: 2, Last: 1.5, Share: 0.75}}, Return: []float64{1, 2}, SE: []float64{0.1, 0.1}, Source: []float64{0.5, 1, 1.5}, Optimal: 2,
		First: 1, Last: 1.5, LastSE: 0.1, Share: 0.75, ShareSE: 0.05, Regions: train.ADRegions{Ended: 4, Forced: 1, Mean: 10}, Context: 80, FirstEpisode: walk, LastEpisode: walk}
}

// playAgent tells of iterations from one to another: a report each ten, a test and an evaluation each twenty.
func playAgent(l train.ADListener, from, to int) {
	for i := from + 1; i <= to; i++ {
		l.Tick(train.ADProgress{Iteration: i, Iterations: 40, PerSecond: 12.5, WaitShare: 0.004})
		if i%10 == 0 {
			l.Report(train.ADReport{Iteration: i, Iterations: 40, Since: 10, Seconds: 0.8, LossAction: 1.5 - float64(i)/100, AccAction: 0.4, LR: 1e-4, PerSecond: 12.5, BusyShare: 0.97})
		}
		if i%20 == 0 {
			l.Test(train.ADTest{Iteration: i, LossAction: 1.4, AccAction: 0.5, LossTokenType: 0.1, AccTokenType: 0.9, Best: true})
			l.Evaluated(evaluationOf(i, true))
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

// TestAgentFolderKeepsTheRecord: a run that resumes drops what lies past its checkpoint from all three tables, and goes on behind it.
func TestAgentFolderKeepsTheRecord(t *testing.T) {
	dir := t.TempDir()
	f := NewAgentFolder(func(s string) { t.Errorf("noted %q", s) })
	f.Start(agentInfoOf(dir))
	playAgent(f, 0, 40)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"curves.svg", "curves.png", "in_context.svg", "in_context.png", "episodes.svg", "episodes.png"} {
		if st, err := os.Stat(filepath.Join(dir, name)); err != nil || st.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	g := NewAgentFolder(func(s string) { t.Errorf("noted %q", s) })
	i := agentInfoOf(dir)
	i.Resumed, i.Done = true, 25
	g.Start(i)
	for name, kept := range map[string]int{agentHistoryName: 2, agentTestName: 1, agentUseName: 1} {
		if got := lines(t, filepath.Join(dir, name)); len(got) != 1+kept {
			t.Errorf("%s keeps %d rows of iterations up to 25, want %d", name, len(got)-1, kept)
		}
	}
	if past := g.Reports(); len(past) != 2 || past[1].Iteration != 20 || past[1].LossAction != 1.3 {
		t.Errorf("the past is %+v", past)
	}
	playAgent(g, 25, 40)
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	if got := lines(t, filepath.Join(dir, agentHistoryName)); len(got) != 5 || !strings.HasPrefix(got[4], "40,1.1,0.4,") {
		t.Errorf("the history is %q", got)
	}
	if events, err := filepath.Glob(filepath.Join(dir, eventPrefix+"*")); err != nil || len(events) != 2 {
		t.Errorf("event files: %v, %v", events, err)
	}
}

// TestInContextNamesItsGoals: the picture calls goals held out only where they are.
func TestInContextNamesItsGoals(t *testing.T) {
	for _, held := range []bool{true, false} {
		var b bytes.Buffer
		if err := DrawInContext(&b, "svg", "ad_dr", evaluationOf(40, held)); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(b.String(), "held-out"); got != held {
			t.Errorf("held out %v, the picture says %v", held, got)
		}
	}
}

// TestAgentTerminal: no line of a live block wraps on a narrow screen, the block is gone when the run is done, and a pipe gets no control sequences.
func TestAgentTerminal(t *testing.T) {
	for _, live := range []bool{true, false} {
		var words, result bytes.Buffer
		s := &AgentTerminal{Screen: Screen{Words: &words, Result: &result, Live: live, Width: func() int { return 60 }}, History: "x.hist"}
		i := agentInfoOf("runs/x")
		i.Device, i.Data, i.Workers = "cpu", train.DataHost, 0
		s.Start(i)
		banner := words.String()
		words.Reset()
		playAgent(s, 0, 40)
		s.Done(train.ADSummary{Iterations: 40, Sequences: 2560, Seconds: 4, Evaluation: evaluationOf(40, true), Dir: "runs/x", Last: "runs/x/last.safetensors", Best: "runs/x/best.safetensors"})
		if !strings.Contains(banner, "the trainer fills its own batches") {
			t.Errorf("without workers the banner says\n%s", banner)
		}
		if !strings.Contains(result.String(), "--checkpoint runs/x --history x.hist") || !strings.Contains(result.String(), "12.5 iterations/s") {
			t.Errorf("the summary is\n%s", result.String())
		}
		if !live {
			if strings.Contains(words.String(), "\x1b") || strings.Contains(words.String(), "█") {
				t.Errorf("a pipe gets %q", words.String())
			}
			continue
		}
		for _, row := range screen(t, words.String(), 60) {
			if strings.Contains(row, "it/s  ") && strings.Contains(row, "left") {
				t.Errorf("the block is still there: %q", row)
			}
		}
	}
}

// TestAgentObjects: every line is one object that says what it is.
func TestAgentObjects(t *testing.T) {
	var b bytes.Buffer
	o := NewAgentObjects(&b)
	playAgent(o, 0, 20)
	var events []string
	for line := range strings.Lines(b.String()) {
		var v struct{ Event string }
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatal(err)
		}
		events = append(events, v.Event)
	}
	if got := strings.Join(events, " "); got != "train train test in_context" || o.Close() != nil {
		t.Errorf("%s, %v", got, o.Close())
	}
}
