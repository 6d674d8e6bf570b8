package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"haul/internal/draw"
	"haul/internal/env/cvrp"
	"haul/internal/recipe/routing"
)

type fileReport struct {
	File      string   `json:"file"`
	Name      string   `json:"name"`
	Customers int      `json:"customers"`
	Capacity  int32    `json:"capacity"`
	Method    string   `json:"method,omitempty"`
	Checked   string   `json:"checked,omitempty"`
	Valid     bool     `json:"valid"`
	Violation string   `json:"violation,omitempty"`
	Cost      float64  `json:"cost"`
	Routes    int      `json:"routes"`
	Seconds   float64  `json:"seconds"`
	BestKnown float64  `json:"best_known,omitempty"`
	Gap       *float64 `json:"gap,omitempty"`
	Out       string   `json:"out,omitempty"`
	Plot      string   `json:"plot,omitempty"`
}

func (a *app) solveFile(ctx context.Context, path string, f *solveFlags) error {
	solve, done, err := a.solver(ctx, f)
	if err != nil {
		return err
	}
	defer done()
	p, format, err := f.load(path)
	if err != nil {
		return err
	}
	start := time.Now()
	s, err := solve(p)
	if err != nil {
		return err
	}
	seconds := time.Since(start).Seconds()
	if err := cvrp.Validate(p, s); err != nil {
		return fmt.Errorf("%s made invalid routes for %s: %w", f.method, path, err)
	}
	r := f.report(path, p, s)
	r.Method, r.Seconds, r.Out = f.method, seconds, f.out
	if f.out != "" {
		err := writeFile(f.out, func(w io.Writer) error { return cvrp.WriteSolution(w, s, r.Cost) })
		if err != nil {
			return err
		}
	}
	if err := f.draw(format, p, s, f.method); err != nil {
		return err
	}
	return a.reportFile(r, f.json)
}

// solver is the way to solve one problem that the flags ask for, and what to call after the last.
func (a *app) solver(ctx context.Context, f *solveFlags) (solve func(*cvrp.Problem) (cvrp.Solution, error), done func(), err error) {
	classical := func(method func(context.Context, []*cvrp.Problem, int, func(int)) ([]cvrp.Solution, error)) func(*cvrp.Problem) (cvrp.Solution, error) {
		return func(p *cvrp.Problem) (cvrp.Solution, error) {
			all, err := method(ctx, []*cvrp.Problem{p}, 1, func(int) {})
			if err != nil {
				return cvrp.Solution{}, err
			}
			return all[0], nil
		}
	}
	switch {
	case f.policy.checkpoint != "":
		f.method = methodPolicy
		return a.policySolver(ctx, f)
	case f.method == methodExact:
		return classical(optimal), func() {}, nil
	}
	f.method = methodSavings
	return classical(savings), func() {}, nil
}

// policySolver opens the device for a trained policy.
func (a *app) policySolver(ctx context.Context, f *solveFlags) (func(*cvrp.Problem) (cvrp.Solution, error), func(), error) {
	decode, err := routing.ParseDecode(f.policy.decode)
	if err != nil {
		return nil, nil, asUsage(err)
	}
	f.device.workers = f.workers
	policy, _, dev, err := a.openPolicy(&f.policy, &f.device)
	if err != nil {
		return nil, nil, err
	}
	return func(p *cvrp.Problem) (cvrp.Solution, error) {
		s, _, err := policy.Solve(ctx, p, decode)
		return s, err
	}, func() { dev.Close() }, nil
}

// checkSolution judges a .sol file: the routes by the referee, the stated cost by the true one.
func (a *app) checkSolution(path string, f *solveFlags) error {
	p, format, err := f.load(path)
	if err != nil {
		return err
	}
	start := time.Now()
	s, stated, err := cvrp.LoadSolution(f.check)
	if err != nil {
		return err
	}
	if err := cvrp.Validate(p, s); err != nil {
		return a.refuse(path, p, f, err)
	}
	r := f.report(path, p, s)
	r.Checked, r.Seconds = f.check, time.Since(start).Seconds()
	if !sameCost(stated, r.Cost) {
		return a.refuse(path, p, f, fmt.Errorf("it states cost %s, its routes cost %s", draw.Cost(stated), draw.Cost(r.Cost)))
	}
	if err := f.draw(format, p, s, ""); err != nil {
		return err
	}
	return a.reportFile(r, f.json)
}

// refuse reports a solution file that does not hold.
func (a *app) refuse(path string, p *cvrp.Problem, f *solveFlags, why error) error {
	if f.json {
		r := fileReport{File: path, Name: p.Name, Customers: p.N(), Capacity: p.Capacity, Checked: f.check, Violation: why.Error()}
		if err := a.emit(r); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s is not a solution of %s: %w", f.check, path, why)
}

// sameCost says whether the stated cost is the true one, rounded to the digits it is stated with:
// published files give two decimals. A file that states none (NaN) has nothing wrong to state.
func sameCost(stated, cost float64) bool {
	_, decimals, _ := strings.Cut(strconv.FormatFloat(stated, 'f', -1, 64), ".")
	half := 0.5 * math.Pow10(-len(decimals))
	return math.IsNaN(stated) || math.Abs(stated-cost) <= half+1e-9*math.Abs(cost)
}

// load reads the problem, after the checks that need no file.
func (f *solveFlags) load(path string) (*cvrp.Problem, draw.Format, error) {
	var format draw.Format
	if f.plot != "" {
		var err error
		if format, err = draw.FormatOf(f.plot); err != nil {
			return nil, "", asUsage(err)
		}
	}
	p, err := cvrp.LoadProblem(path, f.readOptions())
	return p, format, err
}

func (f *solveFlags) report(path string, p *cvrp.Problem, s cvrp.Solution) fileReport {
	cost := p.Cost(s)
	return fileReport{File: path, Name: p.Name, Customers: p.N(), Capacity: p.Capacity, Valid: true,
		Cost: cost, Routes: len(s.Routes), BestKnown: f.bestKnown, Gap: f.gap(cost), Plot: f.plot}
}

func (f *solveFlags) draw(format draw.Format, p *cvrp.Problem, s cvrp.Solution, caption string) error {
	if f.plot == "" {
		return nil
	}
	return writeFile(f.plot, func(w io.Writer) error { return draw.Routes(w, format, p, s, caption) })
}

func (a *app) reportFile(r fileReport, asJSON bool) error {
	if asJSON {
		return a.emit(r)
	}
	return a.table(func(w io.Writer) {
		how := r.Method
		if r.Checked != "" {
			how = r.Checked + " is valid"
		}
		fmt.Fprintf(w, "%s\n", a.bold(fmt.Sprintf("%s, %d customers, capacity %d, %s", r.Name, r.Customers, r.Capacity, how)))
		fmt.Fprintf(w, "cost\t%s\n", draw.Cost(r.Cost))
		fmt.Fprintf(w, "routes\t%d\n", r.Routes)
		if r.Gap != nil {
			fmt.Fprintf(w, "gap\t%s to %s\n", percent(*r.Gap), draw.Cost(r.BestKnown))
		}
		if r.Method != "" {
			fmt.Fprintf(w, "time\t%.3f s\n", r.Seconds)
		}
		if r.Out != "" {
			fmt.Fprintf(w, "written\t%s\n", r.Out)
		}
		if r.Plot != "" {
			fmt.Fprintf(w, "drawn\t%s\n", r.Plot)
		}
	})
}
