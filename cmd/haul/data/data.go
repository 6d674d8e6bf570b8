// Package data is the verb haul data; each source of histories has a file of its own.
package data

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"haul/cmd/haul/cli"
	"haul/internal/config"
	"haul/internal/device"
	"haul/internal/draw"
	"haul/internal/kernel"
	"haul/internal/recipe"
	"haul/internal/report"
	"haul/internal/world/history"
)

// NewData holds the verbs that make learning histories.
// app is the program that the verb is a part of.
type app struct{ *cli.App }

// New returns the verb.
func New(program *cli.App) *cobra.Command {
	a := &app{program}
	cmd := &cobra.Command{
		Use:     "data",
		Short:   "Make the learning histories that in-context agents are trained on",
		Example: "  haul data darkroom\n  haul data import docs/examples/learners.npz --out data/mine.hist\n  haul data keydoor --set grid_size=5 --set horizon=20",
	}
	for i := range rooms {
		cmd.AddCommand(a.newDataRoom(&rooms[i]))
	}
	cmd.AddCommand(a.newDataTabular(), a.newDataXLand(), a.newDataLearn(), a.newDataImport(), a.newDataShow())
	a.Parent(cmd)
	return cmd
}

// dataRoom is a game whose learners leave histories.
type dataRoom struct {
	name, config, out    string
	short, long, example string
}

const historyHelp = `

The same settings give the same file, whatever the number of workers. The file appears when it is complete: Ctrl-C leaves nothing.
The learners' curves are drawn beside it, as .svg and .png. haul config explain --model PPO lists the settings.`

var rooms = []dataRoom{
	{name: config.EnvDarkRoom, config: config.DefaultPPO, out: recipe.HistoryFile,
		short: "Write the histories of PPO learners in Dark Room",
		long: `Dark Room is a square of cells. One cell is the goal, which the learner cannot see. Each step that ends on the goal pays 1, and
each episode starts in the centre. Every cell is the goal of one learner. A learner starts without knowledge, acts in --streams
environments at a time, and after --steps steps in all of them together it walks straight to its goal. The file keeps every step. An
in-context agent is trained on most goals and tested on the others; env_split_seed chooses which.`,
		example: `  haul data darkroom
  haul data darkroom --streams 100 --steps 100000 --out data/darkroom.hist --force
  haul data darkroom --set grid_size=5 --streams 20 --steps 40000 --out data/small.hist`},
	{name: config.EnvKeyDoor, config: "keydoor", out: "data/keydoor.hist",
		short: "Write the histories of PPO learners in Dark Key-to-Door",
		long: `Dark Key-to-Door is a square of cells with a key in one cell and a door in another. The learner sees neither. In each episode the
first step onto the key pays 1, and after it the first step onto the door pays 1, so that the best return is 2. A goal is a pair of
cells. A room of 9 by 9 cells has 6,480 goals, so histories are made for a sample of n_goal goals, split into goals for training and
held-out goals (train_env_ratio, env_split_seed). A learner sees where it is and whether it holds the key. The file keeps positions,
actions and rewards only: the in-context agent has to remember whether it was paid for the key. Train an agent on a small room with haul
train --config ad_keydoor --history FILE.`,
		example: `  haul data keydoor
  haul data keydoor --set grid_size=5 --set horizon=20 --steps 100000 --out data/doors5.hist`},
}

type darkroomFlags struct {
	room    *dataRoom
	config  string
	sets    []string
	streams int
	steps   int
	seed    uint64
	workers int
	out     string
	force   bool
	json    bool
}

// roomKeys are the settings that flags stand in for.
var roomKeys = map[string]string{"streams": "n_stream", "steps": "total_source_timesteps", "seed": "alg_seed", "workers": "n_process"}

