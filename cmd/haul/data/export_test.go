package data

import (
	"github.com/spf13/cobra"

	"haul/cmd/haul/cli"
)

// What tests of the whole program compare with.
var XlandLearners = xlandLearners

func NewXLand(program *cli.App) *cobra.Command { return (&app{program}).newDataXLand() }
