package agent

import (
	"path/filepath"
	"strings"
	"testing"

	"haul/internal/config"
	"haul/internal/world/episodic"
	"haul/internal/world/grid"
	"haul/internal/world/history"
)

// TestLabelsOfASearch: with labels seek a context that has not shown where the stage at hand is
// paid is answered by a step to a nearest cell that it has not shown in that stage, told here by
// plain distances in a room; every other token by what hindsight holds best.
func TestLabelsOfASearch(t *testing.T) {
	for name, h := range map[string]history.History{
		"DarkRoom":         writeHistory(t, historySpec{grid.Room{Size: 4, Horizon: 8}, 8, 240, 0.8}),
		"KeyToDoor":        writeHistory(t, historySpec{grid.Room{Size: 3, Horizon: 12, Kind: grid.KeyDoor}, 8, 240, 0.1}),
		"TabularDarkRoom":  tabularHistory(t, "DR5-18-2", 10),
		"TabularKeyToDoor": tabularHistory(t, "K2D4-30-2", 12),
	} {
		for _, both := range []string{"false", "true"} {
			t.Run(name+"/both="+both, func(t *testing.T) {
				sets := []string{"compress_interval=24", "compress_min=12", "n_transit=52", "train_n_stream=8", "train_source_timesteps=240", "last_observation=" + both}
				if _, rooms := h.(*history.Rooms); !rooms {
					sets = append(sets, "train_n_stream=0", "train_source_timesteps=0")
				}
				labels := map[string][]int32{}
				var index []int32
				var width int
				for _, kind := range []string{config.LabelsBest, config.LabelsSeek} {
					d, err := newDataset(h, tinyAD(t, append(sets, "labels="+kind)...))
					if err != nil {
						t.Fatal(err)
					}
					fill, err := d.fill()
					if err != nil {
						t.Fatal(err)
					}
					width, index = d.trainSpec.Width(), nil
					var parts [][]int32
					for _, n := range d.trainSpec.Words() {
						parts = append(parts, make([]int32, n))
					}
					for row := range uint64(60) {
						if err := fill(row, parts); err != nil {
							t.Fatal(err)
						}
						labels[kind] = append(labels[kind], parts[1]...)
						index = append(index, parts[0]...)
					}
				}
				judgeSearch(t, h, index, width, labels[config.LabelsBest], labels[config.LabelsSeek])
			})
		}
	}
}

