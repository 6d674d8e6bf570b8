package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"haul/internal/config"
	"haul/internal/recipe"
	"haul/internal/report"
	"haul/internal/run"
	"haul/policies"
)

// runsDir is where run folders go when none is named.
const runsDir = "runs"

// maxLength is that of the keys which the flags stand in for: products of two stay within 64 bits.
const maxLength = 1_000_000_000

type trainFlags struct {
	configFlags
	deviceFlags
	recipeFlags
	rankFlags
	model  string
	seed   uint64
	seeds  string
	out    string
	resume string
	last   *run.Checkpoint // of the run that is resumed
	from   string
	time   time.Duration // 0: no limit
	force  bool
	json   bool
}

func (a *app) newTrain() *cobra.Command {
	var f trainFlags
	cmd := &cobra.Command{
		Use:   "train",
		Short: "Train " + trained(),
		Long: `The settings (--config, --set) say what is trained; without settings, --model chooses the kind of model.

` + paragraphs(func(i *run.About) string { return i.Train }) + `

Results. The run folder (--out, or a new folder under runs/) holds the settings, the last and the best checkpoint, curves as CSV and
TensorBoard events, and pictures. With --json, every record and the end of the run are JSON objects on standard output.

Stopping and resuming. Ctrl-C saves the run and prints how to resume it. A resumed run keeps its precision unless --precision names
another. On the same kind of device it ends with the same bits as a run that was never stopped. --time 9m stops by itself after nine
minutes and exits with 0. Learning-rate schedules follow the steps that the settings plan, wherever a run is stopped.

Trained weights. --from starts a new run with the weights of a shipped policy, a checkpoint or a run: to train it further, or to
train it on other instances.

Several processes. mpirun, srun, torchrun or --processes start ranks that share every step, on one machine or several
(docs/distributed.md). Ranks on CPUs end with the same weights, bit for bit, as one process.`,
		Example: `  haul train
  haul train --config tiny_1 --set training.learning_rate=5e-4 --out runs/mine
  haul train --resume runs/mine --epochs 20
  haul train --resume runs/mine --time 9m
  haul train --config cvrp50 --from cvrp50 --out runs/more
  haul train --model AD --config ad_dr_compressed --device cuda:0 --iterations 20000
  haul train --model AD --config ad_dr_compressed --device cuda:0 --seeds 1..5 --out runs/five
  haul train --config tiny_1 --device cpu --processes 2
  mpirun -n 4 --bind-to none haul train --config large --device cpu`,
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.train(cmd, &f) },
	}
	flags := cmd.Flags()
	f.configFlags.register(cmd)
	flags.Lookup("config").Usage = "shipped settings by name, or a YAML file (default: " + defaults() + ")"
	f.deviceFlags.register(cmd)
	f.rankFlags.register(cmd)
	f.recipeFlags.register(cmd, func(i *run.About) []run.Flag {
		return append([]run.Flag{{Name: i.Unit + "s", Default: 0, Usage: "total " + i.Unit + "s, instead of " + lengths(i.Unit)}}, i.Flags...)
	})
	flags.StringVar(&f.model, "model", "", "kind of model to train: "+strings.Join(recipe.Names(), ", ")+" (default: the one that the settings are for)")
	flags.Uint64Var(&f.seed, "seed", 0, "random seed, instead of the settings'")
	flags.StringVar(&f.seeds, "seeds", "", "train once per seed (1..5 or 1,4,9), in folders seed-N of --out, and print a table")
	flags.StringVar(&f.out, "out", "", "run folder (default: a new "+runsDir+"/<config>-<NNN>)")
	flags.StringVar(&f.resume, "resume", "", "continue the run in this folder")
	flags.StringVar(&f.from, "from", "", "start with the weights of this shipped policy, .safetensors file or run folder")
	flags.DurationVar(&f.time, "time", 0, "stop after this long (9m, 90s), save, and exit with 0")
	flags.BoolVar(&f.force, "force", false, "overwrite the run in --out")
	flags.BoolVar(&f.json, "json", false, "print one JSON object per record")
	return cmd
}

