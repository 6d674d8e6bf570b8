package recurrent

import (
	"context"

	"haul/internal/rng"
	"haul/internal/world/xland"
)

// The network's inputs per step are rows of a table: one for each cell of the view, one for the
// previous action, one for its outcome. The table has rows for tiles, then for actions and no
// action, then for outcomes.
const (
	firstAction  = xland.NumTiles
	noAction     = int32(xland.NumActions)
	firstOutcome = firstAction + int(noAction) + 1

	none      = 0 // the episode continues
	unpaid    = 1 // it ended at the time limit
	paid      = 2 // it ended at the goal; this and later rows stand for the size of the reward
	payLevels = 8
	tableRows = firstOutcome + paid + payLevels
)

// outcome returns the network's input for the result of a step.
func outcome(reward float32, ends bool) int32 {
	switch {
	case reward > 0:
		return paid + min(int32(reward*payLevels), payLevels-1)
	case ends:
		return unpaid
	}
	return none
}

// rooms are environments of XLand-MiniGrid. The steps of the first ones are kept as histories. The
// reward of a goal depends on the time limit, so an episode that reaches the limit counts as
// terminated, not as truncated.
type rooms struct {
	world   xland.World
	workers int // number of cores that step the environments
	batch   *xland.Batch
	cells   int     // number of cells of a view
	last    []int32 // by environment: the previous action, noAction for none
	outcome []int32 // by environment: the outcome of that action

	dst   [][]xland.Step // histories to append to
	from  []int          // start of each history in dst
	clock []int          // steps of the current episode
}

// newRooms returns the given number of environments. They are valid after begin.
func newRooms(w xland.World, envs, workers int) *rooms {
	return &rooms{world: w, workers: workers, cells: w.View * w.View, last: make([]int32, envs), outcome: make([]int32, envs)}
}

// senses: a row for each cell of the view, one for the last action and one for its outcome.
func (r *rooms) senses() senses {
	return senses{inputs: r.cells + 2, rows: tableRows, actions: int(xland.NumActions)}
}

// keep appends the next task's steps of the first environments to dst.
func (r *rooms) keep(dst [][]xland.Step) {
	if len(dst) > len(r.last) {
		panic("recurrent: more histories than environments")
	}
	r.dst, r.from, r.clock = dst, r.from[:0], make([]int, len(dst))
	for _, steps := range dst {
		r.from = append(r.from, len(steps))
	}
}

func (r *rooms) begin(task int64, key uint64) (err error) {
	starts := rng.At(key, 0, 0, rng.Starts)
	tasks := make([]xland.ID, len(r.last))
	for e := range tasks {
		tasks[e] = xland.ID(task)
	}
	r.batch, err = xland.NewBatch(r.world, tasks, rng.JAXKey{starts[0], starts[1]}, r.workers)
	r.rest()
	return err
}

// rest clears the previous action and outcome of every environment.
func (r *rooms) rest() {
	for e := range r.last {
		r.last[e], r.outcome[e] = noAction, none
	}
}

func (r *rooms) show(rows []int32, _ []float32) {
	inputs := r.cells + 2
	for e, last := range r.last {
		row := rows[e*inputs:][:inputs]
		for i, tile := range r.batch.Views[e*r.cells:][:r.cells] {
			row[i] = int32(tile)
		}
		row[r.cells], row[r.cells+1] = int32(firstAction)+last, int32(firstOutcome)+r.outcome[e]
	}
}

func (r *rooms) showLast([]int32, []float32) { panic("recurrent: no episode of a room is cut") }

// step records the observations and actions, applies the actions, and records the results.
func (r *rooms) step(_ context.Context, actions []uint8) error {
	for e := range r.dst {
		s := xland.Step{Action: actions[e]}
		copy(s.Seen[:], r.batch.Views[e*r.cells:][:r.cells])
		r.dst[e] = append(r.dst[e], s)
	}
	r.batch.Step(actions)
	for e, a := range actions {
		r.last[e], r.outcome[e] = int32(a), outcome(r.batch.Rewards[e], r.batch.Ends[e])
	}
	for e := range r.dst {
		s := &r.dst[e][len(r.dst[e])-1]
		r.clock[e]++
		if s.Ends = r.batch.Ends[e]; r.batch.Rewards[e] > 0 {
			s.Reward = r.world.Paid(r.clock[e])
		}
		if s.Ends {
			r.clock[e] = 0
		}
	}
	return nil
}

func (r *rooms) led(e int) (reward float32, end ending, counts bool) {
	if r.batch.Ends[e] {
		end = ended
	}
	return r.batch.Rewards[e], end, true
}

// recall removes the last episode of each history if it is not finished.
func (r *rooms) recall() (longest int) {
	for e, steps := range r.dst {
		end := len(steps)
		for end > r.from[e] && !steps[end-1].Ends {
			end--
		}
		r.dst[e] = steps[:end]
		longest = max(longest, end-r.from[e])
	}
	r.rest()
	clear(r.clock)
	return longest
}

func (r *rooms) turn(t int) {
	for e := range r.dst {
		at := r.from[e] + t
		if at >= len(r.dst[e]) {
			continue
		}
		copy(r.batch.Views[e*r.cells:][:r.cells], r.dst[e][at].Seen[:])
		if t > 0 {
			s := &r.dst[e][at-1]
			r.last[e], r.outcome[e] = int32(s.Action), outcome(r.earned(e, s), s.Ends)
		}
	}
}

// earned returns the reward of the next step of a history. Histories of long episodes store it
// rounded, so it is computed from the clock.
func (r *rooms) earned(e int, s *xland.Step) (reward float32) {
	r.clock[e]++
	if s.Reward > 0 {
		reward = r.world.Pays(r.clock[e])
	}
	if s.Ends {
		r.clock[e] = 0
	}
	return reward
}

func (r *rooms) label(e, t int, best uint8) {
	if e < len(r.dst) && r.from[e]+t < len(r.dst[e]) {
		r.dst[e][r.from[e]+t].Best = best
	}
}
