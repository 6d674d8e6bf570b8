package solve

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"haul/cmd/haul/cli"
	"haul/internal/draw"
	"haul/internal/policy"
	"haul/internal/report"
	"haul/internal/search"
	"haul/internal/solve"
	"haul/internal/vrp"
	"haul/internal/vrp/files"
)

// keepInputs refuses to overwrite the files that the problem is read from, even with --force.
func (f *solveFlags) keepInputs(path, out string) error {
	for flag, to := range map[string]string{"out": out, "plot": f.plot, "curve": f.search.curve} {
		written, err := os.Stat(to)
		if to == "" || err != nil || !written.Mode().IsRegular() {
			continue
		}
		for _, from := range []string{path, f.tables.fleet, f.tables.depots, f.tables.shipments, f.tables.distances, f.tables.durations} {
			if st, err := os.Stat(from); from != "" && err == nil && os.SameFile(st, written) {
				return cli.Usagef("--%s %s is a file that the problem is read from: name another file", flag, to)
			}
		}
	}
	return nil
}

func (a *app) solveFile(ctx context.Context, path string, f *solveFlags) error {
	out := f.out
	if out == cli.StandardOutput {
		out = ""
	}
	if err := f.keepInputs(path, out); err != nil {
		return err
	}
	if err := cli.RefuseOverwrite(f.force, out, f.plot, f.search.curve); err != nil {
		return err
	}
	p, format, err := f.load(path)
	if err != nil {
		return err
	}
	reading := time.Since(f.begun)
	if ext := strings.ToLower(filepath.Ext(f.out)); f.out != "" && (ext == "" || ext == ".sol" || ext == ".txt") {
		if err := files.NumbersVehicles(p); err != nil {
			return fmt.Errorf("--out %s: %w: write .json, .csv, .xlsx or .geojson", f.out, err)
		}
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
	if f.vroom != nil {
		if plan != nil {
			f.vroom.Measure(plan)
		}
		if answer, err = f.vroom.Answer(s, o.Reasons, o.broken, f.reading, o.Seconds); err != nil {
			return err
		}
	}
	r := f.report(path, p, s)
	if r.Plan = plan; f.vroom == nil { // in VROOM's words nobody has to be served
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
		failed = f.draw(format, p, s, o.Method)
	}
	if failed == nil && o.trace != nil {
		failed = f.drawCurve(p, o)
	}
	if failed != nil {
		r.Out, r.Plot, r.Curve = "", "", ""
		if err := a.reportFile(r, f.json); err != nil {
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
		err = cli.FirstOf(files.WriteSolution(a.Whole(), p, s, r.Cost), (&app{a.ReportAside()}).reportFile(r, false))
	} else if answer != nil && f.json {
		_, err = a.Whole().Write(answer)
	} else {
		err = a.reportFile(r, f.json)
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
	return f.searchTime()
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
	if missing == 0 || f.vroom != nil {
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
	if f.vroom != nil && f.vroom.Plan {
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
	if f.vroom != nil {
		if o.Search.Start = f.vroom.Start; o.Search.Start != nil && f.search.start != "" {
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
			if o.Search.Start, err = loadStart(f.search.start, p, f.vroom); err != nil {
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
		if f.vroom != nil && f.json {
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
	s := *f.vroom.Start
	return &outcome{Result: &solve.Result{Solution: s, Method: "plan", Cost: f.vroom.Problem.Cost(s),
		Reasons: solve.Reasons(f.vroom.Problem, s)}, broken: vrp.Violations(f.vroom.Problem, s)}
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
		trained.Seed = f.src.Seed
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

// checkSolution judges a .sol file: the routes by the referee, the stated cost by the true one.
func (a *app) checkSolution(path string, f *solveFlags) error {
	if err := cli.RefuseOverwrite(f.force, f.plot); err != nil {
		return err
	}
	p, format, err := f.load(path)
	if err != nil {
		return err
	}
	start := time.Now()
	s, stated, err := cli.LoadSolution(f.check, p, f.vroom)
	if err != nil {
		return err
	}
	if err := f.judge(p, s); err != nil {
		return a.refuse(path, p, f, fmt.Errorf("%w%s", err, f.holdsBy(path)))
	}
	r := f.report(path, p, s)
	r.Checked, r.Seconds = f.check, time.Since(start).Seconds()
	if !sameCost(stated, r.Cost) {
		return a.refuse(path, p, f, fmt.Errorf("it states cost %s, its routes cost %s%s", draw.Cost(stated), draw.Cost(r.Cost), cmp.Or(counted(stated, r.Cost), f.holdsBy(path))))
	}
	if err := f.draw(format, p, s, ""); err != nil {
		return err
	}
	return a.reportFile(r, f.json)
}

// judge is the referee's word on routes. In VROOM's words nobody has to be served.
func (f *solveFlags) judge(p *vrp.Problem, s vrp.Solution) error {
	if f.vroom == nil {
		return vrp.Validate(p, s)
	}
	for _, v := range vrp.Violations(p, s) {
		if v.Rule != vrp.VisitedAtAll {
			return v
		}
	}
	return nil
}

// refuse reports a solution file that does not hold.
func (a *app) refuse(path string, p *vrp.Problem, f *solveFlags, why error) error {
	if f.json {
		r := fileReport{File: path, Name: p.Name, Customers: p.N(), Capacity: p.Amount(0, int64(p.Capacity)), Checked: f.check, Violation: why.Error()}
		if err := a.Emit(r); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s is not a solution of %s: %w", cli.Spoken(f.check), cli.Spoken(path), why)
}

// counted says of a stated cost that is the true one in smaller parts that it is: PyVRP counts in
// whole numbers, so that its files have tenths or thousandths.
func counted(stated, cost float64) string {
	for parts, word := range map[float64]string{10: "tenths", 100: "hundredths", 1000: "thousandths"} {
		if cost != 0 && math.Abs(stated-parts*cost) <= 0.5 {
			return ", of which it counts the " + word
		}
	}
	if cost >= 100 && math.Abs(100*stated-cost) <= 0.5 {
		return ", of which it counts the hundreds: the problem's own costs are a hundredfold"
	}
	return ""
}

// holdsBy says with which --distance the file that is checked holds, where none was named and the
// problem's own format has another; "" where it holds with none.
func (f *solveFlags) holdsBy(path string) string {
	if f.distance != "" || f.vroom != nil || f.check == cli.StandardInput {
		return ""
	}
	for _, name := range []string{"dimacs", "exact", "rounded", "trunc", "ceil"} {
		g := *f
		g.distance, g.plot = name, ""
		p, _, err := g.load(path)
		if err != nil {
			return ""
		}
		if s, stated, err := cli.LoadSolution(f.check, p, nil); err == nil && vrp.Validate(p, s) == nil {
			if cost := p.Cost(s); sameCost(stated, cost) {
				return "; by --distance " + name + " it holds"
			} else if text := counted(stated, cost); text != "" {
				return "; by --distance " + name + " they cost " + draw.Cost(cost) + text
			}
		}
	}
	return ""
}

// sameCost says whether the stated cost is the true one, rounded to the digits it is stated with:
// published files give two decimals. A file that states none (NaN) has nothing wrong to state.
func sameCost(stated, cost float64) bool {
	_, decimals, _ := strings.Cut(strconv.FormatFloat(stated, 'f', -1, 64), ".")
	half := 0.5 * math.Pow10(-len(decimals))
	return math.IsNaN(stated) || math.Abs(stated-cost) <= half+1e-9*math.Abs(cost)
}

// load reads the problem, after the checks that need no file.
func (f *solveFlags) load(path string) (*vrp.Problem, draw.Format, error) {
	var format draw.Format
	if f.plot != "" {
		var err error
		if format, err = draw.FormatOf(f.plot); err != nil {
			return nil, "", cli.AsUsage(err)
		}
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, "", fmt.Errorf("%s is a folder: name a .vrp or .csv file", path)
	}
	if ext := strings.ToLower(filepath.Ext(path)); slices.Contains([]string{".npz", ".pkl", ".pt"}, ext) {
		return nil, "", cli.Usagef("%s holds a set of instances: haul solve --testset %s solves them", path, path)
	}
	var p *vrp.Problem
	o, err := f.readOptions()
	if err != nil {
		return nil, "", err
	}
	switch {
	case f.object:
		if p, err = f.readObject(path); err == nil {
			o.Distance.Apply(p)
			if err = p.Within(o.Limits); err != nil {
				err = fmt.Errorf("%s: %w", cli.Spoken(path), err)
			}
		}
	case f.given != nil:
		p, err = files.ReadProblem(bytes.NewReader(f.given), cli.Spoken(path), o)
	default:
		p, err = files.LoadProblem(path, o)
	}
	if err != nil {
		return nil, "", asCapacity(err)
	}
	if p.X == nil && (f.plot != "" || strings.EqualFold(filepath.Ext(f.out), ".geojson")) {
		return nil, "", fmt.Errorf("cannot draw %s: the file gives distances but no coordinates", p.Name)
	}
	if err := f.limit(path, p); err != nil {
		return nil, "", err
	}
	p.Open = p.Open || f.open
	if err := p.Check(); err != nil {
		return nil, "", fmt.Errorf("%s: %w", path, err)
	}
	return p, format, nil
}

// readObject reads a problem in JSON.
func (f *solveFlags) readObject(path string) (*vrp.Problem, error) {
	text := f.given
	if text == nil {
		var err error
		if text, err = os.ReadFile(path); err != nil {
			return nil, err
		}
	}
	began := time.Now()
	name := strings.TrimSuffix(filepath.Base(cli.Spoken(path)), filepath.Ext(path))
	if files.LooksVROOM(text) {
		o, err := f.readOptions()
		if err != nil {
			return nil, err
		}
		v, err := files.ReadVROOM(text, 0, o.Limits)
		if err == nil {
			err = v.Problem.Within(o.Limits)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", cli.Spoken(path), err)
		}
		if v.Blind && (f.plot != "" || strings.EqualFold(filepath.Ext(f.out), ".geojson")) {
			return nil, fmt.Errorf("cannot draw %s: its tasks have no location", cli.Spoken(path))
		}
		f.vroom, f.reading, v.Problem.Name = v, time.Since(began).Seconds(), name
		return v.Problem, nil
	}
	p, err := files.ReadJSON(bytes.NewReader(text), cli.Spoken(path))
	if err == nil && p.Name == "" {
		p.Name = name
	}
	return p, err
}