type darkroomReport struct {
	Out      string   `json:"out"`
	Bytes    int64    `json:"bytes"`
	Pictures []string `json:"pictures"`
	Seed     uint64   `json:"seed"`
	Workers  int      `json:"workers"`
	recipe.HistorySpeed
	recipe.HistorySummary
	Wrong []string `json:"wrong"`

	next string // how an agent is trained on the file
}

func (a *app) newDataRoom(room *dataRoom) *cobra.Command {
	f := darkroomFlags{room: room}
	cmd := &cobra.Command{
		Use:     room.name,
		Short:   room.short,
		Long:    room.long + historyHelp,
		Example: room.example,
		Args:    cli.AtMost(0),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.dataRoom(cmd, &f) },
	}
	fs := cmd.Flags()
	fs.StringVar(&f.config, "config", "", "shipped settings by name, or a YAML file (default "+room.config+")")
	fs.StringArrayVar(&f.sets, "set", nil, "change one setting: --set gamma=0.95 (repeatable)")
	fs.IntVar(&f.streams, "streams", 0, "environments per learner, instead of n_stream")
	fs.IntVar(&f.steps, "steps", 0, "steps per learner, over all its environments, instead of total_source_timesteps")
	fs.Uint64Var(&f.seed, "seed", 0, "random seed of the learners, instead of alg_seed")
	fs.IntVar(&f.workers, "workers", 0, "learners at the same time, instead of n_process; the file does not depend on it")
	fs.StringVar(&f.out, "out", room.out, "file to write; a missing folder is created")
	fs.BoolVar(&f.force, "force", false, "replace the file in --out")
	fs.BoolVar(&f.json, "json", false, "print one JSON object")
	return cmd
}

// settings reads the settings, the flags over them.
func (f *darkroomFlags) settings(cmd *cobra.Command) (*config.PPO, error) {
	sets, given := f.sets, cmd.Flags().Changed
	switch {
	case given("streams") && f.streams < 1:
		return nil, cli.Usagef("--streams is %d: a learner needs at least one environment", f.streams)
	case given("steps") && f.steps < 1:
		return nil, cli.Usagef("--steps is %d: a learner needs at least one step", f.steps)
	case given("workers") && f.workers < 1:
		return nil, cli.Usagef("--workers is %d: at least 1 is needed", f.workers)
	}
	if given("streams") {
		sets = append(sets, fmt.Sprintf("n_stream=%d", f.streams))
	}
	if given("steps") {
		sets = append(sets, fmt.Sprintf("total_source_timesteps=%d", f.steps))
	}
	if given("seed") {
		sets = append(sets, fmt.Sprintf("alg_seed=%d", f.seed))
	}
	name := f.config
	if name == "" {
		name = f.room.config
	}
	c, err := config.LoadPPO(name, sets)
	err = cli.InFlags(cmd, err, roomKeys)
	if err == nil && c.Env != f.room.name {
		err = cli.Usagef("the settings %s are for env %s: make its histories with haul data %s", c.Name, c.Env, c.Env)
	}
	return c, err
}

// free refuses to write over what is there, and makes the folder.
func (f *darkroomFlags) free() error {
	switch info, err := os.Stat(f.out); {
	case errors.Is(err, fs.ErrNotExist):
		if err := os.MkdirAll(filepath.Dir(f.out), 0o755); err != nil {
			return fmt.Errorf("cannot write: %w", err)
		}
		return nil
	case err != nil:
		return fmt.Errorf("cannot write: %w", err)
	case info.IsDir():
		return fmt.Errorf("%s is a folder: name a file", f.out)
	case !info.Mode().IsRegular(): // a device, which the file would replace
		return fmt.Errorf("%s is no regular file: name another", f.out)
	case !f.force:
		return fmt.Errorf("%s exists: --force replaces it, --out names another", f.out)
	}
	return nil
}