// lengths are the keys that plan how many units a run has, of every recipe that counts in this
// unit: they share one flag.
func lengths(unit string) string {
	var keys []string
	for _, r := range recipe.All {
		if i := r.About(); i.Unit == unit {
			if !slices.Contains(keys, i.Length) {
				keys = append(keys, i.Length)
			}
		}
	}
	return strings.Join(keys, " or ")
}

// trained is what there is to train, in a phrase.
func trained() string {
	var all []string
	for _, r := range recipe.All {
		all = append(all, r.About().Trains)
	}
	last := len(all) - 1
	return strings.Join(all[:last], ", ") + " or " + all[last]
}

// defaults are the settings that run where none are named.
func defaults() string {
	all := []string{recipe.All[0].About().Config}
	for _, r := range recipe.All[1:] {
		all = append(all, fmt.Sprintf("%s with --model %s", r.About().Config, r.About().Name))
	}
	return strings.Join(all, ", ")
}

// validate refuses what contradicts itself, before anything is opened.
func (f *trainFlags) validate(cmd *cobra.Command) error {
	switch {
	case cmd.Flags().Changed("time") && f.time <= 0:
		return usagef("--time is %s: a time above 0 is needed, for example 9m", f.time)
	case f.resume != "" && (f.out != "" || f.force):
		return usagef("--resume continues a folder, --out and --force start one: use one of them")
	case f.resume != "" && f.from != "":
		return usagef("--resume continues a run with its own weights, --from begins one with others': use one of them")
	case f.force && f.out == "":
		return usagef("--force overwrites the folder that --out names: name it")
	}
	if err := f.rankFlags.validate(); err != nil {
		return err
	}
	for _, r := range recipe.All {
		if length := r.About().Unit + "s"; f.Changed(length) {
			switch n := f.Int(length); {
			case n < 1:
				return usagef("--%s is %d: at least 1 is needed", length, n)
			case n > maxLength:
				return usagef("--%s is %d: at most %d can be counted", length, n, maxLength)
			}
		}
	}
	return firstOf(f.checkValues(), knownModel(f.model))
}

// checkpoint reads the one that a resumed run starts from.
func (f *trainFlags) checkpoint() (err error) {
	if f.resume == "" {
		return nil
	}
	if info, err := os.Stat(f.resume); err == nil && !info.IsDir() {
		return fmt.Errorf("--resume %s is a file, and a run is continued by its folder: --resume %s", f.resume, filepath.Dir(f.resume))
	}
	if f.last, err = run.LoadShared(f.world, filepath.Join(f.resume, run.LastName), ""); errors.Is(err, fs.ErrNotExist) {
		if _, missing := os.Stat(f.resume); errors.Is(missing, fs.ErrNotExist) {
			return fmt.Errorf("nothing to resume: there is no folder %s", f.resume)
		}
		return nameRun(fmt.Errorf("nothing to resume: %s holds no %s", f.resume, run.LastName), f.resume)
	}
	if best := filepath.Join(f.resume, run.BestName); err != nil && exists(best) {
		return fmt.Errorf("%w (--from %s begins a run with its best weights)", err, best)
	}
	return err
}

// keepPrecision takes the precision of the resumed run unless a flag names one, because another
// would give other bits. A CPU has no tf32, so tf32 is only a preference for a GPU.
func (f *trainFlags) keepPrecision() error {
	if f.last == nil || f.precision != "" {
		return nil
	}
	switch was := f.last.Precision; was {
	case "tf32":
		f.before = was
	case "", "fp32", "bf16":
		f.precision = was
	default:
		return fmt.Errorf("resume %s: %s was written in precision %q, which this build does not know: name another with --precision",
			f.resume, f.last.Path, was)
	}
	return nil
}

// weights reads what a new run begins with; nil: the recipe's own. A policy's name comes before a
// file's.
func (f *trainFlags) weights() (*run.Checkpoint, error) {
	switch {
	case f.from == "":
		return nil, nil
	case slices.Contains(policies.Names(), f.from):
		return shippedPolicy(f.from)
	}
	_, ck, err := checkpointOf(f.from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("--from %s: there is no such file, run folder or policy (policies: %s)", f.from, strings.Join(policies.Names(), ", "))
	}
	return ck, err
}

