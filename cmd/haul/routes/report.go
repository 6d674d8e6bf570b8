package routes

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"haul/cmd/haul/cli"
	"haul/internal/draw"
	"haul/internal/report"
	"haul/internal/solve"
	"haul/internal/vrp"
	"haul/internal/vrp/files"
)

// Report is what a verb prints of the routes of one problem.
type Report struct {
	File        string    `json:"file"`
	Name        string    `json:"name"`
	Customers   int       `json:"customers"`
	Capacity    float64   `json:"capacity"`
	Method      string    `json:"method,omitempty"`
	Decode      string    `json:"decode,omitempty"`
	Policy      string    `json:"policy,omitempty"`
	Checked     string    `json:"checked,omitempty"`
	Valid       bool      `json:"valid"`
	Violation   string    `json:"violation,omitempty"`
	Cost        float64   `json:"cost"`
	RouteCount  int       `json:"route_count"`
	Routes      [][]int32 `json:"routes,omitempty"`
	Types       []int32   `json:"types,omitempty"`
	Missing     int       `json:"unserved_required,omitempty"`
	Vehicles    int       `json:"vehicles,omitempty"`
	Open        bool      `json:"open,omitempty"`
	Start       *float64  `json:"start_cost,omitempty"`
	Iterations  int       `json:"iterations"`
	Interrupted bool      `json:"interrupted,omitempty"`
	Proven      bool      `json:"proven,omitempty"`
	Seconds     float64   `json:"seconds"`
	BestKnown   float64   `json:"best_known,omitempty"`
	Gap         *float64  `json:"gap,omitempty"`
	Out         string    `json:"out,omitempty"`
	unit        string    // of the cost, in words
	problem     *vrp.Problem
	Plot        string `json:"plot,omitempty"`
	Curve       string `json:"curve,omitempty"`

	Plan *files.Plan `json:"plan,omitempty"`
}

// Of is the report of routes of a problem.
func Of(path string, p *vrp.Problem, s vrp.Solution, bestKnown float64) Report {
	cost := p.Cost(s)
	return Report{File: path, Name: p.Name, Customers: p.N(), Capacity: p.Amount(0, int64(p.Capacity)), Valid: true,
		Cost: cost, RouteCount: len(s.Routes), Routes: s.Routes, Types: s.Types, Vehicles: p.Vehicles, Open: p.Open,
		BestKnown: bestKnown, Gap: cli.Gap(cost, bestKnown), unit: unit(p, cost), problem: p}
}

// unit says what a cost is counted in where that is known: metres between places on the globe, and
// of a file that haul gen wrote and scaled, what it is on the unit square.
func unit(p *vrp.Problem, cost float64) string {
	scale, ok := p.Scale()
	if !ok {
		return draw.Unit(p)
	}
	return draw.Unit(p) + fmt.Sprintf(", %s on the unit square (the file is scaled by %d)", draw.Cost(cost/float64(scale)), scale)
}

// Draw writes the picture of routes to a file; "" writes none.
func Draw(path string, p *vrp.Problem, s vrp.Solution, caption string) error {
	if path == "" {
		return nil
	}
	format, err := draw.FormatOf(path)
	if err != nil {
		return cli.AsUsage(err)
	}
	return cli.WriteFile(path, func(w io.Writer) error { return draw.Routes(w, format, p, s, caption) })
}

