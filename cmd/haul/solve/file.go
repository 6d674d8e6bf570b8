package solve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"haul/cmd/haul/cli"
	"haul/cmd/haul/routes"
	"haul/internal/draw"
	"haul/internal/policy"
	"haul/internal/report"
	"haul/internal/search"
	"haul/internal/solve"
	"haul/internal/vrp"
	"haul/internal/vrp/files"
)

func (a *app) solveFile(ctx context.Context, path string, f *solveFlags) error {
	out := f.out
	if out == cli.StandardOutput {
		out = ""
	}
	if err := f.problem.Keep(map[string]string{"out": out, "plot": f.plot, "curve": f.search.curve}); err != nil {
		return err
	}
	if err := cli.RefuseOverwrite(f.force, out, f.plot, f.search.curve); err != nil {
		return err
	}
	p, err := f.problem.Load(f.plot != "" || routes.IsMap(f.out))
	if err != nil {
		return err
	}
	reading := time.Since(f.begun)
	if err := routes.CanWrite(f.out, p); err != nil {
		return err
	}
	a.noteTrucks(path, p)
	if ctx.Err() == nil {
		a.notePolicy(p, f)
	}
	o, err := a.solveBy(ctx, p, f)
	if err != nil {
		return err
	}
	s := o.Solution
	plan, err := plan(p, s, o)
	if err != nil {
		return err
	}
	var answer []byte
	if f.problem.VROOM != nil {
		if plan != nil {
			f.problem.VROOM.Measure(plan)
		}
		if answer, err = f.problem.VROOM.Answer(s, o.Reasons, o.broken, f.problem.ReadSeconds, o.Seconds); err != nil {
			return err
		}
	}
	r := routes.Of(path, p, s, f.bestKnown)
	r.Plot = f.plot
	if r.Plan = plan; f.problem.VROOM == nil { // in VROOM's words nobody has to be served
		r.Missing = o.Missing
	}
	r.Method, r.Seconds, r.Out, r.Iterations, r.Interrupted, r.Curve = o.Method, o.Seconds, out, o.Iterations, o.Interrupted, f.search.curve
	r.Proven = o.Optimal && o.Method == solve.Search
	r.Decode, r.Policy, r.Start = o.Decode, f.policy.Policy, o.Start
	if text := lateness(f.timeOf(o), time.Since(f.begun), reading); text != "" && !o.Interrupted {
		fmt.Fprintf(a.Stderr, "%s: %s\n", path, text)
	}
	// Routes that cannot be written are printed: they may have taken hours.
	var failed error
	if out != "" {
		failed = f.write(p, s, r.Cost, plan, answer)
	}
	if failed == nil {
		failed = routes.Draw(f.plot, p, s, o.Method)
	}
	if failed == nil && o.trace != nil {
		failed = f.drawCurve(p, o)
	}
	if failed != nil {
		r.Out, r.Plot, r.Curve = "", "", ""
		if err := r.Print(a.App, f.json); err != nil {
			return errors.Join(failed, err)
		}
		if !f.json {
			if err := printRoutes(a.Whole(), p, s, r.Cost); err != nil {
				return errors.Join(failed, err)
			}
		}
		return failed
	}
	if f.out == cli.StandardOutput {
		err = cli.FirstOf(files.WriteSolution(a.Whole(), p, s, r.Cost), r.Print(a.ReportAside(), false))
	} else if answer != nil && f.json {
		_, err = a.Whole().Write(answer)
	} else {
		err = r.Print(a.App, f.json)
	}
	if err != nil {
		return err
	}
	if o.Interrupted {
		return ctx.Err()
	}
	return a.unserved(f, o.Missing)
}

// timeOf is the wall time that a search had; 0: there was none, or a budget of iterations.
func (f *solveFlags) timeOf(o *outcome) time.Duration {
	if o.trace == nil || f.search.iterations > 0 {
		return 0
	}
	return f.budget()
}

// lateness says why a solve took longer than its limit; "" where it did not by more than a fiftieth
// and a twentieth of a second.
func lateness(limit, took, reading time.Duration) string {
	if limit <= 0 || took <= limit+limit/50 || took <= limit+50*time.Millisecond {
		return ""
	}
	why := "first routes and judging them took the rest"
	if reading > limit/2 {
		why = fmt.Sprintf("reading it took %.1f s", reading.Seconds())
	}
	return fmt.Sprintf("the time limit of %v was passed by %.1f s: %s; give it more time", limit, (took - limit).Seconds(), why)
}

