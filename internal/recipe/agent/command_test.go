package agent

import (
	"path/filepath"
	"strings"
	"testing"

	"haul/internal/config"
	"haul/internal/world"
	"haul/internal/world/episodic"
	"haul/internal/world/grid"
	"haul/internal/world/history"
)

// TestCommandTrains: the command that a file of histories is shown with names settings that this
// very file can be learned from, and changes no more of them than the file asks for.
func TestCommandTrains(t *testing.T) {
	dir := t.TempDir()
	set, err := episodic.ParseSet("DR4-12-2", 0)
	if err != nil {
		t.Fatal(err)
	}
	tabular := filepath.Join(dir, "tabular.hist")
	if err := history.MakeEpisodic(t.Context(), history.EpisodicOptions{Set: set, Schedule: episodic.Published(), Path: tabular, Workers: 1}); err != nil {
		t.Fatal(err)
	}
	room := func(kind grid.Kind, size, horizon, streams, steps int) string {
		return historyFile(t, historySpec{grid.Room{Size: size, Horizon: horizon, Kind: kind}, streams, steps, 0.8})
	}
	for _, c := range []struct{ name, path, want string }{
		{"small room", room(grid.DarkRoom, 5, 20, 50, 1000), " --config ad_dr_small"},
		{"few streams", room(grid.DarkRoom, 5, 20, 49, 999), " --config ad_dr_small --set train_n_stream=49 --set train_source_timesteps=999"},
		{"large room", room(grid.DarkRoom, 6, 20, 2, 160), " --config ad_dr_compressed --set train_n_stream=2 --set train_source_timesteps=160"},
		{"keys", room(grid.KeyDoor, 2, 20, 50, 1000), " --config ad_keydoor --set validation_goals=2"},
		{"long episodes", room(grid.KeyDoor, 2, 50, 50, 1000), " --config ad_keydoor --set validation_goals=2 --set compress_interval=150 --set compress_min=50"},
		{"longer episodes", room(grid.KeyDoor, 2, 60, 50, 1000), " --config ad_keydoor --set validation_goals=2 --set compress_interval=180 --set compress_min=60 --set n_transit=364"},
		{"too short", room(grid.DarkRoom, 3, 20, 50, 159), ""},
		{"long enough", room(grid.DarkRoom, 5, 20, 50, 160), " --config ad_dr_small --set train_source_timesteps=160"},
		{"tabular", tabular, " --config ad_tabular --set validation_goals=3"},
	} {
		h, err := history.Open(c.path)
		if err != nil {
			t.Fatal(err)
		}
		commandTrains(t, c.name, h, c.want)
		h.Close()
	}
	h := writeRecords(t) // of 60 to 85 transitions
	commandTrains(t, "imported", h, " --config ad_any --set compress_interval=30 --set compress_min=15")
	if got := Command(h, "it's mine.hist"); !strings.HasPrefix(got, `haul train --config ad_any --history 'it'\''s mine.hist' --set`) {
		t.Error(got)
	}
}

func commandTrains(t *testing.T, name string, h history.History, want string) {
	t.Helper()
	got := Command(h, "x.hist")
	rest, ok := strings.CutPrefix(got, "haul train")
	if got == "" && want == "" {
		return
	}
	rest = strings.Replace(rest, " --history x.hist", "", 1)
	if rest != want || !ok {
		t.Errorf("%s: %q, want %q", name, got, want)
		return
	}
	var sets []string
	words := strings.Fields(rest)
	for i, w := range words {
		if w == "--set" {
			sets = append(sets, words[i+1])
		}
	}
	c, err := config.LoadAny(config.RecipeAD, words[1], sets)
	if err != nil {
		t.Fatal(err)
	}
	d, err := newDataset(h, c.(*config.AD))
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	if _, err := d.fill(); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

// TestShortStreamsAreNamed: the start of a run counts the streams that are too short for a
// sequence. If all are too short, the error names the setting to change and its limit: the run
// starts with that value, and fails with one more.
func TestShortStreamsAreNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.hist")
	space := world.Space{Fields: []world.Field{{Name: "a", Size: 2}}, Actions: 2, Rewards: []float64{0, 1}}
	w, err := history.CreateRecords(path, world.Recorded{Env: world.EnvRecorded, Title: "x", Declared: space, Longest: 4}, 1, 0.5)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Discard()
	for task := range 4 {
		for _, steps := range []int{20, 41} {
			w.Stream(int64(task))
			for i := range steps {
				if err := w.Add([]byte{byte(i % 2)}, i%2, i%2, i%4 == 3); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	h, err := history.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	for _, c := range []struct {
		sets  []string
		short int
		want  string
	}{
		{[]string{"compress_interval=8", "compress_min=0", "n_transit=24"}, 0, ""},
		{[]string{"compress_interval=10", "compress_min=0", "n_transit=24"}, 2, ""}, // 20 is two of 10, but none begins at 10
		{[]string{"compress_interval=20", "compress_min=0", "n_transit=44"}, 2, ""},
		{[]string{"compress_interval=21", "compress_min=0", "n_transit=46"}, 0, "none of the 4 streams to learn from is long enough for a sequence: set compress_interval to 20 at most"},
		{[]string{"use_compressed_context=false", "n_transit=20"}, 0, ""},
		{[]string{"use_compressed_context=false", "n_transit=41"}, 2, ""},
		{[]string{"use_compressed_context=false", "n_transit=42"}, 0, "set n_transit to 41 at most"},
	} {
		cfg := tinyAD(t, append([]string{"train_n_stream=0", "train_source_timesteps=0"}, c.sets...)...)
		d, err := newDataset(h, cfg)
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v: %v, want %q", c.sets, err, c.want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%v: %v", c.sets, err)
			continue
		}
		_, rows := (&view{cfg: cfg, dataset: d}).Banner(false)
		if said := strings.Contains(rows[1][1], "2 more left out: too short for a sequence"); d.short != c.short || said != (c.short > 0) {
			t.Errorf("%v: %d are left out, want %d: %s", c.sets, d.short, c.short, rows[1][1])
		}
	}
}
