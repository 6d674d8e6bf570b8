package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"haul/internal/config"
	"haul/internal/kernel"
	"haul/internal/recipe"
	"haul/internal/run"
	"haul/policies"
)

// RecipeFlags are the flags that recipes add to a verb; a flag that several recipes have is
// registered once.
type RecipeFlags struct {
	set    *pflag.FlagSet
	owners map[string][]string // by flag: the recipes that have it
	checks []run.Flag          // those whose values can be judged alone
}

// Register adds the flags that pick takes from each recipe.
func (f *RecipeFlags) Register(cmd *cobra.Command, pick func(*run.About) []run.Flag) {
	f.set, f.owners = cmd.Flags(), map[string][]string{}
	for _, r := range recipe.All {
		for _, flag := range pick(r.About()) {
			f.add(r.About().Name, flag)
		}
	}
	under := map[string][]string{}
	var headings []string
	f.set.VisitAll(func(flag *pflag.Flag) {
		if owners := f.owners[flag.Name]; len(owners) > 0 {
			of := strings.Join(owners, ", ")
			if under[of] = append(under[of], flag.Name); len(under[of]) == 1 {
				headings = append(headings, of)
			}
		}
	})
	for _, of := range headings {
		Grouped(cmd, "For "+of, under[of]...)
	}
}

func (f *RecipeFlags) add(owner string, flag run.Flag) {
	f.owners[flag.Name] = append(f.owners[flag.Name], owner)
	if flag.Check != nil {
		f.checks = append(f.checks, flag)
	}
	if len(f.owners[flag.Name]) > 1 {
		return
	}
	switch v := flag.Default.(type) {
	case string:
		f.set.String(flag.Name, v, flag.Usage)
	case int:
		f.set.Int(flag.Name, v, flag.Usage)
	case float64:
		f.set.Float64(flag.Name, v, flag.Usage)
	default:
		panic(fmt.Sprintf("flag --%s has a default of type %T", flag.Name, v))
	}
}

// CheckValues refuses values that no recipe takes, before any file is read.
func (f *RecipeFlags) CheckValues() error {
	for _, flag := range f.checks {
		if f.Changed(flag.Name) {
			if err := flag.Check(f); err != nil {
				return AsUsage(err)
			}
		}
	}
	return nil
}

// Others refuses flags that the recipe does not have, which it would ignore silently.
func (f *RecipeFlags) Others(name, what string) (err error) {
	f.set.Visit(func(flag *pflag.Flag) {
		owners := f.owners[flag.Name]
		for _, o := range owners {
			if o == name {
				return
			}
		}
		if len(owners) > 0 && err == nil {
			err = Usagef("--%s is for %s, and %s %s", flag.Name, strings.Join(owners, ", "), what, name)
		}
	})
	return err
}

// Changed, String, Int and Float are run.Flags. A recipe asks for what it has registered, so that
// no look-up fails.
func (f *RecipeFlags) Changed(name string) bool { return f.set.Changed(name) }

func (f *RecipeFlags) String(name string) string {
	v, _ := f.set.GetString(name)
	return v
}

func (f *RecipeFlags) Int(name string) int {
	v, _ := f.set.GetInt(name)
	return v
}

func (f *RecipeFlags) Float(name string) float64 {
	v, _ := f.set.GetFloat64(name)
	return v
}

// Paragraphs are the recipes' parts of a help page.
func Paragraphs(pick func(*run.About) string) string {
	var out []string
	for _, r := range recipe.All {
		out = append(out, r.About().Name+": "+pick(r.About()))
	}
	return strings.Join(out, "\n\n")
}

// KnownModel refuses a --model that no recipe has; "" passes.
func KnownModel(name string) error {
	if name == "" {
		return nil
	}
	_, err := recipe.Find(name)
	return AsUsage(err)
}

// CheckpointOf is the file that a user means by a folder or a file: of a folder the one that its
// recipe puts to use, or the last where that is not there yet. It is read as far as its settings.
func CheckpointOf(path string) (string, *run.Checkpoint, error) {
	st, err := os.Stat(path)
	if err != nil || !st.IsDir() {
		ck, err := run.Load(path, "")
		return path, ck, err
	}
	last := filepath.Join(path, run.LastName)
	ck, err := run.Load(last, "")
	// gone or damaged: the best is put to use where there is one, and what is said is of the last
	if err != nil {
		if best, kept := filepath.Join(path, run.BestName), error(nil); Exists(best) {
			if ck, kept = run.Load(best, ""); kept == nil {
				return best, ck, nil
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = NameRun(err, path)
		}
		return last, nil, err
	}
	r, err := recipe.Find(ck.Settings.Recipe())
	if err != nil {
		return last, nil, err
	}
	use := filepath.Join(path, r.About().UseOf(ck.Settings))
	if use == last {
		return last, ck, nil
	}
	if _, err := os.Stat(use); err != nil {
		return last, ck, nil
	}
	ck, err = run.Load(use, "")
	return use, ck, err
}

// NameRun adds to the error about a folder that is no run's, but holds runs, the name of one.
func NameRun(err error, folder string) error {
	entries, _ := os.ReadDir(folder)
	for _, e := range entries {
		if within := filepath.Join(folder, e.Name()); Exists(filepath.Join(within, run.LastName)) {
			return fmt.Errorf("%w; name a run in it, such as %s", err, within)
		}
	}
	return err
}

// OpenFor opens the device for settings of any recipe. auto goes by the time of their training
// step, and says so where there was a choice.
func (a *App) OpenFor(ctx context.Context, f *DeviceFlags, r run.Recipe, s config.Settings) (kernel.Device, error) {
	f.prefer = cmp.Or(f.Before, r.Precision(s))
	dev, err := a.openBy(f, func(dev kernel.Device) (float64, error) {
		step, err := r.Step(dev, s)
		if err != nil {
			return 0, err
		}
		return step.Trial(ctx)
	})
	if ended := ctx.Err(); ended != nil { // while devices were tried
		if err == nil {
			err = dev.Close()
		}
		return nil, errors.Join(ended, err)
	}
	return dev, err
}

// WeightsFrom reads the weights that a new run begins with; nil: the recipe's own. A policy's name
// comes before a file's.
func WeightsFrom(from string) (*run.Checkpoint, error) {
	switch {
	case from == "":
		return nil, nil
	case slices.Contains(policies.Names(), from):
		return ShippedPolicy(from)
	}
	_, ck, err := CheckpointOf(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("--from %s: there is no such file, run folder or policy (policies: %s)", from, strings.Join(policies.Names(), ", "))
	}
	return ck, err
}
