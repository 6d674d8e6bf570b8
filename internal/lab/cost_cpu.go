package lab

import "context"

// cpuRounds is the number of rounds of a race on the CPU.
const cpuRounds = 61

// raceCosts checks implementations of route costs against the plain one and races them.
func (r *routes) raceCosts(ctx context.Context, rounds int, ways map[string]func(out []float32), order ...string) (map[string]float64, error) {
	var list []contender
	for _, name := range order {
		f, out := ways[name], make([]float32, r.batch.B)
		f(out)
		if err := r.check(name, out); err != nil {
			return nil, err
		}
		list = append(list, plain(func() { f(out) }))
	}
	times, err := race(ctx, rounds, list...)
	if err != nil {
		return nil, err
	}
	named := map[string]float64{}
	for i, name := range order {
		named[name] = times[i]
	}
	return named, nil
}

// The names of the implementations in rows of results.
const (
	wayLoop   = "a loop over routes, by distance matrix"
	wayOps    = "padded and masked, an operation at a time"
	wayFused  = "batched and fused, from coordinates"
	wayRepeat = "the loop nine times over"
)

func costCPU(ctx context.Context, _ *env, r *Result) error {
	work, err := newRoutes(128, 10)
	if err != nil {
		return err
	}
	t, err := work.raceCosts(ctx, cpuRounds, map[string]func([]float32){wayLoop: work.byMatrix, wayOps: work.byOperations, wayFused: work.batched}, wayLoop, wayOps, wayFused)
	if err != nil {
		return err
	}
	for _, name := range []string{wayLoop, wayOps, wayFused} {
		r.row("s", t[name], "128 routes, N=10: %s", name)
	}
	r.finds(takes("001", "a CPU loop costs 128 routes in 0.37 ms", 0.37e-3), t[wayLoop])
	r.finds(direction("000", "at N=10 a plain loop beats the vectorised version"), t[wayOps]/t[wayLoop])
	r.finds(saves("003", "compiling the vectorised cost into one function saves 15–20 % of it", 0.15, 0.20), t[wayOps]/t[wayFused])
	r.note("one core; the loop and the batch allocate nothing, the operations allocate their results as a tensor library does")
	return nil
}

func paradoxCPU(ctx context.Context, _ *env, r *Result) error {
	small, err := newRoutes(128, 10)
	if err != nil {
		return err
	}
	t, err := small.raceParadox(ctx)
	if err != nil {
		return err
	}
	for _, name := range []string{wayLoop, wayRepeat, wayOps} {
		r.row("s", t[name], "128 routes, N=10: %s", name)
	}
	large, err := newRoutes(512, 100)
	if err != nil {
		return err
	}
	u, err := large.raceParadox(ctx)
	if err != nil {
		return err
	}
	for _, name := range []string{wayLoop, wayRepeat, wayOps} {
		r.row("s", u[name], "512 routes, N=100: %s", name)
	}
	r.paradox(t)
	r.finds(direction("000", "the loop's lead is a matter of small sizes: at N=100 the vectorised version wins"), u[wayLoop]/u[wayOps])
	return nil
}

// raceParadox races the three versions of report 000.
func (r *routes) raceParadox(ctx context.Context) (map[string]float64, error) {
	nine := func(out []float32) {
		for range 9 {
			r.byMatrix(out)
		}
	}
	return r.raceCosts(ctx, cpuRounds, map[string]func([]float32){wayLoop: r.byMatrix, wayRepeat: nine, wayOps: r.byOperations}, wayLoop, wayRepeat, wayOps)
}

// paradox records report 000's claims with the three measured times.
func (r *Result) paradox(t map[string]float64) {
	r.finds(faster("000", "with nine-fold duplicates an epoch takes 48 s, without them 64 s: repeating is 1.33× faster", 64.0/48, 64.0/48), t[wayLoop]/t[wayRepeat])
	r.finds(faster("000", "the vectorised version made costs 2–3× slower than the loop", 2, 3), t[wayOps]/t[wayLoop])
}
