// Package train is the verb haul train.
package train

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"haul/cmd/haul/cli"
	"haul/internal/config"
	"haul/internal/recipe"
	"haul/internal/report"
	"haul/internal/run"
)

// runsDir is where run folders go when none is named.
const runsDir = "runs"

// maxLength is that of the keys which the flags stand in for: products of two stay within 64 bits.
const maxLength = 1_000_000_000

type trainFlags struct {
	cli.ConfigFlags
	cli.DeviceFlags
	cli.RecipeFlags
	cli.RankFlags
	model   string
	problem string // folder, file or name of a problem; "": the settings' own
	seed    uint64
	seeds   string
	out     string
	resume  string
	last    *run.Checkpoint // of the run that is resumed
	from    string
	time    time.Duration // 0: no limit
	force   bool
	json    bool
}

// app is the program that the verb is a part of.
type app struct{ *cli.App }

// New returns the verb.
func New(program *cli.App) *cobra.Command {
	a := &app{program}
	var f trainFlags
	cmd := &cobra.Command{
		Use:   "train",
		Short: "Train " + trained(),
		Long: `The settings (--config, --set) say what is trained; without settings, --model chooses the kind of model.

` + cli.Paragraphs(func(i *run.About) string { return i.Train }) + `

Results. The run folder (--out, or a new folder under runs/) holds the settings, the last and the best checkpoint, curves as CSV and
TensorBoard events, and pictures. With --json, every record and the end of the run are JSON objects on standard output.

Stopping and resuming. Ctrl-C saves the run and prints how to resume it. A resumed run keeps its precision unless --precision names
another. On the same kind of device it ends with the same bits as a run that was never stopped. --time 9m stops by itself after nine
minutes and exits with 0. Learning-rate schedules follow the steps that the settings plan, wherever a run is stopped.

Problems of your own. --problem trains a policy on the rules of a problem file (haul problem new writes one, docs/rules.md describes
the language), on a CPU. Settings of the file are --set problem.rules_settings="Limit=4". The checkpoint carries the file: a resumed
run needs it no more, and refuses another.

Trained weights. --from starts a new run with the weights of a shipped policy, a checkpoint or a run: to train it further, or to
train it on other instances.

Several processes. mpirun, srun, torchrun or --processes start ranks that share every step, on one machine or several
(docs/distributed.md). Ranks on CPUs end with the same weights, bit for bit, as one process.`,
		Example: `  haul train
  haul train --config tiny_1 --set training.learning_rate=5e-4 --out runs/mine
  haul train --resume runs/mine --epochs 20
  haul train --resume runs/mine --time 9m
  haul train --config cvrp50 --from cvrp50 --out runs/more
  haul train --problem op --epochs 4
  haul train --model AD --config ad_dr_compressed --device cuda:0 --iterations 20000
  haul train --model AD --config ad_dr_compressed --device cuda:0 --seeds 1..5 --out runs/five
  haul train --config tiny_1 --device cpu --processes 2
  mpirun -n 4 --bind-to none haul train --config large --device cpu`,
		Args: cli.AtMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.train(cmd, &f) },
	}
	flags := cmd.Flags()
	f.ConfigFlags.Register(cmd)
	flags.Lookup("config").Usage = "shipped settings by name, or a YAML file (default: " + defaults() + ")"
	f.DeviceFlags.Register(cmd)
	f.RankFlags.Register(cmd)
	f.RecipeFlags.Register(cmd, func(i *run.About) []run.Flag {
		return append([]run.Flag{{Name: i.Unit + "s", Default: 0, Usage: "total " + i.Unit + "s, instead of " + lengths(i.Unit)}}, i.Flags...)
	})
	flags.StringVar(&f.model, "model", "", "kind of model to train: "+strings.Join(recipe.Names(), ", ")+" (default: the one that the settings are for)")
	flags.StringVar(&f.problem, "problem", "", "train on the rules of this problem file: its folder, the file, or a built-in problem (docs/rules.md)")
	flags.Uint64Var(&f.seed, "seed", 0, "random seed, instead of the settings'")
	flags.StringVar(&f.seeds, "seeds", "", "train an agent once per seed (1..5 or 1,4,9), in folders seed-N of --out, and print a table; settings with validation_goals and eval_tune")
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
		return cli.Usagef("--time is %s: a time above 0 is needed, for example 9m", f.time)
	case f.resume != "" && (f.out != "" || f.force):
		return cli.Usagef("--resume continues a folder, --out and --force start one: use one of them")
	case f.resume != "" && f.from != "":
		return cli.Usagef("--resume continues a run with its own weights, --from begins one with others': use one of them")
	case f.force && f.out == "":
		return cli.Usagef("--force overwrites the folder that --out names: name it")
	}
	if err := f.RankFlags.Validate(); err != nil {
		return err
	}
	for _, r := range recipe.All {
		if length := r.About().Unit + "s"; f.Changed(length) {
			switch n := f.Int(length); {
			case n < 1:
				return cli.Usagef("--%s is %d: at least 1 is needed", length, n)
			case n > maxLength:
				return cli.Usagef("--%s is %d: at most %d can be counted", length, n, maxLength)
			}
		}
	}
	return cli.FirstOf(f.CheckValues(), cli.KnownModel(f.model))
}

