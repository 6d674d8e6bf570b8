package main

import (
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"haul/internal/config"
	"haul/internal/draw"
	"haul/internal/env/darkroom"
	"haul/internal/kernel"
	"haul/internal/report"
	"haul/internal/train"
)

// inContextFlags are those of eval that only an in-context agent has.
type inContextFlags struct {
	history     string
	goals       string
	episodes    int
	agents      int
	temperature float64
}

func (f *inContextFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.history, "history", historyFile, train.ADName+": learning histories: their goals, split and learners' curves are taken")
	cmd.Flags().StringVar(&f.goals, "goals", "held-out", train.ADName+": held-out, train or all")
	cmd.Flags().IntVar(&f.episodes, "episodes", 0, train.ADName+": episodes of each agent (default: eval_episodes)")
	cmd.Flags().IntVar(&f.agents, "agents", 0, train.ADName+": agents on each goal (default: eval_agents)")
	cmd.Flags().Float64Var(&f.temperature, "temperature", 0, train.ADName+": of the actions' distribution, 0 the most likely one (default: eval_temperature)")
}

var inContextNames = []string{"history", "goals", "episodes", "agents", "temperature"}

func (f *inContextFlags) validate(cmd *cobra.Command) error {
	changed := cmd.Flags().Changed
	switch {
	case f.goals != "held-out" && f.goals != "train" && f.goals != "all":
		return usagef("unknown --goals %q: use held-out, train or all", f.goals)
	case changed("episodes") && f.episodes < 1:
		return usagef("--episodes is %d: at least 1 is needed", f.episodes)
	case changed("agents") && f.agents < 1:
		return usagef("--agents is %d: at least 1 is needed", f.agents)
	case !(f.temperature >= 0):
		return usagef("--temperature is %g: it must not be below 0", f.temperature)
	}
	return nil
}

// unused refuses an agent's flags where a policy is judged.
func (f *inContextFlags) unused(cmd *cobra.Command) error {
	for _, name := range inContextNames {
		if cmd.Flags().Changed(name) {
			return usagef("--%s is for %s, and this checkpoint holds %s", name, train.ADName, train.ModelName)
		}
	}
	return nil
}

// chosen are the indices of the goals that are asked for; nil is those held out.
func (f *inContextFlags) chosen(h *darkroom.History) []int {
	learned, held := h.Split()
	switch f.goals {
	case "train":
		return learned
	case "all":
		return append(learned, held...)
	}
	return nil
}

func (a *app) evalAgent(cmd *cobra.Command, f *evalFlags, format draw.Format) error {
	path := agentFile(f.checkpoint)
	for _, name := range []string{"decode", "count"} {
		if cmd.Flags().Changed(name) {
			return usagef("--%s is for %s, and this checkpoint holds %s", name, train.ModelName, train.ADName)
		}
	}
	history, err := openHistory(f.inContextFlags.history)
	if err != nil {
		return err
	}
	defer history.Close()
	cfg, err := train.ReadADConfig(path)
	if err != nil {
		return err
	}
	agentPrecision(&f.deviceFlags, cfg)
	dev, err := a.openBy(&f.deviceFlags, func(dev kernel.Device) (float64, error) { return train.ADStepTrial(dev, cfg) })
	if err != nil {
		return err
	}
	defer dev.Close()
	agent, err := train.LoadAgent(dev, path)
	if err != nil {
		return err
	}
	o := train.ADEvalOptions{History: history, Goals: f.chosen(history), Agents: f.agents, Episodes: f.episodes}
	if cmd.Flags().Changed("temperature") {
		o.Temperature = &f.temperature
	}
	if cmd.Flags().Changed("seed") {
		o.Seed = &f.seed
	}
	var b *bar
	o.Progress = func(done, of int) {
		if b == nil {
			b = a.newBar(of, "steps")
		}
		b.set(done)
	}
	e, err := agent.Evaluate(cmd.Context(), o)
	if b != nil {
		b.end()
	}
	if err != nil {
		return err
	}
	if f.plot != "" {
		if err := drawAgent(f.plot, format, cfg, e); err != nil {
			return err
		}
	}
	if f.json {
		return a.emit(struct {
			Checkpoint string `json:"checkpoint"`
			Device     string `json:"device"`
			Plot       string `json:"plot,omitempty"`
			*train.ADEvaluation
		}{path, dev.Name(), f.plot, e})
	}
	var text strings.Builder
	text.WriteString(a.bold(path+", "+dev.Name()) + "\n")
	report.WriteInContext(&text, e)
	_, err = io.WriteString(a.stdout, text.String())
	return err
}

// drawAgent draws the curve and, under the same name with -episodes, the walks.
func drawAgent(path string, format draw.Format, cfg *config.AD, e *train.ADEvaluation) error {
	if err := writeFile(path, func(w io.Writer) error { return report.DrawInContext(w, format, cfg.Name, e) }); err != nil {
		return err
	}
	ext := filepath.Ext(path)
	return writeFile(strings.TrimSuffix(path, ext)+"-episodes"+ext, func(w io.Writer) error { return report.DrawEpisodes(w, format, cfg.Name, e) })
}
