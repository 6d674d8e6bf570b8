package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"haul/cmd/haul/cli"
	"haul/internal/comm"
	"haul/internal/kernel"
)

// exchangeLanes is the number of lanes in which a gradient is summed.
const exchangeLanes = 8

// exchangeRow is the exchange of one size of gradient between ranks.
type exchangeRow struct {
	MB        float64 `json:"megabytes"`
	LanesMS   float64 `json:"own_lanes_ms"`    // a rank's lanes added up, which both ways need
	TreeMS    float64 `json:"tree_ms"`         // and then the sum over ranks by the tree
	LibraryMS float64 `json:"all_reduce_ms"`   // or by the library's all-reduce
	Ratio     float64 `json:"tree_to_library"` // with the lanes on both sides
}

// exchangeReport is that of several sizes.
type exchangeReport struct {
	Bench  string        `json:"bench"`
	Over   string        `json:"over"`
	Rounds int           `json:"rounds"`
	Rows   []exchangeRow `json:"sizes"`
}

var exchange = benchmark{
	use:   "exchange",
	short: "Time the exchange of gradients between ranks, against MPI_Allreduce",
	long: `After a step each rank adds up its own gradients, then all ranks are summed in the fixed order of a tree, so that the bits do not
depend on the number of ranks: each rank receives its piece of all sums, adds the pieces up and sends the result to all. (In training
on CPUs it sends the updated weights instead, which are as many bytes.) MPI_Allreduce of the same sums is timed beside it; its bits
depend on the number of ranks. The sum is checked once. Start this with mpirun.`,
	example: "  mpirun -n 2 --bind-to none haul bench exchange\n  mpirun -n 4 --bind-to none haul bench exchange --megabytes 2.4,20 --json",
	open:    openExchange,
}

func openExchange(a *app, cmd *cobra.Command) func(context.Context, []string) (report, error) {
	n, check := rounds(cmd, 41, medianText)
	var megabytes []float64
	cmd.Flags().Float64SliceVar(&megabytes, "megabytes", []float64{2.4, 20}, "`sizes` of the gradient in megabytes, with commas between them")
	cmd.Flags().Lookup("megabytes").DefValue = "2.4,20"
	return func(ctx context.Context, _ []string) (_ report, err error) {
		if err := check(); err != nil {
			return nil, err
		}
		for _, mb := range megabytes {
			if !(mb > 0 && mb <= 100_000) {
				return nil, cli.Usagef("--megabytes is %v: a size above 0, and at most 100000, is needed", mb)
			}
		}
		place, err := comm.Detect(os.Getenv)
		if err != nil {
			return nil, err
		}
		if place.Size < 2 {
			return nil, cli.Usagef("one process exchanges nothing: start it with mpirun -n 2 or more")
		}
		w, err := comm.Open(ctx, place, false)
		if err != nil {
			return nil, cli.OncePerMachine(place, err)
		}
		defer func() { err = a.Leave(w, err) }()
		r := exchangeReport{Bench: "exchange", Over: w.String(), Rounds: *n}
		for _, mb := range megabytes {
			row, err := benchExchange(w, int(mb*1e6/4), *n)
			if err != nil {
				return nil, err
			}
			r.Rows = append(r.Rows, row)
		}
		if w.Number() > 0 {
			return nil, nil
		}
		return r, nil
	}
}

func (r exchangeReport) print(w io.Writer, _ *app) {
	fmt.Fprintf(w, "%s; median of %d rounds, ms\n\nMB\town lanes\tlanes + tree\tlanes + all-reduce\tratio\n", r.Over, r.Rounds)
	for _, row := range r.Rows {
		fmt.Fprintf(w, "%.3g\t%.2f\t%.2f\t%.2f\t%.2f\n", row.MB, row.LanesMS, row.LanesMS+row.TreeMS, row.LanesMS+row.LibraryMS, row.Ratio)
	}
}

func benchExchange(w *comm.World, n, rounds int) (exchangeRow, error) {
	from, to := w.Cut(exchangeLanes)
	lanes := make([][]float32, max(1, to-from))
	for l := range lanes {
		lanes[l] = make([]float32, n)
		for i := range lanes[l] {
			lanes[l][i] = 1 / float32(1+i%1000)
		}
	}
	add := func() error {
		kernel.Tree(len(lanes), nil, func(into, from int) {
			a, b := lanes[into], lanes[from]
			for i := range a {
				a[i] += b[i]
			}
		})
		return nil
	}
	ways := []func() error{add, func() error { return w.Exchange(lanes[0]) }, func() error { return w.AllReduce(lanes[0]) }}
	times := make([][]float64, len(ways))
	for round := -3; round < rounds; round++ { // the first three warm up
		for i, way := range ways {
			clear(lanes[0])
			if err := w.Barrier(); err != nil {
				return exchangeRow{}, err
			}
			began := time.Now()
			if err := way(); err != nil {
				return exchangeRow{}, err
			}
			if round >= 0 {
				times[i] = append(times[i], 1e3*time.Since(began).Seconds())
			}
		}
	}
	if err := checkExchange(w, lanes[0]); err != nil {
		return exchangeRow{}, err
	}
	median := func(i int) float64 {
		slices.Sort(times[i])
		return times[i][rounds/2]
	}
	r := exchangeRow{MB: 4 * float64(n) / 1e6, LanesMS: median(0), TreeMS: median(1), LibraryMS: median(2)}
	r.Ratio = (r.LanesMS + r.TreeMS) / (r.LanesMS + r.LibraryMS)
	return r, nil
}

// checkExchange exchanges numbers that every rank knows of every rank.
func checkExchange(w *comm.World, grad []float32) error {
	of := func(rank, i int) float32 { return float32(i%1013) / float32(3+rank) }
	for i := range grad {
		grad[i] = of(w.Number(), i)
	}
	if err := w.Exchange(grad); err != nil {
		return err
	}
	parts := make([]float32, w.Ranks())
	for i, got := range grad {
		for rank := range parts {
			parts[rank] = of(rank, i)
		}
		kernel.Tree(len(parts), nil, func(into, from int) { parts[into] += parts[from] })
		if got != parts[0] {
			return fmt.Errorf("rank %d: number %d of %d came to %v and not to %v: the ranks' sum is wrong", w.Number(), i, len(grad), got, parts[0])
		}
	}
	return nil
}
