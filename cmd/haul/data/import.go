package data

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"haul/cmd/haul/cli"
	"haul/internal/draw"
	"haul/internal/recipe"
	"haul/internal/report"
	"haul/internal/world"
	"haul/internal/world/history"
)

type importFlags struct {
	out, title string
	actions    int
	sizes      []int
	seed       uint64
	ratio      float64
	force      bool
	json       bool
}

func (a *app) newDataImport() *cobra.Command {
	var f importFlags
	cmd := &cobra.Command{
		Use:   "import FILE.npz|FOLDER",
		Short: "Make learning histories from the arrays of another program",
		Long: `FILE.npz holds the arrays, or FOLDER holds them as .npy files. Each array has one row per transition, in the order in which the
transitions happened:

  observations  [N] or [N, fields]: integers 0 to 255, or floating point
  actions       [N]: integers 0 to 63
  rewards       [N]: any finite numbers
  dones         [N]: not 0 if the episode ends (or: terminals, terminations); truncations
                beside it or alone
  tasks         [N]: number of the task, in one block per task; all 0 for one task
  streams       [N], optional: a number that changes where another learner begins

The rows of one learner must lie together; a note reports rows of several that take turns.
--actions and --sizes give the numbers of actions and of values that the world has, where the
arrays do not contain all of them: agents then act on values that were never seen, too.

A floating-point field of more than 256 different numbers is cut into 256 levels by quantiles; more than 256 different rewards are cut
into 64 levels. Arrays and file may be larger than memory. An error is one line and leaves no file. haul data show shows
what a file holds, haul train --config ad_any --history FILE trains an agent on it. docs/formats.md has the details.`,
		Example: "  haul data import docs/examples/learners.npz\n  haul data import docs/examples/learners.npz --out data/mine.hist --title \"my bandit\" --actions 4",
		Args:    cli.One("an .npz file, or a folder of .npy files"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.dataImport(cmd, args[0], &f) },
	}
	fs := cmd.Flags()
	fs.StringVar(&f.out, "out", "data/imported.hist", "file to write; a missing folder is created")
	fs.StringVar(&f.title, "title", "", "name of the world, for reports (default: the name of the input)")
	fs.IntVar(&f.actions, "actions", 0, "number of actions (default: the largest action in the arrays, plus 1)")
	fs.IntSliceVar(&f.sizes, "sizes", nil, "number of values of each integer field, such as 9,9 (default: the largest in the arrays, plus 1)")
	fs.Uint64Var(&f.seed, "split-seed", 0, "random seed that chooses the held-out tasks")
	fs.Float64Var(&f.ratio, "train-ratio", 0.9, "share of the tasks that are for training; of two or more, one is at least, and one is held out")
	fs.BoolVar(&f.force, "force", false, "replace the file in --out")
	fs.BoolVar(&f.json, "json", false, "print one JSON object")
	return cmd
}

func (a *app) dataImport(cmd *cobra.Command, from string, f *importFlags) error {
	if !(f.ratio > 0 && f.ratio < 1) {
		return cli.Usagef("--train-ratio is %g: it must lie between 0 and 1", f.ratio)
	}
	if f.actions != 0 && (f.actions < 2 || f.actions > world.MaxActions) {
		return cli.Usagef("--actions is %d: it must be 2 to %d, or 0 for the largest in the arrays, plus 1", f.actions, world.MaxActions)
	}
	for i, n := range f.sizes {
		if n < 1 || n > world.MaxSize {
			return cli.Usagef("--sizes has %d for field %d: it must be 1 to %d", n, i, world.MaxSize)
		}
	}
	if err := (&darkroomFlags{out: f.out, force: f.force}).free(); err != nil {
		return err
	}
	bar := a.NewBar(100, "percent")
	var notes []string
	err := history.Import(cmd.Context(), history.ImportOptions{From: from, To: f.out, Title: f.title, Actions: f.actions, Sizes: f.sizes, SplitSeed: f.seed, TrainRatio: f.ratio,
		Progress: func(done, of int) { bar.Set(100 * done / of) }, Note: func(line string) { notes = append(notes, line) }})
	bar.End()
	if err != nil {
		return err
	}
	for _, line := range notes {
		fmt.Fprintf(a.Stderr, "%s: %s\n", from, line)
	}
	return a.dataShow(f.out, "", f.json)
}

