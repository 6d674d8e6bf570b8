package history

import (
	"context"
	"fmt"
	"math"
	"sync"

	"haul/internal/world/xland"
)

// XLandOptions say what histories of learners in XLand-MiniGrid to make.
type XLandOptions struct {
	World     xland.World
	Learn     []xland.ID // tasks to learn from
	Held      []xland.ID // tasks held out
	Histories int        // of each task to learn from; a task held out has one
	Schedule  xland.Schedule
	Search    *xland.Searching // in place of learners that follow the schedule; nil: none
	Seed      uint64
	Path      string
	Workers   int
	Progress  func(done, of int) // histories; it may be nil
}

// MakeXLand lets learners live through every task and writes the file. It is a function of world,
// tasks, schedule and seed, whatever the number of workers.
func MakeXLand(ctx context.Context, o XLandOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	if len(o.Learn) < 1 || len(o.Held) < 1 || o.Histories < 1 {
		return fmt.Errorf("%d tasks to learn from, %d histories of each and %d tasks held out: want at least one of each", len(o.Learn), o.Histories, len(o.Held))
	}
	for _, id := range append(append([]xland.ID{}, o.Learn...), o.Held...) {
		if err := o.World.CheckTask(int64(id)); err != nil {
			return err
		}
	}
	places, err := seats(len(o.Learn), len(o.Held), o.Seed)
	if err != nil {
		return err
	}
	tasks, of := make([]xland.ID, len(places)), []int(nil)
	for at, p := range places {
		n := 1
		if p < len(o.Learn) {
			tasks[at], n = o.Learn[p], o.Histories
		} else {
			tasks[at] = o.Held[p-len(o.Learn)]
		}
		for range n {
			of = append(of, at)
		}
	}
	w, err := CreateRecords(o.Path, o.World, o.Seed, float64(len(o.Learn))/float64(len(places)))
	if err != nil {
		return err
	}
	defer w.Discard()
	fields := o.World.View * o.World.View
	lives := make([][]xland.Step, max(1, o.Workers)) // reused
	for first := 0; first < len(of); first += len(lives) {
		if err := ctx.Err(); err != nil {
			return err
		}
		var wait sync.WaitGroup
		some := of[first:min(len(of), first+len(lives))]
		for i, at := range some {
			wait.Go(func() {
				lives[i] = o.live(lives[i][:0], tasks[at], uint64(first+i))
			})
		}
		wait.Wait()
		for i, at := range some {
			w.Stream(int64(tasks[at]))
			for j := range lives[i] {
				s := &lives[i][j]
				w.Label(int(s.Best))
				if err := w.Add(s.Seen[:fields], int(s.Action), int(s.Reward), s.Ends); err != nil {
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

// check refuses what no learner can follow.
func (o *XLandOptions) check() error {
	if o.Search == nil {
		return o.Schedule.Check()
	}
	if err := o.Search.Check(); err != nil {
		return err
	}
	return o.Searchable()
}

// Searchable refuses tasks that searchers have no notion of, where searchers are asked for.
func (o *XLandOptions) Searchable() error {
	for _, id := range append(append([]xland.ID{}, o.Learn...), o.Held...) {
		if o.Search == nil {
			break
		}
		if err := o.World.Searchable(id); err != nil {
			return err
		}
	}
	return nil
}

// live appends a life to dst.
func (o *XLandOptions) live(dst []xland.Step, id xland.ID, number uint64) []xland.Step {
	if o.Search != nil {
		return o.World.Search(dst, id, *o.Search, o.Seed, number)
	}
	return o.World.History(dst, id, o.Schedule, o.Seed, number)
}

// seats gives every task a place in the file such that Deal, which goes by places, puts it on its
// own side: by place the index of the task, those to learn from first.
func seats(learn, held int, seed uint64) ([]int, error) {
	n := learn + held
	train, test := Deal(n, seed, float64(learn)/float64(n))
	if len(train) != learn || n > math.MaxInt32 {
		return nil, fmt.Errorf("%d tasks of %d cannot be dealt by a ratio", learn, n)
	}
	out := make([]int, n)
	for i, at := range train {
		out[at] = i
	}
	for i, at := range test {
		out[at] = learn + i
	}
	return out, nil
}
