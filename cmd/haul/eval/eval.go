// Package eval is the verb haul eval.
package eval

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"haul/cmd/haul/cli"
	"haul/internal/draw"
	"haul/internal/kernel"
	"haul/internal/recipe"
	"haul/internal/run"
)

type evalFlags struct {
	cli.DeviceFlags
	cli.RecipeFlags
	policy cli.PolicyFlags
	set    setFlags
	model  string
	seed   uint64
	plot   string
	force  bool
	json   bool
}

// app is the program that the verb is a part of.
type app struct{ *cli.App }

// New returns the verb.
func New(program *cli.App) *cobra.Command {
	a := &app{program}
	var f evalFlags
	cmd := &cobra.Command{
		Use:   "eval [SET]",
		Short: "Test a trained model, or a method of solving, on a set of instances",
		Long: `Without --checkpoint or --policy the instances of SET are solved by --method, and their mean cost per customer (CPC) is printed. ` + cli.SetUsage + `,
or a file: .npz, .pkl, .pt, a folder of .vrp. With --method search each instance gets --time or --iterations on one core; costs
are cached, so an interrupted run continues where it stopped. A validator checks every route. Costs of a public set or a file are
compared with --reference, or with the array reference or hgs of an .npz.

Name a model to test: a run folder or a checkpoint with --checkpoint, or a shipped policy with --policy. The report depends on the kind
of model that it holds:

` + cli.Paragraphs(func(i *run.About) string { return i.Eval }),
		Example: `  haul eval grid:10 --count 1000 --method exact
  haul eval uniform:100 --capacity 50 --count 100 --best-known 0.15563
  haul eval kool:100 --count 100 --time 0.5s
  haul eval --checkpoint runs/quick-001
  haul eval --checkpoint runs/quick-001/best.safetensors --decode pomo8 --plot routes.svg --json
  haul eval kool:20 --policy cvrp20 --decode pomo8:1
  haul eval docs/examples/uniform10.npz --checkpoint runs/quick-001 --out routes
  haul eval --model AD --checkpoint runs/ad_dr_compressed-001 --episodes 50 --plot in_context.svg`,
		Args: cli.AtMost(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.evalOf(cmd, args, &f) },
	}
	cmd.Flags().StringVar(&f.policy.Checkpoint, "checkpoint", "", "a .safetensors file, or a run folder ("+used()+")")
	cmd.Flags().StringVar(&f.policy.Policy, "policy", "", cli.PolicyUsage())
	f.DeviceFlags.Register(cmd)
	f.RecipeFlags.Register(cmd, func(i *run.About) []run.Flag { return i.EvalFlags })
	for _, name := range []string{"testset", "instances", "split", "variant"} { // SET says them
		cmd.Flags().Lookup(name).Hidden = true
	}
	f.set.register(cmd)
	cmd.Flags().StringVar(&f.model, "model", "", "refuse a checkpoint of another kind than this: "+strings.Join(recipe.Names(), ", "))
	cmd.Flags().Uint64Var(&f.seed, "seed", 0, "random seed of the instances or the actions (default: the training run's)")
	cmd.Flags().StringVar(&f.plot, "plot", "", "draw the result as .svg or .png")
	cmd.Flags().BoolVar(&f.force, "force", false, "replace pictures that exist")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON object")
	cli.Grouped(cmd, "Instances", "count", "customers", "first", "reference", "seed", "time")
	return cmd
}

