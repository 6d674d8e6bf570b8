package grid

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestBatchAgreesWithOneAtATime replays each environment alone, in plain coordinates.
func TestBatchAgreesWithOneAtATime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		room := Room{rapid.IntRange(MinSize, MaxSize).Draw(t, "size"), rapid.IntRange(1, 30).Draw(t, "horizon"), anyKind(t)}
		goals := rapid.SliceOfN(rapid.SampledFrom(room.Goals()), 1, 20).Draw(t, "goals")
		steps := rapid.IntRange(1, 70).Draw(t, "steps")
		actions := rapid.SliceOfN(rapid.Uint8Range(0, NumActions-1), steps*len(goals), steps*len(goals)).Draw(t, "actions")

		type place struct {
			x, y          int
			holds, opened bool
		}
		centre := place{x: room.Size / 2, y: room.Size / 2}
		places := slices.Repeat([]place{centre}, len(goals))
		b := NewBatch(room, goals)
		rewards := make([]uint8, len(goals))
		for k := range steps {
			now := actions[k*len(goals):][:len(goals)]
			if b.Clock() != k%room.Horizon {
				t.Fatalf("step %d: the clock says %d", k, b.Clock())
			}
			done := b.Step(rewards, now)
			if done != ((k+1)%room.Horizon == 0) {
				t.Fatalf("step %d of horizon %d: done %v", k, room.Horizon, done)
			}
			for i, g := range goals {
				p := &places[i]
				d := [NumActions][2]int{{0, 0}, {0, -1}, {0, 1}, {-1, 0}, {1, 0}}[now[i]]
				if x := p.x + d[0]; x >= 0 && x < room.Size {
					p.x = x
				}
				if y := p.y + d[1]; y >= 0 && y < room.Size {
					p.y = y
				}
				want, here := uint8(0), At(p.x, p.y)
				switch {
				case room.Kind == DarkRoom && here == g.Cell():
					want = 1
				case room.Kind == KeyDoor && !p.holds && here == g.Key():
					p.holds, want = true, 1
				case room.Kind == KeyDoor && p.holds && !p.opened && here == g.Cell():
					p.opened, want = true, 1
				}
				if rewards[i] != want {
					t.Fatalf("step %d, environment %d: reward %d on (%d,%d) with goal %v", k, i, rewards[i], p.x, p.y, g)
				}
				if done {
					*p = centre
				}
				if c := b.States()[i].Cell(); c.X() != p.x || c.Y() != p.y || !room.Contains(c) {
					t.Fatalf("step %d, environment %d: in %v, want (%d,%d)", k, i, c, p.x, p.y)
				}
			}
		}
	})
}

// anyKind draws a game.
func anyKind(t *rapid.T) Kind { return rapid.SampledFrom([]Kind{DarkRoom, KeyDoor}).Draw(t, "kind") }

func TestStepRefusesWhatIsNotItsOwn(t *testing.T) {
	for _, c := range []struct {
		name             string
		rewards, actions []uint8
	}{
		{"too few actions", make([]uint8, 2), make([]uint8, 1)},
		{"too many rewards", make([]uint8, 3), make([]uint8, 2)},
		{"no such action", make([]uint8, 2), []uint8{0, NumActions}},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("it went on")
				}
			}()
			NewBatch(nine, []Goal{goalAt(0, 0), goalAt(1, 1)}).Step(c.rewards, c.actions)
		})
	}
}

// BenchmarkStep steps every goal of the room with 100 environments each, as the data is made.
func BenchmarkStep(b *testing.B) {
	batch := NewBatch(nine, slices.Repeat(nine.Goals(), 100))
	rewards, actions := make([]uint8, batch.Len()), make([]uint8, batch.Len())
	for i := range actions {
		actions[i] = uint8(i*7%13) % NumActions
	}
	b.ReportAllocs()
	for b.Loop() {
		batch.Step(rewards, actions)
	}
	b.ReportMetric(float64(b.N)*float64(batch.Len())/b.Elapsed().Seconds(), "steps/s")
}
