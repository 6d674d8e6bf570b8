package vrp

import (
	"context"
	"fmt"
	"sync"
)

// What a reader could break: a result depends on its instance only. Workers take whole chunks
// and write to the slots of those instances, so neither the number of workers nor their order
// matters.

// exactBudget bounds the tables of all workers together; large N gets fewer workers, never more
// memory.
const exactBudget = 2 << 30

// exactChunk is how many instances a worker takes at a time: enough that taking costs nothing,
// few enough that the last worker to finish is not waited for. A large instance is work enough
// alone.
func exactChunk(n int) int {
	if n > 12 {
		return 1
	}
	return 64
}

// OptimalCosts writes the optimal cost of instances first, first+1, ..., first+count-1 of the
// source to out. workers below 1 counts as 1. progress, where given, is told how many instances are
// done, one call at a time, with growing numbers. On the end of ctx it returns its error and out is
// incomplete.
func OptimalCosts(ctx context.Context, src Source, first uint64, count, workers int, out []float64, progress func(done int)) error {
	if err := src.Check(); err != nil {
		return err
	}
	if len(out) < count {
		panic("vrp: OptimalCosts: out is shorter than count")
	}
	chunk := exactChunk(src.N)
	return eachExact(ctx, src.N, count, chunk, workers, progress, func() func(e *ExactSolver, lo, hi int) {
		batch := NewBatch(chunk, src.N, src.Capacity)
		return func(e *ExactSolver, lo, hi int) {
			batch.B = hi - lo
			src.Fill(batch, first+uint64(lo))
			for i := range batch.B {
				out[lo+i] = e.SolveBatch(batch, i)
			}
		}
	})
}

// ExactTakes says in one line what the exact method does not know of a problem; nil if nothing. It
// knows capacities, and one vehicle that serves all.
func ExactTakes(p *Problem) error {
	left := *p
	if p.Vehicles == 1 {
		left.Vehicles = 0
	}
	if err := left.Plain(); err != nil || p.Vehicles != 1 {
		return err
	}
	load := int64(0)
	for _, d := range p.Demand {
		load += int64(d)
	}
	if load > int64(p.Capacity) {
		return fmt.Errorf("its customers demand %d, and its one vehicle carries %d", load, p.Capacity)
	}
	return nil
}

// OptimalSolutions solves each problem and returns costs and routes in the problems' order;
// workers, progress and ctx as in OptimalCosts. A problem with a customer that fits no vehicle is
// an error.
func OptimalSolutions(ctx context.Context, problems []*Problem, workers int, progress func(done int)) ([]float64, []Solution, error) {
	n := 0
	for _, p := range problems {
		n = max(n, p.N())
		if err := ExactTakes(p); err != nil {
			return nil, nil, fmt.Errorf("the exact method knows no limit but the capacity, or one vehicle, and %s is not such a problem: %w; use the search", problemName(p), err)
		}
		for c, d := range p.Demand {
			if d > p.Capacity {
				return nil, nil, fmt.Errorf("exact method: %s: customer %d demands %d, capacity is %d: no vehicle can serve it", p.Name, c, d, p.Capacity)
			}
		}
	}
	costs, solutions := make([]float64, len(problems)), make([]Solution, len(problems))
	err := eachExact(ctx, max(n, 1), len(problems), exactChunk(n), workers, progress, func() func(e *ExactSolver, lo, hi int) {
		return func(e *ExactSolver, lo, hi int) {
			for i := lo; i < hi; i++ {
				costs[i], solutions[i] = e.Solve(problems[i])
			}
		}
	})
	if err != nil {
		return nil, nil, err
	}
	return costs, solutions, nil
}

// eachExact hands [0, count) in chunks to workers with a solver each. newWork is called once a
// worker, for scratch of its own.
func eachExact(ctx context.Context, n, count, chunk, workers int, progress func(int), newWork func() func(e *ExactSolver, lo, hi int)) error {
	workers = min(workers, (count+chunk-1)/chunk)
	if n <= MaxExactN {
		workers = min(workers, int(exactBudget/ExactMemory(n)))
	}
	solvers := make([]*ExactSolver, max(workers, 1))
	for w := range solvers {
		e, err := NewExact(n)
		if err != nil {
			return err
		}
		e.halt = ctx.Done()
		solvers[w] = e
	}

	var (
		wg         sync.WaitGroup
		mu         sync.Mutex // guards next and done, and keeps progress to one call at a time
		next, done int
	)
	take := func(finished int) (lo, hi int) {
		mu.Lock()
		defer mu.Unlock()
		if finished > 0 && ctx.Err() == nil {
			done += finished
			if progress != nil {
				progress(done)
			}
		}
		lo = next
		next = min(next+chunk, count)
		return lo, next
	}
	for _, e := range solvers {
		wg.Go(func() {
			work := newWork()
			for lo, hi := take(0); lo < hi && ctx.Err() == nil; lo, hi = take(hi - lo) {
				work(e, lo, hi)
			}
		})
	}
	wg.Wait()
	return ctx.Err()
}
