package bench

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"haul/cmd/haul/cli"
	"haul/internal/device"
	"haul/internal/kernel"
	"haul/internal/run"
)

type stepFlags struct {
	cli.ConfigFlags
	cli.DeviceFlags
	rounds int
	beside string // a precision or an instruction set to take in turn with; "": none
	share  bool
}

type stepReport struct {
	Bench     string   `json:"bench"`
	Config    string   `json:"config"`
	Device    string   `json:"device"`
	Precision string   `json:"precision"`
	Batch     int      `json:"batch_size"`
	Shard     int      `json:"shard_size"`
	Rounds    int      `json:"rounds"`
	MS        float64  `json:"ms_per_step"` // median
	P10       float64  `json:"ms_p10"`
	P90       float64  `json:"ms_p90"`
	PerSecond float64  `json:"instances_per_second"`
	FLOP      float64  `json:"flop_per_step"` // by formula, from the lengths drawn
	Rate      float64  `json:"gflops"`
	Peak      *float64 `json:"peak_gflops"` // multiply-adds alone, beside the steps; null on a card
	Share     *float64 `json:"share_of_peak"`
	Allocs    float64  `json:"allocs_per_step"` // Go heap
	DevAllocs float64  `json:"device_allocs"`   // in all rounds
	Launches  float64  `json:"launches"`        // per step
	Copies    float64  `json:"copies"`          // a step, both ways
	Memory    int64    `json:"memory_bytes"`
	Beside    *beside  `json:"beside,omitempty"`

	step *run.Step
}

var step = benchmark{
	use:   "step",
	short: "Time a whole training step, as a share of the peak",
	long: `The step is all of training: drawing instances, encoding, routing, the baseline, every gradient, clipping and the optimizer. An
agent's step draws its rows from random walks instead of learning histories.

On a CPU each step alternates with a loop that only multiplies and adds, on every worker at once. The share is the step's rate divided
by the rate of that loop, the median of all rounds. The work of a step is counted by formula from the model and the lengths of the
routes: forward, twice that for gradients, and the baseline's forward.

--beside times the same step in another precision or instruction set too, in turn with it, and prints how many times as long that takes.
haul devices lists the instruction sets; go is plain Go. HAUL_SET=sse, or another of these names, forces the instruction set of the
step itself.

--share prints one line with the processor, the kernels and the figures, to paste into an issue. It helps for machines whose speed
docs/benchmarks.md only predicts.`,
	example: "  haul bench step\n  haul bench step --share\n  haul bench step --precision bf16 --beside fp32\n  haul bench step --config quick --workers 1 --json\n  haul bench step --config ad_dr_compressed --device cuda:0",
	open:    openStep,
}

func openStep(a *app, cmd *cobra.Command) func(context.Context, []string) (report, error) {
	var f stepFlags
	f.ConfigFlags.RegisterAs(cmd, "tiny_1")
	f.DeviceFlags.Register(cmd)
	n, check := rounds(cmd, 201, "number of rounds (one step each, 25 on a GPU); the median is reported")
	cmd.Flags().StringVar(&f.beside, "beside", "", "precision or instruction set to compare with: prints how many times as long its step takes")
	cmd.Flags().BoolVar(&f.share, "share", false, "print one line to paste into an issue")
	return func(ctx context.Context, _ []string) (report, error) {
		if err := check(); err != nil {
			return nil, err
		}
		f.rounds = *n
		if f.beside != "" && !besidePrecision(f.beside) && !slices.Contains(device.Sets("bf16"), f.beside) {
			return nil, cli.Usagef("--beside is %q: use fp32, bf16, on a GPU tf32, or an instruction set of this processor: %v", f.beside, device.Sets("bf16"))
		}
		if f.share && cmd.Flags().Changed("json") {
			return nil, cli.Usagef("--share prints one line and --json an object: use one of them")
		}
		r, err := a.benchStep(ctx, &f)
		if err != nil || !f.share {
			return r, err
		}
		_, err = fmt.Fprintln(a.Stdout, r.line(cli.ProbeCPU()))
		return nil, err
	}
}

// facts are of the step that was timed.
func (r *stepReport) facts() map[string]any { return r.step.Facts }

