package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"haul/internal/config"
	"haul/internal/env/darkroom"
	"haul/internal/kernel"
	"haul/internal/report"
	"haul/internal/train"
)

// historyFile is where learning histories go, and where training looks for them, when no file is named.
const historyFile = "data/darkroom.hist"

// agentFlags are those of train that only an in-context agent has.
type agentFlags struct {
	history    string
	data       string
	iterations int
}

func (f *agentFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.history, "history", historyFile, train.ADName+": learning histories, as haul data darkroom makes them")
	cmd.Flags().StringVar(&f.data, "data", train.DataAuto, train.ADName+": where histories live: device (nothing is copied), host (the loader feeds the device), auto (device if they fit)")
	cmd.Flags().IntVar(&f.iterations, "iterations", 0, train.ADName+": iterations in all, in place of train_timesteps; the schedule ends with the last")
}

func (f *agentFlags) validate(cmd *cobra.Command) error {
	switch f.data {
	case train.DataAuto, train.DataDevice, train.DataHost:
	default:
		return usagef("unknown --data %q: use %s, %s or %s", f.data, train.DataDevice, train.DataHost, train.DataAuto)
	}
	if cmd.Flags().Changed("iterations") && f.iterations < 1 {
		return usagef("--iterations is %d: at least 1 is needed", f.iterations)
	}
	return nil
}

// unused refuses an agent's flags where a policy is trained, which would pass them over in silence.
func (f *agentFlags) unused(cmd *cobra.Command) error {
	for _, name := range []string{"history", "data", "iterations"} {
		if cmd.Flags().Changed(name) {
			return usagef("--%s is for %s, and these settings are for %s: name an agent's with --config or --model %s", name, train.ADName, train.ModelName, train.ADName)
		}
	}
	return nil
}

// openHistory opens learning histories and says how to make them where there are none.
func openHistory(path string) (*darkroom.History, error) {
	h, err := darkroom.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no learning histories at %s: make them with haul data darkroom --out %s", path, path)
	}
	return h, err
}

// agentPrecision is what the settings ask of a GPU where no flag does: bf16 for mixed precision, else fp32.
func agentPrecision(f *deviceFlags, c *config.AD) {
	f.prefer = "bf16"
	if c.MixedPrecision == config.PrecisionFull {
		f.prefer = "fp32"
	}
}

// trainAgent runs AD; cfg is nil where a resumed run keeps its own.
func (a *app) trainAgent(cmd *cobra.Command, f *trainFlags, cfg *config.AD) (err error) {
	if cmd.Flags().Changed("epochs") {
		return usagef("--epochs is for %s; %s counts --iterations", train.ModelName, train.ADName)
	}
	own := cfg
	if own == nil {
		if own, err = train.ReadADConfig(filepath.Join(f.resume, "last.safetensors")); err != nil {
			return err
		}
	}
	history, err := openHistory(f.history)
	if err != nil {
		return err
	}
	defer history.Close()
	asked := *own
	if f.iterations > 0 {
		asked.TrainTimesteps = f.iterations
	}
	if err := train.CheckAD(history, &asked); err != nil {
		return err // before there is a folder
	}
	agentPrecision(&f.deviceFlags, own)
	dev, err := a.openBy(&f.deviceFlags, func(dev kernel.Device) (float64, error) { return train.ADStepTrial(dev, own) })
	if err != nil {
		return err
	}
	defer dev.Close()
	dir, err := f.folder(own.Name)
	if err != nil {
		return err
	}
	defer dir.Close()

	screen := &report.AgentTerminal{Screen: a.newScreen(f.json)}
	if f.history != historyFile {
		screen.History = f.history
	}
	folder := report.NewAgentFolder(screen.Note)
	objects := report.NewAgentObjects(a.stdout)
	// The folder goes first: the screen's curve starts with the reports it has read.
	listeners := []train.ADListener{folder, agentPast{screen, folder}}
	if f.json {
		listeners = append(listeners, objects)
	}
	workers := 0
	if cmd.Flags().Changed("workers") {
		workers = f.workers
	}
	err = train.RunAD(cmd.Context(), train.ADOptions{Config: cfg, Device: dev, Dir: dir, History: history, Data: f.data, Iterations: f.iterations,
		Resume: f.resume != "", Workers: workers, Listener: report.AllAgent(listeners...)})
	screen.Leave()
	if err != nil && f.history != historyFile {
		err = &withHistory{err, f.history}
	}
	return errors.Join(err, folder.Close(), objects.Close())
}

// agentPast shows the screen what a resumed run did before.
type agentPast struct {
	*report.AgentTerminal
	folder *report.AgentFolder
}

func (p agentPast) Start(i train.ADInfo) {
	p.AgentTerminal.Start(i)
	p.AgentTerminal.Past(p.folder.Reports())
}

// withHistory is the end of a run that must be told its histories again when it is resumed.
type withHistory struct {
	error
	path string
}

func (e *withHistory) Unwrap() error { return e.error }

// agentFile is the checkpoint that is put to use: of a folder the last.
func agentFile(checkpoint string) string {
	if st, err := os.Stat(checkpoint); err == nil && st.IsDir() {
		return filepath.Join(checkpoint, "last.safetensors")
	}
	return checkpoint
}
