// Package check tries a problem file: it draws instances, walks random routes, compares the forms
// of the rules call by call, looks for what a file rarely means, and solves small instances to the
// optimum by enumeration.
package check

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"

	"haul/internal/rng"
	"haul/internal/rules"
	"haul/internal/rules/eval"
	"haul/internal/rules/interpreted"
	"haul/internal/rules/ir"
	"haul/internal/rules/parse"
	"haul/internal/rules/vec"
)

// Options configure a check.
type Options struct {
	Seed      uint64
	Instances int // drawn for each number of customers
	Routes    int // walked through each instance
}

// Sizes are the numbers of customers that instances have: below, at and above a block of 64 nodes
// among them.
var Sizes = []int{1, 2, 3, 5, 10, 20, 63, 64, 65}

// Report is the outcome of a check.
type Report struct {
	Name      string `json:"name"`
	Words     Words  `json:"words"`
	Instances int    `json:"instances"`
	Routes    int    `json:"routes"`
	Steps     int    `json:"steps"`
	Mixed     int    `json:"mixed_steps"` // at which some nodes that are left were allowed and others not
	DeadEnds  int    `json:"dead_ends"`   // routes whose vehicle had nowhere to go
	// the forms of the rules differ, as a finding says
	FormsDiffer bool      `json:"forms_differ"`
	Findings    []Finding `json:"findings"`
	Optima      []Optimum `json:"optima"`
	Symmetric   bool      `json:"symmetric"` // routes cost the same under the symmetries of the square
}

// Words are the sizes of a problem.
type Words struct {
	Instance int `json:"instance"`
	Node     int `json:"node"`
	Vehicle  int `json:"vehicle"`
	Features int `json:"features"`
	Context  int `json:"context"`
	Prepare  int `json:"prepare_operations"` // of Fits, once per step
	Fits     int `json:"fits_operations"`    // of Fits, per node
}

// Finding is something that a file rarely means. A finding that is an error makes a check fail.
type Finding struct {
	Error bool   `json:"error"`
	Text  string `json:"text"`
}

// Optimum is the mean cost of the best routes through instances of some customers.
type Optimum struct {
	Customers int     `json:"customers"`
	Cost      float64 `json:"cost"`
	Routes    int     `json:"routes"` // that were enumerated per instance, on average
}

// Failed reports whether a finding is an error.
func (r *Report) Failed() bool {
	for _, f := range r.Findings {
		if f.Error {
			return true
		}
	}
	return false
}

// checker is a check in progress.
type checker struct {
	Options
	p      *rules.Problem
	report *Report
	found  map[string]bool // kinds of findings; the first of each kind is kept
	form   *rules.Compared // plain, vector and PTX, each compared with the plain form
	fast   *rules.Compared
	// over all steps: customers that were left, and those of them that were allowed
	left, allowed int
}

// Check checks a problem. The error is of the check itself: what is wrong with the problem is a
// finding.
func Check(p *rules.Problem, o Options) (*Report, error) {
	text, err := interpreted.New(p)
	if err != nil {
		return nil, err
	}
	fast := vec.New(p)
	c := &checker{Options: o, p: p, found: map[string]bool{}, report: &Report{Name: p.Name, Findings: []Finding{}}}
	c.fast = &rules.Compared{Form: eval.New(p), Other: fast, Problem: p, Name: "the vector form"}
	c.form = &rules.Compared{Form: c.fast, Other: text, Problem: p, Name: "the PTX text"}
	prepare, fits := fast.Steps()
	c.report.Words = Words{len(p.Instance), len(p.Node), len(p.Vehicle), p.File.Features, p.File.Context, prepare, fits}
	for _, e := range p.File.Fusible() {
		c.find("fusible", false, "%v (the compiled rules never fuse; `go test` of the file may differ in the last bit)", e)
	}
	for _, n := range Sizes {
		for g := range o.Instances {
			c.instance(uint64(g), n)
		}
	}
	c.verdict()
	c.enumerate()
	c.symmetries()
	return c.report, nil
}

// find keeps the first finding of a kind.
func (c *checker) find(kind string, isError bool, format string, args ...any) {
	if !c.found[kind] {
		c.found[kind] = true
		c.report.Findings = append(c.report.Findings, Finding{isError, fmt.Sprintf(format, args...)})
	}
}

