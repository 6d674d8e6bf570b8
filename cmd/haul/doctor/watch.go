package doctor

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"haul/cmd/haul/cli"
	"haul/internal/doctor"
)

// A trace is read once its size has not changed from one look to the next, because profilers
// write a file in pieces. A file that cannot be read is reported and skipped.

func (a *app) newDoctorWatch() *cobra.Command {
	var every time.Duration
	var json, all bool
	cmd := &cobra.Command{
		Use:     "watch DIR",
		Short:   "Report on each trace in a folder as it is written, until Ctrl-C",
		Long:    `The folder is read again and again. Each trace gives one line once it has been written, or with --json one object.`,
		Example: `  haul doctor watch docs/examples --all`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.Usagef("name one folder to watch; got %d (see haul doctor watch --help)", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if every < 10*time.Millisecond {
				return cli.Usagef("--every %v is too often: 10ms at least", every)
			}
			return a.watchTraces(cmd.Context(), args[0], every, json, all)
		},
	}
	cmd.Flags().DurationVar(&every, "every", 2*time.Second, "time between two looks at the folder")
	cmd.Flags().BoolVar(&json, "json", false, "print one JSON object per trace")
	cmd.Flags().BoolVar(&all, "all", false, "also report on the traces that are in the folder at the start")
	return cmd
}

// fileState is what a look at a file tells.
type fileState struct {
	size    int64
	changed time.Time
}

func (a *app) watchTraces(ctx context.Context, dir string, every time.Duration, json, all bool) error {
	seen, judged := map[string]fileState{}, map[string]fileState{}
	look := func() (ready []string, err error) {
		err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !doctor.IsTrace(path) {
				return err
			}
			info, err := d.Info()
			if err != nil { // it went away meanwhile
				return nil
			}
			now := fileState{info.Size(), info.ModTime()}
			if before, ok := seen[path]; ok && before == now && now.size > 0 && judged[path] != now {
				ready = append(ready, path)
				judged[path] = now
			}
			seen[path] = now
			return nil
		})
		slices.Sort(ready)
		return ready, err
	}
	if info, err := os.Stat(dir); err != nil {
		return err
	} else if !info.IsDir() {
		return cli.Usagef("%s is not a folder: to read one trace, use haul doctor %s", dir, dir)
	}
	if !all {
		if _, err := look(); err != nil {
			return err
		}
		for path, state := range seen {
			judged[path] = state
		}
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		ready, err := look()
		if err != nil {
			return err
		}
		for _, path := range ready {
			if err := a.diagnoseOne(ctx, path, json); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// diagnoseOne prints one line per trace of a file.
func (a *app) diagnoseOne(ctx context.Context, path string, json bool) error {
	err := doctor.Load(ctx, path, func(name string, t *doctor.Trace) error {
		r, err := doctor.Diagnose(t)
		if err != nil {
			return doctor.InFile(name, err)
		}
		r.File = name
		if json {
			return a.Emit(r)
		}
		faults := ""
		if list := t.Remarks(); len(list) > 0 { // of the recording itself, such as a file that is cut off
			faults = " About the recording: " + strings.Join(list, "; ") + "."
		}
		_, err = fmt.Fprintf(a.Stdout, "%s: a step of %.3g ms. %s%s\n", name, r.StepMS, r.Verdict(), faults)
		return err
	})
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		fmt.Fprintf(a.Stderr, "haul: %v\n", err)
	}
	return nil
}
