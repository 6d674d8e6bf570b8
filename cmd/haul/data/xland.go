package data

import (
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"haul/cmd/haul/cli"
	"haul/internal/recipe"
	"haul/internal/world/history"
	"haul/internal/world/xland"
)

// xlandFlags say which learners make histories of XLand-MiniGrid.
type xlandFlags struct {
	tasks     string
	taskSeed  uint32
	learn     int
	held      int
	histories int
	view      int
	horizon   int
	opaque    bool
	learner   string
	episodes  int
	steps     int
	noise     float64
	agent     string
	device    string
	precision string
	learning  recipe.Recurrent
	seed      uint64
	workers   int
	out       string
	force     bool
	json      bool
}

// xlandLearners are who can make the histories.
var xlandLearners = []string{"q", "search", "ppo"}

// xlandLearnerFlags are the flags that not every learner heeds.
var xlandLearnerFlags = []struct {
	flag     string
	learners []string
}{
	{"episodes", []string{"q"}}, {"steps", []string{"search", "ppo"}}, {"noise", []string{"search"}}, {"agent", []string{"search"}},
	{"envs", []string{"ppo"}}, {"rollout", []string{"ppo"}}, {"hidden", []string{"ppo"}}, {"rate", []string{"ppo"}}, {"entropy", []string{"ppo"}},
	{"device", []string{"search", "ppo"}}, {"precision", []string{"search", "ppo"}},
}

