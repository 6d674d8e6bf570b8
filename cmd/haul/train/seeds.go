package train

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"haul/cmd/haul/cli"
	"haul/cmd/haul/seeds"
	"haul/internal/config"
)

// trainSeeds trains once for each seed, in folders seed-N of --out, and prints a table. What has
// ended before is not trained again.
func (a *app) trainSeeds(cmd *cobra.Command, f *trainFlags) error {
	list, err := seeds.Parse(f.seeds)
	if err != nil {
		return err
	}
	switch {
	case cmd.Flags().Changed("seed") || f.resume != "":
		return cli.Usagef("--seeds begins a run for each seed: leave --seed and --resume out")
	case f.time > 0:
		return cli.Usagef("--seeds trains every run to its end: leave --time out; after Ctrl-C the same command continues")
	case f.out == "":
		return cli.Usagef("--seeds writes a run folder for each seed: name their parent folder with --out")
	}
	c, _, err := f.settings(cmd)
	if err != nil {
		return err
	}
	if ad, ok := c.(*config.AD); !ok || ad.ValidationGoals == 0 || !ad.EvalTune {
		return cli.Usagef("--seeds compares agents on held-out goals: it needs a model AD with validation_goals and eval_tune, for example ad_dr_compressed")
	}
	args := append([]string{"train"}, seeds.Given(cmd, "seeds", "out", "json", "force", "from")...)
	without := ""
	if f.force { // which trains every seed again
		without = ", but without --force,"
	}
	var rows []seeds.Row
	for _, s := range list {
		dir := filepath.Join(f.out, fmt.Sprint("seed-", s))
		own := *c.(*config.AD)
		if own.Seed = s; f.Changed("iterations") {
			own.TrainTimesteps = f.Int("iterations")
		}
		o := seeds.Run{Dir: dir, Force: f.force, Config: &own, Args: append(slices.Clone(args), "--seed", fmt.Sprint(s)), Histories: f.String("history"), From: f.from}
		r, err := seeds.Train(cmd.Context(), a.App, o)
		if err != nil {
			if cmd.Context().Err() != nil {
				fmt.Fprintf(a.Stderr, "The same command with --seeds%s continues at seed %d.\n", without, s)
			}
			return err
		}
		rows = append(rows, seeds.RowOf(s, dir, r))
	}
	if f.json {
		return a.Emit(map[string]any{"seeds": rows})
	}
	return a.Table(func(w io.Writer) { printSeeds(w, rows) })
}

func printSeeds(w io.Writer, rows []seeds.Row) {
	fmt.Fprintf(w, "seed\tweights of iteration\ttemperature, searching\tshare of the optimum, ± over goals\tlast episode\tarea\tseconds\n")
	for _, r := range rows {
		fmt.Fprintf(w, "%d\t%d\t%g, %g\t%.1f ± %.1f %%\t%.3f\t%.3f\t%.0f\n", r.Seed, r.Best, r.Temperature, r.Search, 100*r.Share, 100*r.ShareSE, r.Final, r.NAUC, r.Seconds)
	}
	mean, se, least := seeds.Over(rows, func(r *seeds.Row) float64 { return r.Share })
	final, finalSE, _ := seeds.Over(rows, func(r *seeds.Row) float64 { return r.Final })
	nauc, naucSE, _ := seeds.Over(rows, func(r *seeds.Row) float64 { return r.NAUC })
	if len(rows) == 1 {
		return // one seed has no spread
	}
	fmt.Fprintf(w, "mean\t\t\t%.1f ± %.1f %%, lowest %.1f\t%.3f ± %.3f\t%.3f ± %.3f\t\n", 100*mean, 100*se, 100*least, final, finalSE, nauc, naucSE)
	fmt.Fprintf(w, "\t± of means: standard error over %d seeds\n", len(rows))
}
