package agent

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"haul/internal/world/history"
	"haul/internal/world/xland"
)

// searched are histories of searchers in XLand-MiniGrid.
func searched(t *testing.T) history.History {
	t.Helper()
	w, err := xland.New("R1-9x9", xland.Tasks{Name: "trivial", Seed: xland.PublicSeed})
	if err != nil {
		t.Fatal(err)
	}
	pick := xland.Choose{Learn: 6, Held: 3}
	if w, err = pick.From(w, nil, "trivial"); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "a.hist")
	if err := history.MakeXLand(t.Context(), history.XLandOptions{World: w, Learn: pick.Learned, Held: pick.HeldOut, Histories: 1, Search: &xland.Searching{Steps: 90, Noise: 0.2}, Path: path,
		Workers: 1}); err != nil {
		t.Fatal(err)
	}
	h, err := history.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

// TestRename: within a sequence, every object has one new name from its set, which no other object
// has. Values without names, labels, actions and rewards do not change. The next sequence has other
// names.
func TestRename(t *testing.T) {
	h := searched(t)
	for _, compressed := range []string{"false", "true"} {
		rows := func(rename string) (*dataset, [][][]int32) {
			l, err := newDataset(h, tinyAD(t, "train_n_stream=0", "train_source_timesteps=0", "labels=best", "last_observation=true", "n_transit=64",
				"use_compressed_context="+compressed, "compress_interval=12", "compress_min=4", "rename="+rename))
			if err != nil {
				t.Fatal(err)
			}
			fill, err := l.fill()
			if err != nil {
				t.Fatal(err)
			}
			var out [][][]int32
			for g := range uint64(20) {
				var parts [][]int32
				for _, n := range l.trainSpec.Words() {
					parts = append(parts, make([]int32, n))
				}
				if err := fill(g, parts); err != nil {
					t.Fatal(err)
				}
				out = append(out, parts)
			}
			return l, out
		}
		_, plain := rows("false")
		l, other := rows("true")
		sets := l.world.(xland.World).Names()
		setOf := func(v int32) int {
			return slices.IndexFunc(sets, func(s []int32) bool { return slices.Contains(s, v) })
		}
		observed, width, names, within := 50, l.trainSpec.Width(), map[[2]int32]bool{}, 0
		for g, row := range plain {
			if !slices.Equal(row[1], other[g][1]) || !slices.Equal(row[2], other[g][2]) {
				t.Fatalf("row %d: labels or sequences differ", g)
			}
			var to, from map[int32]int32
			latest := map[int32]int32{} // of the whole row
			for k, begin := range row[2] {
				if int(begin) == k {
					to, from = map[int32]int32{}, map[int32]int32{}
				}
				for f := range width {
					a, b := row[0][k*width+f], other[g][0][k*width+f]
					if f >= observed || setOf(a) < 0 {
						if a != b {
							t.Fatalf("row %d, token %d, field %d: %d has become %d", g, k, f, a, b)
						}
						continue
					}
					if setOf(b) != setOf(a) {
						t.Fatalf("row %d: tile %d has become %d, of another set", g, a, b)
					}
					if was, met := to[a]; met && was != b {
						t.Fatalf("row %d: tile %d is called %d and %d", g, a, was, b)
					}
					if was, met := from[b]; met && was != a {
						t.Fatalf("row %d: tiles %d and %d are both called %d", g, was, a, b)
					}
					if was, met := latest[a]; met && was != b {
						within++
					}
					to[a], from[b], latest[a], names[[2]int32{a, b}] = b, a, b, true
				}
			}
		}
		things := map[int32]bool{}
		for n := range names {
			things[n[0]] = true
		}
		if len(names) < 2*len(things) || compressed == "true" && within == 0 {
			t.Errorf("%d things have %d names in all rows, and change them %d times within one", len(things), len(names), within)
		}
	}
	_, err := newDataset(writeHistory(t, tinyHistory), tinyAD(t, "rename=true"))
	if err == nil || !strings.Contains(err.Error(), "rename wants a world of things that differ by name alone") {
		t.Errorf("a room: %v", err)
	}
}
