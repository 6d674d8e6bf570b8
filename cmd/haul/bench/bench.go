// Package bench is the verb haul bench; each benchmark has a file of its own.
package bench

import (
	"context"
	"io"
	"runtime"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"haul/cmd/haul/cli"
)

// app is the program that the verb is a part of.
type app struct{ *cli.App }

// benchmark is a row of the table: how it is called, what its help says, and how it runs.
type benchmark struct {
	use, short, long, example string
	names                     int // most names behind its own; -1: any number
	// open registers the flags and returns what measures. A nil report prints nothing.
	open func(a *app, cmd *cobra.Command) func(ctx context.Context, names []string) (report, error)
}

// benchmarks is the table of them.
var benchmarks = []*benchmark{&cost, &exchange, &matmul, &scale, &sizes, &step, &worlds, &xlandSteps}

// report is what a benchmark has measured, as its JSON object.
type report interface{ print(w io.Writer, a *app) }

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
	for _, b := range benchmarks {
		cmd.AddCommand(a.command(b))
	}
	a.Parent(cmd)
	return cmd
}

// command is a benchmark as a command.
func (a *app) command(b *benchmark) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{Use: b.use, Short: b.short, Long: b.long, Example: b.example}
	if b.names >= 0 {
		cmd.Args = cli.AtMost(b.names)
	}
	run := b.open(a, cmd)
	cmd.RunE = func(cmd *cobra.Command, names []string) error {
		r, err := run(cmd.Context(), names)
		if err != nil || r == nil {
			return err
		}
		if facts, ok := r.(interface{ facts() map[string]any }); ok && asJSON {
			return a.EmitWith(facts.facts(), r)
		}
		if asJSON {
			return a.Emit(r)
		}
		return a.Table(func(w io.Writer) { r.print(w, a) })
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// rounds registers --rounds and returns what it holds, and a check of it.
func rounds(cmd *cobra.Command, most int, text string) (n *int, check func() error) {
	n = cmd.Flags().Int("rounds", most, text)
	return n, func() error {
		if *n < 1 {
			return cli.Usagef("--rounds is %d: at least 1 is needed", *n)
		}
		return nil
	}
}

// medianText is what --rounds is.
const medianText = "number of rounds; the median is reported"

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
