package bench

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"haul/cmd/haul/cli"
	"haul/internal/rng"
	"haul/internal/world/xland"
	"haul/internal/world/xland/gpu"
)

// benchXLandFlags say what environments step.
type benchXLandFlags struct {
	tasks   string
	envs    int
	steps   int
	rounds  int
	workers int
	device  string
}

// xlandReport is what they did.
type xlandReport struct {
	Bench       string  `json:"bench"`
	Env         string  `json:"env"`
	Tasks       string  `json:"tasks"`
	Envs        int     `json:"envs"`
	Steps       int     `json:"steps_per_round"` // of all environments
	Rounds      int     `json:"rounds"`
	Workers     int     `json:"workers"`
	PerSecond   float64 `json:"steps_per_second"` // median over the rounds
	OneCore     float64 `json:"steps_per_second_one_core"`
	Episodes    int     `json:"episodes"` // that ended, of all rounds on all workers
	Reached     int     `json:"reached"`  // of them with the goal
	Allocations float64 `json:"allocations_per_step"`
	Device      string  `json:"device,omitempty"`                             // a GPU's: workers and one core have no meaning there
	AtOnce      float64 `json:"steps_per_second_all_in_one_launch,omitempty"` // of a round, on a GPU
}

var xlandSteps = benchmark{
	use:   "xland [ENV]",
	short: "Time steps of XLand-MiniGrid under random actions",
	long: `Environments step under random actions, on all cores and on one. ENV is the environment by the name of the Python package,
XLand-MiniGrid-R1-9x9 or R1-9x9 for short. A step takes an action, applies the rules, looks for the goal, draws a new start if the
episode ended, and writes the view. Every environment has its own task, drawn as the public generator draws them. With --device cuda:0
environments step on a GPU: one launch per step, as an agent needs it, and then all steps of a round in one launch.
scripts/xland_beside.py compares this with the Python package.`,
	example: "  haul bench xland\n  haul bench xland R4-13x13 --tasks small --envs 8192 --json\n  haul bench xland --device cuda:0 --envs 65536",
	names:   1,
	open:    openXLand,
}

func openXLand(a *app, cmd *cobra.Command) func(context.Context, []string) (report, error) {
	var f benchXLandFlags
	fs := cmd.Flags()
	fs.StringVar(&f.tasks, "tasks", "trivial", "kind of tasks: "+strings.Join(xland.RecipeNames(), ", "))
	fs.IntVar(&f.envs, "envs", 4096, "environments that step at the same time")
	fs.IntVar(&f.steps, "steps", 256, "steps per environment and round")
	n, check := rounds(cmd, 5, medianText)
	fs.IntVar(&f.workers, "workers", 0, "CPU cores to use (default: all)")
	fs.StringVar(&f.device, "device", "cpu", "where to compute: cpu or cuda:K")
	return func(ctx context.Context, names []string) (report, error) {
		f.rounds = *n
		if err := check(); err != nil {
			return nil, err
		}
		return a.benchXLand(ctx, cmd, append(names, "R1-9x9")[0], &f)
	}
}

func (a *app) benchXLand(ctx context.Context, cmd *cobra.Command, env string, f *benchXLandFlags) (report, error) {
	switch {
	case f.envs < 1 || f.envs > 1<<20:
		return nil, cli.Usagef("--envs is %d: want 1 to %d", f.envs, 1<<20)
	case f.steps < 1 || f.steps > 1<<20:
		return nil, cli.Usagef("--steps is %d: want 1 to %d", f.steps, 1<<20)
	case cmd.Flags().Changed("workers") && f.workers < 1:
		return nil, cli.Usagef("--workers is %d: at least 1 is needed", f.workers)
	}
	card, onCard, err := xlandCard(f.device)
	switch {
	case err != nil:
		return nil, err
	case onCard && cmd.Flags().Changed("workers"):
		return nil, cli.Usagef("--workers are cores: leave it out with --device %s", f.device)
	}
	w, err := xland.New(env, xland.Tasks{Name: f.tasks, Seed: xland.PublicSeed})
	if err != nil {
		return nil, cli.AsUsage(err)
	}
	workers := runtime.GOMAXPROCS(0)
	if f.workers > 0 {
		if workers, err = a.Cores(f.workers); err != nil {
			return nil, err
		}
	}
	tasks := make([]xland.ID, f.envs)
	for i := range tasks {
		tasks[i] = xland.ID(i)
	}
	r := xlandReport{Bench: "xland", Env: fmt.Sprintf("XLand-MiniGrid-%s-%dx%d", w.Layout, w.Size, w.Size), Tasks: f.tasks, Envs: f.envs, Steps: f.envs * f.steps, Rounds: f.rounds, Workers: workers}
	// Actions of a round, drawn ahead: drawing is not what is measured.
	actions := make([]uint8, f.envs*f.steps)
	for i := range actions {
		actions[i] = uint8(rng.Below(rng.At(0, uint64(i), 0, rng.Actions)[0], uint32(xland.NumActions)))
	}
	if onCard {
		r.Device, r.Workers = f.device, 0
		if err := benchXLandOn(ctx, card, w, tasks, actions, f, &r); err != nil {
			return nil, err
		}
		return &r, nil
	}
	var speeds [2][]float64
	batches := make([]*xland.Batch, 2)
	for i, n := range []int{workers, 1} {
		if batches[i], err = xland.NewBatch(w, tasks, rng.NewJAXKey(0), n); err != nil {
			return nil, err
		}
	}
	round := func(b *xland.Batch, count bool) float64 {
		began := time.Now()
		for t := range f.steps {
			b.Step(actions[t*f.envs:][:f.envs])
			if count {
				for i, ends := range b.Ends {
					if ends {
						r.Episodes++
						if b.Rewards[i] > 0 {
							r.Reached++
						}
					}
				}
			}
		}
		return float64(r.Steps) / time.Since(began).Seconds()
	}
	round(batches[0], true) // warms up, and counts
	before := mallocs()
	for range f.rounds {
		for i, b := range batches {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			speeds[i] = append(speeds[i], round(b, false))
		}
	}
	r.Allocations = float64(mallocs()-before) / float64(2*f.rounds*r.Steps)
	for i := range speeds {
		slices.Sort(speeds[i])
	}
	r.PerSecond, r.OneCore = speeds[0][f.rounds/2], speeds[1][f.rounds/2]
	return &r, nil
}