func (a *app) dataRoom(cmd *cobra.Command, f *darkroomFlags) error {
	c, err := f.settings(cmd)
	if err != nil {
		return err
	}
	if err := f.free(); err != nil {
		return err
	}
	a.NoteUnused(c, f.sets, cli.StandIns(cmd, roomKeys))
	workers := c.Workers(runtime.GOMAXPROCS(0))
	if f.workers > 0 {
		if workers, err = a.Cores(f.workers); err != nil {
			return err
		}
	}
	workers = min(workers, c.Goals())
	r := darkroomReport{Out: f.out, Seed: c.AlgSeed, Workers: workers}
	if r.HistorySpeed, err = a.makeHistories(cmd, f.out, c, workers); err != nil {
		return err
	}
	if err := r.measure(); err != nil {
		return err
	}
	if f.json {
		return a.Emit(r)
	}
	return a.Table(func(w io.Writer) { r.print(w, a) })
}

// makeHistories opens a device of one core for every worker, and shows how far they are.
func (a *app) makeHistories(cmd *cobra.Command, path string, c *config.PPO, workers int) (recipe.HistorySpeed, error) {
	devices := make([]kernel.Device, workers)
	for i := range devices {
		dev, err := device.Open("cpu", device.Options{Workers: 1})
		if err != nil {
			return recipe.HistorySpeed{}, err
		}
		defer dev.Close()
		devices[i] = dev
	}
	bar := a.NewBar(c.Goals()*c.TotalSourceTimesteps, "learners' steps")
	defer bar.End()
	return recipe.MakeHistories(cmd.Context(), recipe.HistoryOptions{Config: c, Path: path, Devices: devices,
		Progress: func(p recipe.HistoryProgress) { bar.Set(int(p.Steps)) }})
}

// measure reads the file back, as training will, and draws what it shows.
func (r *darkroomReport) measure() error {
	h, err := history.OpenRooms(r.Out)
	if err != nil {
		return err
	}
	defer h.Close()
	info, err := os.Stat(r.Out)
	if err != nil {
		return err
	}
	r.Bytes, r.HistorySummary = info.Size(), recipe.SummarizeHistories(h)
	r.Wrong, r.next = history.Summarize(h).Wrong, recipe.TrainCommand(h, r.Out)
	for _, format := range []draw.Format{draw.SVG, draw.PNG} {
		path := r.Out + "." + string(format)
		if err := cli.WriteFile(path, func(w io.Writer) error { return r.Draw(w, format, h.Room) }); err != nil {
			return err
		}
		r.Pictures = append(r.Pictures, path)
	}
	return nil
}

func (r *darkroomReport) print(w io.Writer, a *app) {
	fmt.Fprintf(w, "%s\n", a.Bold(fmt.Sprintf("%s, %s with %s of %s each", r.Out, report.Plural(int64(r.Goals), "goal"), report.Plural(int64(r.Streams), "stream"), report.Plural(int64(r.Steps), "step"))))
	fmt.Fprintf(w, "final return\t%.3f of %.3f, mean of the last %d of %s\n", r.Return, r.Optimal, r.Last, report.Plural(int64(r.Episodes), "episode"))
	fmt.Fprintf(w, "share of the optimum\t%.2f %%, mean over goals; %.1f %% in the first episode, %.1f %% a third on\n", 100*r.Share, 100*r.First, 100*r.Third)
	var worst []string
	for _, g := range r.Worst {
		worst = append(worst, fmt.Sprintf("%v %.1f %%", g.Goal, 100*g.Share))
	}
	fmt.Fprintf(w, "worst goals\t%s\n", strings.Join(worst, ", "))
	fmt.Fprintf(w, "speed\t%.0f steps/s (%.1f s), %d learners at a time, seed %d\n", r.StepsPerSecond, r.Seconds, r.Workers, r.Seed)
	fmt.Fprintf(w, "size\t%s, read back and checked\n", report.Bytes(r.Bytes))
	fmt.Fprintf(w, "drawn\t%s\n", strings.Join(r.Pictures, ", "))
	showWrong(w, r.Wrong, r.next)
}
