package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"haul/internal/config"
	"haul/internal/report"
	"haul/internal/train"
)

// runsDir is where run folders go when none is named.
const runsDir = "runs"

type trainFlags struct {
	configFlags
	deviceFlags
	agentFlags
	model  string
	epochs int
	seed   uint64
	out    string
	resume string
	force  bool
	json   bool
}

func (a *app) newTrain() *cobra.Command {
	var f trainFlags
	cmd := &cobra.Command{
		Use:   "train",
		Short: "Train a routing policy or an in-context agent",
		Long: `Train a model. The settings say which (` + train.ModelName + ` or ` + train.ADName + `); --model says so where no settings are named.

` + train.ModelName + `: a routing policy by policy gradient, tested against the optimum, or against savings past 12 customers. Without flags the
shipped settings "quick" run: about a minute on two cores.

` + train.ADName + `: an in-context agent, from learning histories that haul data darkroom makes (--history). It is tested on goals that
were held out: by its loss on their histories, and by what it earns there, episode after episode, in its own context.

A run folder (--out, else a new one under runs/) holds the settings, the last and the best checkpoint, the history as CSV
and TensorBoard events, and pictures: curves, one instance routed by the policy and by the reference, or an agent's first and last walk.

Ctrl-C saves and says how to resume. A resumed run continues bit for bit on the same kind of device. With --json an object
an epoch, or a report, goes to standard output.`,
		Example: `  haul train
  haul train --config tiny_1 --set training.learning_rate=5e-4 --out runs/mine
  haul train --resume runs/mine --epochs 20
  haul train --model AD --config ad_dr_compressed --device cuda:0 --iterations 20000`,
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.train(cmd, &f) },
	}
	flags := cmd.Flags()
	f.configFlags.register(cmd)
	flags.Lookup("config").Usage = "shipped settings by name, or a YAML file (default " + config.DefaultName + ", with --model " + train.ADName + " " + config.DefaultAD + ")"
	f.deviceFlags.register(cmd)
	f.agentFlags.register(cmd)
	flags.StringVar(&f.model, "model", "", "what to train: "+train.ModelName+" or "+train.ADName+" (default: what the settings are for)")
	flags.IntVar(&f.epochs, "epochs", 0, train.ModelName+": epochs in all, in place of training.num_epochs")
	flags.Uint64Var(&f.seed, "seed", 0, "seed, in place of the settings'")
	flags.StringVar(&f.out, "out", "", "run folder (default: a new "+runsDir+"/<config>-<NNN>)")
	flags.StringVar(&f.resume, "resume", "", "continue the run in this folder")
	flags.BoolVar(&f.force, "force", false, "overwrite the run in --out")
	flags.BoolVar(&f.json, "json", false, "print one JSON object an epoch, or for each report, test and evaluation of an agent")
	return cmd
}

// validate refuses what contradicts itself, before anything is opened.
func (f *trainFlags) validate(cmd *cobra.Command) error {
	switch {
	case f.model != "" && f.model != train.ModelName && f.model != train.ADName:
		return usagef("unknown model %q: known are %s and %s", f.model, train.ModelName, train.ADName)
	case cmd.Flags().Changed("epochs") && f.epochs < 1:
		return usagef("--epochs is %d: at least 1 is needed", f.epochs)
	case f.resume != "" && (f.out != "" || f.force):
		return usagef("--resume continues a folder, --out and --force start one: use one of them")
	case f.force && f.out == "":
		return usagef("--force overwrites the folder that --out names: name it")
	}
	return f.agentFlags.validate(cmd)
}

// settings reads the run's settings and says which model they are for; nil leaves a resumed run its own.
func (f *trainFlags) settings(cmd *cobra.Command) (config.Settings, string, error) {
	name, model := f.config, f.model
	if f.resume != "" && name == "" {
		var err error
		if model, err = train.ModelOf(filepath.Join(f.resume, "last.safetensors")); errors.Is(err, fs.ErrNotExist) {
			return nil, "", fmt.Errorf("nothing to resume: %s holds no last.safetensors", f.resume)
		} else if err != nil {
			return nil, "", err
		}
		if f.model != "" && f.model != model {
			return nil, "", usagef("%s holds a run of %s, not of %s", f.resume, model, f.model)
		}
		if len(f.sets) == 0 && !cmd.Flags().Changed("seed") {
			return nil, model, nil
		}
		name = filepath.Join(f.resume, "config.yaml")
	}
	c, err := config.LoadAny(model, name, f.sets)
	if err == nil && cmd.Flags().Changed("seed") {
		key := "experiment.random_seed"
		if _, ok := c.(*config.AD); ok {
			key = "seed"
		}
		c, err = config.LoadAny(model, name, append(f.sets, fmt.Sprintf("%s=%d", key, f.seed)))
	}
	if err != nil {
		return nil, "", err
	}
	switch c.(type) {
	case *config.Config:
		return c, train.ModelName, nil
	case *config.AD:
		return c, train.ADName, nil
	}
	return nil, "", usagef("--config %s holds settings of learning histories, which haul data makes", f.config)
}

