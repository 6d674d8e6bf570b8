//go:build release

package root

import (
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"haul/cmd/haul/cli"
)

// The verb that writes man pages belongs to the builds of scripts/release alone: what it needs
// would be carried by every binary.
func init() { forRelease = append(forRelease, newMan) }

func newMan(*cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "man FOLDER",
		Short:   "Write the man pages",
		Example: "  haul man dist/man",
		Hidden:  true,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			// One date in every page: the same sources, the same bytes.
			date := time.Unix(0, 0).UTC()
			cmd.Root().DisableAutoGenTag = true
			return doc.GenManTree(cmd.Root(), &doc.GenManHeader{Title: "HAUL", Section: "1", Date: &date, Source: "haul " + cli.ReadVersion().Version, Manual: "Haul"}, args[0])
		},
	}
	return cmd
}