// tabularHistory are the histories of tabular learners.
func tabularHistory(t *testing.T, name string, horizon int) history.History {
	t.Helper()
	set, err := episodic.ParseSet(name, horizon)
	if err != nil {
		t.Fatal(err)
	}
	path, schedule := filepath.Join(t.TempDir(), "x.hist"), episodic.Published()
	schedule.Episodes = 60
	if err := history.MakeEpisodic(t.Context(), history.EpisodicOptions{Set: set, Schedule: schedule, Seed: 4, Path: path, Workers: 2}); err != nil {
		t.Fatal(err)
	}
	h, err := history.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

// judgeSearch holds the labels of rows against a plain account of what each context has shown.
func judgeSearch(t *testing.T, h history.History, index []int32, width int, best, seek []int32) {
	t.Helper()
	type place struct{ x, y, stage int }
	size, stages, ends := 0, 1, false
	switch room := h.World().(type) {
	case grid.Room:
		size = room.Size
		if room.Kind == grid.KeyDoor {
			stages = 2
		}
	case episodic.Room:
		size, ends = room.Size, true
		if room.Kind == grid.KeyDoor {
			stages = 2
		}
	}
	shown, known := map[place]bool{}, map[int]bool{}
	stage, clock, fresh := 0, 0, true
	searches, done, ties, kinds := [2]int{}, 0, [2]int{}, map[int32]int{}
	for i := range len(index) / width {
		token := index[i*width:][:width]
		reward, kind, position := token[width-3], token[width-2], token[width-1]
		if position == 0 {
			clear(shown)
			clear(known)
			fresh = true
		}
		if seek[2*i+1] != best[2*i+1] {
			t.Fatalf("token %d: the type that follows is %d, with labels best %d", i, seek[2*i+1], best[2*i+1])
		}
		if kind != 0 {
			fresh = true
			if seek[2*i] != -1 {
				t.Fatalf("token %d is a marker with label %d", i, seek[2*i])
			}
			continue
		}
		if fresh {
			stage, clock = 0, 0
			known[stages-1] = known[stages-1] || reward > 0
		} else {
			clock++
			over := clock == h.World().Limit()
			if reward > 0 && stage < stages {
				known[stage] = true
				over = over || ends && stage == stages-1
				if stages > 1 {
					stage++
				}
			}
			if over {
				stage, clock = 0, 0
			}
		}
		fresh = false
		x, y := int(token[0]), int(token[1])
		if stage == stages {
			done++
		}
		if stage < stages {
			shown[place{x, y, stage}] = true
		}
		if stage == stages || known[stage] {
			if seek[2*i] != best[2*i] {
				t.Fatalf("token %d at %d,%d in stage %d: label %d, hindsight's %d", i, x, y, stage, seek[2*i], best[2*i])
			}
			continue
		}
		nearest := func(x, y int) int { // steps to what was not shown
			n := 2 * size
			for u := range size {
				for v := range size {
					if !shown[place{u, v, stage}] {
						n = min(n, max(u-x, x-u)+max(v-y, y-v))
					}
				}
			}
			return n
		}
		here := nearest(x, y)
		if here == 2*size {
			if seek[2*i] != -1 {
				t.Fatalf("token %d: all was shown, and the label is %d", i, seek[2*i])
			}
			continue
		}
		to := grid.Room{Size: size, Horizon: 1}.Move(grid.At(x, y), uint8(seek[2*i]))
		if seek[2*i] < 0 || nearest(to.X(), to.Y()) != here-1 {
			t.Fatalf("token %d at %d,%d in stage %d, %d from what was not shown: label %d leads to %v", i, x, y, stage, here, seek[2*i], to)
		}
		for a := range seek[2*i] {
			if u := (grid.Room{Size: size, Horizon: 1}).Move(grid.At(x, y), uint8(a)); nearest(u.X(), u.Y()) == here-1 {
				ties[1]++ // a lower action was as good
				break
			}
		}
		for a := seek[2*i] + 1; a < grid.NumActions; a++ {
			if u := (grid.Room{Size: size, Horizon: 1}).Move(grid.At(x, y), uint8(a)); nearest(u.X(), u.Y()) == here-1 {
				ties[0]++ // a higher one
				break
			}
		}
		searches[stage]++
		kinds[seek[2*i]]++
	}
	if searches[0] < 50 || stages > 1 && searches[1] < 50 || len(kinds) != 4 || min(ties[0], ties[1]) < 10 || stages > 1 && !ends && done == 0 {
		t.Errorf("%v labels of searches by stage, %v by action, %v with an equally good one, %d tokens after the last stage: too few to judge by", searches, kinds, ties, done)
	}
}

// TestSearchesAreRefused: where labels seek cannot be made, a line says so.
func TestSearchesAreRefused(t *testing.T) {
	if _, err := newDataset(levers{}, tinyAD(t, "labels=seek", "compress_interval=6", "compress_min=3")); err == nil || !strings.Contains(err.Error(), "labels seek") {
		t.Error(err)
	}
	h := writeHistory(t, tinyHistory)
	dev := openReference()
	d, err := newDataset(h, tinyAD(t, "labels=seek"))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := compileStep(dev, nil, nil, d, nil, DataDevice, nil); err == nil || !strings.Contains(err.Error(), "--data host") {
		t.Error(err)
	}
	trainedAgent(t, dev, h, "labels=seek")
	if _, err := config.LoadAD("ad_dr", []string{"labels=seek", "method=iql"}); err == nil || !strings.Contains(err.Error(), "labels seek") {
		t.Error(err)
	}
}
