package history

import (
	"context"
	"fmt"
	"math"
	"sync"

	"haul/internal/world/xland"
)

// XLandOptions configures the making of histories of learners in XLand-MiniGrid.
type XLandOptions struct {
	World     xland.World
	Learn     []xland.ID // tasks to learn from
	Held      []xland.ID // held-out tasks
	Histories int        // per task to learn from; a held-out task has one
	Schedule  xland.Schedule
	Search    *xland.Searching // uses searchers instead of learners with the schedule; nil: learners
	// Lives, if not nil, makes histories in place of the built-in learners: it appends a history of
	// each of ids, which are numbered from first on, to the element of dst.
	Lives    func(ctx context.Context, dst [][]xland.Step, ids []xland.ID, first uint64) error
	Together int  // number of histories per call of Lives
	Whole    bool // each call of Lives gets all histories of its tasks, at most Together per task
	Seed     uint64
	Path     string
	Workers  int
	Progress func(done, of int) // counts histories; may be nil
}

// MakeXLand trains learners on every task and writes the file. It depends only on world, tasks,
// schedule and seed, not on the number of workers.
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
	together := max(1, o.Workers)
	if o.Lives != nil {
		together = max(1, o.Together)
	}
	lives, ids := make([][]xland.Step, together), make([]xland.ID, together) // reused
	for first, end := 0, 0; first < len(of); first = end {
		if err := ctx.Err(); err != nil {
			return err
		}
		for end = min(len(of), first+len(lives)); o.Whole && end < len(of) && of[end] == of[end-1]; end-- {
		}
		some := of[first:end]
		for i, at := range some {
			lives[i], ids[i] = lives[i][:0], tasks[at]
		}
		live := o.learn
		if o.Lives != nil {
			live = o.Lives
		}
		if err := live(ctx, lives[:len(some)], ids[:len(some)], uint64(first)); err != nil {
			return err
		}
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

// check returns an error if the options are invalid.
func (o *XLandOptions) check() error {
	if o.Search == nil {
		return o.Schedule.Check()
	}
	if err := o.Search.Check(); err != nil {
		return err
	}
	return o.Searchable()
}

// Searchable returns an error if searchers are configured and do not support a task.
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

// learn makes the histories with one learner per core.
func (o *XLandOptions) learn(_ context.Context, dst [][]xland.Step, ids []xland.ID, first uint64) error {
	var wait sync.WaitGroup
	for i, id := range ids {
		wait.Go(func() {
			if o.Search != nil {
				dst[i] = o.World.Search(dst[i], id, *o.Search, o.Seed, first+uint64(i))
			} else {
				dst[i] = o.World.History(dst[i], id, o.Schedule, o.Seed, first+uint64(i))
			}
		})
	}
	wait.Wait()
	return nil
}

// seats returns the task of each index in the file, such that Deal puts every task on its side of
// the split. Tasks are numbered with the training tasks first.
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
