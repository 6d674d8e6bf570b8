// Command haul is the command line: one file a verb, wiring only. What a verb does lives in
// internal/; here flags become arguments, results become words or JSON, and errors exit codes.
package main

import (
	"context"
	"os"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	// The first Ctrl-C asks; restoring the default lets a second one end the process.
	context.AfterFunc(ctx, stop)
	os.Exit(execute(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
