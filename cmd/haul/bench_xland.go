package main

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"haul/internal/rng"
	"haul/internal/world/xland"
)

// benchXLandFlags say what environments step.
type benchXLandFlags struct {
	tasks   string
	envs    int
	steps   int
	rounds  int
	workers int
	json    bool
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
}

func (a *app) newBenchXLand() *cobra.Command {
	var f benchXLandFlags
	cmd := &cobra.Command{
		Use:   "xland [ENV]",
		Short: "Steps per second of XLand-MiniGrid under random actions",
		Long: `Step environments of XLand-MiniGrid under random actions, on all cores and on one, and print steps per second. ENV is as the Python package names it,
XLand-MiniGrid-R1-9x9 or short R1-9x9. A step takes an action, applies rules, looks for the goal, draws a start where the episode ended, and writes the
view. Every environment has a task of its own, drawn as the public generator draws them. scripts/xland_beside.py runs this beside the Python package.`,
		Example: "  haul bench xland\n  haul bench xland R4-13x13 --tasks small --envs 8192 --json",
		Args:    atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			env := "R1-9x9"
			if len(args) > 0 {
				env = args[0]
			}
			return a.benchXLand(cmd, env, &f)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&f.tasks, "tasks", "trivial", strings.Join(xland.RecipeNames(), ", "))
	fs.IntVar(&f.envs, "envs", 4096, "environments that step together")
	fs.IntVar(&f.steps, "steps", 256, "steps of each environment in a round")
	fs.IntVar(&f.rounds, "rounds", 5, "rounds of which the median is taken")
	fs.IntVar(&f.workers, "workers", 0, "cores (default: all)")
	fs.BoolVar(&f.json, "json", false, "print one JSON object")
	return cmd
}

func (a *app) benchXLand(cmd *cobra.Command, env string, f *benchXLandFlags) error {
	switch {
	case f.envs < 1 || f.envs > 1<<20:
		return usagef("--envs is %d: want 1 to %d", f.envs, 1<<20)
	case f.steps < 1 || f.steps > 1<<20:
		return usagef("--steps is %d: want 1 to %d", f.steps, 1<<20)
	case f.rounds < 1:
		return usagef("--rounds is %d: at least 1 is needed", f.rounds)
	case cmd.Flags().Changed("workers") && f.workers < 1:
		return usagef("--workers is %d: at least 1 is needed", f.workers)
	}
	w, err := xland.New(env, xland.Tasks{Name: f.tasks, Seed: xland.PublicSeed})
	if err != nil {
		return asUsage(err)
	}
	workers := runtime.GOMAXPROCS(0)
	if f.workers > 0 {
		if workers, err = a.cores(f.workers); err != nil {
			return err
		}
	}
	tasks := make([]xland.ID, f.envs)
	for i := range tasks {
		tasks[i] = xland.ID(i)
	}
	r := xlandReport{Bench: "xland", Env: fmt.Sprintf("XLand-MiniGrid-%s-%dx%d", w.Layout, w.Size, w.Size), Tasks: f.tasks, Envs: f.envs, Steps: f.envs * f.steps, Rounds: f.rounds, Workers: workers}
	var speeds [2][]float64
	batches := make([]*xland.Batch, 2)
	for i, n := range []int{workers, 1} {
		if batches[i], err = xland.NewBatch(w, tasks, rng.NewJAXKey(0), n); err != nil {
			return err
		}
	}
	// Actions of a round, drawn ahead: drawing is not what is measured.
	actions := make([]uint8, f.envs*f.steps)
	for i := range actions {
		actions[i] = uint8(rng.Below(rng.At(0, uint64(i), 0, rng.Actions)[0], uint32(xland.NumActions)))
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
			if err := cmd.Context().Err(); err != nil {
				return err
			}
			speeds[i] = append(speeds[i], round(b, false))
		}
	}
	r.Allocations = float64(mallocs()-before) / float64(2*f.rounds*r.Steps)
	for i := range speeds {
		slices.Sort(speeds[i])
	}
	r.PerSecond, r.OneCore = speeds[0][f.rounds/2], speeds[1][f.rounds/2]
	if f.json {
		return a.emit(r)
	}
	return a.table(func(w io.Writer) {
		fmt.Fprintf(w, "%s\n", a.bold(fmt.Sprintf("%s, %s tasks, %d environments", r.Env, r.Tasks, r.Envs)))
		fmt.Fprintf(w, "%d workers\t%.2f million steps/s, median of %d rounds of %d steps\n", r.Workers, r.PerSecond/1e6, r.Rounds, r.Steps)
		fmt.Fprintf(w, "one worker\t%.2f million steps/s\n", r.OneCore/1e6)
		fmt.Fprintf(w, "a round\t%d episodes ended, %d of them with the goal; %.4f allocations per step\n", r.Episodes, r.Reached, r.Allocations)
	})
}
