// Package doctor is the verb haul doctor.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"haul/cmd/haul/cli"
	"haul/internal/doctor"
	"haul/internal/limits"
)

// doctorOptions are the flags of the verb.
type doctorOptions struct {
	json, diff, breakdown bool
	force                 bool
	page                  string
	failOn                string
	from, to              float64 // ms
	within                string  // a range's name
	capture               string  // a recording of the capture of a graph
	captures              []doctor.Capture
	limits                []string    // that are raised
	most                  *limits.Set // with those
}

// restrict cuts a trace to the part that is asked for, and hands it the graphs that were captured
// elsewhere.
func (o *doctorOptions) restrict(t *doctor.Trace) error {
	t.Captures = o.captures
	if o.within != "" {
		return t.OnlyRange(o.within)
	}
	if o.from > 0 || o.to > 0 {
		return t.Only(int64(o.from*1e6), int64(o.to*1e6))
	}
	return nil
}

// severities that --fail-on takes, the least first.
var severities = []string{string(doctor.Note), string(doctor.Warning), string(doctor.Critical)}

// fail is the error of --fail-on: the findings that are at least as severe.
func (o *doctorOptions) fail(list []doctor.Finding) error {
	if o.failOn == "" {
		return nil
	}
	var found []string
	for _, f := range list {
		if slices.Index(severities, string(f.Severity)) >= slices.Index(severities, o.failOn) {
			found = append(found, f.ID+", "+string(f.Severity))
		}
	}
	if len(found) == 0 {
		return nil
	}
	return fmt.Errorf("--fail-on %s: %s", o.failOn, strings.Join(found, "; "))
}

// app is the program that the verb is a part of.
type app struct{ *cli.App }

