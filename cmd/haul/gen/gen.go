// Package gen is the verb haul gen.
package gen

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"haul/cmd/haul/cli"
	"haul/internal/vrp"
	"haul/internal/vrp/files"
	"haul/internal/vrp/testset"
)

type genReport struct {
	Dir          string   `json:"dir"`
	Instances    int      `json:"instances"`
	Customers    int      `json:"customers"`
	Capacity     int32    `json:"capacity"`
	Distribution string   `json:"distribution"`
	Seed         uint64   `json:"seed"`
	First        uint64   `json:"first"`
	Files        []string `json:"files"`
}

// app is the program that the verb is a part of.
type app struct{ *cli.App }

// New returns the verb.
func New(program *cli.App) *cobra.Command {
	a := &app{program}
	var f genFlags
	cmd := &cobra.Command{
		Use:   "gen SET",
		Short: "Write generated instances or a public test set as .vrp, .npz or .pkl",
		Long: cli.SetUsage + `. Public sets are made again digit for digit.

An instance depends on its seed and index alone: --first 500 --count 1 writes the same file as number 500 of a longer run. --out names a
folder for .vrp files, or one file: .npz with the arrays depot, locs, demand and capacity (as RL4CO reads them), or .pkl (as Kool's code
reads it). - is standard output, for one .vrp. Problems that a .vrp cannot say are written as .json.

In .vrp files, grid instances keep their integer coordinates and uniform instances are scaled by 1,000,000; COMMENT holds the scale.
Solve them with --set distance=exact to get the distances of the generated instance, times the scale.`,
		Example: `  haul gen grid:20 --capacity 30 --count 3 --out instances
  haul gen uniform:100 --capacity 50 --count 1000 --out mine.npz
  haul gen tsp-grid:12 --count 3 --out tours
  haul gen kool:100 --out kool100.npz
  haul gen kool:50/validation --count 100 --out kool50.pkl
  haul gen routefinder:vrptw/100 --count 10 --out vrptw100`,
		Args: cli.One("the set to write, such as grid:20"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.gen(cmd, args[0], &f) },
	}
	f.Register(cmd)
	f.RegisterRange(cmd, 1)
	cmd.Flags().StringVar(&f.out, "out", "", "folder for .vrp files (created if missing), or one .npz or .pkl file")
	cmd.Flags().BoolVar(&f.force, "force", false, "replace files that are there already")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON object")
	return cmd
}

type genFlags struct {
	cli.SetFlags
	out   string
	force bool
	json  bool
}

func (a *app) gen(cmd *cobra.Command, name string, f *genFlags) error {
	if f.out == "" {
		return cli.Usagef("--out is missing: name the folder to write to, or a .npz or .pkl file")
	}
	set, err := cli.ParseSet(name)
	if err != nil {
		return err
	}
	r := &genReport{First: f.First}
	var problem func(i int) *vrp.Problem // on the unit square, or a grid
	var file func(i int) *vrp.Problem    // as a .vrp file states it
	switch {
	case set.Drawn():
		source, err := f.Source(set)
		if err != nil {
			return err
		}
		r.Instances, r.Customers, r.Capacity, r.Distribution, r.Seed = f.Count, source.N, source.Capacity, string(source.Distribution), source.Seed
		problem = func(i int) *vrp.Problem { return cli.Generate(source, f.First+uint64(i), 1)[0] }
		file = func(i int) *vrp.Problem { return source.FileProblem(f.First + uint64(i)) }
	case set.Kind == "file":
		return cli.Usagef("%s cannot be made: name grid:20, uniform:20, tsp:20, kool:20 or routefinder:vrptw/50", name)
	default:
		loaded, err := f.Load(set, cmd.Flags().Changed("seed"), "")
		if err != nil {
			return err
		}
		r.Instances, r.Customers, r.Distribution = len(loaded.Problems), set.Customers, loaded.Name
		r.Capacity, r.Seed = loaded.Capacity(), testset.KoolSeed(set.Split)
		if set.Kind == "routefinder" {
			r.Capacity, r.Seed = testset.RouteFinderCapacity(set.Customers), testset.RouteFinderSeed
		}
		problem = func(i int) *vrp.Problem { return loaded.Problems[i] }
		file = problem
		if loaded.Problems[0].Plain() == nil {
			file = func(i int) *vrp.Problem { return testset.FileProblem(loaded.Problems[i]) }
		}
	}
	if f.out == cli.StandardOutput && (r.Instances > 1 || f.json) {
		return cli.Usagef("--out - takes one .vrp and nothing else: give --count 1 and no --json, or name a folder")
	}
	if err := a.genWrite(cmd.Context(), f, r, problem, file); err != nil || f.out == cli.StandardOutput {
		return err
	}
	if f.json {
		return a.Emit(r)
	}
	if len(r.Files) == 1 {
		_, err = fmt.Fprintln(a.Stdout, filepath.Join(r.Dir, r.Files[0]))
	} else {
		_, err = fmt.Fprintf(a.Stdout, "%d files in %s, %s to %s\n", len(r.Files), r.Dir, r.Files[0], r.Files[len(r.Files)-1])
	}
	return err
}

