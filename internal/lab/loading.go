package lab

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"haul/internal/kernel"
	"haul/internal/kernel/host"
	"haul/internal/loader"
	"haul/internal/model"
	"haul/internal/rng"
	"haul/internal/world/grid"
)

// Sizes of the agent's batches from the loader.
const (
	loadedRows   = 1024 // the batch of ad_dr_compressed.yaml
	agentStepFor = 12e-3
	loadedTaken  = 16 // batches per measurement
	loaderRounds = 5
)

// loadedSpec samples from histories that exceed a core's cache. Rows have 164 tokens in two regions
// of 80 transitions.
func loadedSpec() kernel.RegionSpec {
	return model.Transitions(kernel.RegionSpec{Streams: 1000, Steps: 1000, Horizon: 20, Tokens: 164, Compressed: true, Shortest: 80, Longest: 80, Ahead: 4, Seed: 42, Purpose: rng.Regions}, 2)
}

// loading starts a new loader for every measurement, so that no batch is ready from an earlier one.
type loading struct{ options loader.Options }

func newLoading(rows, slabs int) (*loading, error) {
	spec := loadedSpec()
	fill, err := host.Fill(spec, walks(&spec, grid.Room{Size: 9, Horizon: spec.Horizon}))
	return &loading{options: loader.Options{Fill: fill, Row: spec.Words(), Batch: rows, Slabs: loader.NewSlabs(spec.Words(), rows, slabs)}}, err
}

// take requests batches as a trainer does and keeps each for the duration of step.
func (l *loading) take(ctx context.Context, workers, depth int, step func(i int)) (err error) {
	o := l.options
	o.Workers, o.Depth = workers, depth
	source, err := loader.New(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	for i := range loadedTaken {
		s, err := source.Next(ctx)
		if err != nil {
			return err
		}
		step(i)
		source.Return(s)
	}
	return nil
}

// contend returns a contender of take.
func (l *loading) contend(ctx context.Context, workers, depth int, step func(i int)) contender {
	return func(n int) error {
		for range n {
			if err := l.take(ctx, workers, depth, step); err != nil {
				return err
			}
		}
		return nil
	}
}

func workers(ctx context.Context, _ *env, r *Result) error {
	l, err := newLoading(loadedRows, 3)
	if err != nil {
		return err
	}
	counts := []int{0, 1, 2, 4, 8, 12, 16}
	at := map[int]int{}
	var ways []contender
	for i, n := range counts {
		at[n] = i
		ways = append(ways, l.contend(ctx, n, 2, func(int) {}))
	}
	t, err := race(ctx, loaderRounds, ways...)
	if err != nil {
		return err
	}
	for i, n := range counts {
		r.row("s", t[i]/loadedTaken, "a batch of 1,024 rows of 164 tokens, %s", counted(n, "worker", "workers"))
	}
	r.row("GPUs", agentStepFor*loadedTaken/t[at[1]], "that one worker feeds, at 12 ms per step")
	r.finds(direction("004", "16 workers instead of 12 load faster"), t[at[12]]/t[at[16]])
	r.finds(direction("004", "workers load faster than the trainer alone (16 against none)"), t[at[0]]/t[at[16]])
	r.note("workers are goroutines that share memory; they help as far as there are cores, and a row costs %s", Row{Value: t[at[0]] / loadedTaken / loadedRows, Unit: "s"})
	return nil
}

// spend waits actively, as a trainer does for its device, and lets other goroutines run. A sleep
// would be rounded to milliseconds.
func spend(d time.Duration) {
	for began := time.Now(); time.Since(began) < d; {
		runtime.Gosched()
	}
}

// prefetch uses steps that take as long as making a batch, for which prefetching gains most.
func prefetch(ctx context.Context, _ *env, r *Result) error {
	const rows = loadedRows / 2
	l, err := newLoading(rows, 6)
	if err != nil {
		return err
	}
	made, err := race(ctx, loaderRounds, l.contend(ctx, 0, 0, func(int) {}))
	if err != nil {
		return err
	}
	step := time.Duration(made[0] / loadedTaken * float64(time.Second))
	even := func(int) { spend(step) }
	uneven := func(i int) { // the same total: three short steps, then a test or a checkpoint
		if i%4 == 3 {
			spend(13 * step / 4)
		} else {
			spend(step / 4)
		}
	}
	const depths = 5
	var ways []contender
	for i := range 2 * depths {
		ways = append(ways, l.contend(ctx, 1, i%depths, []func(int){even, uneven}[i/depths]))
	}
	ways = append(ways, plain(func() {
		for i := range loadedTaken {
			even(i)
		}
	}))
	t, err := race(ctx, loaderRounds, ways...)
	if err != nil {
		return err
	}
	r.row("s", step.Seconds(), "a batch of 512 rows of 164 tokens, made by one worker; and a step of the trainer")
	r.row("s", t[2*depths]/loadedTaken, "an iteration that takes no batch, steps of equal length")
	for i := range 2 * depths {
		r.row("s", t[i]/loadedTaken, "an iteration, %s ahead, %s", counted(i%depths, "batch", "batches"), []string{"steps of equal length", "steps of unequal length"}[i/depths])
	}
	r.finds(faster("004", "page-locked memory and 2 batches ahead make data loading 2–3× as fast: 2 ahead against none, steps as long as a batch takes", 2, 3), t[0]/t[2])
	r.finds(direction("004", "2 batches ahead, so that GPUs never wait: against 1, steps of equal length"), t[1]/t[2])
	r.finds(direction("004", "2 batches ahead, so that GPUs never wait: against 1, steps of unequal length"), t[depths+1]/t[depths+2])
	r.note("a batch ahead is made beside the step, so that the longer of the two is left of their sum: no more than 2× can be won, and depth past that only evens out")
	return nil
}

// counted returns a number with its noun.
func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
