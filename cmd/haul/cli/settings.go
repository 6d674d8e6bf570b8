package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"haul/internal/config"
	"haul/internal/kernel"
	"haul/internal/recipe"
	"haul/internal/run"
)

// Compiled opens the device for settings of any recipe and compiles their training step, which the
// end of the context stops wherever it is.
func (a *App) Compiled(ctx context.Context, f *ConfigFlags, d *DeviceFlags) (kernel.Device, *run.Step, config.Settings, error) {
	if err := d.Check(a); err != nil {
		return nil, nil, nil, err
	}
	cfg, err := config.LoadAny("", f.Config, f.Sets)
	if err != nil {
		return nil, nil, nil, err
	}
	a.NoteUnused(cfg, f.Sets, nil)
	r, err := recipe.Find(cfg.Recipe())
	if err != nil {
		return nil, nil, nil, Usagef("--config %s: %s", f.Config, err)
	}
	dev, err := a.OpenFor(ctx, d, r, cfg)
	if err != nil {
		return nil, nil, nil, err
	}
	s, err := r.Step(dev, cfg)
	if err != nil {
		return nil, nil, nil, errors.Join(err, dev.Close())
	}
	context.AfterFunc(ctx, func() { run.Stop(s.Runner) })
	return dev, s, cfg, nil
}

// ConfigFlags name the settings a verb works with.
type ConfigFlags struct {
	Config string
	Sets   []string
}

func (f *ConfigFlags) Register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.Config, "config", "", "shipped settings by name, or a YAML file (default "+config.DefaultName+")")
	cmd.Flags().StringArrayVar(&f.Sets, "set", nil, "change one setting: --set training.batch_size=256 (repeatable)")
}

// RegisterAs is register of a verb that takes other settings where none are named.
func (f *ConfigFlags) RegisterAs(cmd *cobra.Command, name string) {
	f.Register(cmd)
	f.Config = name
	flag := cmd.Flags().Lookup("config")
	flag.DefValue, flag.Usage = name, "shipped settings by name, or a YAML file"
}

// RegisterModel adds --model, which says whose settings are meant where no file tells.
func RegisterModel(cmd *cobra.Command, model *string, use string) {
	cmd.Flags().StringVar(model, "model", "", use+": "+strings.Join(config.Recipes(), ", "))
}

func ValidModel(model string) error {
	if config.Names(model) == nil {
		return Usagef("--model %s: one of %s is needed", model, strings.Join(config.Recipes(), ", "))
	}
	return nil
}

// ShippedSettings lists what is embedded, a line for each recipe.
func ShippedSettings() string {
	var text strings.Builder
	for _, recipe := range config.Recipes() {
		for i, line := range fold(config.Names(recipe), 88) {
			if i > 0 {
				recipe = ""
			}
			fmt.Fprintf(&text, "\n  %-5s %s", recipe, line)
		}
	}
	return text.String()
}

// fold lists names in lines of at most that many letters.
func fold(names []string, width int) (lines []string) {
	line := ""
	for i, n := range names {
		if i < len(names)-1 {
			n += ","
		}
		if line != "" && len(line)+1+len(n) > width {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimPrefix(line+" "+n, " ")
	}
	return append(lines, line)
}

// NoteUnused tells of settings on the command line that change nothing. Flags stand in for the keys
// that they are listed by.
func (a *App) NoteUnused(s config.Settings, sets []string, flags map[string]string) {
	for _, line := range config.Unused(s, sets, flags) {
		fmt.Fprintln(a.Stderr, line)
	}
}