// plainFile says whether a .vrp file can state the problem: it is plain but for a number of
// vehicles. Those with further parts, whose numbers are no integers, are written as JSON.
func plainFile(p *vrp.Problem) bool {
	left := *p
	left.Vehicles = 0
	return left.Plain() == nil
}

func writeInstance(w io.Writer, p *vrp.Problem) error {
	if !plainFile(p) {
		return files.WriteJSON(w, p)
	}
	return files.WriteProblem(w, p)
}

// maxNodes are what one file of instances may hold, which are in memory until it is written.
const maxNodes = 100_000_000

// fileEndings are those of files that somebody may mean by --out, and which a folder would hardly
// have.
var fileEndings = []string{".vrp", ".tsp", ".sol", ".npy", ".pt", ".pth", ".pickle", ".csv", ".tsv", ".xlsx", ".json", ".geojson", ".txt", ".zip", ".gz"}

// genWrite writes the instances as the name of --out asks.
func (a *app) genWrite(ctx context.Context, f *genFlags, r *genReport, problem, file func(int) *vrp.Problem) error {
	bar := a.NewBar(r.Instances, "writing")
	defer bar.End()
	if ext := filepath.Ext(f.out); ext == ".npz" || ext == ".pkl" {
		if err := cli.RefuseOverwrite(f.force, f.out); err != nil {
			return err
		}
		if most := maxNodes / (r.Customers + 1); r.Instances > most {
			return cli.Usagef("--count is %d: one file takes at most %d instances of %d customers, a folder any number", r.Instances, most, r.Customers)
		}
		all := make([]*vrp.Problem, r.Instances)
		for i := range all {
			if err := ctx.Err(); err != nil {
				return err
			}
			all[i] = problem(i)
			bar.Set(i + 1)
		}
		r.Dir, r.Files = filepath.Dir(f.out), []string{filepath.Base(f.out)}
		return cli.WriteFile(f.out, func(w io.Writer) error { return testset.Write(w, ext, all) })
	}
	if f.out == cli.StandardOutput {
		return writeInstance(a.Whole(), file(0))
	}
	r.Dir = f.out
	if ext := strings.ToLower(filepath.Ext(f.out)); slices.Contains(fileEndings, ext) && !cli.Exists(f.out) {
		return cli.Usagef("--out %s: instances are written as .npz or .pkl, or as .vrp files into a folder, whose name has no %s", f.out, ext)
	}
	if err := os.MkdirAll(f.out, 0o755); err != nil {
		return fmt.Errorf("cannot write: %w", err)
	}
	for i := range r.Instances {
		if err := ctx.Err(); err != nil {
			return err
		}
		p := file(i)
		name := p.Name + ".vrp"
		if !plainFile(p) {
			name = p.Name + ".json"
		}
		if err := cli.RefuseExisting(f.force, filepath.Join(f.out, name)); err != nil {
			return err
		}
		if err := cli.WriteFile(filepath.Join(f.out, name), func(w io.Writer) error { return writeInstance(w, p) }); err != nil {
			return err
		}
		r.Files = append(r.Files, name)
		bar.Set(i + 1)
	}
	return nil
}