// New returns the verb.
func New(program *cli.App) *cobra.Command {
	a := &app{program}
	opt := doctorOptions{most: limits.ForCommand()}
	cmd := &cobra.Command{
		Use:   "doctor TRACE...",
		Short: "Explain why a run is slow, from its profiler's trace",
		Long: `The report says how busy the GPU was, what it waited for, and what that cost. It lists the causes by cost, each with its evidence, its
place in the code (if stacks were recorded), its remedy, and the most time that the remedy can win back. Every idle moment of the GPU is given
to one cause.

TRACE is a trace of PyTorch (export_chrome_trace; CUDA, ROCm and CPUs), JAX (trace.json.gz or xplane.pb), Nsight Systems (nsys export
--type sqlite), rocprofv3 (JSON) or Haul itself: plain, gzip, zst, bz2, xz, zip or tar. - is standard input. Several traces, or a
folder, are the ranks of one job: the doctor matches their collectives and says which rank waits for which, and why. With --diff, two
traces are before and after a change. A memory snapshot of PyTorch (torch.cuda.memory._dump_snapshot) is read for what holds the memory.

To record PyTorch, pass schedule= so that steps are marked:

  from torch.profiler import ProfilerActivity, profile, schedule
  with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
               schedule=schedule(wait=1, warmup=2, active=3, repeat=1),
               record_shapes=True, with_stack=True,
               on_trace_ready=lambda p: p.export_chrome_trace("trace.json.gz")) as prof:
      for batch in loader:
          train_step(batch)
          prof.step()

docs/doctor.md says how to record JAX and nsys, and what each finding means.`,
		Example: `  haul doctor docs/examples/trace.json.gz
  haul doctor docs/examples/trace.json.gz --html page.html --breakdown
  haul doctor docs/examples/ranks                      # a folder: the ranks of one job
  haul doctor docs/examples/ranks/rank0.json.gz docs/examples/ranks/rank1.json.gz --json
  haul doctor docs/examples/report.sqlite              # an export of Nsight Systems
  haul doctor --diff docs/examples/before.json.gz docs/examples/after.json.gz
  haul doctor docs/examples/after.json.gz --fail-on critical   # for CI: exit code 1
  haul doctor docs/examples/trace.json.gz --from 10 --to 60    # ms after the first event`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Usagef("which trace? (see %s --help)", cmd.CommandPath())
			}
			if opt.diff && len(args) != 2 {
				return cli.Usagef("--diff compares two traces, before and after; got %d (see %s --help)", len(args), cmd.CommandPath())
			}
			if opt.diff && opt.breakdown {
				return cli.Usagef("--breakdown describes one trace or job, and --diff compares two: leave one of them out (--diff --json has both breakdowns)")
			}
			if opt.failOn != "" && !slices.Contains(severities, opt.failOn) {
				return cli.Usagef("--fail-on is %q: use one of %s", opt.failOn, strings.Join(severities, ", "))
			}
			if opt.within != "" && (opt.from != 0 || opt.to != 0) {
				return cli.Usagef("--range and --from or --to both say which part: use one of them")
			}
			if !(opt.from >= 0 && opt.to >= 0) || opt.to > 0 && opt.to <= opt.from {
				return cli.Usagef("--from is %v and --to %v: --from must be below --to (milliseconds after the first event)", opt.from, opt.to)
			}
			if opt.page == cli.StandardOutput && opt.json {
				return cli.Usagef("--html - and --json would both go to standard output: use one of them")
			}
			return cli.AsUsage(opt.most.Raise(opt.limits))
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			// Records are plain numbers that the collector passes over: collecting often is cheap and
			// keeps a trace of gigabytes within a few hundred megabytes.
			defer debug.SetGCPercent(debug.SetGCPercent(20))
			return interruptible(cmd.Context(), func() error { return a.doctor(cmd.Context(), args, opt) })
		},
	}
	cmd.Flags().BoolVar(&opt.json, "json", false, "print one JSON object")
	cmd.Flags().StringVar(&opt.page, "html", "", "write a self-contained HTML page with a timeline to this file; - is standard output")
	cmd.Flags().BoolVar(&opt.force, "force", false, "replace a page that exists")
	cmd.Flags().BoolVar(&opt.breakdown, "breakdown", false, "also print where the step's time goes: critical path, operators against the roofline, modules and ranges, memory, kernel families, copies, collectives, queue")
	cmd.Flags().BoolVar(&opt.diff, "diff", false, "compare two traces, or the folders of two jobs: before and after a change")
	cmd.Flags().StringVar(&opt.failOn, "fail-on", "", "exit with code 1 if a finding is at least this severe: note, warning or critical")
	cmd.Flags().Float64Var(&opt.from, "from", 0, "start of the part to read, in ms after the first event")
	cmd.Flags().Float64Var(&opt.to, "to", 0, "end of the part to read, in ms after the first event (0: the end of the trace)")
	cmd.Flags().StringVar(&opt.capture, "capture", "", "trace of the capture of the CUDA graph: --breakdown then names the operators inside its replays")
	cmd.Flags().StringArrayVar(&opt.limits, "set", nil, "how much a trace may hold, as KEY=NUMBER (docs/formats.md; repeatable)")
	cmd.Flags().StringVar(&opt.within, "range", "", "read only the ranges with this annotation (record_function), each as one step")
	cmd.AddCommand(a.newDoctorWatch())
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
	if err := cli.CheckWritable(opt.force, opt.page); err != nil {
		return err
	}
	paths, err := doctor.Expand(args)
	if err != nil {
		return err
	}
	if opt.capture != "" {
		if err := doctor.Load(ctx, opt.capture, func(name string, t *doctor.Trace) error {
			list, err := doctor.Captures(name, t)
			opt.captures = append(opt.captures, list...)
			return err
		}); err != nil {
			return err
		}
	}
	if !opt.diff {
		if err := eachOnce(paths); err != nil {
			return err
		}
	}
	if opt.diff {
		return a.compareTraces(ctx, args, opt)
	}
	reports, left, err := a.readTraces(ctx, paths, opt)
	if err != nil {
		return err
	}
	if len(reports) == 1 {
		r := reports[0]
		r.Remarks = append(r.Remarks, left...)
		return cli.FirstOf(a.tell(opt, r, r.WriteHTML, func(w io.Writer) error { return r.WriteText(w, doctor.Text{Breakdown: opt.breakdown}) }), opt.fail(r.Findings))
	}
	if err := doctor.Together(reports, false); err != nil {
		return cli.Usagef("%v", err)
	}
	j := doctor.JoinRanks(reports)
	j.Remarks = append(j.Remarks, left...)
	return cli.FirstOf(a.tell(opt, j, j.WriteHTML, func(w io.Writer) error { return j.WriteText(w, doctor.Text{Breakdown: opt.breakdown}) }), opt.fail(j.Findings))
}