// plan evaluates routes where they have times, or leave out somebody.
func plan(p *vrp.Problem, s vrp.Solution, o *outcome) (*files.Plan, error) {
	if !files.Timed(p) && o.Missing == 0 {
		return nil, nil
	}
	return files.NewPlan(p, s, o.Reasons)
}

// write writes the routes, in VROOM's words where the problem is.
func (f *solveFlags) write(p *vrp.Problem, s vrp.Solution, cost float64, plan *files.Plan, answer []byte) error {
	if ext := strings.ToLower(filepath.Ext(f.out)); ext == ".json" && answer != nil && !strings.HasSuffix(strings.ToLower(f.out), ".plan.json") {
		return cli.WriteFile(f.out, func(w io.Writer) error {
			_, err := w.Write(answer)
			return err
		})
	}
	if v := f.problem.VROOM; v != nil && v.Blind {
		q := *p
		q.X, q.Y, p = nil, nil, &q // they are no map
	}
	return routes.Write(f.out, p, s, cost, plan)
}

// printRoutes writes routes as a .sol file has them, or as an object where it cannot have them.
func printRoutes(w io.Writer, p *vrp.Problem, s vrp.Solution, cost float64) error {
	if files.NumbersVehicles(p) == nil {
		return files.WriteSolution(w, p, s, cost)
	}
	plan, err := files.NewPlan(p, s, nil)
	if err != nil {
		return err
	}
	return files.WriteSolutionJSON(w, p, s, plan)
}

// unserved ends a solve whose routes leave out required customers. VROOM has no required ones.
func (a *app) unserved(f *solveFlags, missing int) error {
	if missing == 0 || f.problem.VROOM != nil {
		return nil
	}
	a.Complain(fmt.Sprintf("%s %s on no route", report.Plural(int64(missing), "required customer"), map[bool]string{true: "is", false: "are"}[missing == 1]))
	return cli.ExitCode(cli.ExitUnserved)
}

// noteTrucks says what the file holds and is not read, and that a number of trucks in the comment
// limits nothing.
func (a *app) noteTrucks(path string, p *vrp.Problem) {
	for _, note := range p.Notes {
		fmt.Fprintf(a.Stderr, "%s: %s\n", path, note)
	}
	if short := p.Shortage(); short != nil {
		fmt.Fprintf(a.Stderr, "%s: %v\n", path, short)
	}
	if k := p.Trucks(); k > 0 && p.Vehicles == 0 {
		fmt.Fprintf(a.Stderr, "%s: its comment names %d trucks, which limits nothing here: --vehicles %d would\n", path, k, k)
	}
}

// notePolicy says that a policy could route the file, where no flag says how it is to be solved:
// the method stays what it is. Next to an optimum it has nothing to offer.
func (a *app) notePolicy(p *vrp.Problem, f *solveFlags) {
	if _, ok := f.policy.Given(); ok || f.method != "" || f.json || !solve.Solves(solve.Policy, p, nil) || solve.Best(p, nil) {
		return
	}
	if name := cli.FittingPolicy(p); name != "" {
		fmt.Fprintf(a.Stderr, "a trained policy could route it too: --policy %s (haul policies)\n", name)
	}
}