// Print writes the report, as a table or as one JSON object.
func (r Report) Print(a *cli.App, asJSON bool) error {
	if asJSON {
		return a.Emit(r)
	}
	return a.Table(func(w io.Writer) {
		how := r.Method
		if r.Decode != "" { // "policy and search"
			by := "(" + r.Decode + ")"
			if r.Policy != "" {
				by = "(" + r.Policy + ", " + r.Decode + ")"
			}
			how = strings.Replace(how, solve.Policy, solve.Policy+" "+by, 1)
		}
		if r.Checked != "" {
			how = cli.Spoken(r.Checked) + " is valid"
		}
		capacity := fmt.Sprintf("capacity %s, ", strconv.FormatFloat(r.Capacity, 'f', -1, 64))
		if r.Capacity == 0 { // the fleet says it
			capacity = ""
		}
		fmt.Fprintf(w, "%s\n", a.Bold(fmt.Sprintf("%s, %s, %s%s", r.Name, report.Plural(int64(r.Customers), "customer"), capacity, how)))
		fmt.Fprintf(w, "cost\t%s%s\n", draw.Cost(r.Cost), r.unit)
		if r.Start != nil {
			fmt.Fprintf(w, "start\t%s\n", draw.Cost(*r.Start))
		}
		if r.Vehicles > 0 {
			fmt.Fprintf(w, "routes\t%d of %d vehicles\n", r.RouteCount, r.Vehicles)
		} else {
			fmt.Fprintf(w, "routes\t%d\n", r.RouteCount)
		}
		if r.Gap != nil {
			fmt.Fprintf(w, "gap\t%s to %s\n", cli.Percent(*r.Gap), draw.Cost(r.BestKnown))
		}
		if r.Method != "" {
			took := fmt.Sprintf("%.3f s", r.Seconds)
			if r.Iterations > 0 {
				took += fmt.Sprintf(", %d iterations, %.0f/s", r.Iterations, float64(r.Iterations)/r.Seconds)
			}
			if r.Interrupted {
				took += ", interrupted: these are the best routes so far"
			}
			if r.Proven {
				took += ", proven: no routes cost less"
			}
			fmt.Fprintf(w, "time\t%s\n", took)
		}
		if r.Missing > 0 {
			fmt.Fprintf(w, "unserved\t%s\n", report.Plural(int64(r.Missing), "required customer"))
		}
		if r.Out != "" {
			fmt.Fprintf(w, "written\t%s\n", r.Out)
		}
		if r.Plot != "" {
			fmt.Fprintf(w, "drawn\t%s\n", r.Plot)
		}
		if r.Curve != "" {
			fmt.Fprintf(w, "curve\t%s\n", r.Curve)
		}
		if r.Plan != nil {
			printPlan(w, r.problem, r.Plan)
		}
	})
}

// mostLines is how many routes and unserved customers a screen is told of; --out and --json tell of
// all.
const mostLines = 30

// printPlan writes a line per route, and one per customer who is not served.
func printPlan(w io.Writer, p *vrp.Problem, plan *files.Plan) {
	at, far, long := draw.Cost, draw.Cost, draw.Cost
	if p.Clock > 0 { // as people read a day
		at = func(x float64) string { return files.Clock(p, x) }
		long = func(x float64) string { m := int(math.Round(x / p.Clock)); return fmt.Sprintf("%d:%02d h", m/60, m%60) }
	}
	if p.Metric == vrp.GreatCircle {
		far = func(x float64) string { return fmt.Sprintf("%.1f km", x/1000) }
	}
	fmt.Fprintf(w, "\nroute\tvehicle\tstops\tload\tdistance\tduration\twait\tstart\tend\n")
	for i, r := range plan.Routes[:min(len(plan.Routes), mostLines)] {
		var load []string
		for _, l := range r.Load {
			load = append(load, strconv.FormatFloat(l, 'f', -1, 64))
		}
		fmt.Fprintf(w, "%d\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\n", i+1, r.Vehicle, r.Customers, strings.Join(load, "/"),
			far(r.Distance), long(r.Duration), long(r.Wait), at(r.Start), at(r.End))
	}
	if more := len(plan.Routes) - mostLines; more > 0 {
		fmt.Fprintf(w, "and %s more: --json or --out has them\n", report.Plural(int64(more), "route"))
	}
	for _, u := range plan.Unserved[:min(len(plan.Unserved), mostLines)] {
		name := ""
		if u.Name != "" {
			name = " (" + u.Name + ")"
		}
		fmt.Fprintf(w, "not served: %s%s: %s\n", u.ID, name, u.Reason)
	}
	if more := len(plan.Unserved) - mostLines; more > 0 {
		fmt.Fprintf(w, "and %s more that are not served\n", report.Plural(int64(more), "customer"))
	}
}
