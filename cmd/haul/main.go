// Command haul is the command line: one file per verb, wiring only. What a verb does lives in
// internal/; here flags become arguments, results become words or JSON, and errors exit codes.
package main

import (
	"context"
	"os"

	"haul/internal/comm"
)

func main() {
	ctx, stop := endOnSignal(context.Background())
	code := execute(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	comm.Exit(code)
}
