package main

import (
	"errors"
	"fmt"
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
		Short: "Train a routing policy",
		Long: `Train a routing policy by policy gradient and test it against the optimum, or against savings past
12 customers. Without flags the shipped settings "quick" run: about a minute on two cores.

A run folder (--out, else a new one under runs/) holds the settings, the last and the best checkpoint, the history as CSV
and TensorBoard events, the curves, and a picture of one instance routed by the policy and by the reference.

Ctrl-C saves and says how to resume. A resumed run continues bit for bit on the same kind of device. With --json an object
an epoch goes to standard output.`,
		Example: `  haul train
  haul train --config tiny_1 --set training.learning_rate=5e-4 --out runs/mine
  haul train --resume runs/mine --epochs 20`,
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.train(cmd, &f) },
	}
	fs := cmd.Flags()
	f.configFlags.register(cmd)
	f.deviceFlags.register(cmd)
	fs.StringVar(&f.model, "model", train.ModelName, "what to train: "+train.ModelName)
	fs.IntVar(&f.epochs, "epochs", 0, "epochs in all, in place of training.num_epochs")
	fs.Uint64Var(&f.seed, "seed", 0, "seed, in place of experiment.random_seed")
	fs.StringVar(&f.out, "out", "", "run folder (default: a new "+runsDir+"/<config>-<NNN>)")
	fs.StringVar(&f.resume, "resume", "", "continue the run in this folder")
	fs.BoolVar(&f.force, "force", false, "overwrite the run in --out")
	fs.BoolVar(&f.json, "json", false, "print one JSON object an epoch")
	return cmd
}

// validate refuses what contradicts itself, before anything is opened.
func (f *trainFlags) validate(cmd *cobra.Command) error {
	switch {
	case f.model != train.ModelName:
		return usagef("unknown model %q: known is %s", f.model, train.ModelName)
	case cmd.Flags().Changed("epochs") && f.epochs < 1:
		return usagef("--epochs is %d: at least 1 is needed", f.epochs)
	case f.resume != "" && (f.out != "" || f.force):
		return usagef("--resume continues a folder, --out and --force start one: use one of them")
	case f.force && f.out == "":
		return usagef("--force overwrites the folder that --out names: name it")
	}
	return nil
}

// settings reads the run's settings; nil leaves a resumed run its own.
func (f *trainFlags) settings(cmd *cobra.Command) (*config.Config, error) {
	sets := f.sets
	if cmd.Flags().Changed("seed") {
		sets = append(sets, fmt.Sprintf("experiment.random_seed=%d", f.seed))
	}
	name := f.config
	if f.resume != "" && name == "" {
		if len(sets) == 0 {
			return nil, nil
		}
		name = filepath.Join(f.resume, "config.yaml")
	}
	return config.Load(name, sets)
}

func (f *trainFlags) folder(cfg *config.Config) (*train.Dir, error) {
	switch {
	case f.resume != "":
		return train.OpenDir(filepath.Clean(f.resume), true, false)
	case f.out != "":
		return train.OpenDir(filepath.Clean(f.out), false, f.force)
	}
	return train.NewDir(runsDir, cfg.Name)
}

func (a *app) train(cmd *cobra.Command, f *trainFlags) (err error) {
	if err := f.validate(cmd); err != nil {
		return err
	}
	cfg, err := f.settings(cmd)
	if err != nil {
		return err
	}
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
	dir, err := f.folder(cfg)
	if err != nil {
		return err
	}
	defer dir.Close()

	screen := a.newScreen(f.json)
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
func (a *app) newScreen(asJSON bool) *report.Terminal {
	live := isTerminal(a.stderr) && os.Getenv("TERM") != "dumb"
	t := &report.Terminal{Words: a.stderr, Result: a.stdout, Live: live, Colour: live && os.Getenv("NO_COLOR") == "", Width: a.width}
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
	if i := new(train.Interrupted); errors.As(err, &i) {
		return fmt.Sprintf("interrupted in epoch %d after step %d of %d; all is saved, continue with haul train --resume %s", i.Epoch, i.Step, i.Steps, i.Dir)
	}
	return "interrupted"
}
