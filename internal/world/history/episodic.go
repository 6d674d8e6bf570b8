package history

import (
	"context"
	"fmt"
	"sync"

	"haul/internal/world/episodic"
)

// EpisodicOptions configures the making of histories of tabular learners.
type EpisodicOptions struct {
	Set      episodic.Set
	Schedule episodic.Schedule
	Seed     uint64
	Path     string
	Workers  int
	Progress func(done, of int) // counts histories; may be nil
}

// MakeEpisodic trains learners on every goal of a set and writes the file: Histories streams of
// each training goal, and one stream of each held-out goal for tests. The file depends only on set,
// schedule and seed, not on the number of workers.
func MakeEpisodic(ctx context.Context, o EpisodicOptions) (err error) {
	if err := o.Schedule.Check(); err != nil {
		return err
	}
	learn, held, err := o.Set.Room.Deal(o.Seed, o.Set.Learn, o.Set.Held)
	if err != nil {
		return err
	}
	// Readers split tasks by their index: each goal gets an index on its side of the split.
	n := len(learn) + len(held)
	ratio := float64(len(learn)) / float64(n)
	train, test := Deal(n, o.Seed, ratio)
	if len(train) != len(learn) {
		return fmt.Errorf("%d goals of %d cannot be dealt by a ratio", len(learn), n)
	}
	goals, streams := make([]episodic.Goal, n), make([]int, n)
	for i, at := range train {
		goals[at], streams[at] = learn[i], o.Set.Histories
	}
	for i, at := range test {
		goals[at], streams[at] = held[i], 1
	}
	var of []int // by stream: the index of its goal
	for at, k := range streams {
		for range k {
			of = append(of, at)
		}
	}
	w, err := CreateRecords(o.Path, o.Set.Room, o.Seed, ratio)
	if err != nil {
		return err
	}
	defer w.Discard()
	lives := make([][]episodic.Step, max(1, o.Workers)) // reused
	for first := 0; first < len(of); first += len(lives) {
		if err := ctx.Err(); err != nil {
			return err
		}
		var wait sync.WaitGroup
		some := of[first:min(len(of), first+len(lives))]
		for i, at := range some {
			wait.Go(func() {
				lives[i] = o.Set.Room.History(lives[i][:0], goals[at], o.Schedule, o.Seed, uint64(first+i))
			})
		}
		wait.Wait()
		for i, at := range some {
			w.Stream(int64(goals[at]))
			for _, s := range lives[i] {
				w.Label(int(s.Best))
				if err := w.Add([]byte{s.X, s.Y}, int(s.Action), int(s.Reward), s.Ends); err != nil {
					return err
				}
			}
		}
		if o.Progress != nil {
			o.Progress(first+len(some), len(of))
		}
	}
	return w.Close()
}