// checkpoint reads the one that a resumed run starts from.
func (f *trainFlags) checkpoint() (err error) {
	if f.resume == "" {
		return nil
	}
	if info, err := os.Stat(f.resume); err == nil && !info.IsDir() {
		return fmt.Errorf("--resume %s is a file, and a run is continued by its folder: --resume %s", f.resume, filepath.Dir(f.resume))
	}
	if f.last, err = run.LoadShared(f.World, filepath.Join(f.resume, run.LastName), ""); errors.Is(err, fs.ErrNotExist) {
		if _, missing := os.Stat(f.resume); errors.Is(missing, fs.ErrNotExist) {
			return fmt.Errorf("nothing to resume: there is no folder %s", f.resume)
		}
		return cli.NameRun(fmt.Errorf("nothing to resume: %s holds no %s", f.resume, run.LastName), f.resume)
	}
	if best := filepath.Join(f.resume, run.BestName); err != nil && cli.Exists(best) {
		return fmt.Errorf("%w (--from %s begins a run with its best weights)", err, best)
	}
	return err
}

// keepPrecision takes the precision of the resumed run unless a flag names one, because another
// would give other bits. A CPU has no tf32, so tf32 is only a preference for a GPU.
func (f *trainFlags) keepPrecision() error {
	if f.last == nil || f.Precision != "" {
		return nil
	}
	switch was := f.last.Precision; was {
	case "tf32":
		f.Before = was
	case "", "fp32", "bf16":
		f.Precision = was
	default:
		return fmt.Errorf("resume %s: %s was written in precision %q, which this build does not know: name another with --precision",
			f.resume, f.last.Path, was)
	}
	return nil
}

// settings are the run's, with the problem file that --problem names.
func (f *trainFlags) settings(cmd *cobra.Command) (config.Settings, run.Recipe, error) {
	c, r, err := f.named(cmd)
	if err == nil && f.problem != "" {
		c, err = f.withProblem(c)
	}
	if own, ok := c.(*config.Config); ok && err == nil && own.Problem.Rules != "" && f.Name == "auto" {
		f.Name = "cpu" // which alone has the rules of files
	}
	return c, r, err
}

