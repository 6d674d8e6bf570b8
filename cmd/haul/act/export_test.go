package act

import (
	"io"

	"haul/cmd/haul/cli"
	"haul/internal/recipe"
)

// Converse is converse for tests of the whole program.
func Converse(program *cli.App, in io.Reader, live *recipe.Live) error {
	return (&app{program}).converse(in, live)
}
