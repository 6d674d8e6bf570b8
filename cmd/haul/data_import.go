package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"haul/internal/draw"
	"haul/internal/world/history"
)

type importFlags struct {
	out, title string
	actions    int
	seed       uint64
	ratio      float64
	force      bool
	json       bool
}

func (a *app) newDataImport() *cobra.Command {
	var f importFlags
	cmd := &cobra.Command{
		Use:   "import FILE.npz|FOLDER",
		Short: "Make learning histories of arrays that another program saved",
		Long: `Make learning histories of arrays that another program saved: an .npz file, or a folder of .npy files. One row per transition, in the order in which
they happened:

  observations  [N] or [N, fields]: whole numbers 0 to 255, or floating point: a field of more than 256 different numbers is cut into 256
                levels by quantiles
  actions       [N]: whole numbers 0 to 63
  rewards       [N]: any finite numbers; more than 256 different ones are cut into 64 levels
  dones         [N]: not 0 where an episode ends (or terminals, or terminations with truncations)
  tasks         [N]: a number per task, whose learners' streams follow one another; all 0 where there is none
  streams       [N]: a number that changes where another learner of the same task begins; optional

The arrays are read a stretch at a time and may be larger than memory; so may the file, which training reads where it lies. What is wrong is said in one
line, and no file is left. haul data show says what a file holds; haul train --config ad_any --history FILE trains an agent on it. docs/formats.md.`,
		Example: "  haul data import docs/examples/learners.npz\n  haul data import docs/examples/learners.npz --out data/mine.hist --title \"my bandit\" --actions 4",
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.dataImport(cmd, args[0], &f) },
	}
	fs := cmd.Flags()
	fs.StringVar(&f.out, "out", "data/imported.hist", "file to write; its folder is made when missing")
	fs.StringVar(&f.title, "title", "", "what the world is called (default: the name of what is read)")
	fs.IntVar(&f.actions, "actions", 0, "how many actions there are (default: one more than the largest seen)")
	fs.Uint64Var(&f.seed, "split-seed", 0, "seed by which tasks are held out")
	fs.Float64Var(&f.ratio, "train-ratio", 0.9, "share of the tasks to learn from")
	fs.BoolVar(&f.force, "force", false, "replace the file in --out")
	fs.BoolVar(&f.json, "json", false, "print one JSON object")
	return cmd
}

func (a *app) dataImport(cmd *cobra.Command, from string, f *importFlags) error {
	if !(f.ratio > 0 && f.ratio < 1) {
		return usagef("--train-ratio is %g: it must lie between 0 and 1", f.ratio)
	}
	if f.actions < 0 || f.actions > 64 {
		return usagef("--actions is %d: it must be 0 to 64", f.actions)
	}
	if err := (&darkroomFlags{out: f.out, force: f.force}).free(); err != nil {
		return err
	}
	bar := a.newBar(100, "percent")
	var notes []string
	err := history.Import(cmd.Context(), history.ImportOptions{From: from, To: f.out, Title: f.title, Actions: f.actions, SplitSeed: f.seed, TrainRatio: f.ratio,
		Progress: func(done, of int) { bar.set(100 * done / of) }, Note: func(line string) { notes = append(notes, line) }})
	bar.end()
	if err != nil {
		return err
	}
	for _, line := range notes {
		fmt.Fprintf(a.stderr, "%s: %s\n", from, line)
	}
	return a.dataShow(f.out, "", f.json)
}

func (a *app) newDataShow() *cobra.Command {
	var plot string
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "show FILE",
		Short:   "Say what a file of learning histories holds, and what is wrong with it",
		Long:    "Say what a file of learning histories holds, and what is wrong with it for an agent that is to learn from it: no improvement, one task, short streams.\n\nEvery byte is checked. --plot draws the learners' mean return.",
		Example: "  haul data import docs/examples/learners.npz --out data/mine.hist\n  haul data show data/mine.hist --plot curves.svg",
		Args:    cobra.ExactArgs(1),
		RunE:    func(_ *cobra.Command, args []string) error { return a.dataShow(args[0], plot, asJSON) },
	}
	cmd.Flags().StringVar(&plot, "plot", "", "draw the learners' curve as .svg or .png")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func (a *app) dataShow(path, plot string, asJSON bool) error {
	var format draw.Format
	if plot != "" {
		var err error
		if format, err = draw.FormatOf(plot); err != nil {
			return asUsage(err)
		}
	}
	h, err := history.Open(path)
	if err != nil {
		return err
	}
	defer h.Close()
	s := history.Summarize(h)
	if plot != "" {
		if err := writeFile(plot, func(w io.Writer) error { return drawHistory(w, format, path, s) }); err != nil {
			return err
		}
	}
	if asJSON {
		return a.emit(s)
	}
	return a.table(func(w io.Writer) {
		fmt.Fprintf(w, "%s\n", a.bold(path))
		fmt.Fprintf(w, "world\t%s\n", s.World)
		fmt.Fprintf(w, "tasks\t%d, of which %d are learned from and %d held out\n", s.Tasks, s.Train, s.Test)
		fmt.Fprintf(w, "streams\t%d, %d transitions in %d episodes\n", s.Streams, s.Transitions, s.Episodes)
		fmt.Fprintf(w, "return\t%.3f in the first tenth of the episodes, %.3f a third on, %.3f in the last tenth\n", s.First, s.Third, s.Last)
		wrong := "nothing"
		if len(s.Wrong) > 0 {
			wrong = strings.Join(s.Wrong, "; ")
		}
		fmt.Fprintf(w, "wrong\t%s\n", wrong)
	})
}

// drawHistory draws the learners' mean return over their lives.
func drawHistory(w io.Writer, f draw.Format, path string, s *history.Summary) error {
	mean := draw.Curve{Name: "mean over tasks"}
	for i, v := range s.Curve {
		mean.Add(100*float64(i)/float64(len(s.Curve)), v)
	}
	return draw.Panels(w, f, path, s.World, draw.Panel{Title: "Return of an episode", X: "% of a history", Curves: []draw.Curve{mean}})
}
