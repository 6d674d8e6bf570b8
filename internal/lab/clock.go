package lab

import (
	"context"
	"slices"
	"time"

	"haul/internal/kernel"
)

// contender is one way of doing the same work; run does it n times and returns when the results are
// there.
type contender func(n int) error

// slice is how long a contender runs in a round: long against the clock and a context switch, short
// against the seconds in which a shared machine changes its pace.
const slice = 2 * time.Millisecond

// race times contenders in turn, round after round, and returns each one's median in seconds for
// one piece of work. What the machine does meanwhile touches them alike.
func race(ctx context.Context, rounds int, contenders ...contender) ([]float64, error) {
	repeats := make([]int, len(contenders))
	for i, run := range contenders {
		if err := run(1); err != nil { // the first time pays for caches and clocks
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

// plain makes a contender of work that cannot fail.
func plain(f func()) contender {
	return func(n int) error {
		for range n {
			f()
		}
		return nil
	}
}

// replay makes a contender of a compiled step. Reading the state waits for a device that runs
// behind the host.
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
