package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"haul/internal/config"
	"haul/internal/recipe"
	"haul/internal/run"
	"haul/internal/stats"
)

// maxSeeds bounds a list of seeds, so that a typing error does not start years of work.
const maxSeeds = 1000

// parseSeeds reads 1..5, or 1,2,7, or both.
func parseSeeds(text string) (out []uint64, err error) {
	seen := map[uint64]bool{}
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(strings.TrimSpace(part), "..")
		if !isRange {
			to = from
		}
		a, errA := strconv.ParseUint(from, 10, 63)
		b, errB := strconv.ParseUint(to, 10, 63)
		switch {
		case errA != nil || errB != nil:
			return nil, usagef("--seeds %q: write seeds as 1..5 or 1,2,7", text)
		case b < a:
			return nil, usagef("--seeds %q: %s runs backwards, write %d..%d", text, part, b, a)
		}
		for s := a; s <= b; s++ {
			if seen[s] {
				return nil, usagef("--seeds %q names %d twice", text, s)
			}
			if len(out) == maxSeeds {
				return nil, usagef("--seeds %q: more than %d seeds", text, maxSeeds)
			}
			seen[s] = true
			out = append(out, s)
		}
	}
	return out, nil
}

// agentResult is what a run's result.json tells of agents on goals held out.
type agentResult struct {
	Best    int     `json:"best_iteration"`
	Seconds float64 `json:"seconds"`
	HeldOut *struct {
		Final       float64 `json:"final"`
		FinalSE     float64 `json:"final_se"`
		NAUC        float64 `json:"nauc"`
		NAUCSE      float64 `json:"nauc_se"`
		Share       float64 `json:"share_of_optimum"`
		ShareSE     float64 `json:"share_of_optimum_se"`
		Optimal     float64 `json:"optimal"`
		Episodes    int     `json:"episodes"`
		Temperature float64 `json:"temperature"`
		Search      float64 `json:"search_temperature"`
	} `json:"held_out"`
}

// readResult is that of a run folder.
func readResult(dir string) (*agentResult, error) {
	path := filepath.Join(dir, run.ResultName)
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	out := new(agentResult)
	if err := json.Unmarshal(text, out); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if out.HeldOut == nil {
		return nil, fmt.Errorf("%s tells of no goals held out: an agent's run ends with them where validation_goals and eval_tune are set", path)
	}
	return out, nil
}

// seedRow is one seed's line of a table.
type seedRow struct {
	Seed        uint64  `json:"seed"`
	Dir         string  `json:"dir"`
	Final       float64 `json:"final"`
	NAUC        float64 `json:"nauc"`
	Share       float64 `json:"share_of_optimum"`
	ShareSE     float64 `json:"share_of_optimum_se"` // over goals
	Best        int     `json:"best_iteration"`
	Temperature float64 `json:"temperature"`
	Search      float64 `json:"search_temperature"`
	Seconds     float64 `json:"seconds"`
	Episodes    int     `json:"episodes"` // of which Final is the last
}

func rowOf(seed uint64, dir string, r *agentResult) seedRow {
	h := r.HeldOut
	return seedRow{seed, dir, h.Final, h.NAUC, h.Share, h.ShareSE, r.Best, h.Temperature, h.Search, r.Seconds, h.Episodes}
}

// over is the mean of a figure over seeds, its standard error and its lowest.
func over(rows []seedRow, figure func(*seedRow) float64) (mean, se, least float64) {
	v := make([]float64, len(rows))
	for i := range rows {
		v[i] = figure(&rows[i])
		if i == 0 || v[i] < least {
			least = v[i]
		}
	}
	mean, se = stats.MeanSE(v)
	return mean, se, least
}

// trainSeeds trains once for each seed, in folders seed-N of --out, and prints a table. What has
// ended before is not trained again.
func (a *app) trainSeeds(cmd *cobra.Command, f *trainFlags) error {
	seeds, err := parseSeeds(f.seeds)
	if err != nil {
		return err
	}
	switch {
	case cmd.Flags().Changed("seed") || f.resume != "":
		return usagef("--seeds begins a run for each seed: leave --seed and --resume out")
	case f.time > 0:
		return usagef("--seeds trains every run to its end: leave --time out; after Ctrl-C the same command continues")
	case f.out == "":
		return usagef("--seeds writes a run folder for each seed: name their parent folder with --out")
	}
	c, _, err := f.settings(cmd)
	if err != nil {
		return err
	}
	if ad, ok := c.(*config.AD); !ok || ad.ValidationGoals == 0 || !ad.EvalTune {
		return usagef("--seeds compares agents on held-out goals: it needs a model AD with validation_goals and eval_tune, for example ad_dr_compressed")
	}
	args := append([]string{"train"}, given(cmd, "seeds", "out", "json", "force", "from")...)
	without := ""
	if f.force { // which trains every seed again
		without = ", but without --force,"
	}
	var rows []seedRow
	for _, s := range seeds {
		dir := filepath.Join(f.out, fmt.Sprint("seed-", s))
		own := *c.(*config.AD)
		if own.Seed = s; f.Changed("iterations") {
			own.TrainTimesteps = f.Int("iterations")
		}
		o := runOf{dir: dir, force: f.force, c: &own, args: append(slices.Clone(args), "--seed", fmt.Sprint(s)), histories: f.String("history"), from: f.from}
		r, err := a.trained(cmd.Context(), o)
		if err != nil {
			if cmd.Context().Err() != nil {
				fmt.Fprintf(a.stderr, "The same command with --seeds%s continues at seed %d.\n", without, s)
			}
			return err
		}
		rows = append(rows, rowOf(s, dir, r))
	}
	if f.json {
		return a.emit(map[string]any{"seeds": rows})
	}
	return a.table(func(w io.Writer) { printSeeds(w, rows) })
}

