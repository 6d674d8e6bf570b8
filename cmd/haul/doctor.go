package main

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/spf13/cobra"

	"haul/internal/doctor"
)

// doctorOptions are the flags of the verb.
type doctorOptions struct {
	json, diff, breakdown bool
	page                  string
}

func (a *app) newDoctor() *cobra.Command {
	var opt doctorOptions
	cmd := &cobra.Command{
		Use:   "doctor TRACE...",
		Short: "Say why a run is slow, from its profiler's trace",
		Long: `Read what a profiler recorded and say how busy the GPU was, what it waited for, and what that cost:
the causes in order, each with its evidence, its place in the code where stacks were recorded, its
remedy and the most it would win back. Every idle moment of the GPU is given to one cause.

Read are traces of PyTorch (export_chrome_trace) on CUDA, ROCm and CPUs, of JAX (trace.json.gz or
xplane.pb), of Nsight Systems (nsys export --type sqlite) and of Haul itself; plain, gzip, zst, bz2, zip
or tar, and - for standard input. Several traces, or a folder, are the ranks of one job: the doctor matches
their collectives and says who waits for whom, and why. With --diff, two traces are before and after.

Recording with PyTorch needs schedule= for the steps to be marked:

  from torch.profiler import ProfilerActivity, profile, schedule
  with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
               schedule=schedule(wait=1, warmup=2, active=3, repeat=1),
               record_shapes=True, with_stack=True,
               on_trace_ready=lambda p: p.export_chrome_trace("trace.json.gz")) as prof:
      for batch in loader:
          train_step(batch)
          prof.step()

docs/doctor.md has the same for JAX and nsys, and what each finding means.`,
		Example: `  haul doctor docs/examples/trace.json.gz
  haul doctor docs/examples/trace.json.gz --html page.html --breakdown
  haul doctor docs/examples/ranks                      # a folder: the ranks of one job
  haul doctor docs/examples/ranks/rank0.json.gz docs/examples/ranks/rank1.json.gz --json
  haul doctor docs/examples/report.sqlite              # an export of Nsight Systems
  haul doctor --diff docs/examples/before.json.gz docs/examples/after.json.gz`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("which trace? (see %s --help)", cmd.CommandPath())
			}
			if opt.diff && len(args) != 2 {
				return usagef("--diff compares two traces, before and after; got %d (see %s --help)", len(args), cmd.CommandPath())
			}
			if opt.page == standardOutput && opt.json {
				return usagef("--html - and --json would both go to standard output: use one of them")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			// Records are plain numbers that the collector passes over: collecting often is cheap and
			// keeps a trace of gigabytes within a few hundred megabytes.
			defer debug.SetGCPercent(debug.SetGCPercent(20))
			return interruptible(cmd.Context(), func() error { return a.doctor(cmd.Context(), args, opt) })
		},
	}
	cmd.Flags().BoolVar(&opt.json, "json", false, "print one JSON object")
	cmd.Flags().StringVar(&opt.page, "html", "", "write one self-contained page with the timeline to this file; - is standard output")
	cmd.Flags().BoolVar(&opt.breakdown, "breakdown", false, "print where the step's time goes, kernel families, copies, collectives and the queue too")
	cmd.Flags().BoolVar(&opt.diff, "diff", false, "compare two traces, before and after")
	return cmd
}

// interruptible lets Ctrl-C end work that does not look at the context, such as the sorting of a
// large trace. The work is left behind: the process is about to end.
func interruptible(ctx context.Context, work func() error) error {
	done := make(chan error, 1)
	go func() { done <- work() }()
	select {
	case err := <-done:
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return context.Canceled
		}
		return err
	case <-ctx.Done():
		return context.Canceled
	}
}

func (a *app) doctor(ctx context.Context, args []string, opt doctorOptions) error {
	if err := mustTake(opt.page); err != nil {
		return err
	}
	paths, err := doctor.Expand(args)
	if err != nil {
		return err
	}
	if !opt.diff {
		if err := eachOnce(paths); err != nil {
			return err
		}
	}
	reports, err := a.readTraces(ctx, paths)
	if err != nil {
		return err
	}
	switch {
	case opt.diff && len(reports) != 2:
		return usagef("--diff compares two traces; these are %d", len(reports))
	case opt.diff:
		d := doctor.Compare(reports[0], reports[1])
		return a.tell(opt, d, d.WriteHTML, d.WriteText)
	case len(reports) == 1:
		r := reports[0]
		return a.tell(opt, r, r.WriteHTML, func(w io.Writer) error { return r.WriteText(w, doctor.Text{Breakdown: opt.breakdown}) })
	}
	j := doctor.JoinRanks(reports)
	return a.tell(opt, j, j.WriteHTML, func(w io.Writer) error { return j.WriteText(w, doctor.Text{Breakdown: opt.breakdown}) })
}

// eachOnce refuses a file that is given twice, under whatever name: each would count as a rank of
// its own.
func eachOnce(paths []string) error {
	var seen []os.FileInfo
	var names []string
	for _, p := range paths {
		info, err := os.Stat(p)
		if err != nil { // reading says what is wrong with it
			continue
		}
		for i, s := range seen {
			if os.SameFile(s, info) {
				as := ""
				if names[i] != p {
					as = ", first as " + names[i]
				}
				return usagef("%s is given twice%s: each trace is a rank of its own", p, as)
			}
		}
		seen, names = append(seen, info), append(names, p)
	}
	return nil
}

// tell writes the page where asked for, and the result as JSON or as text.
func (a *app) tell(opt doctorOptions, result any, page, text func(io.Writer) error) error {
	if opt.page == standardOutput {
		return firstOf(page(a.whole()), text(a.stderr))
	}
	if opt.page != "" {
		if err := writeFile(opt.page, page); err != nil {
			return err
		}
	}
	if opt.json {
		return a.emit(result)
	}
	return text(a.stdout)
}

// readTraces reads and diagnoses the files, as many at a time as there are cores, and keeps their
// order.
func (a *app) readTraces(ctx context.Context, paths []string) ([]*doctor.Report, error) {
	found := make([][]*doctor.Report, len(paths))
	bar := &bar{}
	defer func() { bar.end() }()
	var tell func(done, size int64)
	switch {
	case len(paths) > 1:
		bar = a.newBar(len(paths), "traces")
	default: // one file: its megabytes, where it is large enough to wait for
		tell = func(done, size int64) {
			if bar.inner == nil && size > 100<<20 && done < size {
				bar = a.newBar(int(size>>20), "MB")
			}
			bar.set(int(done >> 20))
		}
	}
	errs := make([]error, len(paths))
	next, finished := make(chan int), make(chan struct{}, len(paths))
	var group sync.WaitGroup
	for range min(len(paths), runtime.GOMAXPROCS(0)) {
		group.Go(func() {
			for i := range next {
				errs[i] = doctor.LoadWith(ctx, paths[i], tell, func(name string, t *doctor.Trace) error {
					r, err := doctor.Diagnose(t)
					if err != nil {
						return doctor.InFile(name, err)
					}
					r.File = name
					found[i] = append(found[i], r)
					return nil
				})
				finished <- struct{}{}
			}
		})
	}
	go func() {
		defer close(next)
		for i := range paths {
			next <- i
		}
	}()
	for i := range paths {
		<-finished
		if len(paths) > 1 {
			bar.set(i + 1)
		}
	}
	group.Wait()
	return slices.Concat(found...), firstError(errs)
}

func firstError(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