// instance draws instance g with n customers and walks routes through it.
func (c *checker) instance(g uint64, n int) {
	in := c.p.Draw(c.form, &rules.Drawing{Seed: c.Seed, Purpose: rng.Instances}, g, n)
	c.report.Instances++
	where := fmt.Sprintf("instance %d with %d customers", g, n)
	c.compared(where)
	c.noNaN(where+": Instance", c.p.Instance, in.Words)
	row, features := make([]uint32, len(c.p.Node)), make([]float32, c.p.File.Features)
	for j := range c.p.Nodes(n) {
		in.Row(row, j)
		c.noNaN(fmt.Sprintf("%s: node %d", where, j), c.p.Node, row)
		c.p.NodeFeatures(c.form, in, j, features)
		c.finite(fmt.Sprintf("%s: Features of node %d", where, j), features)
	}
	r := rand.New(rand.NewPCG(c.Seed, g<<32|uint64(n)))
	for range c.Routes {
		c.route(where, in, r)
	}
}

// route walks a random route.
func (c *checker) route(where string, in *rules.Instance, r *rand.Rand) {
	route := rules.NewRoute(c.p, c.form, in)
	mask, context := make([]uint64, (c.p.Nodes(in.Customers)+63)/64), make([]float32, c.p.File.Context)
	c.report.Routes++
	limit := c.p.Steps(c.form, in.Customers)
	for !route.Done {
		at := fmt.Sprintf("%s, step %d", where, route.Steps)
		if route.Steps == limit {
			c.find("steps", true, "%s: the route has not ended after the %d steps that Steps allows", where, limit)
			break
		}
		route.Context(context)
		c.finite(at+": Context", context)
		count := route.Allowed(mask)
		c.report.Steps++
		if count > 0 && count < route.Unvisited+c.p.File.Depots {
			c.report.Mixed++
		}
		c.left += route.Unvisited
		c.allowed += customers(mask, in.Customers)
		if count == 0 {
			c.report.DeadEnds++
			if route.Steps == 0 {
				c.find("start", true, "%s: Fits and Returns allow no node at the start", where)
			}
			route.Strand()
			break
		}
		route.Visit(nth(mask, r.IntN(count)))
		if math.IsNaN(float64(route.Cost)) {
			c.find("cost", true, "%s: the cost is NaN after the move to node %d", at, route.At)
			break
		}
		c.compared(at)
	}
	c.compared(where)
}

// compared keeps the first difference between the forms.
func (c *checker) compared(where string) {
	for _, form := range []*rules.Compared{c.fast, c.form} {
		if form.Err != nil {
			c.report.FormsDiffer = true
			c.find("forms", true, "%s: the forms of the rules differ, which is a fault of Haul: %v", where, form.Err)
		}
	}
}

// noNaN finds fields that are NaN.
func (c *checker) noNaN(where string, fields []parse.Field, words []uint32) {
	for i, f := range fields {
		if x := math.Float32frombits(words[i]); f.Kind == ir.Float32 && x != x {
			c.find("NaN "+f.Path, true, "%s: %s is NaN", where, f.Path)
		}
	}
}

// finite finds numbers for a network that are NaN or infinite.
func (c *checker) finite(where string, list []float32) {
	for i, x := range list {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			c.find(fmt.Sprintf("finite %s %d", where[len(where)-3:], i), true, "%s: number %d is %v", where, i, x)
		}
	}
}

// verdict finds what shows after all routes.
func (c *checker) verdict() {
	r := c.report
	if r.DeadEnds > 0 {
		cost := "1,000, since the file has no Stuck"
		if c.p.Func(parse.Stuck) != nil {
			cost = "what Stuck returns"
		}
		c.find("dead", r.DeadEnds == r.Routes, "%d of %d random routes end because the vehicle may go nowhere; they cost %s", r.DeadEnds, r.Routes, cost)
	}
	switch c.allowed {
	case 0:
		c.find("none", true, "Fits allowed no customer at any step")
	case c.left:
		c.find("all", false, "Fits allowed every customer who was left, at all %d steps", r.Steps)
	}
}

// customers returns the number of customers in a mask of nodes.
func customers(mask []uint64, n int) (count int) {
	for i, w := range mask {
		if i == 0 {
			w &^= 1
		}
		if rest := n + 1 - i*64; rest < 64 {
			w &= 1<<max(0, rest) - 1
		}
		count += bits.OnesCount64(w)
	}
	return count
}