func (a *app) newDataShow() *cobra.Command {
	var plot string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show FILE",
		Short: "Show what a file of learning histories holds, and what may be wrong with it",
		Long: `Every byte of the file is checked. Under "wrong" is what would keep an agent from learning: learners that do not improve or are never
paid, a single task, one action, streams that are short or end within an episode. Fields that never change are named, and the command
that trains an agent on the file.`,
		Example: "  haul data import docs/examples/learners.npz --out data/mine.hist\n  haul data show data/mine.hist --plot curves.svg",
		Args:    cli.One("a file of learning histories"),
		RunE:    func(_ *cobra.Command, args []string) error { return a.dataShow(args[0], plot, asJSON) },
	}
	cmd.Flags().StringVar(&plot, "plot", "", "draw the learners' mean return as .svg or .png")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func (a *app) dataShow(path, plot string, asJSON bool) error {
	var format draw.Format
	if plot != "" {
		var err error
		if format, err = draw.FormatOf(plot); err != nil {
			return cli.AsUsage(err)
		}
	}
	h, err := history.Open(path)
	if err != nil {
		return err
	}
	defer h.Close()
	s := history.Summarize(h)
	if plot != "" {
		if err := cli.WriteFile(plot, func(w io.Writer) error { return drawHistory(w, format, path, s) }); err != nil {
			return err
		}
	}
	if asJSON {
		return a.Emit(s)
	}
	return a.Table(func(w io.Writer) {
		fmt.Fprintf(w, "%s\n", a.Bold(path))
		fmt.Fprintf(w, "world\t%s\n", s.World)
		fmt.Fprintf(w, "tasks\t%d: %d to learn from, %d held out\n", s.Tasks, s.Train, s.Test)
		fmt.Fprintf(w, "streams\t%d, %s in %s\n", s.Streams, report.Plural(s.Transitions, "transition"), report.Plural(s.Episodes, "episode"))
		switch n := len(s.Constant); {
		case n == s.Fields:
			fmt.Fprintf(w, "fields\tthe observation never changes: an agent learns from actions and rewards alone\n")
		case n > 0:
			fmt.Fprintf(w, "fields\tthese tell an agent nothing, for they never change: %s\n", strings.Join(s.Constant, ", "))
		}
		labels := "the best actions are not known: the setting labels must be actions"
		if s.Labels {
			labels = "the best actions are known: the setting labels may be actions, best or found"
		}
		fmt.Fprintf(w, "labels\t%s\n", labels)
		fmt.Fprintf(w, "return\t%.3f in the first tenth of the episodes, %.3f a third on, %.3f in the last tenth\n", s.First, s.Third, s.Last)
		showWrong(w, s.Wrong, recipe.TrainCommand(h, path))
	})
}

// showWrong writes what would keep an agent from learning, a line each, and the command that trains
// one.
func showWrong(w io.Writer, wrong []string, next string) {
	if len(wrong) == 0 {
		wrong = []string{"nothing"}
	}
	name := "wrong"
	for _, line := range wrong {
		fmt.Fprintf(w, "%s\t%s\n", name, line)
		name = ""
	}
	if next != "" {
		fmt.Fprintf(w, "next\t%s\n", next)
	}
}

// drawHistory draws the learners' mean return over their lives.
func drawHistory(w io.Writer, f draw.Format, path string, s *history.Summary) error {
	mean := draw.Curve{Name: "mean over tasks"}
	for i, v := range s.Curve {
		mean.Add(100*float64(i)/float64(len(s.Curve)), v)
	}
	return draw.Panels(w, f, path, s.World, draw.Panel{Title: "Return of an episode", X: "% of a history", Curves: []draw.Curve{mean}})
}
