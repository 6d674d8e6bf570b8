// Package policies is the verb haul policies.
package policies

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"haul/cmd/haul/cli"
	"haul/internal/policy"
	"haul/internal/recipe"
	"haul/internal/report"
	"haul/internal/run"
	"haul/internal/safetensors"
	"haul/policies"
)

// policyReport is a shipped policy.
type policyReport struct {
	Name  string `json:"name"`
	Bytes int    `json:"bytes"`
	*policy.Info
	Card string `json:"card"`
}

// app is the program that the verb is a part of.
type app struct{ *cli.App }

// New returns the verb.
func New(program *cli.App) *cobra.Command {
	a := &app{program}
	var asJSON bool
	var out string
	cmd := &cobra.Command{
		Use:   "policies [NAME]",
		Short: "List the shipped trained policies, or print a model card",
		Long: `Without NAME, each shipped policy is listed with the instances that it learned from and its training time, over all of its runs.
With NAME, that policy's model card is printed: its runs, its curve, its results, and the commands that trained it.

A policy routes problems of any size, best those like the ones that it was trained on. haul solve FILE --policy NAME uses it, haul eval --policy
NAME tests it, and --out writes its weights as a checkpoint, for other programs.`,
		Example: `  haul policies
  haul policies cvrp20
  haul policies cvrp20 --out cvrp20.safetensors
  haul policies --json`,
		Args: cli.AtMost(1),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return policies.Names(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if out != "" {
				return a.writePolicy(args, out)
			}
			if len(args) == 1 {
				return a.policyCard(args[0], asJSON)
			}
			return a.listPolicies(asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per policy")
	cmd.Flags().StringVar(&out, "out", "", "write the named policy's weights to this .safetensors file")
	cmd.AddCommand(a.newPack())
	return cmd
}

// writePolicy writes a policy's checkpoint as a file. One that is there already stays.
func (a *app) writePolicy(names []string, path string) error {
	if len(names) != 1 {
		return cli.Usagef("--out %s: name the policy whose weights are written", path)
	}
	data, err := policies.Read(names[0])
	if err != nil {
		return cli.AsUsage(err)
	}
	if _, err := os.Lstat(path); err == nil {
		return cli.Usagef("--out %s: this file exists: name another", path)
	}
	if err := run.WriteAtomic(path, func(w io.Writer) error { _, err := w.Write(data); return err }); err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.Stdout, "%s\n", path)
	return err
}

func describePolicy(name string) (*policyReport, error) {
	data, err := policies.Read(name)
	if err != nil {
		return nil, cli.AsUsage(err)
	}
	ck, err := cli.ShippedPolicy(name)
	if err != nil {
		return nil, err
	}
	info, err := policy.Describe(ck)
	return &policyReport{Name: name, Bytes: len(data), Info: info, Card: policies.Card(name)}, err
}

func (a *app) listPolicies(asJSON bool) error {
	var all []*policyReport
	for _, name := range policies.Names() {
		p, err := describePolicy(name)
		if err != nil {
			return err
		}
		all = append(all, p)
	}
	if asJSON {
		for _, p := range all {
			if err := a.Emit(p); err != nil {
				return err
			}
		}
		return nil
	}
	if len(all) == 0 {
		_, err := fmt.Fprintln(a.Stdout, "this build carries no policies: train one with haul train")
		return err
	}
	return a.Table(func(w io.Writer) {
		fmt.Fprintf(w, "%s\n", a.Bold("name\tcustomers\tvariants\tcapacity\tlayers\tparameters\tdecode\tinstances\ttime\truns"))
		for _, p := range all {
			fmt.Fprintf(w, "%s\t%d\t%s\t%d\t%d x %d\t%s\t%s\t%s\t%s\t%d\n", p.Name, p.Customers, kindsOf(p.Variants), p.Capacity, p.Layers, p.Width, report.Thousands(int64(p.Parameters)), p.Decode,
				report.Thousands(int64(p.Instances)), minutes(p.Seconds), len(p.Runs))
		}
	})
}

// kindsOf names the variants that a policy has learned where they are few, and counts them else.
func kindsOf(names []string) string {
	if len(names) > 3 {
		return fmt.Sprint(len(names))
	}
	return strings.Join(names, ", ")
}

// minutes prints a time to the second.
func minutes(seconds float64) string {
	s := int(math.Round(seconds))
	return fmt.Sprintf("%d:%02d min", s/60, s%60)
}

func (a *app) policyCard(name string, asJSON bool) error {
	p, err := describePolicy(name)
	if err != nil {
		return err
	}
	if asJSON {
		return a.Emit(p)
	}
	_, err = fmt.Fprintln(a.Stdout, strings.TrimSpace(p.Card))
	return err
}

// packReport is what pack wrote.
type packReport struct {
	Checkpoint string `json:"checkpoint"`
	Out        string `json:"out"`
	Type       string `json:"type"`
	Bytes      int    `json:"bytes"`
	*policy.Info
}

func (a *app) newPack() *cobra.Command {
	var (
		out    string
		kind   string
		began  []string
		force  bool
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "pack CHECKPOINT",
		Short: "Make a small file of a trained policy, to share it",
		Long: `CHECKPOINT is a run folder (its best checkpoint is taken) or a .safetensors file. The new file holds weights and settings only; in bf16 it
has an eighth of the size. It is used like any checkpoint (--checkpoint FILE), but a run cannot continue from it.

The file records what the weights learned from and how long that took, over all runs: a run that started from other weights (haul train
--from) remembers the runs before it. For a run that does not remember them, --began names these runs, oldest first.`,
		Example: `  haul policies pack runs/quick-001 --out quick.safetensors
  haul policies pack runs/quick-001/last.safetensors --type fp32 --out last.safetensors
  haul policies pack runs/quick-002 --began runs/quick-001 --out second.safetensors`,
		Args: cli.AtMost(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Usagef("name a run folder or a .safetensors file to pack")
			}
			if out == "" {
				return cli.Usagef("--out is missing: name the file to write, for example policy.safetensors")
			}
			as, ok := map[string]safetensors.DType{"bf16": safetensors.BF16, "fp32": safetensors.F32}[kind]
			if !ok {
				return cli.Usagef("unknown type %q: use bf16 or fp32", kind)
			}
			return a.pack(args[0], out, kind, as, began, force, asJSON)
		},
	}
	cmd.Flags().StringVar(&out, "out", "", ".safetensors file to write")
	cmd.Flags().StringVar(&kind, "type", "bf16", "type of the weights: bf16 or fp32")
	cmd.Flags().StringArrayVar(&began, "began", nil, "run whose weights this run started from, if the checkpoint does not know (repeatable, oldest first)")
	cmd.Flags().BoolVar(&force, "force", false, "replace a file that exists")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func (a *app) pack(from, out, kind string, as safetensors.DType, began []string, force, asJSON bool) error {
	if err := cli.RefuseOverwrite(force, out); err != nil {
		return err
	}
	path, ck, err := cli.CheckpointOf(from)
	if err != nil {
		return err
	}
	if len(began) > 0 {
		if ck.Progress.Began, err = runsBefore(began); err != nil {
			return err
		}
	}
	info, err := policy.Describe(ck)
	if err != nil {
		return err
	}
	f, err := policy.Pack(ck, as)
	if err != nil {
		return err
	}
	r := packReport{Checkpoint: path, Out: out, Type: kind, Info: info}
	err = cli.WriteFile(out, func(w io.Writer) error {
		counted := &counter{w: w}
		err := safetensors.Write(counted, f)
		r.Bytes = counted.n
		return err
	})
	if err != nil {
		return err
	}
	if asJSON {
		return a.Emit(r)
	}
	_, err = fmt.Fprintf(a.Stdout, "%s: %s parameters as %s, %s bytes; %s in %s, %s\n", out, report.Thousands(int64(info.Parameters)), kind,
		report.Thousands(int64(r.Bytes)),
		report.Plural(int64(info.Instances), "instance"), minutes(info.Seconds), report.Plural(int64(len(info.Runs)), "run"))
	return err
}

// runsBefore are the runs that somebody names as those before another, each with all that it spent:
// of a folder its last checkpoint counts, whichever was put to use. What the first one began with
// stands before it; the others began with the one named before them.
func runsBefore(paths []string) ([]run.Past, error) {
	var runs []run.Past
	for i, path := range paths {
		file := path
		if last := filepath.Join(path, run.LastName); cli.Exists(last) {
			file = last
		} else if best := filepath.Join(path, run.BestName); cli.Exists(best) {
			file = best
		}
		ck, err := run.Load(file, "")
		if err == nil && !policy.Is(ck.Settings.Recipe()) {
			err = fmt.Errorf("it holds model %q, not %s", ck.Settings.Recipe(), strings.Join(policy.Models(), " or "))
		}
		if err != nil {
			return nil, fmt.Errorf("--began %s: %w", path, err)
		}
		if i == 0 {
			runs = append(runs, ck.Progress.Began...)
		}
		r, err := recipe.Find(ck.Settings.Recipe())
		if err != nil {
			return nil, fmt.Errorf("--began %s: %w", path, err)
		}
		runs = append(runs, ck.Own(r.About().RowsOf(ck.Settings)))
	}
	return runs, nil
}

// counter counts what is written.
type counter struct {
	w io.Writer
	n int
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += n
	return n, err
}