func (a *app) newDataXLand() *cobra.Command {
	f := xlandFlags{learning: recipe.DefaultRecurrent()}
	rules, search := xland.DefaultSchedule(), xland.DefaultSearching()
	cmd := &cobra.Command{
		Use:   "xland [ENV]",
		Short: "Write the histories of learners with a memory in tasks of XLand-MiniGrid",
		Long: `ENV is the environment by the name of the Python package xminigrid (Nikulin et al. 2023, https://arxiv.org/abs/2312.12044):
XLand-MiniGrid-R1-9x9 (the default), or R1-9x9 for short, is one room of 9 by 9 cells, and R4-13x13 is four rooms. An agent sees the 5
by 5 cells ahead of it; it can turn, walk, pick up, put down and open doors. A task is a hidden goal, and rules that turn objects into
others. Reaching the goal pays 1 - 0.9·steps/limit and ends the episode; every episode begins with the objects in other places. Steps,
views and starts are those of the package.

Tasks. --tasks trivial, small, medium or high draws tasks as the package's public generator does; the name of a file reads a benchmark of
the package (a pickle packed by bzip2). The first --learn tasks are for training. The next --held tasks whose rulesets are not among those
are held out.

Learners. --learner q is Q-learning whose values are sums over the objects that the learner remembers from the episode: by tile, by what
it holds, and by where they lie. --learner search knows which goals a task without rules may have, but not which goal its own task has. It
tries the nearest goal that is still possible, by the shortest way over the cells that it has seen, until one pays. Each of its
histories has about --steps transitions, and up to --noise of its actions are random. --learner ppo is a recurrent neural network trained
by proximal policy optimization, which knows nothing of tasks: it sees its view, its last action and what that led to. Each task has a
network of its own that starts without knowledge, acts in --envs environments at a time, and learns after every --rollout steps in each of
them. A history is one environment from the first step of learning to the last; --histories of the --envs are written. Such a learner
takes 10 to 30 seconds of a core per task, held-out tasks included, so name --learn and --held. In all cases the file keeps views only,
and records the action that the learner holds best (labels: best); a network holds best what it would do when it has learned.

The same flags give the same file, whatever the number of workers. haul train --config ad_xland --history FILE trains an agent on it.`,
		Example: "  haul data xland --learner search --learn 8000 --held 1024 --out data/xland.hist\n  haul data xland R2-9x9 --tasks small --learn 100 --held 16 --episodes 400 --out data/small.hist\n  haul data xland --learner ppo --learn 24 --held 8 --histories 4 --out data/networks.hist",
		Args:    cli.AtMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			env := "XLand-MiniGrid-R1-9x9"
			if len(args) > 0 {
				env = args[0]
			}
			return a.dataXLand(cmd, env, &f)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&f.tasks, "tasks", "trivial", "kind of tasks: "+strings.Join(xland.RecipeNames(), ", ")+", or a benchmark file of the package")
	fs.Uint32Var(&f.taskSeed, "task-seed", xland.PublicSeed, "random seed of the tasks")
	fs.IntVar(&f.learn, "learn", 500, "tasks for training")
	fs.IntVar(&f.held, "held", 64, "held-out tasks")
	fs.IntVar(&f.histories, "histories", 1, "histories per task for training")
	fs.IntVar(&f.view, "view", 5, "side of the square view, in cells: 3, 5 or 7")
	fs.IntVar(&f.horizon, "horizon", 0, "longest episode in steps (default: 3·height·width)")
	fs.BoolVar(&f.opaque, "opaque", false, "let walls and closed doors hide what lies behind them")
	fs.StringVar(&f.learner, "learner", "q", "who makes the histories: q (Q-learning with a memory), search (tries goals one after another; for tasks without rules) or ppo (recurrent networks)")
	fs.IntVar(&f.episodes, "episodes", rules.Episodes, "episodes per history, with --learner q")
	fs.IntVar(&f.steps, "steps", 0, fmt.Sprintf("with --learner search: a history ends with the first episode that ends after this many steps (default %d); with ppo: steps of each environment (default %d)", search.Steps, f.learning.Steps))
	fs.Float64Var(&f.noise, "noise", search.Noise, "with --learner search: largest share of random actions in an episode; each episode has its own")
	fs.StringVar(&f.agent, "agent", "", "with --learner search: trained agent (run folder or .safetensors file) that makes every second history, labelled with the searcher's actions")
	fs.StringVar(&f.device, "device", "auto", "where --agent and networks compute: cpu, cuda:K, or auto (for --agent the fastest, for networks the CPU)")
	fs.StringVar(&f.precision, "precision", "", "precision of --agent: fp32, bf16, tf32 (on a GPU), or auto; of networks: fp32 or tf32 (on a GPU)")
	fs.IntVar(&f.learning.Envs, "envs", f.learning.Envs, "with --learner ppo: environments per network")
	fs.IntVar(&f.learning.Rollout, "rollout", f.learning.Rollout, "with --learner ppo: steps between two updates, and how far back a gradient reaches")
	fs.IntVar(&f.learning.Hidden, "hidden", f.learning.Hidden, "with --learner ppo: recurrent units, and width of the layer before them")
	fs.Float64Var(&f.learning.Rate, "rate", f.learning.Rate, "with --learner ppo: learning rate")
	fs.Float64Var(&f.learning.Entropy, "entropy", f.learning.Entropy, "with --learner ppo: weight of the policy's entropy in the loss")
	fs.Uint64Var(&f.seed, "seed", 0, "random seed of the learners and the starts")
	fs.IntVar(&f.workers, "workers", 0, "learners at the same time (default: one per core); the file does not depend on it")
	fs.StringVar(&f.out, "out", "", "file to write; a missing folder is created (default data/xland-TASKS.hist)")
	fs.BoolVar(&f.force, "force", false, "replace the file in --out")
	fs.BoolVar(&f.json, "json", false, "print one JSON object")
	return cmd
}

