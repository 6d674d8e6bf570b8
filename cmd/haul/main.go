// Command haul is the command line: one file a verb, wiring only. What a verb does lives in
// internal/; here flags become arguments, results become words or JSON, and errors exit codes.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"haul/internal/comm"
)

const grace = 5 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first Ctrl-C asks; restoring the default lets a second one end the process. A launcher of several ranks repeats itself: what comes
	// within its grace is the same request.
	context.AfterFunc(ctx, func() {
		if place, err := comm.Detect(os.Getenv); err == nil && place.Size > 1 {
			time.Sleep(grace)
		}
		stop()
	})
	comm.Exit(execute(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
