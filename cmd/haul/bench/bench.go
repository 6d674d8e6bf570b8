// Package bench is the verb haul bench; each benchmark has a file of its own.
package bench

import (
	"haul/cmd/haul/cli"

	"context"
	"runtime"
	"slices"
	"time"

	"github.com/spf13/cobra"
)

// NewBench holds the benchmarks; each is a file of its own, bench_<what>.go.
// app is the program that the verb is a part of.
type app struct{ *cli.App }

// New returns the verb.
func New(program *cli.App) *cobra.Command {
	a := &app{program}
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Time parts of Haul on this machine",
		Long: `A benchmark runs its contenders in turn, round after round, and reports the median of each, so that other work on the machine slows
all contenders alike. Compare ratios: times belong to the machine.`,
		Example: "  haul bench cost\n  haul bench matmul --json\n  haul bench step",
	}
	cmd.AddCommand(a.newBenchCost(), a.newBenchMatmul(), a.newBenchStep(), a.newBenchExchange(), a.newBenchScale(), a.newBenchSizes(), a.newBenchWorlds(), a.newBenchXLand())
	a.Parent(cmd)
	return cmd
}

// contender is one way of doing the same work; run does it n times.
type contender func(n int)

// timing is what a contender took for one piece of work.
type timing struct {
	ns     float64 // median over the rounds
	allocs float64 // heap objects, mean over the rounds
}

// sliceTime is how long a contender runs in a round: long against the clock and a context switch.
const sliceTime = 2 * time.Millisecond

// race times the contenders in turn for the given rounds, on one core each, after a warm-up that
// also finds how often each must run to fill a slice.
func race(ctx context.Context, rounds int, contenders ...contender) ([]timing, error) {
	repeats := make([]int, len(contenders))
	for i, run := range contenders {
		n := 1
		for spent := clock(run, n); spent < sliceTime; spent = clock(run, n) {
			n *= 2
		}
		repeats[i] = n
	}
	samples := make([][]float64, len(contenders))
	out := make([]timing, len(contenders))
	for range rounds {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for i, run := range contenders {
			before := mallocs()
			spent := clock(run, repeats[i])
			out[i].allocs += float64(mallocs()-before) / float64(repeats[i]*rounds)
			samples[i] = append(samples[i], float64(spent.Nanoseconds())/float64(repeats[i]))
		}
	}
	for i := range out {
		slices.Sort(samples[i])
		out[i].ns = samples[i][rounds/2]
	}
	return out, nil
}

func clock(run contender, n int) time.Duration {
	start := time.Now()
	run(n)
	return time.Since(start)
}

func mallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}
