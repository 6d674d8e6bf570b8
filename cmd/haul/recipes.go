package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"haul/internal/config"
	"haul/internal/kernel"
	"haul/internal/recipe"
	"haul/internal/run"
)

// recipeFlags are the flags that recipes add to a verb; a flag that several recipes have is
// registered once.
type recipeFlags struct {
	set    *pflag.FlagSet
	owners map[string][]string // by flag: the recipes that have it
	checks []run.Flag          // those whose values can be judged alone
}

// register adds the flags that pick takes from each recipe.
func (f *recipeFlags) register(cmd *cobra.Command, pick func(*run.About) []run.Flag) {
	f.set, f.owners = cmd.Flags(), map[string][]string{}
	for _, r := range recipe.All {
		for _, flag := range pick(r.About()) {
			f.add(r.About().Name, flag)
		}
	}
	for name, owners := range f.owners {
		flag := f.set.Lookup(name)
		flag.Usage = strings.Join(owners, ", ") + ": " + flag.Usage
	}
}

func (f *recipeFlags) add(owner string, flag run.Flag) {
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

// checkValues refuses values that no recipe takes, before any file is read.
func (f *recipeFlags) checkValues() error {
	for _, flag := range f.checks {
		if f.Changed(flag.Name) {
			if err := flag.Check(f); err != nil {
				return asUsage(err)
			}
		}
	}
	return nil
}

// others refuses flags that the recipe does not have, which it would ignore silently.
func (f *recipeFlags) others(name, what string) (err error) {
	f.set.Visit(func(flag *pflag.Flag) {
		owners := f.owners[flag.Name]
		for _, o := range owners {
			if o == name {
				return
			}
		}
		if len(owners) > 0 && err == nil {
			err = usagef("--%s is for %s, and %s %s", flag.Name, strings.Join(owners, ", "), what, name)
		}
	})
	return err
}

// Changed, String, Int and Float are run.Flags. A recipe asks for what it has registered, so that
// no look-up fails.
func (f *recipeFlags) Changed(name string) bool { return f.set.Changed(name) }

func (f *recipeFlags) String(name string) string {
	v, _ := f.set.GetString(name)
	return v
}

func (f *recipeFlags) Int(name string) int {
	v, _ := f.set.GetInt(name)
	return v
}

func (f *recipeFlags) Float(name string) float64 {
	v, _ := f.set.GetFloat64(name)
	return v
}

// paragraphs are the recipes' parts of a help page.
func paragraphs(pick func(*run.About) string) string {
	var out []string
	for _, r := range recipe.All {
		out = append(out, r.About().Name+": "+pick(r.About()))
	}
	return strings.Join(out, "\n\n")
}

// knownModel refuses a --model that no recipe has; "" passes.
func knownModel(name string) error {
	if name == "" {
		return nil
	}
	_, err := recipe.Find(name)
	return asUsage(err)
}

// checkpointOf is the file that a user means by a folder or a file: of a folder the one that its
// recipe puts to use, or the last where that is not there yet. It is read as far as its settings.
func checkpointOf(path string) (string, *run.Checkpoint, error) {
	st, err := os.Stat(path)
	if err != nil || !st.IsDir() {
		ck, err := run.Load(path, "")
		return path, ck, err
	}
	last := filepath.Join(path, run.LastName)
	ck, err := run.Load(last, "")
	// gone or damaged: the best is put to use where there is one, and what is said is of the last
	if err != nil {
		if best, kept := filepath.Join(path, run.BestName), error(nil); exists(best) {
			if ck, kept = run.Load(best, ""); kept == nil {
				return best, ck, nil
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = nameRun(err, path)
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

// nameRun adds to the error about a folder that is no run's, but holds runs, the name of one.
func nameRun(err error, folder string) error {
	entries, _ := os.ReadDir(folder)
	for _, e := range entries {
		if within := filepath.Join(folder, e.Name()); exists(filepath.Join(within, run.LastName)) {
			return fmt.Errorf("%w; name a run in it, such as %s", err, within)
		}
	}
	return err
}

// openFor opens the device for settings of any recipe. auto goes by the time of their training
// step, and says so where there was a choice.
func (a *app) openFor(ctx context.Context, f *deviceFlags, r run.Recipe, s config.Settings) (kernel.Device, error) {
	f.prefer = cmp.Or(f.before, r.Precision(s))
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