// settings reads the run's settings, a resumed run's own where no others are named, and finds their
// recipe.
func (f *trainFlags) settings(cmd *cobra.Command) (config.Settings, run.Recipe, error) {
	name, model := f.config, f.model
	if ck := f.last; ck != nil && name == "" {
		if model = ck.Settings.Recipe(); f.model != "" && f.model != model {
			return nil, nil, usagef("%s holds a run of %s, not of %s", f.resume, model, f.model)
		}
		name = filepath.Join(f.resume, run.ConfigName)
		if f.world != nil && len(f.sets) > 0 {
			return nil, nil, usagef("--set with --resume is for one process: ranks take the run's own settings")
		}
		if len(f.sets) == 0 && !cmd.Flags().Changed("seed") {
			r, err := recipe.Find(model)
			return ck.Settings, r, err
		}
	}
	c, err := config.LoadAny(model, name, f.sets)
	if err != nil {
		return nil, nil, err
	}
	if ck := f.last; ck != nil && ck.Settings.Recipe() != c.Recipe() {
		return nil, nil, usagef("%s holds a run of %s, and --config %s has settings of %s", f.resume, ck.Settings.Recipe(), f.config, c.Recipe())
	}
	r, err := recipe.Find(c.Recipe())
	if err != nil {
		return nil, nil, fmt.Errorf("--config %s: %w", f.config, err)
	}
	if cmd.Flags().Changed("seed") {
		c, err = config.LoadAny(model, name, append(f.sets, fmt.Sprintf("%s=%d", r.About().Seed, f.seed)))
	}
	return c, r, err
}

// noteUnused tells of settings on the command line that change nothing. Flags stand in for the keys
// that they are listed by.
func (a *app) noteUnused(s config.Settings, sets []string, flags map[string]string) {
	for _, line := range config.Unused(s, sets, flags) {
		fmt.Fprintln(a.stderr, line)
	}
}

func (f *trainFlags) folder(name string) (*run.Dir, error) {
	switch {
	case f.resume != "":
		return run.OpenDir(filepath.Clean(f.resume), true, false)
	case f.out != "":
		return run.OpenDir(filepath.Clean(f.out), false, f.force)
	}
	return run.NewDir(runsDir, name)
}