// solveBy solves the problem as the flags ask for, or by the method that the table of methods
// names for it.
func (a *app) solveBy(ctx context.Context, p *vrp.Problem, f *solveFlags) (*outcome, error) {
	name := f.method
	if f.problem.VROOM != nil && f.problem.VROOM.Plan {
		if _, ok := f.policy.Given(); ok || name != "" {
			return nil, cli.Usagef("options.c asks for the times of the plan, and nothing is solved: leave out --method, --policy and the flags of the search")
		}
		return f.planned(), nil
	}
	if err := f.policy.Fit(p); err != nil {
		return nil, err
	}
	if _, ok := f.policy.Given(); ok {
		name = solve.Policy
		if f.improve {
			name = solve.Both
		}
	}
	m, err := solve.Choose(p, name, nil)
	if err != nil {
		return nil, err
	}
	if f.seedGiven && (m.Name == solve.Exact || m.Name == solve.Savings) {
		fmt.Fprintf(a.Stderr, "%s is solved by %s, which draws nothing: --seed has no effect\n", p.Name, m.Name)
	}
	out := &outcome{}
	o := solve.Options{Search: f.searchOptions()}
	if f.problem.VROOM != nil {
		if o.Search.Start = f.problem.VROOM.Start; o.Search.Start != nil && f.search.start != "" {
			return nil, cli.Usagef("--start and the vehicles' steps both say where to start: leave one of them out")
		}
	}
	if m.Name == solve.Policy || m.Name == solve.Both {
		route, done, err := a.router(ctx, p, f)
		if err != nil {
			return nil, err
		}
		defer done()
		o.Route = route
	}
	if !m.Quick {
		if f.search.start != "" {
			if o.Search.Start, err = routes.Read(f.search.start, p, f.problem.VROOM); err != nil {
				return nil, err
			}
		}
		if f.search.fix != "" {
			if o.Search.Fixed, err = parseFix(f.search.fix, o.Search.Start); err != nil {
				return nil, err
			}
		}
		live := a.newLive(f)
		defer live.end()
		out.trace = &draw.Curve{Name: "best routes so far"}
		o.Search.Progress = func(s search.Progress) {
			if s.Improved {
				out.trace.Add(s.Seconds, s.Cost)
			}
			live.show(s)
		}
		if f.problem.VROOM != nil && f.json {
			o.Search.Progress = nil // its clients read one object
		}
	}
	if out.Result, err = m.Solve(ctx, p, o); err != nil {
		return nil, err
	}
	if out.Note != "" {
		fmt.Fprintf(a.Stderr, "%s: %s\n", p.Name, out.Note)
	}
	if out.trace != nil {
		out.trace.Add(out.Seconds, out.Cost)
	}
	return out, nil
}

// planned is the plan that a VROOM input states: its times and what it breaks are all that is asked
// for.
func (f *solveFlags) planned() *outcome {
	s := *f.problem.VROOM.Start
	return &outcome{Result: &solve.Result{Solution: s, Method: "plan", Cost: f.problem.VROOM.Problem.Cost(s),
		Reasons: solve.Reasons(f.problem.VROOM.Problem, s)}, broken: vrp.Violations(f.problem.VROOM.Problem, s)}
}

// router opens the device for a trained policy, which is to route the problem. done gives it back.
func (a *app) router(ctx context.Context, p *vrp.Problem, f *solveFlags) (route solve.Router, done func(), err error) {
	f.device.Workers = f.workers
	n := p.N()
	trained, dev, err := a.OpenPolicy(ctx, &f.policy, &f.device)
	if err != nil {
		return nil, nil, err
	}
	if why := policy.Takes(trained.Config, p); why != nil {
		err := fmt.Errorf("the policy cannot route it: %w", why)
		if other := cli.FittingPolicy(p); other != "" {
			err = fmt.Errorf("%w: --policy %s can", err, other)
		}
		return nil, nil, errors.Join(err, dev.Close())
	}
	if f.seedGiven {
		trained.Seed = f.seed
	}
	decode, lesser, err := f.policy.Decoder(trained.Config, n, f.improve)
	if err != nil {
		return nil, nil, errors.Join(err, dev.Close())
	}
	if f.seedGiven && !f.improve && !decode.Draws() {
		fmt.Fprintf(a.Stderr, "%s draws nothing: --seed has no effect\n", decode)
	}
	if lesser && !f.json {
		fmt.Fprintf(a.Stderr, "%s are routed by %s, which is soon done: --decode %s is better and takes its time\n",
			report.Plural(int64(n), "customer"), decode, policy.Thorough(trained.Config, n))
	}
	if cli.Slow(decode, n) { // all routes are one op of the device, which tells nothing before its end
		end := "gives up"
		if decode.Active {
			end = "ends it with the best routes so far"
		}
		a.Remark(fmt.Sprintf("routing %s by %s, which takes a while; Ctrl-C %s", report.Plural(int64(n), "customer"), decode, end))
	}
	return func(ctx context.Context, p *vrp.Problem) (vrp.Solution, string, error) {
		var within time.Duration
		var tell func(share float64)
		if decode.Active {
			if f.timeGiven {
				within = f.search.time
			}
			bar := a.NewBar(1000, decode.String())
			defer bar.End()
			tell = func(share float64) { bar.Set(int(1000 * share)) }
		}
		s, _, err := trained.SolveWithin(ctx, p, decode, within, tell)
		return s, decode.String(), err
	}, func() { dev.Close() }, nil
}
