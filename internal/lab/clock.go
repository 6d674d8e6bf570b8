package lab

import (
	"context"
	"slices"
	"time"

	"haul/internal/kernel"
)

// contender is one of several implementations of the same work. A call does the work n times and
// returns when the results are complete.
type contender func(n int) error

// slice is the time of a contender in a round. It is long compared with the clock's resolution and
// a context switch, and short compared with the seconds in which a shared machine changes its
// speed.
const slice = 2 * time.Millisecond

// race times contenders alternately, round after round, and returns the median seconds of one piece
// of work for each. Changes of the machine's speed affect all contenders alike.
func race(ctx context.Context, rounds int, contenders ...contender) ([]float64, error) {
	repeats := make([]int, len(contenders))
	for i, run := range contenders {
		if err := run(1); err != nil { // the first run also fills caches and raises clock rates
			return nil, err
		}
		for n := 1; ; n *= 2 {
			took, err := clock(run, n)
			if err != nil {
				return nil, err
			}
			if repeats[i] = n; took >= slice {
				break
			}
		}
	}
	samples := make([][]float64, len(contenders))
	for range rounds {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for i, run := range contenders {
			took, err := clock(run, repeats[i])
			if err != nil {
				return nil, err
			}
			samples[i] = append(samples[i], took.Seconds()/float64(repeats[i]))
		}
	}
	out := make([]float64, len(contenders))
	for i, s := range samples {
		slices.Sort(s)
		out[i] = s[len(s)/2]
	}
	return out, nil
}

func clock(run contender, n int) (time.Duration, error) {
	began := time.Now()
	err := run(n)
	return time.Since(began), err
}

// plain returns a contender for work that cannot fail.
func plain(f func()) contender {
	return func(n int) error {
		for range n {
			f()
		}
		return nil
	}
}

// replay returns a contender for a compiled step. Reading the state waits for devices that run
// asynchronously.
func replay(r kernel.Runner) contender {
	return func(n int) error {
		for range n {
			if err := r.Run(); err != nil {
				return err
			}
		}
		_, err := r.State()
		return err
	}
}