func (a *app) train(cmd *cobra.Command, f *trainFlags) (err error) {
	if err := firstOf(f.validate(cmd), f.check(a)); err != nil {
		return err
	}
	if f.seeds != "" {
		return a.trainSeeds(cmd, f)
	}
	if f.processes > 1 {
		return a.spawn(cmd.Context(), f.processes)
	}
	began := time.Now()
	if f.world, err = a.join(cmd.Context(), &f.rankFlags, &f.deviceFlags, cmd.Flags().Changed("workers")); err != nil {
		return err
	}
	defer func() { err = a.leave(f.world, err) }()
	if err := f.checkpoint(); err != nil {
		return err
	}
	if err := f.keepPrecision(); err != nil {
		return err
	}
	cfg, r, err := f.settings(cmd)
	if err != nil {
		return err
	}
	about := r.About()
	if err := f.others(about.Name, "these settings are for"); err != nil {
		return err
	}
	if length := about.Unit + "s"; f.Changed(length) {
		cfg = r.Lengthen(cfg, f.Int(length))
	}
	if f.world.Number() == 0 {
		a.noteUnused(cfg, f.sets, standIns(cmd, map[string]string{"seed": about.Seed, about.Unit + "s": strings.Fields(about.Length)[0]}))
	}
	task, err := r.Open(cfg, &f.recipeFlags, f.last)
	if err != nil {
		return err // before there is a folder
	}
	f.last = nil // its weights are read again when the run has its folder
	defer task.Close()
	from, err := f.weights()
	if err != nil {
		return err
	}
	dev, err := a.openFor(cmd.Context(), &f.deviceFlags, r, cfg)
	if err != nil {
		return err
	}
	defer dev.Close()
	defer func() { err = errors.Join(err, f.world.CloseCards()) }()
	dir, err := f.sharedFolder(cfg.Title())
	if err != nil {
		return err
	}
	defer dir.Close()
	ctx, cancel := f.limited(cmd.Context(), began)
	defer cancel()
	if f.world.Number() > 0 {
		err := run.Run(ctx, run.Options{Recipe: r, Task: task, Settings: cfg, Device: dev, Dir: dir, Resume: f.resume != "", From: from,
			Workers: f.workers, World: f.world})
		if stopped := new(run.Interrupted); err != nil && f.time > 0 && ctx.Err() == nil && errors.As(err, &stopped) {
			return nil // nobody stopped this rank: rank 0 has, whose clock it is
		} else if err != nil {
			return err
		}
		return a.tellRanks(&f.rankFlags, f.json)
	}

	screen := &report.Terminal{Screen: a.newScreen(f.json)}
	folder := report.NewFolder(screen.Note)
	objects := report.NewObjects(a.stdout)
	// The folder goes first: the screen's curve starts with the records it has read.
	listeners := []report.Listener{folder, screen}
	if f.json {
		listeners = append(listeners, objects)
	}
	workers := 0
	if cmd.Flags().Changed("workers") {
		workers = f.workers
	}
	again := ""
	if f.time > 0 {
		again = " --time " + f.time.String()
	}
	err = run.Run(ctx, run.Options{Recipe: r, Task: task, Settings: cfg, Device: dev, Dir: dir, Resume: f.resume != "", From: from,
		Workers: workers, Again: again, Listener: report.All(listeners...), World: f.world})
	screen.Leave()
	stopped, err := f.timeUp(ctx, err)
	if stopped != nil && f.json {
		objects.Stopped(stopped)
	} else if stopped != nil {
		fmt.Fprintln(a.stdout, stopped.Text)
	}
	err = errors.Join(err, folder.Close(), objects.Close())
	if stopped != nil {
		return err
	}
	if err == nil && f.world != nil {
		err = a.tellRanks(&f.rankFlags, f.json)
	}
	return err
}

// limited is the context of a run that --time ends. Of several ranks the first has the clock, and
// stops all.
func (f *trainFlags) limited(ctx context.Context, began time.Time) (context.Context, context.CancelFunc) {
	if f.time == 0 || f.world.Number() > 0 {
		return ctx, func() {}
	}
	return context.WithDeadlineCause(ctx, began.Add(f.time), run.ErrTimeUp)
}

// timeUp tells the end that --time planned from an error.
func (f *trainFlags) timeUp(ctx context.Context, err error) (*report.Stopped, error) {
	if err == nil || !errors.Is(context.Cause(ctx), run.ErrTimeUp) {
		return nil, err
	}
	if i := new(run.Interrupted); errors.As(err, &i) {
		return &report.Stopped{Updates: i.Updates, Total: i.Total, Dir: i.Dir, Text: oneLine(i.Error())}, nil
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("--time %s was over before the run had begun: it needs more", f.time)
	}
	return nil, err
}

// newScreen is the listener for people. Results share standard output with nothing else, so with
// JSON there they join the words.
func (a *app) newScreen(asJSON bool) report.Screen {
	live := isTerminal(a.stderr) && os.Getenv("TERM") != "dumb"
	t := report.Screen{Words: a.stderr, Result: a.stdout, Live: live, Colour: live && os.Getenv("NO_COLOR") == "", Width: a.width, ASCII: !unicodeLocale()}
	if asJSON {
		t.Result = a.stderr
	}
	return t
}

// width is the screen's, 80 where it does not tell.
func (a *app) width() int {
	if a.columns > 0 {
		return a.columns
	}
	return widthOf(a.stderr)
}

func widthOf(w io.Writer) int {
	if f, ok := underneath(w).(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			return w
		}
	}
	return 80
}

// interruption is what a user who pressed Ctrl-C reads.
func interruption(err error) string {
	if i := new(run.Interrupted); errors.As(err, &i) {
		return i.Error()
	}
	return "interrupted"
}
