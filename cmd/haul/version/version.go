// Package version is the verb haul version.
package version

import (
	"fmt"

	"github.com/spf13/cobra"

	"haul/cmd/haul/cli"
)

// app is the program that the verb is a part of.
type app struct{ *cli.App }

// New returns the verb.
func New(program *cli.App) *cobra.Command {
	a := &app{program}
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version and how the binary was built",
		Example: "  haul version --json",
		Args:    cli.AtMost(0),
		RunE: func(*cobra.Command, []string) error {
			v := cli.ReadVersion()
			if asJSON {
				return a.Emit(v)
			}
			_, err := fmt.Fprintln(a.Stdout, v)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}