func printSeeds(w io.Writer, rows []seedRow) {
	fmt.Fprintf(w, "seed\tweights of iteration\ttemperature, searching\tshare of the optimum, ± over goals\tlast episode\tarea\tseconds\n")
	for _, r := range rows {
		fmt.Fprintf(w, "%d\t%d\t%g, %g\t%.1f ± %.1f %%\t%.3f\t%.3f\t%.0f\n", r.Seed, r.Best, r.Temperature, r.Search, 100*r.Share, 100*r.ShareSE, r.Final, r.NAUC, r.Seconds)
	}
	mean, se, least := over(rows, func(r *seedRow) float64 { return r.Share })
	final, finalSE, _ := over(rows, func(r *seedRow) float64 { return r.Final })
	nauc, naucSE, _ := over(rows, func(r *seedRow) float64 { return r.NAUC })
	if len(rows) == 1 {
		return // one seed has no spread
	}
	fmt.Fprintf(w, "mean\t\t\t%.1f ± %.1f %%, lowest %.1f\t%.3f ± %.3f\t%.3f ± %.3f\t\n", 100*mean, 100*se, 100*least, final, finalSE, nauc, naucSE)
	fmt.Fprintf(w, "\t± of means: standard error over %d seeds\n", len(rows))
}

// runOf is one run of a table.
type runOf struct {
	dir       string
	force     bool // train it again
	c         *config.AD
	args      []string // of the command line, without the folder and --from
	histories string
	from      string // weights to begin with; "" for its own
}

// trained is the result of a run in this folder with these settings: one that has ended, else of
// this command line, which goes on where it was interrupted.
func (a *app) trained(ctx context.Context, o runOf) (*agentResult, error) {
	dir, args := o.dir, o.args
	last := filepath.Join(dir, run.LastName)
	_, err := os.Stat(last)
	if begun := err == nil; !begun || o.force {
		args = append(args, "--out", dir, "--force")
		if o.from != "" {
			args = append(args, "--from", o.from)
		}
	} else {
		if err := sameSettings(dir, o.c); err != nil {
			return nil, err
		}
		from, err := (&trainFlags{from: o.from}).weights()
		if err != nil {
			return nil, err
		}
		if err := recipe.SameStart(last, o.histories, from); err != nil {
			return nil, fmt.Errorf("%s: %w: name another folder with --out, or train again with --force", dir, err)
		}
		if r, err := readResult(dir); err == nil {
			fmt.Fprintf(a.stderr, "%s has ended before: its result is taken\n", dir)
			return r, nil
		}
		args = append(args, "--resume", dir)
	}
	fmt.Fprintf(a.stderr, "haul %s\n", strings.Join(args, " "))
	if code := execute(ctx, args, io.Discard, a.stderr); code != exitDone {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("the run in %s failed, as said above", dir)
	}
	return readResult(dir)
}

// sameSettings refuses a run in this folder that was made with settings that matter and are others
// here: its result would stand in a table that it does not belong to.
func sameSettings(dir string, c *config.AD) error {
	was, err := config.LoadAny(config.RecipeAD, filepath.Join(dir, run.ConfigName), nil)
	if err != nil {
		return err
	}
	// what a run may be resumed with is left out, but how long it is and how it is judged
	now := *c
	now.NumWorkers, now.Prefetch = was.(*config.AD).NumWorkers, was.(*config.AD).Prefetch
	if err := run.SameSettings(was, &now); err != nil {
		return fmt.Errorf("%s: %w, or name another folder with --out, or train again with --force", dir, err)
	}
	return nil
}

// given is the command line of the flags that were given, some left out.
func given(cmd *cobra.Command, but ...string) (args []string) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		for _, b := range but {
			if f.Name == b {
				return
			}
		}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			for _, v := range list.GetSlice() {
				args = append(args, "--"+f.Name+"="+v)
			}
			return
		}
		args = append(args, "--"+f.Name+"="+f.Value.String())
	})
	return args
}