// used says which checkpoint of a run folder each recipe uses.
func used() string {
	var all []string
	for _, r := range recipe.All {
		text := fmt.Sprintf("of %s its %s", r.About().Name, strings.TrimSuffix(r.About().Use, ".safetensors"))
		if r.About().UseBest != nil {
			text += " (its best if validation goals chose it)"
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

// evalOf tests a trained model, or a method on a set.
func (a *app) evalOf(cmd *cobra.Command, args []string, f *evalFlags) error {
	var set cli.Set
	var err error
	if len(args) > 0 {
		if set, err = cli.ParseSet(args[0]); err != nil {
			return err
		}
	}
	_, trained := f.policy.Given()
	switch {
	case !trained && len(args) == 0:
		return cli.Usagef("name the set to solve, such as grid:20, or what to test with --checkpoint or --policy (see haul eval --help)")
	case !trained:
		return a.solveSet(cmd, set, f)
	}
	for _, name := range methodFlags {
		if cmd.Flags().Changed(name) {
			return cli.Usagef("--%s is about a method, and a trained model is tested: leave one of them out", name)
		}
	}
	if err := f.takeSet(cmd.Flags(), set); err != nil {
		return err
	}
	return a.eval(cmd, f)
}

// takeSet hands a set to the recipe of a trained model.
func (f *evalFlags) takeSet(fs *pflag.FlagSet, set cli.Set) error {
	values := map[string]string{}
	switch {
	case set.Kind == "":
	case set.Drawn():
		return cli.Usagef("a trained model is tested on instances as in its training: leave %s:%d out; --customers says another size", set.Kind, set.Customers)
	case set.Kind == "file":
		values["instances"] = set.File
	case set.Kind == "kool":
		values["testset"], values["split"] = set.Kind, set.Split
	default:
		values["testset"], values["variant"] = set.Kind, set.Variant
	}
	if set.Customers > 0 {
		values["customers"] = strconv.Itoa(set.Customers)
	}
	for name, value := range values {
		if err := fs.Set(name, value); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) eval(cmd *cobra.Command, f *evalFlags) (err error) {
	if err := cli.FirstOf(cli.KnownModel(f.model), f.CheckValues(), f.Check(a.App)); err != nil {
		return err
	}
	var format draw.Format
	if f.plot != "" {
		if format, err = draw.FormatOf(f.plot); err != nil {
			return cli.AsUsage(err)
		}
		if err := cli.RefuseOverwrite(f.force, f.plot); err != nil {
			return err
		}
	}
	path, ck, err := f.policy.Load()
	if err != nil {
		return err
	}
	r, err := recipe.Find(ck.Settings.Recipe())
	if err != nil {
		return err
	}
	name := r.About().Name
	if f.model != "" && f.model != name {
		return cli.Usagef("%s holds a model of %s, not of %s", path, name, f.model)
	}
	if err := f.Others(name, "this checkpoint holds"); err != nil {
		return err
	}
	var dev kernel.Device
	var bar *cli.Bar
	e := &run.Evaluation{Path: path, Checkpoint: ck, Settings: ck.Settings, Workers: f.Workers, Flags: &f.RecipeFlags, Plot: f.plot != "", Note: a.Remark,
		Device: func() (kernel.Device, error) {
			if dev != nil { // of a variant before this one
				return dev, nil
			}
			var err error
			dev, err = a.OpenFor(cmd.Context(), &f.DeviceFlags, r, ck.Settings)
			return dev, err
		},
		Progress: func(done, of int) {
			if bar == nil {
				bar = a.NewBar(of, name)
			}
			bar.Set(done)
		}}
	if cmd.Flags().Changed("seed") {
		e.Seed = &f.seed
	}
	defer func() {
		if dev != nil {
			err = cli.FirstOf(err, dev.Close())
		}
	}()
	result, err := r.Evaluate(cmd.Context(), e)
	if bar != nil {
		bar.End()
	}
	cut := new(run.CutShort)
	if err != nil && !errors.As(err, &cut) {
		return err
	}
	defer func(cut error) { err = cli.FirstOf(err, cut) }(err)
	// What was measured is told, also where a picture of it cannot be written.
	drawn, undrawn := plotAll(f.plot, f.force, format, result.Pictures())
	if f.json {
		return cli.FirstOf(a.EmitWith(map[string]any{"checkpoint": path, "device": dev.Name(), "plot": f.plot}, result.Object()), undrawn)
	}
	if err := result.Text(a.Stdout, a.Bold); err != nil || drawn == nil {
		return cli.FirstOf(err, undrawn)
	}
	_, err = fmt.Fprintf(a.Stdout, "drawn: %s\n", strings.Join(drawn, ", "))
	return cli.FirstOf(err, undrawn)
}

// plotAll draws the pictures under the name given and, after it, their own; nothing where no name
// is given. A picture beside the one that was named may be there, too, and is known only now: none
// is drawn before all of them may be.
func plotAll(path string, force bool, format draw.Format, pictures []run.Drawing) (drawn []string, err error) {
	if path == "" {
		return nil, nil
	}
	ext := filepath.Ext(path)
	called := func(p run.Drawing) string { return strings.TrimSuffix(path, ext) + p.Suffix + ext }
	for _, p := range pictures {
		if err := cli.RefuseExisting(force, called(p)); err != nil {
			return nil, err
		}
	}
	for _, p := range pictures {
		name := called(p)
		if err := cli.WriteFile(name, func(w io.Writer) error { return p.Draw(w, format) }); err != nil {
			return drawn, err
		}
		drawn = append(drawn, name)
	}
	return drawn, nil
}
