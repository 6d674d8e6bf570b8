package bench

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"haul/cmd/haul/cli"
	"haul/internal/device"
)

type matmulReport struct {
	Bench  string `json:"bench"`
	Rounds int    `json:"rounds"`
	device.ProductReport
}

var matmul = benchmark{
	use:   "matmul",
	short: "Time the matrix products of a training step, as a share of the peak",
	long: `The matrix products are those of tiny_1's training step: forward and both gradients, over the whole batch (rows split over the
workers) and as training runs them (one shard per worker).

Each product alternates with a loop that only multiplies and adds, on every worker, in slices of a millisecond. The share is the
product's rate divided by the rate of that loop, the median of all rounds. The column "quietest" compares the fastest tenth of both,
because other programs on a core slow the two differently. In bf16 the loop multiplies tiles, if the processor has AMX, and the time of
a product includes packing its operands to bf16, except weights, which the optimizer packs.`,
	example: "  haul bench matmul\n  haul bench matmul --precision bf16\n  haul bench matmul --workers 1 --set-name avx2 --json",
	open:    openMatmul,
}

func openMatmul(a *app, cmd *cobra.Command) func(context.Context, []string) (report, error) {
	var opt device.Options
	n, check := rounds(cmd, 101, medianText)
	cmd.Flags().IntVar(&opt.Workers, "workers", device.PerformanceCores(), "CPU cores to use at the same time")
	cmd.Flags().StringVar(&opt.Set, "set-name", "", "instruction set: avx512, avx2, sse, neon or go; in bf16 also amx, avx512_bf16 or neon_bf16 (default: the fastest here)")
	cmd.Flags().StringVar(&opt.Precision, "precision", "fp32", "precision of the operands: fp32 or bf16")
	return func(ctx context.Context, _ []string) (report, error) {
		err := check()
		switch {
		case err != nil:
			return nil, err
		case opt.Precision != "fp32" && opt.Precision != "bf16":
			return nil, cli.Usagef("--precision is %q: use fp32 or bf16", opt.Precision)
		case opt.Set != "" && !slices.Contains(device.Sets(opt.Precision), opt.Set):
			return nil, cli.Usagef("--set-name is %q: in %s this processor has %v", opt.Set, opt.Precision, device.Sets(opt.Precision))
		}
		if opt.Workers, err = a.Cores(opt.Workers); err != nil {
			return nil, err
		}
		bar := a.NewBar(100, "percent")
		defer bar.End()
		products, err := device.BenchProducts(ctx, opt, *n, func(done, total int) { bar.Set(100 * done / total) })
		return matmulReport{Bench: "matmul", Rounds: *n, ProductReport: products}, err
	}
}

func (r matmulReport) print(w io.Writer, _ *app) {
	fmt.Fprintf(w, "peak %.1f GFLOP/s, %s in %s, workers: %d\n", r.Peak, r.Set, r.Precision, r.Workers)
	fmt.Fprintln(w, "rows\tproduct\tM\tK\tN\ttime\tGFLOP/s\tpeak\tquietest")
	for _, p := range r.Rows {
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%.1f µs\t%.1f\t%.1f %%\t%.1f %%\n", p.Scope, p.Kind, p.M, p.K, p.N, p.Seconds*1e6, p.Rate, 100*p.Share, 100*p.Quiet)
	}
}