// named reads the run's settings, a resumed run's own where no others are named, and finds their
// recipe.
func (f *trainFlags) named(cmd *cobra.Command) (config.Settings, run.Recipe, error) {
	name, model := f.Config, f.model
	if ck := f.last; ck != nil && name == "" {
		if model = ck.Settings.Recipe(); f.model != "" && f.model != model {
			return nil, nil, cli.Usagef("%s holds a run of %s, not of %s", f.resume, model, f.model)
		}
		name = filepath.Join(f.resume, run.ConfigName)
		if f.World != nil && len(f.Sets) > 0 {
			return nil, nil, cli.Usagef("--set with --resume is for one process: ranks take the run's own settings")
		}
		if len(f.Sets) == 0 && !cmd.Flags().Changed("seed") {
			r, err := recipe.Find(model)
			return ck.Settings, r, err
		}
	}
	c, err := config.LoadAny(model, name, f.Sets)
	if err != nil {
		return nil, nil, err
	}
	if ck := f.last; ck != nil && ck.Settings.Recipe() != c.Recipe() {
		return nil, nil, cli.Usagef("%s holds a run of %s, and --config %s has settings of %s", f.resume, ck.Settings.Recipe(), f.Config, c.Recipe())
	}
	r, err := recipe.Find(c.Recipe())
	if err != nil {
		return nil, nil, fmt.Errorf("--config %s: %w", f.Config, err)
	}
	if cmd.Flags().Changed("seed") {
		c, err = config.LoadAny(model, name, append(f.Sets, fmt.Sprintf("%s=%d", r.About().Seed, f.seed)))
	}
	return c, r, err
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
	if err := cli.FirstOf(f.validate(cmd), f.Check(a.App)); err != nil {
		return err
	}
	if f.seeds != "" {
		return a.trainSeeds(cmd, f)
	}
	if f.Processes > 1 {
		return a.spawn(cmd.Context(), f.Processes)
	}
	began := time.Now()
	if f.World, err = a.Join(cmd.Context(), &f.RankFlags, &f.DeviceFlags, cmd.Flags().Changed("workers")); err != nil {
		return err
	}
	defer func() { err = a.Leave(f.World, err) }()
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
	if err := f.Others(about.Name, "these settings are for"); err != nil {
		return err
	}
	if length := about.Unit + "s"; f.Changed(length) {
		cfg = r.Lengthen(cfg, f.Int(length))
	}
	if f.World.Number() == 0 {
		a.NoteUnused(cfg, f.Sets, cli.StandIns(cmd, map[string]string{"seed": about.Seed, about.Unit + "s": strings.Fields(about.Length)[0]}))
	}
	task, err := r.Open(cfg, &f.RecipeFlags, f.last)
	if err != nil {
		return err // before there is a folder
	}
	f.last = nil // its weights are read again when the run has its folder
	defer task.Close()
	from, err := cli.WeightsFrom(f.from)
	if err != nil {
		return err
	}
	dev, err := a.OpenFor(cmd.Context(), &f.DeviceFlags, r, cfg)
	if err != nil {
		return err
	}
	defer dev.Close()
	defer func() { err = errors.Join(err, f.World.CloseNCCL()) }()
	dir, err := f.sharedFolder(cfg.Title())
	if err != nil {
		return err
	}
	defer dir.Close()
	ctx, cancel := f.limited(cmd.Context(), began)
	defer cancel()
	if f.World.Number() > 0 {
		err := run.Run(ctx, run.Options{Recipe: r, Task: task, Settings: cfg, Device: dev, Dir: dir, Resume: f.resume != "", From: from,
			Workers: f.Workers, World: f.World})
		if stopped := new(run.Interrupted); err != nil && f.time > 0 && ctx.Err() == nil && errors.As(err, &stopped) {
			return nil // nobody stopped this rank: rank 0 has, whose clock it is
		} else if err != nil {
			return err
		}
		return a.tellRanks(&f.RankFlags, f.json)
	}

	screen := &report.Terminal{Screen: a.NewScreen(f.json)}
	folder := report.NewFolder(screen.Note)
	objects := report.NewObjects(a.Stdout)
	// The folder goes first: the screen's curve starts with the records it has read.
	listeners := []report.Listener{folder, screen}
	if f.json {
		listeners = append(listeners, objects)
	}
	workers := 0
	if cmd.Flags().Changed("workers") {
		workers = f.Workers
	}
	again := ""
	if f.time > 0 {
		again = " --time " + f.time.String()
	}
	err = run.Run(ctx, run.Options{Recipe: r, Task: task, Settings: cfg, Device: dev, Dir: dir, Resume: f.resume != "", From: from,
		Workers: workers, Again: again, Listener: report.All(listeners...), World: f.World})
	screen.Leave()
	stopped, err := f.timeUp(ctx, err)
	if stopped != nil && f.json {
		objects.Stopped(stopped)
	} else if stopped != nil {
		fmt.Fprintln(a.Stdout, stopped.Text)
	}
	err = errors.Join(err, folder.Close(), objects.Close())
	if stopped != nil {
		return err
	}
	if err == nil && f.World != nil {
		err = a.tellRanks(&f.RankFlags, f.json)
	}
	return err
}

// limited is the context of a run that --time ends. Of several ranks the first has the clock, and
// stops all.
func (f *trainFlags) limited(ctx context.Context, began time.Time) (context.Context, context.CancelFunc) {
	if f.time == 0 || f.World.Number() > 0 {
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
		return &report.Stopped{Updates: i.Updates, Total: i.Total, Dir: i.Dir, Text: cli.OneLine(i.Error())}, nil
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("--time %s was over before the run had begun: it needs more", f.time)
	}
	return nil, err
}
