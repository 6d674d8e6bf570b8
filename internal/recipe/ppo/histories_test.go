package ppo

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"haul/internal/config"
	"haul/internal/draw"
	"haul/internal/kernel"
	"haul/internal/run"
	"haul/internal/world/grid"
	"haul/internal/world/history"
)

// makeSmall makes a file with so many workers and returns its bytes.
func makeSmall(t *testing.T, c *config.PPO, workers int) (path string, data []byte) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "small.hist")
	var goals []int
	var steps []int64
	o := HistoryOptions{Config: c, Path: path, Progress: func(p HistoryProgress) {
		if len(goals) == 0 || goals[len(goals)-1] != p.Goals {
			goals = append(goals, p.Goals)
		}
		steps = append(steps, p.Steps)
	}}
	for range workers {
		o.Devices = append(o.Devices, openCPU(t, 1))
	}
	speed, err := MakeHistories(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if speed.StepsPerSecond <= 0 || len(goals) != c.Goals()+1 || goals[0] != 0 || !slices.IsSorted(steps) || steps[len(steps)-1] != int64(c.Goals()*c.TotalSourceTimesteps) || goals[len(goals)-1] != c.Goals() {
		t.Errorf("%v, told %v", speed, goals)
	}
	if data, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	return path, data
}

func TestHistoriesShowLearning(t *testing.T) {
	c := smallData(t)
	path, two := makeSmall(t, c, 2)
	if _, one := makeSmall(t, c, 1); !bytes.Equal(one, two) {
		t.Error("the file depends on the number of workers")
	}
	h, err := history.OpenRooms(path)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if h.Streams != 10 || h.Steps != 810 || h.Room != (grid.Room{Size: 5, Horizon: 10}) {
		t.Errorf("%+v", h.Header)
	}
	if again, err := config.ParseAny(config.RecipePPO, "small", []byte(h.Settings)); err != nil || again.(*config.PPO).Hidden != c.Hidden {
		t.Errorf("the settings inside: %v, %v", again, err)
	}
	s := SummarizeHistories(h)
	if s.Goals != 25 || s.Episodes != 81 || s.Last != 8 || len(s.Worst) != worstGoals {
		t.Errorf("%+v", s)
	}
	if s.First > 0.35 || s.Share < 0.9 || s.Share > 1 || s.Worst[0].Share > s.Worst[1].Share {
		t.Errorf("from %.3f to %.3f of the optimum, worst %v", s.First, s.Share, s.Worst)
	}
	var svg bytes.Buffer
	if err := s.Draw(&svg, draw.SVG, h.Room); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"optimum", "25 goals", "10 to 90 %"} {
		if !strings.Contains(svg.String(), want) {
			t.Errorf("the picture does not say %q", want)
		}
	}
}

func TestHistoriesLeaveNoHalfFile(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	_, err := MakeHistories(ctx, HistoryOptions{Config: smallData(t), Path: filepath.Join(dir, "x.hist"), Devices: []kernel.Device{openCPU(t, 1)},
		Progress: func(HistoryProgress) { cancel() }})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	_, err = MakeHistories(context.Background(), HistoryOptions{Config: smallData(t, "source_lr=1e38"), Path: filepath.Join(dir, "y.hist"),
		Devices: []kernel.Device{openCPU(t, 1), openCPU(t, 1)}})
	if err == nil || !strings.Contains(err.Error(), "the learner of goal (") || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestHistoriesAskForMemory: what the host could never hold is refused in one line before it is
// reserved.
func TestHistoriesAskForMemory(t *testing.T) {
	if _, known := run.AvailableMemory(); !known {
		t.Skip("this system does not tell what memory is free")
	}
	o := HistoryOptions{Config: smallData(t, "total_source_timesteps=1000000000"), Path: filepath.Join(t.TempDir(), "x.hist"), Devices: make([]kernel.Device, 1<<20)}
	if _, err := MakeHistories(t.Context(), o); err == nil || !strings.Contains(err.Error(), "learners' histories needs") {
		t.Errorf("2^20 learners of 10^9 steps: %v", err)
	}
}

// TestHistoriesEndWithinARound: a learner whose one round would take hours gives it up before the
// next minibatch or step, and is heard of long before it ends.
func TestHistoriesEndWithinARound(t *testing.T) {
	dir := t.TempDir()
	endless := []string{"n_epochs=1000000", "n_steps=100", "total_source_timesteps=1000"}
	ctx, cancel := context.WithCancel(context.Background())
	heard := 0
	_, err := MakeHistories(ctx, HistoryOptions{Config: smallData(t, endless...), Path: filepath.Join(dir, "x.hist"), Devices: []kernel.Device{openCPU(t, 1)},
		Progress: func(p HistoryProgress) {
			if heard++; p.Goals != 0 || p.Steps < 0 || p.Steps > 1000 {
				t.Errorf("told %+v", p)
			}
			if heard == 3 {
				cancel()
			}
		}})
	if !errors.Is(err, context.Canceled) || heard != 3 {
		t.Errorf("%v, heard %d times", err, heard)
	}
	l := openLearner(t, smallData(t, endless...))
	if err := l.begin(0); err != nil {
		t.Fatal(err)
	}
	if err := l.batch.collect(ctx, l.key, 1, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("steps are taken after the end: %v", err)
	}
	if err := l.improve(ctx); !errors.Is(err, context.Canceled) || l.pass != 1 {
		t.Errorf("%d passes after the end: %v", l.pass, err)
	}
}

// TestSettingsCountTheRoomsGoals: the settings, which do not import rooms, count the same goals.
func TestSettingsCountTheRoomsGoals(t *testing.T) {
	for _, env := range []string{config.EnvDarkRoom, config.EnvKeyDoor} {
		for size := grid.MinSize; size <= grid.MaxSize; size++ {
			c := &config.PPO{Env: env, GridSize: size, Horizon: 1}
			if got, want := c.AllGoals(), roomOf(c).NumGoals(); got != want || want != len(roomOf(c).Goals()) {
				t.Errorf("%s of %d: the settings count %d goals, the room has %d", env, size, got, want)
			}
		}
	}
}
