// Package lab is the verb haul lab.
package lab

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"haul/cmd/haul/cli"
	"haul/internal/lab"
)

// NewLab holds the experiments on the five reports' claims.
// app is the program that the verb is a part of.
type app struct{ *cli.App }

// New returns the verb.
func New(program *cli.App) *cobra.Command {
	a := &app{program}
	cmd := &cobra.Command{
		Use:   "lab",
		Short: "Test the claims of five reports on a slow PyTorch trainer on this machine",
		Long: `Each claim is an experiment. It prints the claim, what was measured, and a verdict that is computed from the two. docs/reports.md
summarises the reports.`,
		Example: "  haul lab list\n  haul lab run cost-cpu\n  haul lab run all --device cuda:0 --page docs/lab.md",
	}
	cmd.AddCommand(a.newLabList(), a.newLabRun())
	a.Parent(cmd)
	return cmd
}

func (a *app) newLabList() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the experiments",
		Example: "  haul lab list --json",
		Args:    cli.AtMost(0),
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return a.Emit(lab.List())
			}
			return a.Table(func(w io.Writer) {
				fmt.Fprintln(w, "experiment\tneeds\treports\twhat it does")
				for _, x := range lab.List() {
					needs := ""
					if x.GPU {
						needs = "GPU"
					}
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", x.Name, needs, x.Reports, x.Title)
				}
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON array")
	return cmd
}

type labFlags struct {
	device  string
	workers int
	page    string
	json    bool
}

func (a *app) newLabRun() *cobra.Command {
	var f labFlags
	cmd := &cobra.Command{
		Use:   "run NAME|all",
		Short: "Run one experiment or all",
		Long: `Experiments for the CPU run anywhere. Those for a GPU say in one line that there is none. If an experiment fails, the others still run,
and the exit code is 1. --page also writes the results as a page of Markdown, with pictures in the folder "pictures" beside it.`,
		Example: "  haul lab run all --device cpu\n  haul lab run transfers --device cuda:0 --json",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Usagef("which experiment? haul lab list names them, all runs every one (see %s --help)", cmd.CommandPath())
			}
			return cli.AtMost(1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.labRun(cmd, &f, args[0]) },
	}
	cmd.Flags().StringVar(&f.device, "device", "auto", "where to compute: cpu, cuda:K, or auto (a GPU if there is one)")
	cmd.Flags().IntVar(&f.workers, "workers", runtime.GOMAXPROCS(0), "CPU cores to use")
	cmd.Flags().StringVar(&f.page, "page", "", "write the results to this Markdown file")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON object per experiment")
	return cmd
}

func (a *app) labRun(cmd *cobra.Command, f *labFlags, name string) error {
	var err error
	if f.workers, err = a.Cores(f.workers); err != nil {
		return err
	}
	list, err := lab.Find(name)
	if err != nil {
		return cli.AsUsage(err)
	}
	opt := lab.Options{Device: f.device, Workers: f.workers, Begin: func(x lab.Experiment, number, of int) {
		a.Remark(fmt.Sprintf("running %s (%d of %d): %s", x.Name, number, of, x.Title))
	}}
	if err := opt.Check(); err != nil {
		return cli.AsUsage(err)
	}
	if err := cli.CheckReplaceable(f.page); err != nil {
		return err
	}
	var failed, needs []string
	var told error
	results, err := lab.Run(cmd.Context(), list, opt, func(r lab.Result) {
		if r.Error != "" {
			failed = append(failed, r.Name)
		}
		if r.Needs != "" {
			needs = append(needs, r.Name+": "+r.Needs)
		}
		if f.json {
			told = cli.FirstOf(told, a.Emit(r))
		} else {
			told = cli.FirstOf(told, r.WriteText(a.Stdout))
		}
	})
	if err := cli.FirstOf(err, told); err != nil {
		return err
	}
	if f.page != "" {
		if err := a.labPage(f, name, results); err != nil {
			return err
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("failed: %s", strings.Join(failed, ", "))
	}
	if len(needs) == len(list) { // of all some run anywhere; one that was asked for by name did not
		return errors.New(strings.Join(needs, "; "))
	}
	return nil
}

// labPage writes the page and its pictures.
func (a *app) labPage(f *labFlags, name string, results []lab.Result) error {
	const folder = "pictures"
	dir := filepath.Join(filepath.Dir(f.page), folder)
	picture := func(name string) string { return path.Join(folder, "lab-"+name+".svg") }
	for _, r := range results {
		if r.Plot == nil {
			continue
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("cannot write: %w", err)
		}
		if err := cli.WriteFile(filepath.Join(filepath.Dir(f.page), filepath.FromSlash(picture(r.Name))), func(w io.Writer) error { _, err := w.Write(r.Plot); return err }); err != nil {
			return err
		}
	}
	page := lab.Page{Command: fmt.Sprintf("haul lab run %s --device %s --page %s", name, f.device, filepath.ToSlash(f.page)), Machine: machine(f.workers)}
	if err := cli.WriteFile(f.page, func(w io.Writer) error { return page.Write(w, results, picture) }); err != nil {
		return err
	}
	fmt.Fprintf(a.Stderr, "wrote %s\n", f.page)
	return nil
}

// machine names what the experiments ran on.
func machine(workers int) []string {
	cpu := cli.ProbeCPU()
	out := []string{fmt.Sprintf("CPU: %s, %d of %d cores used, %s", cpu.Model, workers, cpu.Cores, strings.Join(cpu.Instructions, " "))}
	cuda := cli.ProbeCUDA()
	for _, d := range cuda.Devices {
		out = append(out, fmt.Sprintf("GPU: %s, %.0f GiB, compute capability %s, driver for CUDA %s", d.Name, float64(d.Memory)/(1<<30), d.Capability, cuda.Version))
	}
	if len(cuda.Devices) == 0 {
		out = append(out, "GPU: none")
	}
	return append(out, fmt.Sprintf("%s, %s/%s", runtime.Version(), runtime.GOOS, runtime.GOARCH))
}