func (a *app) dataXLand(cmd *cobra.Command, env string, f *xlandFlags) (failed error) {
	given := cmd.Flags().Changed
	switch {
	case f.learn < 1:
		return cli.Usagef("--learn is %d: at least 1 is needed", f.learn)
	case f.held < 1:
		return cli.Usagef("--held is %d: at least 1 is needed", f.held)
	case f.episodes < 1 || f.episodes > 1<<20:
		return cli.Usagef("--episodes is %d: it must be 1 to %d", f.episodes, 1<<20)
	case f.histories < 1:
		return cli.Usagef("--histories is %d: at least 1 is needed", f.histories)
	case given("horizon") && f.horizon < 1:
		return cli.Usagef("--horizon is %d: at least 1 is needed", f.horizon)
	case given("workers") && f.workers < 1:
		return cli.Usagef("--workers is %d: at least 1 is needed", f.workers)
	}
	o := history.XLandOptions{Histories: f.histories, Schedule: xland.DefaultSchedule(), Seed: f.seed, Path: f.out, Workers: f.workers}
	o.Schedule.Episodes = f.episodes
	check := o.Schedule.Check
	if !slices.Contains(xlandLearners, f.learner) {
		return cli.Usagef("--learner is %q: use q, search or ppo", f.learner)
	}
	for _, of := range xlandLearnerFlags {
		if given(of.flag) && !slices.Contains(of.learners, f.learner) {
			return cli.Usagef("--%s needs --learner %s, and the learner is %s", of.flag, strings.Join(of.learners, " or "), f.learner)
		}
	}
	switch f.learner {
	case "search":
		for _, flag := range []string{"device", "precision"} {
			if given(flag) && f.agent == "" {
				return cli.Usagef("--%s needs --agent or --learner ppo: searchers alone use no device", flag)
			}
		}
		o.Search = &xland.Searching{Steps: xland.DefaultSearching().Steps, Noise: f.noise}
		if given("steps") {
			o.Search.Steps = f.steps
		}
		check = o.Search.Check
	case "ppo":
		if given("steps") {
			f.learning.Steps = f.steps
		}
		if f.histories > f.learning.Envs {
			return cli.Usagef("--histories is %d, and a network has %d environments: use more --envs", f.histories, f.learning.Envs)
		}
		check = f.checkDevice // and the rest once the world is known
	}
	if err := check(); err != nil {
		return cli.AsUsage(err)
	}
	drawn := xland.Tasks{Name: f.tasks, Seed: f.taskSeed}
	var file *xland.File
	if _, known := xland.Recipes[f.tasks]; !known {
		var err error
		if file, err = xland.OpenFile(f.tasks); err != nil {
			return cli.Usagef("--tasks is neither one of %s nor a readable benchmark file: %v", strings.Join(xland.RecipeNames(), ", "), err)
		}
		if given("task-seed") {
			return cli.Usagef("--task-seed draws tasks, and --tasks names a file of them")
		}
		drawn = xland.Tasks{Name: "trivial"} // until the tasks are chosen
	}
	w, err := xland.New(env, drawn)
	if err != nil {
		return cli.AsUsage(err)
	}
	w.View, w.Opaque = f.view, f.opaque
	if f.horizon > 0 {
		w.Horizon = f.horizon
	}
	pick := xland.Choose{Learn: f.learn, Held: f.held}
	if o.World, err = pick.From(w, file, filepath.Base(f.tasks)); err != nil {
		return cli.AsUsage(err)
	}
	o.Learn, o.Held = pick.Learned, pick.HeldOut
	if err := o.Searchable(); err != nil {
		return cli.AsUsage(err)
	}
	if f.learner == "ppo" {
		if err := f.learning.Check(o.World); err != nil {
			return cli.AsUsage(err)
		}
	}
	if o.Path == "" {
		o.Path = "data/xland-" + o.World.Tasks.Name + ".hist"
	}
	if o.Workers == 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	} else if o.Workers, err = a.Cores(f.workers); err != nil {
		return err
	}
	if err := (&darkroomFlags{out: o.Path, force: f.force}).free(); err != nil {
		return err
	}
	if pick.Shared > 0 {
		fmt.Fprintf(a.Stderr, "%d of the %d tasks held out have the goal and the rules of a task to learn from, among other objects\n", pick.Shared, f.held)
	}
	bar := a.NewBar(100, "percent")
	defer bar.End()
	switch {
	case f.learner == "ppo":
		closing, err := a.withNetworks(f, &o, bar)
		if err != nil {
			return err
		}
		defer func() { failed = cli.FirstOf(failed, closing()) }()
	case f.agent != "":
		closing, err := a.withAgents(cmd, f, &o)
		if err != nil {
			return err
		}
		defer func() { failed = cli.FirstOf(failed, closing()) }()
	}
	if o.Progress == nil {
		o.Progress = func(done, of int) { bar.Set(100 * done / of) }
	}
	err = history.MakeXLand(cmd.Context(), o)
	bar.End()
	if err != nil {
		return err
	}
	return a.dataShow(o.Path, "", f.json)
}
