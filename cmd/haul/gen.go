package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"haul/internal/env/cvrp"
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

func (a *app) newGen() *cobra.Command {
	var (
		src    sourceFlags
		dir    string
		force  bool
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "gen",
		Short: "Write generated instances as CVRPLIB .vrp files",
		Long: `Write generated instances as CVRPLIB .vrp files.

An instance is a function of seed and index alone: --first 500 --count 1 writes the same file as
number 500 of a longer run. grid keeps its integers, uniform is scaled by 1,000,000; the COMMENT
holds seed, index and scale. Solve the files with --distance exact to get the generated problem's
own distances, times the scale.`,
		Example: `  haul gen --customers 20 --capacity 30 --count 3 --out instances
  haul gen --distribution uniform --customers 100 --capacity 50 --demand-range 1,9 --out kool100`,
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			source, err := src.source()
			if err != nil {
				return err
			}
			if dir == "" {
				return usagef("--out is missing: name the folder to write to")
			}
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return fmt.Errorf("cannot write: %w", err)
			}
			r := genReport{Dir: dir, Instances: src.count, Customers: source.N, Capacity: source.Capacity,
				Distribution: string(source.Distribution), Seed: source.Seed, First: src.first}
			bar := a.newBar(src.count, "writing")
			defer bar.end()
			for i := range src.count {
				if err := cmd.Context().Err(); err != nil {
					return err
				}
				p := source.FileProblem(src.first + uint64(i))
				name := p.Name + ".vrp"
				if err := refuseOverwrite(force, filepath.Join(dir, name)); err != nil {
					return err
				}
				err := writeFile(filepath.Join(dir, name), func(w io.Writer) error { return cvrp.WriteProblem(w, p) })
				if err != nil {
					return err
				}
				r.Files = append(r.Files, name)
				bar.set(i + 1)
			}
			bar.end()
			if asJSON {
				return a.emit(r)
			}
			if len(r.Files) == 1 {
				_, err = fmt.Fprintln(a.stdout, filepath.Join(dir, r.Files[0]))
				return err
			}
			_, err = fmt.Fprintf(a.stdout, "%d files in %s, %s to %s\n", len(r.Files), dir, r.Files[0], r.Files[len(r.Files)-1])
			return err
		},
	}
	src.register(cmd, 1)
	cmd.Flags().StringVar(&dir, "out", "", "folder to write to (made when missing)")
	cmd.Flags().BoolVar(&force, "force", false, "replace files that are there already")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}
