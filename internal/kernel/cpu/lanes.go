package cpu

import (
	"fmt"

	"haul/internal/kernel"
)

// What a reader could break: a lane is a run of shards, and which shards it has depends on the
// number of lanes and shards of the whole step alone. A process that shares the step has a run of
// whole lanes, so it adds up what it would add up alone, in the same order.

// cut finds the lanes of this process and the order in which they are added up.
func (r *runner) cut() error {
	n := r.prog.Share.Parts()
	switch {
	case n > r.dev.lanes:
		return fmt.Errorf("%d processes share a step whose gradient is summed in %d lanes: at most %d can", n, r.dev.lanes, r.dev.lanes)
	case !kernel.Blocks(r.dev.lanes, n):
		return fmt.Errorf("%d processes cannot share the %d lanes that the gradient is summed in: use a power of two", n, r.dev.lanes)
	case n > 1 && r.prog.Batch%r.prog.Shard != 0:
		return fmt.Errorf("a process's share of %d instances is not whole shards of %d", r.prog.Batch, r.prog.Shard)
	}
	r.lanes = r.dev.lanes / n
	there := func(lane int) bool { from, to := r.laneShards(lane); return from < to }
	kernel.Tree(r.lanes, there, func(into, from int) { r.adds = append(r.adds, [2]int{into, from}) })
	r.sums.lanes = make([][]float64, r.lanes)
	for i := range r.sums.lanes {
		r.sums.lanes[i] = make([]float64, len(r.sums.names))
	}
	return nil
}

// laneOf is the lane of a shard: shards are dealt to lanes in runs.
func (r *runner) laneOf(shard int) int { return shard * r.lanes / r.prog.Shards() }

// laneShards are the shards of a lane, [from, to). A lane may have none where shards are few.
func (r *runner) laneShards(lane int) (from, to int) {
	shards := r.prog.Shards()
	return (lane*shards + r.lanes - 1) / r.lanes, ((lane+1)*shards + r.lanes - 1) / r.lanes
}

// laneRows are the rows of a lane, [from, to).
func (r *runner) laneRows(lane int) (from, to int) {
	from, to = r.laneShards(lane)
	return min(from*r.prog.Shard, r.prog.Batch), min(to*r.prog.Shard, r.prog.Batch)
}

// add sets values to the sums of all lanes, which stay as they are.
func (s *sums) add(adds [][2]int) {
	for i := range s.values {
		var all [maxLanes]float64
		for l := range s.lanes {
			all[l] = s.lanes[l][i]
		}
		for _, a := range adds {
			all[a[0]] += all[a[1]]
		}
		s.values[i] = all[0]
	}
}
