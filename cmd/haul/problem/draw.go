package problem

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"haul/cmd/haul/cli"
	"haul/internal/rng"
	"haul/internal/rules"
	"haul/internal/rules/eval"
	"haul/internal/rules/ir"
	"haul/internal/rules/parse"
)

func (a *app) newDraw() *cobra.Command {
	var (
		settings  settingFlag
		customers int
		instance  uint64
		seed      uint64
		asJSON    bool
	)
	cmd := &cobra.Command{
		Use:     "draw PROBLEM",
		Short:   "Print an instance of a problem",
		Long:    `Prints the fields of the instance and of its nodes, as the file declares them. An instance depends on its seed and number alone.`,
		Example: "  haul problem draw vrp --customers 5 --set Mix=16\n  haul problem new mine\n  haul problem draw mine --customers 20 --instance 7 --set Limit=4 --json",
		Args:    cli.One("a problem: a folder, a file or a built-in name"),
		RunE: func(_ *cobra.Command, args []string) error {
			if customers < 1 || customers > mostCustomers {
				return cli.Usagef("--customers %d: use 1 to %d", customers, mostCustomers)
			}
			p, err := compile(args[0], &settings)
			if err != nil {
				return err
			}
			return a.draw(p, seed, instance, customers, asJSON)
		},
	}
	settings.register(cmd)
	cmd.Flags().IntVar(&customers, "customers", 20, "customers of the instance")
	cmd.Flags().Uint64Var(&instance, "instance", 0, "number of the instance")
	cmd.Flags().Uint64Var(&seed, "seed", 42, "seed of the instances")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

const mostCustomers = 100_000

// drawn is an instance as JSON. Fields are by their paths.
type drawn struct {
	Problem   string           `json:"problem"`
	Seed      uint64           `json:"seed"`
	Number    uint64           `json:"number"`
	Customers int              `json:"customers"`
	Instance  map[string]any   `json:"instance"`
	Nodes     []map[string]any `json:"nodes"`
}

func (a *app) draw(p *rules.Problem, seed, number uint64, customers int, asJSON bool) error {
	in := p.Draw(eval.New(p), &rules.Drawing{Seed: seed, Purpose: rng.Instances}, number, customers)
	row := make([]uint32, len(p.Node))
	if !asJSON {
		return a.Table(func(w io.Writer) {
			for i, f := range p.Instance {
				fmt.Fprintf(w, "%s\t%s\n", f.Path, parse.ShowWord(f.Kind, in.Words[i]))
			}
			fmt.Fprintf(w, "\nnode\t%s\n", strings.Join(paths(p.Node), "\t"))
			for j := range p.Nodes(customers) {
				in.Row(row, j)
				fmt.Fprintf(w, "%d", j)
				for i, f := range p.Node {
					fmt.Fprintf(w, "\t%s", parse.ShowWord(f.Kind, row[i]))
				}
				fmt.Fprintln(w)
			}
		})
	}
	out := drawn{p.Name, seed, number, customers, values(p.Instance, in.Words), nil}
	for j := range p.Nodes(customers) {
		in.Row(row, j)
		out.Nodes = append(out.Nodes, values(p.Node, row))
	}
	return a.Emit(out)
}

func paths(fields []parse.Field) (out []string) {
	for _, f := range fields {
		out = append(out, f.Path)
	}
	return out
}

// values returns fields for JSON, which has no infinities and no NaN: they are null.
func values(fields []parse.Field, words []uint32) map[string]any {
	out := map[string]any{}
	for i, f := range fields {
		switch x := math.Float32frombits(words[i]); {
		case f.Kind == ir.Bool:
			out[f.Path] = words[i] != 0
		case f.Kind == ir.Int32:
			out[f.Path] = int32(words[i])
		case math.IsNaN(float64(x)) || math.IsInf(float64(x), 0):
			out[f.Path] = nil
		default:
			out[f.Path] = x
		}
	}
	return out
}