func (f *trainFlags) folder(name string) (*train.Dir, error) {
	switch {
	case f.resume != "":
		return train.OpenDir(filepath.Clean(f.resume), true, false)
	case f.out != "":
		return train.OpenDir(filepath.Clean(f.out), false, f.force)
	}
	return train.NewDir(runsDir, name)
}

func (a *app) train(cmd *cobra.Command, f *trainFlags) error {
	if err := f.validate(cmd); err != nil {
		return err
	}
	c, model, err := f.settings(cmd)
	if err != nil {
		return err
	}
	if model == train.ADName {
		cfg, _ := c.(*config.AD)
		return a.trainAgent(cmd, f, cfg)
	}
	if err := f.agentFlags.unused(cmd); err != nil {
		return err
	}
	cfg, _ := c.(*config.Config)
	return a.trainPolicy(cmd, f, cfg)
}

// trainPolicy runs GT+RL; cfg is nil where a resumed run keeps its own.
func (a *app) trainPolicy(cmd *cobra.Command, f *trainFlags, cfg *config.Config) (err error) {
	dev, err := a.open(&f.deviceFlags, func() (*config.Config, error) {
		if cfg == nil {
			return train.ReadConfig(filepath.Join(f.resume, "last.safetensors"))
		}
		return cfg, nil
	})
	if err != nil {
		return err
	}
	defer dev.Close()
	name := ""
	if cfg != nil {
		name = cfg.Name
	}
	dir, err := f.folder(name)
	if err != nil {
		return err
	}
	defer dir.Close()

	screen := &report.Terminal{Screen: a.newScreen(f.json)}
	folder := report.NewFolder(screen.Note)
	objects := report.NewObjects(a.stdout)
	// The folder goes first: the screen's curve starts with the epochs it has read.
	listeners := []train.Listener{folder, past{screen, folder}}
	if f.json {
		listeners = append(listeners, objects)
	}
	err = train.Run(cmd.Context(), train.Options{Config: cfg, Device: dev, Dir: dir, Epochs: f.epochs, Resume: f.resume != "",
		Workers: f.workers, Listener: report.All(listeners...)})
	screen.Leave()
	return errors.Join(err, folder.Close(), objects.Close())
}

// past shows the screen what a resumed run did before.
type past struct {
	*report.Terminal
	folder *report.Folder
}

func (p past) Start(i train.Info) {
	p.Terminal.Start(i)
	p.Terminal.History(p.folder.Rows())
}

// newScreen is the listener for people. Results share standard output with nothing else, so with JSON there they
// join the words.
func (a *app) newScreen(asJSON bool) report.Screen {
	live := isTerminal(a.stderr) && os.Getenv("TERM") != "dumb"
	t := report.Screen{Words: a.stderr, Result: a.stdout, Live: live, Colour: live && os.Getenv("NO_COLOR") == "", Width: a.width}
	if asJSON {
		t.Result = a.stderr
	}
	return t
}

// width is the screen's, 80 where it does not tell.
func (a *app) width() int {
	if f, ok := a.stderr.(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			return w
		}
	}
	return 80
}

// interruption is what a user who pressed Ctrl-C reads.
func interruption(err error) string {
	i := new(train.Interrupted)
	if !errors.As(err, &i) {
		return "interrupted"
	}
	again := "haul train --resume " + i.Dir
	if h := new(withHistory); errors.As(err, &h) {
		again += " --history " + h.path
	}
	at := fmt.Sprintf("in epoch %d after step %d of %d", i.Epoch, i.Step, i.Steps)
	if i.Epoch == 0 {
		at = fmt.Sprintf("after iteration %d of %d", i.Step, i.Steps)
	}
	return fmt.Sprintf("interrupted %s; all is saved, continue with %s", at, again)
}
