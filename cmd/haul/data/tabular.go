package data

import (
	"runtime"

	"github.com/spf13/cobra"

	"haul/cmd/haul/cli"
	"haul/internal/world/episodic"
	"haul/internal/world/history"
)

// tabularFlags say which learners make histories.
type tabularFlags struct {
	learner  string
	episodes int
	horizon  int
	seed     uint64
	workers  int
	out      string
	first    float64
	last     float64
	force    bool
	json     bool
}

func (a *app) newDataTabular() *cobra.Command {
	var f tabularFlags
	cmd := &cobra.Command{
		Use:   "tabular NAME",
		Short: "Write the histories of tabular learners in the published sets of Dark Room and Key-to-Door",
		Long: `The sets are those on which Tarasov et al. ("Yes, Q-Learning Helps Offline In-Context RL") compare methods, and sets like them in rooms
of up to 64 by 64 cells. NAME follows the paper: DR19-300-5 is Dark Room of 19 by 19 cells with 300 goals for training and 5 histories
per goal; K2D13-250-1 is Key-to-Door of 13 by 13 cells. Dark Room starts in the centre and pays 1 on the goal. Key-to-Door starts in any
cell and pays 1 for the key and 1 for the door. An episode ends when the task is done. In Dark Room all other goals are held out, in
Key-to-Door 100 of them, or all if they are fewer.

A history is 200 episodes of tabular Q-learning with discount 0.9. The share of random actions falls linearly to zero over the first
nine tenths of the episodes. In Key-to-Door the learner's state includes whether it holds the key. --learner noise replaces the learner by
an expert whose share of random actions falls (AD-ε, Zisman et al. 2024). --epsilon-last 0.8 keeps four of five actions random to the
end: imitation learns little from such histories, and method iql can learn more.

The same NAME and flags give the same file, whatever the number of workers. haul train --config ad_tabular --history FILE trains an agent
on it. haul bench worlds measures the published table.`,
		Example: "  haul data tabular DR9-70-5\n  haul data tabular K2D5-40-2 --seed 1 --out data/doors.hist\n  haul data tabular DR9-70-5 --learner noise --out data/noise.hist",
		Args:    cli.One("a set, for example DR9-70-5"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.dataTabular(cmd, args[0], &f) },
	}
	fs := cmd.Flags()
	fs.StringVar(&f.learner, "learner", string(episodic.QLearning), "who makes the histories: q (tabular Q-learning) or noise (an expert with falling noise)")
	fs.IntVar(&f.episodes, "episodes", episodic.Published().Episodes, "episodes per history")
	fs.Float64Var(&f.first, "epsilon-first", episodic.Published().First, "share of random actions in the first episode")
	fs.Float64Var(&f.last, "epsilon-last", episodic.Published().Final, "share of random actions in the last tenth of the episodes")
	fs.IntVar(&f.horizon, "horizon", 0, "longest episode in steps (default: as published, or by the size of the room)")
	fs.Uint64Var(&f.seed, "seed", 0, "random seed of the goals and the learners")
	fs.IntVar(&f.workers, "workers", 0, "learners at the same time (default: one per core); the file does not depend on it")
	fs.StringVar(&f.out, "out", "", "file to write; a missing folder is created (default data/NAME.hist)")
	fs.BoolVar(&f.force, "force", false, "replace the file in --out")
	fs.BoolVar(&f.json, "json", false, "print one JSON object")
	return cmd
}

func (a *app) dataTabular(cmd *cobra.Command, name string, f *tabularFlags) error {
	switch given := cmd.Flags().Changed; {
	case given("horizon") && f.horizon < 1:
		return cli.Usagef("--horizon is %d: at least 1 is needed", f.horizon)
	case given("workers") && f.workers < 1:
		return cli.Usagef("--workers is %d: at least 1 is needed", f.workers)
	case f.episodes < 1 || f.episodes > 1<<20:
		return cli.Usagef("--episodes is %d: it must be 1 to %d", f.episodes, 1<<20)
	case !(f.first >= 0 && f.first <= 1):
		return cli.Usagef("--epsilon-first is %g: it must be 0 to 1", f.first)
	case !(f.last >= 0 && f.last <= 1):
		return cli.Usagef("--epsilon-last is %g: it must be 0 to 1", f.last)
	case f.learner != string(episodic.QLearning) && f.learner != string(episodic.Noise):
		return cli.Usagef("--learner is %q: use %s or %s", f.learner, episodic.QLearning, episodic.Noise)
	}
	set, err := episodic.ParseSet(name, f.horizon)
	if err != nil {
		return cli.AsUsage(err)
	}
	o := history.EpisodicOptions{Set: set, Schedule: episodic.Published(), Seed: f.seed, Path: f.out, Workers: f.workers}
	o.Schedule.Learner, o.Schedule.Episodes = episodic.Learner(f.learner), f.episodes
	o.Schedule.First, o.Schedule.Final = f.first, f.last
	if err := o.Schedule.Check(); err != nil {
		return cli.AsUsage(err)
	}
	if o.Path == "" {
		o.Path = "data/" + name + ".hist"
	}
	if o.Workers == 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	} else if o.Workers, err = a.Cores(f.workers); err != nil {
		return err
	}
	if err := (&darkroomFlags{out: o.Path, force: f.force}).free(); err != nil {
		return err
	}
	bar := a.NewBar(100, "percent")
	o.Progress = func(done, of int) { bar.Set(100 * done / of) }
	err = history.MakeEpisodic(cmd.Context(), o)
	bar.End()
	if err != nil {
		return err
	}
	return a.dataShow(o.Path, "", f.json)
}