// compareTraces compares two traces, or two jobs of several ranks each.
func (a *app) compareTraces(ctx context.Context, args []string, opt doctorOptions) error {
	var sides [2][]*doctor.Report
	for i, arg := range args {
		paths, err := doctor.Expand([]string{arg})
		if err != nil {
			return err
		}
		var left []string
		if sides[i], left, err = a.readTraces(ctx, paths, opt); err != nil {
			return err
		}
		for _, line := range left {
			fmt.Fprintf(a.Stderr, "haul: %s\n", line)
		}
	}
	if err := doctor.Together(slices.Concat(sides[0], sides[1]), true); err != nil {
		return cli.Usagef("%v", err)
	}
	if len(sides[0]) == 1 && len(sides[1]) == 1 {
		d := doctor.Compare(sides[0][0], sides[1][0])
		return cli.FirstOf(a.tell(opt, d, d.WriteHTML, d.WriteText), opt.fail(d.After.Findings))
	}
	if len(sides[0]) == 1 || len(sides[1]) == 1 {
		return cli.Usagef("--diff compares two traces, or two jobs; these are %d and %d traces", len(sides[0]), len(sides[1]))
	}
	if opt.page != "" {
		return cli.Usagef("--html shows one job or two traces; two jobs are compared as text or --json")
	}
	d := doctor.CompareRanks(doctor.JoinRanks(sides[0]), doctor.JoinRanks(sides[1]))
	return cli.FirstOf(a.tell(opt, d, nil, d.WriteText), opt.fail(d.After.Findings))
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
				return cli.Usagef("%s is given twice%s: each trace is a rank of its own", p, as)
			}
		}
		seen, names = append(seen, info), append(names, p)
	}
	return nil
}

// tell writes the page where asked for, and the result as JSON or as text.
func (a *app) tell(opt doctorOptions, result any, page, text func(io.Writer) error) error {
	if opt.page == cli.StandardOutput {
		return cli.FirstOf(page(a.Whole()), text(a.Stderr))
	}
	if opt.page != "" {
		if err := cli.WriteFile(opt.page, page); err != nil {
			return err
		}
	}
	if opt.json {
		return a.Emit(result)
	}
	return text(a.Stdout)
}

// readTraces reads and diagnoses the files, as many at a time as there are cores, and keeps their
// order. Of several, one that cannot be read is left out, with a line that says so; where none can,
// the first error is returned.
func (a *app) readTraces(ctx context.Context, paths []string, opt doctorOptions) ([]*doctor.Report, []string, error) {
	found := make([][]*doctor.Report, len(paths))
	bar := &cli.Bar{}
	defer func() { bar.End() }()
	var tell func(done, size int64)
	switch {
	case len(paths) > 1:
		bar = a.NewBar(len(paths), "traces")
	default: // one file: its megabytes, where it is large enough to wait for
		tell = func(done, size int64) {
			if bar.Inner == nil && size > 100<<20 && done < size {
				bar = a.NewBar(int(size>>20), "MB")
			}
			bar.Set(int(done >> 20))
		}
	}
	errs := make([]error, len(paths))
	next, finished := make(chan int), make(chan struct{}, len(paths))
	var group sync.WaitGroup
	for range min(len(paths), runtime.GOMAXPROCS(0)) {
		group.Go(func() {
			for i := range next {
				errs[i] = doctor.LoadWith(ctx, paths[i], opt.most, tell, func(name string, t *doctor.Trace) error {
					if err := opt.restrict(t); err != nil {
						return doctor.InFile(name, err)
					}
					r, err := doctor.Diagnose(t)
					if err != nil {
						return doctor.InFile(name, err)
					}
					r.File = name
					found[i] = append(found[i], r)
					if opt.page == "" && (len(paths) > 1 || len(found[i]) > 1) { // of many ranks' events little is needed
						for _, r := range found[i] {
							r.Release()
						}
					}
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
			bar.Set(i + 1)
		}
	}
	group.Wait()
	reports := slices.Concat(found...)
	if err := firstError(errs); ctx.Err() != nil || len(reports) == 0 {
		return nil, nil, err
	}
	var left []string
	for _, err := range errs {
		if err != nil {
			left = append(left, "left out: "+err.Error())
		}
	}
	return reports, left, nil
}

func firstError(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