// Warming brings caches, clocks and predictors to where training has them. Steps that take longer
// than warmFor all together are warm after the first few.
const (
	warmSteps, warmLeast = 20, 2
	warmFor              = 2 * time.Second
)

// warm makes steps until there were enough of them, or enough is said to be.
func warm(step func() error, enough func() bool) error {
	for n := range warmSteps {
		if n >= warmLeast && enough() {
			return nil
		}
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// past tells whether so much time has gone since it was asked for.
func past(limit time.Duration) func() bool {
	began := time.Now()
	return func() bool { return time.Since(began) > limit }
}

func (a *app) benchStep(ctx context.Context, f *stepFlags) (*stepReport, error) {
	dev, s, cfg, err := a.Compiled(ctx, &f.ConfigFlags, &f.DeviceFlags)
	if err != nil {
		return nil, err
	}
	defer dev.Close()
	defer s.Close()
	if err := warm(s.Runner.Run, past(warmFor)); err != nil {
		return nil, err
	}
	r := &stepReport{Bench: "step", Config: cfg.Title(), Device: dev.Name(), Precision: run.Precision(dev), Batch: s.Program.Batch, Shard: s.Program.Shard, Rounds: f.rounds, Memory: s.Runner.Memory()}
	r.step = s
	if f.beside != "" {
		if r.Beside, err = a.stepsBeside(ctx, f, dev, s, cfg); err != nil {
			return nil, err
		}
	}
	return r, a.timeSteps(ctx, f, dev, s, r)
}

// timeSteps alternates steps and slices of the peak loop.
func (a *app) timeSteps(ctx context.Context, f *stepFlags, dev kernel.Device, s *run.Step, r *stepReport) error {
	peak := func() float64 { return 0 }
	cpu := strings.HasPrefix(dev.Name(), "cpu")
	if cpu {
		meter, err := device.NewPeakMeter(device.Options{Workers: f.Workers, Precision: run.Precision(dev)})
		if err != nil {
			return err
		}
		defer meter.Close()
		peak = meter.Rate
	}
	if _, err := s.FLOPs(); err != nil { // drops the warm-up's
		return err
	}
	// A card runs what is queued while the host goes on, so a round there is an epoch of tiny_1,
	// closed as training closes it: by reading the metrics.
	steps, flop := 1, int64(0)
	if !cpu {
		steps = 25
	}
	bar := a.NewBar(f.rounds, "rounds")
	defer bar.End()
	seconds, peaks := make([]float64, f.rounds), make([]float64, f.rounds)
	before, counters := peak(), *dev.Counters()
	for i := range seconds {
		if err := ctx.Err(); err != nil {
			return err
		}
		start := time.Now()
		for range steps {
			if err := s.Runner.Run(); err != nil {
				return err
			}
		}
		if !cpu {
			done, err := s.FLOPs()
			if err != nil {
				return err
			}
			flop += done
		}
		seconds[i] = time.Since(start).Seconds() / float64(steps)
		after := peak()
		peaks[i], before = (before+after)/2, after
		bar.Set(i + 1)
	}
	last, err := s.FLOPs()
	if err != nil {
		return err
	}
	flop += last
	n := float64(f.rounds * steps)
	c := dev.Counters()
	r.FLOP = float64(flop) / n
	r.DevAllocs = float64(c.Allocations - counters.Allocations)
	r.Launches = float64(c.Launches-counters.Launches) / n
	r.Copies = float64(c.CopiesIn+c.CopiesOut-counters.CopiesIn-counters.CopiesOut) / n
	if cpu {
		shares := make([]float64, f.rounds)
		for i, s := range seconds {
			shares[i] = r.FLOP / s / peaks[i]
		}
		top, share := quantile(peaks, 0.5)/1e9, quantile(shares, 0.5)
		r.Peak, r.Share = &top, &share
	}
	if r.Allocs, err = heapPerStep(s, past(heapFor)); err != nil {
		return err
	}
	mid := quantile(seconds, 0.5)
	r.MS, r.P10, r.P90 = 1e3*mid, 1e3*quantile(seconds, 0.1), 1e3*quantile(seconds, 0.9)
	r.PerSecond, r.Rate = float64(r.Batch)/mid, r.FLOP/mid/1e9
	return nil
}

// heapPerStep counts Go's heap objects in steps alone, without the reading of results that closes a
// round. The runtime's own objects count with them, now and then, so the least of a few tries is a
// step's. Where steps are so long that enough time has gone, a try is over after a step, and the
// first that counts nothing is the last.
func heapPerStep(s *run.Step, enough func() bool) (float64, error) {
	const steps, tries = 10, 5
	least := math.Inf(1)
	for try := range tries {
		if try > 0 && least == 0 && enough() {
			break
		}
		before, made := mallocs(), 0
		for made == 0 || made < steps && !enough() {
			if err := s.Runner.Run(); err != nil {
				return 0, err
			}
			made++
		}
		least = min(least, float64(mallocs()-before)/float64(made))
		if _, err := s.FLOPs(); err != nil { // waits for the device
			return 0, err
		}
	}
	return least, nil
}

// heapFor is how long allocations are counted before it is made short.
const heapFor = 2 * time.Second

func quantile(v []float64, q float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[int(q*float64(len(v)-1)+0.5)]
}

func (r *stepReport) print(w io.Writer, a *app) {
	fmt.Fprintf(w, "%s\n", a.Bold(fmt.Sprintf("%s: %s, %s, %s", r.Config, r.step.Shape, r.Device, r.Precision)))
	fmt.Fprintf(w, "step\t%.2f ms (%.2f to %.2f in eight of ten)\n", r.MS, r.P10, r.P90)
	speed := fmt.Sprintf("%.0f %s/s", r.PerSecond, r.step.Rows)
	if n := r.step.Tokens; n > 0 {
		speed += fmt.Sprintf(", %.0f tokens/s", r.PerSecond*float64(n))
	}
	fmt.Fprintf(w, "speed\t%s\n", speed)
	fmt.Fprintf(w, "work\t%.2f GFLOP per step, %.1f GFLOP/s\n", r.FLOP/1e9, r.Rate)
	if r.Share != nil {
		fmt.Fprintf(w, "peak\t%.1f GFLOP/s beside it: a share of %.1f %%\n", *r.Peak, 100**r.Share)
	}
	if b := r.Beside; b != nil {
		fmt.Fprintf(w, "beside\t%s in %s, in turn: %.2f ms against %.2f, %.2f times as long; at the quietest tenth %.2f against %.2f, %.2f times\n",
			b.Device, b.Precision, b.MS, b.Own, b.Ratio, b.P10, b.OwnP10, b.P10/b.OwnP10)
	}
	fmt.Fprintf(w, "per step\t%.3g launches, %.3g copies, %.3g Go allocations; device allocations in all: %g\n", r.Launches, r.Copies, r.Allocs, r.DevAllocs)
	fmt.Fprintf(w, "memory\t%.0f MiB, shards of %d\n", float64(r.Memory)/(1<<20), r.Shard)
}

// line is everything that another machine's figures are compared by, in one line without a tab.
func (r *stepReport) line(c cli.CPUReport) string {
	parts := []string{"haul bench step: " + cli.ReadVersion().String(), fmt.Sprintf("%s, %d cores", c.Model, c.Cores)}
	if c.Fast < c.Cores {
		parts[1] += fmt.Sprintf(" (%d fast)", c.Fast)
	}
	parts = append(parts, fmt.Sprintf("%s, batch %d", r.Config, r.Batch), fmt.Sprintf("%s in %s", r.Device, r.Precision),
		fmt.Sprintf("%.2f ms per step (%.2f to %.2f in eight of ten, %d rounds)", r.MS, r.P10, r.P90, r.Rounds), fmt.Sprintf("%.1f GFLOP/s", r.Rate))
	if r.Share != nil {
		parts = append(parts, fmt.Sprintf("%.1f %% of a peak of %.1f", 100**r.Share, *r.Peak))
	}
	if b := r.Beside; b != nil {
		parts = append(parts, fmt.Sprintf("%s takes %.2f times as long", b.Device, b.Ratio))
	}
	return strings.Join(parts, "; ")
}
