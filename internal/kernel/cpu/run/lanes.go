package run

import (
	"fmt"

	"haul/internal/kernel"
)

// What a reader could break: a lane is a run of shards, and which shards it has depends on the
// number of lanes and shards of the whole step alone. A process that shares the step has a run of
// whole lanes, so it adds up what it would add up alone, in the same order. A step that is run in
// turns has a run of every lane's shards in each of them, so that a lane adds up the same shards in
// the same order, however many turns there are.

// cutting is how a step's shards are dealt to lanes and turns.
type cutting struct{ shards, lanes, turns int }

// lane is the shards of a lane, [from, to). A lane may have none where shards are few.
func (c *cutting) lane(lane int) (from, to int) {
	return (lane*c.shards + c.lanes - 1) / c.lanes, ((lane+1)*c.shards + c.lanes - 1) / c.lanes
}

// turn is the shards of a lane in a turn, [from, to). There may be none.
func (c *cutting) turn(lane, turn int) (from, to int) {
	first, end := c.lane(lane)
	n := end - first
	return first + turn*n/c.turns, first + (turn+1)*n/c.turns
}

// place is where rows of a lane begin among those that are kept, in shards.
func (c *cutting) place(lane int) (at int) {
	for l := range lane {
		from, to := c.lane(l)
		at += (to - from + c.turns - 1) / c.turns
	}
	return at
}

// kept is how many shards' rows are kept at once.
func (c *cutting) kept() int { return c.place(c.lanes) }

// cut finds the lanes of this process and the order in which they are added up.
func (r *Runner) cut() error {
	n := r.Program.Share.Parts()
	switch {
	case n > r.Device.Lanes:
		return fmt.Errorf("%d processes share a step whose gradient is summed in %d lanes: at most %d can", n, r.Device.Lanes, r.Device.Lanes)
	case !kernel.Blocks(r.Device.Lanes, n):
		return fmt.Errorf("%d processes cannot share the %d lanes that the gradient is summed in: use a power of two", n, r.Device.Lanes)
	case n > 1 && r.Program.Batch%r.Program.Shard != 0:
		return fmt.Errorf("a process's share of %d instances is not whole shards of %d", r.Program.Batch, r.Program.Shard)
	}
	r.Lanes = r.Device.Lanes / n
	r.cuts = cutting{shards: r.Program.Shards(), lanes: r.Lanes, turns: max(1, r.Program.Turns)}
	for lane := range r.Lanes {
		r.places = append(r.places, r.cuts.place(lane))
	}
	there := func(lane int) bool { from, to := r.laneShards(lane); return from < to }
	kernel.Tree(r.Lanes, there, func(into, from int) { r.Adds = append(r.Adds, [2]int{into, from}) })
	return nil
}

// laneOf is the lane of a shard: shards are dealt to lanes in runs.
func (r *Runner) laneOf(shard int) int { return shard * r.Lanes / r.Program.Shards() }

// laneShards are the shards of a lane, [from, to). A lane may have none where shards are few.
func (r *Runner) laneShards(lane int) (from, to int) { return r.cuts.lane(lane) }

// LaneRows are where the rows of a lane are kept that the turn under way made, [from, to).
func (r *Runner) LaneRows(lane int) (from, to int) {
	first, end := r.cuts.turn(lane, r.Turn)
	from = r.places[lane] * r.Program.Shard
	return from, from + min(end*r.Program.Shard, r.Program.Batch) - min(first*r.Program.Shard, r.Program.Batch)
}

// LastTurn tells whether the turn under way ends the step.
func (r *Runner) LastTurn() bool { return r.Turn == r.cuts.turns-1 }

// add sets values to the sums of all lanes, which stay as they are.
func (s *sums) add(adds [][2]int) {
	for i := range s.values {
		var all [maxLanes]float64
		for l := range s.Lanes {
			all[l] = s.Lanes[l][i]
		}
		for _, a := range adds {
			all[a[0]] += all[a[1]]
		}
		s.values[i] = all[0]
	}
}
