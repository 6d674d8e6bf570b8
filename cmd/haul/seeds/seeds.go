// Package seeds trains one run per random seed in processes of their own and reads their results.
package seeds

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"haul/cmd/haul/cli"
	"haul/internal/config"
	"haul/internal/recipe"
	"haul/internal/run"
	"haul/internal/stats"
)

// maxSeeds bounds a list of seeds, so that a typing error does not start years of work.
const maxSeeds = 1000

// Parse reads 1..5, or 1,2,7, or both.
func Parse(text string) (out []uint64, err error) {
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
			return nil, cli.Usagef("--seeds %q: write seeds as 1..5 or 1,2,7", text)
		case b < a:
			return nil, cli.Usagef("--seeds %q: %s runs backwards, write %d..%d", text, part, b, a)
		}
		for s := a; s <= b; s++ {
			if seen[s] {
				return nil, cli.Usagef("--seeds %q names %d twice", text, s)
			}
			if len(out) == maxSeeds {
				return nil, cli.Usagef("--seeds %q: more than %d seeds", text, maxSeeds)
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

// ReadResult is that of a run folder.
func ReadResult(dir string) (*agentResult, error) {
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

// Row is one seed's line of a table.
type Row struct {
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

func RowOf(seed uint64, dir string, r *agentResult) Row {
	h := r.HeldOut
	return Row{seed, dir, h.Final, h.NAUC, h.Share, h.ShareSE, r.Best, h.Temperature, h.Search, r.Seconds, h.Episodes}
}

// Over is the mean of a figure over seeds, its standard error and its lowest.
func Over(rows []Row, figure func(*Row) float64) (mean, se, least float64) {
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

// Run is one run of a table.
type Run struct {
	Dir       string
	Force     bool // train it again
	Config    *config.AD
	Args      []string // of the command line, without the folder and --from
	Histories string
	From      string // weights to begin with; "" for its own
}

// trained is the result of a run in this folder with these settings: one that has ended, else of
// this command line, which goes on where it was interrupted.
func Train(ctx context.Context, a *cli.App, o Run) (*agentResult, error) {
	dir, args := o.Dir, o.Args
	last := filepath.Join(dir, run.LastName)
	_, err := os.Stat(last)
	if begun := err == nil; !begun || o.Force {
		args = append(args, "--out", dir, "--force")
		if o.From != "" {
			args = append(args, "--from", o.From)
		}
	} else {
		if err := sameSettings(dir, o.Config); err != nil {
			return nil, err
		}
		from, err := cli.WeightsFrom(o.From)
		if err != nil {
			return nil, err
		}
		if err := recipe.SameStart(last, o.Histories, from); err != nil {
			return nil, fmt.Errorf("%s: %w: name another folder with --out, or train again with --force", dir, err)
		}
		if r, err := ReadResult(dir); err == nil {
			fmt.Fprintf(a.Stderr, "%s has ended before: its result is taken\n", dir)
			return r, nil
		}
		args = append(args, "--resume", dir)
	}
	fmt.Fprintf(a.Stderr, "haul %s\n", strings.Join(args, " "))
	if code := a.Execute(ctx, args, io.Discard, a.Stderr); code != cli.ExitDone {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("the run in %s failed, as said above", dir)
	}
	return ReadResult(dir)
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

// Given is the command line of the flags that were given, some left out.
func Given(cmd *cobra.Command, but ...string) (args []string) {
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
