// Package config is the verb haul config.
package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"haul/cmd/haul/cli"
	"haul/internal/config"
	"haul/internal/report"
)

// app is the program that the verb is a part of.
type app struct{ *cli.App }

// New returns the verb.
func New(program *cli.App) *cobra.Command {
	a := &app{program}
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show, check and explain settings",
		Example: `  haul config show --config tiny_1 --set training.batch_size=256
  haul config check docs/examples/my.yaml
  haul config explain training_advanced
  haul config explain --model AD`,
	}
	cmd.AddCommand(a.newConfigShow(), a.newConfigCheck(), a.newConfigExplain())
	a.Parent(cmd)
	return cmd
}

func (a *app) newConfigShow() *cobra.Command {
	var (
		f      cli.ConfigFlags
		model  string
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Print all settings, defaults included",
		Long: "The file of --config overrides the defaults, and --set overrides both. Keys without effect, which are accepted so that settings of\n" +
			"other programs load, are left out; haul config explain lists them.\n\nShipped settings:" +
			cli.ShippedSettings(),
		Example: "  haul config show --config tiny_1 --set training.batch_size=256\n  haul config show --config ad_dr_compressed",
		Args:    cli.AtMost(0),
		RunE: func(*cobra.Command, []string) error {
			if err := cli.ValidModel(model); err != nil {
				return err
			}
			c, err := config.LoadAny(model, f.Config, f.Sets)
			if err != nil {
				return err
			}
			a.NoteUnused(c, f.Sets, nil)
			text, err := c.YAML()
			if err != nil {
				return err
			}
			if !asJSON {
				_, err = a.Stdout.Write(text)
				return err
			}
			var tree map[string]any
			if err := yaml.Unmarshal(text, &tree); err != nil {
				return err
			}
			return a.Emit(tree)
		},
	}
	f.Register(cmd)
	cli.RegisterModel(cmd, &model, "kind of model that the settings are for (without it, the file's keys decide)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

type checkReport struct {
	File  string `json:"file"`
	Valid bool   `json:"valid"`
	Error string `json:"error,omitempty"` // the first

	Errors []string `json:"errors,omitempty"` // every mistake, in the order of the file
}

func (a *app) newConfigCheck() *cobra.Command {
	var (
		sets   []string
		model  string
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:     "check FILE",
		Short:   "Check a settings file: keys, types, ranges and combinations",
		Long:    "Every mistake is reported in a line of its own. - is standard input, here and in --config.",
		Example: "  haul config check docs/examples/my.yaml",
		Args:    cli.AtMost(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Usagef("name the settings file to check: haul config check FILE")
			}
			if err := cli.ValidModel(model); err != nil {
				return err
			}
			c, err := checkConfig(model, args[0], sets)
			if err == nil {
				a.NoteUnused(c, sets, nil)
			}
			if asJSON {
				r := checkReport{File: args[0], Valid: err == nil}
				if err != nil {
					r.Error = cli.OneLine(err.Error())
					for _, one := range config.All(err) {
						r.Errors = append(r.Errors, cli.OneLine(one.Error()))
					}
				}
				if failed := a.Emit(r); failed != nil {
					return failed
				}
				return err
			}
			if err != nil {
				all := config.All(err)
				for _, one := range all[:len(all)-1] {
					a.Complain(cli.OneLine(one.Error()))
				}
				last := all[len(all)-1]
				if errors.As(err, new(*config.SetError)) {
					last = cli.AsUsage(last)
				}
				return last
			}
			_, err = fmt.Fprintf(a.Stdout, "%s is valid%s\n", args[0], lengthOf(c))
			return err
		},
	}
	cli.RegisterModel(cmd, &model, "kind of model that the settings are for (without it, the file's keys decide)")
	cmd.Flags().StringArrayVar(&sets, "set", nil, "change one setting before checking: --set training.batch_size=256 (repeatable)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// checkConfig is stricter than loading: a path that does not exist is not taken for the shipped
// file of the same name, because its owner believes that it was read.
func checkConfig(model, file string, sets []string) (config.Settings, error) {
	if file != cli.StandardInput && !slices.Contains(config.Names(""), file) {
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("config %s: no such file or shipped name; shipped: %s", file, strings.Join(config.Names(""), ", "))
		}
	}
	return config.LoadAny(model, file, sets)
}

// lengthOf says how much a routing run trains on, and of which sizes where there are several. A
// file that says nothing of its length, and includes no other, has taken the original program's
// days without a word.
func lengthOf(c config.Settings) string {
	g, ok := c.(*config.Config)
	if !ok {
		return ""
	}
	t := g.Training
	each := int64(t.NumBatchesPerEpoch) * int64(t.BatchSize)
	text := fmt.Sprintf(": %s of %s, %s in all", report.Plural(int64(t.NumEpochs), "epoch"), report.Plural(each, "instance"), report.Thousands(each*int64(t.NumEpochs)))
	if sizes := g.Problem.Ladder(); len(sizes) > 1 {
		text += fmt.Sprintf("; each step draws its size from %s customers", strings.Trim(strings.Join(strings.Fields(fmt.Sprint(sizes)), ", "), "[]"))
	}
	return text
}

func (a *app) newConfigExplain() *cobra.Command {
	var (
		model  string
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:     "explain [KEY]",
		Short:   "Explain what a setting does, its default and its range",
		Long:    "KEY is a key (baseline.type), a section, or the last word of keys (gpu). Without KEY all settings are explained.",
		Example: "  haul config explain baseline.type\n  haul config explain gpu\n  haul config explain --model AD",
		Args:    cli.AtMost(1),
		RunE: func(_ *cobra.Command, args []string) error {
			entries, err := config.Explain(model, strings.Join(args, ""))
			if err != nil {
				return cli.AsUsage(err)
			}
			if asJSON {
				return a.Emit(struct {
					Keys []config.Entry `json:"keys"`
				}{entries})
			}
			var text strings.Builder
			for _, e := range entries {
				kind := fmt.Sprintf("%s, default %s", e.Type, e.Default)
				if e.Allowed != "" {
					kind += ", allowed: " + e.Allowed
				}
				fmt.Fprintln(&text, a.Bold(e.Key))
				for _, about := range []string{e.About, fmt.Sprintf("%s (%s; %s)", kind, e.Recipe, e.Effect)} {
					fmt.Fprintln(&text, strings.Join(report.Wrap("  "+about, a.HelpWidth(), 2), "\n"))
				}
			}
			_, err = io.WriteString(a.Stdout, text.String())
			return err
		},
	}
	cli.RegisterModel(cmd, &model, "kind of model whose settings are explained (without it, all)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}