func (r *xlandReport) print(w io.Writer, a *app) {
	fmt.Fprintf(w, "%s\n", a.Bold(fmt.Sprintf("%s, %s tasks, %d environments", r.Env, r.Tasks, r.Envs)))
	if r.Device != "" {
		fmt.Fprintf(w, "%s\t%.2f million steps/s, a launch for each, median of %d rounds of %d steps\n", r.Device, r.PerSecond/1e6, r.Rounds, r.Steps)
		fmt.Fprintf(w, "in one launch\t%.2f million steps/s\n", r.AtOnce/1e6)
		fmt.Fprintf(w, "a round\t%d episodes ended, %d of them with the goal\n", r.Episodes, r.Reached)
		return
	}
	fmt.Fprintf(w, "%d workers\t%.2f million steps/s, median of %d rounds of %d steps\n", r.Workers, r.PerSecond/1e6, r.Rounds, r.Steps)
	fmt.Fprintf(w, "one worker\t%.2f million steps/s\n", r.OneCore/1e6)
	fmt.Fprintf(w, "a round\t%d episodes ended, %d of them with the goal; %.4f allocations per step\n", r.Episodes, r.Reached, r.Allocations)
}

// xlandCard is the number of the GPU that a device's name means, if it means one.
func xlandCard(name string) (card int, is bool, err error) {
	if name == "cpu" {
		return 0, false, nil
	}
	number, found := strings.CutPrefix(name, "cuda:")
	card, err = strconv.Atoi(number)
	if !found || err != nil || card < 0 {
		return 0, false, cli.Usagef("unknown --device %q: use cpu or cuda:K", name)
	}
	return card, true, nil
}

// benchXLandOn steps environments on a GPU.
func benchXLandOn(ctx context.Context, card int, w xland.World, tasks []xland.ID, actions []uint8, f *benchXLandFlags, r *xlandReport) (err error) {
	b, err := gpu.New(card, w, tasks, rng.NewJAXKey(0))
	if err != nil {
		return err
	}
	defer func() { err = cli.FirstOf(err, b.Close()) }()
	if err := b.Actions(actions); err != nil {
		return err
	}
	round := func(each int) (float64, error) {
		began := time.Now()
		for t := 0; t < f.steps; t += each {
			if err := b.Step(t, each); err != nil {
				return 0, err
			}
		}
		return float64(r.Steps) / time.Since(began).Seconds(), nil
	}
	if _, err := round(1); err != nil { // warms up, and counts
		return err
	}
	if r.Episodes, r.Reached, err = b.Counts(); err != nil {
		return err
	}
	var speeds [2][]float64
	for range f.rounds {
		for i, each := range []int{1, f.steps} {
			if err := ctx.Err(); err != nil {
				return err
			}
			speed, err := round(each)
			if err != nil {
				return err
			}
			speeds[i] = append(speeds[i], speed)
		}
	}
	for i := range speeds {
		slices.Sort(speeds[i])
	}
	r.PerSecond, r.AtOnce = speeds[0][f.rounds/2], speeds[1][f.rounds/2]
	return nil
}
