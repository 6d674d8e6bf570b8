package root

import (
	"context"
	"os"

	"haul/cmd/haul/cli"
	"haul/internal/comm"
)

// Main runs the command line of this process and ends the process.
func Main() {
	ctx, stop := cli.EndOnSignal(context.Background())
	code := Execute(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	comm.Exit(code)
}
