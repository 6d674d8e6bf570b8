package routing

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"text/tabwriter"
	"time"

	"haul/internal/config"
	"haul/internal/draw"
	"haul/internal/policy"
	"haul/internal/report"
	"haul/internal/run"
	"haul/internal/stats"
	"haul/internal/vrp"
	"haul/internal/vrp/files"
	"haul/internal/vrp/testset"
)

// testsetKool is the name of the public test sets of Kool et al.
const testsetKool = "kool"

// testsetRouteFinder is the name of RouteFinder's test sets. everyVariant selects all variants that
// the policy has learned.
const (
	testsetRouteFinder = "routefinder"
	everyVariant       = "all"
)

// setFlags lists the flags that are only valid with a set.
var setFlags = []string{"reference", "distance", "out"}

// givenEval is an evaluation on a public test set or on instances of a file.
type givenEval struct {
	set  *testset.Set
	time time.Duration
	out  string
	// The current variant in an evaluation of all variants, or "" for the variant of the flags.
	variant string
}

// givenSet reads the flags and loads the instances that they name. It returns nil if they name
// none.
func givenSet(e *run.Evaluation) (*givenEval, error) {
	g, err := setOf(e.Flags)
	if g == nil || err != nil {
		return nil, err
	}
	if g.out != "" {
		if _, err := os.Stat(filepath.Join(g.out, costsName)); err == nil {
			return nil, fmt.Errorf("%s is there already: give another folder", filepath.Join(g.out, costsName))
		}
	}
	if e.Flags.String("testset") == testsetRouteFinder && e.Flags.String("variant") == everyVariant {
		return g, nil // load has set the set
	}
	if err := g.load(e, e.Flags.String("instances"), files.Options{Distance: files.Distance(e.Flags.String("distance"))}); err != nil || g.out == "" {
		return g, err
	}
	return g, os.MkdirAll(g.out, 0o755) // checks before the work that the folder can be made
}

// checkSet checks the flags about given instances before any file is read.
func checkSet(f run.Flags) error {
	_, err := setOf(f)
	return err
}

// setOf returns the evaluation on given instances that the flags describe, or nil if they describe
// none.
func setOf(f run.Flags) (*givenEval, error) {
	file, name := f.String("instances"), f.String("testset")
	if file == "" && name == "" {
		if f.Changed("time") {
			return nil, run.Usagef("--time is for a set, as in haul eval kool:20: generated instances are decoded once")
		}
		for _, flag := range append(setFlags, "split", "variant", "first") {
			if f.Changed(flag) {
				return nil, run.Usagef("--%s is about given instances: name a set, as in haul eval kool:20", flag)
			}
		}
		return nil, nil
	}
	g := &givenEval{out: f.String("out")}
	distance, split := f.String("distance"), f.String("split")
	switch {
	case file != "" && name != "":
		return nil, run.Usagef("the instances are named twice: use one of them")
	case file != "" && (f.Changed("customers") || f.Changed("split")):
		return nil, run.Usagef("--customers and --split are about a public test set, and --instances names a file: leave them out")
	case name != "" && name != testsetKool && name != testsetRouteFinder:
		return nil, run.Usagef("unknown test set %q: kool and routefinder are some", name)
	case name != testsetRouteFinder && f.Changed("variant"):
		return nil, run.Usagef("--variant is about --testset routefinder")
	case name == testsetRouteFinder && f.Changed("split"):
		return nil, run.Usagef("--split is about --testset kool: RouteFinder's sets are for tests alone")
	case f.Changed("first") && f.Int("first") < 0:
		return nil, run.Usagef("--first is %d: instances are counted from 0", f.Int("first"))
	case split != testset.Test && split != testset.Validation:
		return nil, run.Usagef("unknown --split %q: use %s or %s", split, testset.Test, testset.Validation)
	case distance != "rounded" && distance != "exact":
		return nil, run.Usagef("unknown distance %q: use rounded or exact", distance)
	case f.Changed("count") && f.Int("count") < 1:
		return nil, run.Usagef("--count is %d: at least 1 instance is needed", f.Int("count"))
	}
	if variant := f.String("variant"); name == testsetRouteFinder && variant != everyVariant {
		if _, err := testset.ParseVariant(variant); err != nil {
			return nil, &run.UsageError{Err: err}
		}
	}
	if text := f.String("time"); f.Changed("time") {
		var err error
		if g.time, err = time.ParseDuration(text); err != nil || g.time <= 0 {
			return nil, run.Usagef("--time is %q: a time above 0 is needed, for example 60s", text)
		}
	}
	return g, nil
}

// load reads or draws the instances and their references.
func (g *givenEval) load(e *run.Evaluation, file string, o files.Options) (err error) {
	switch {
	case file != "":
		if g.set, err = testset.Load(file, o); errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%s: there is no such file, folder or set", file)
		}
	case e.Flags.String("testset") == testsetRouteFinder:
		if g.set, err = testset.RouteFinder(g.variantOf(e), customersOf(e)); err != nil {
			err = &run.UsageError{Err: err}
		}
	default:
		if g.set, err = testset.Kool(customersOf(e), e.Flags.String("split")); err != nil {
			err = &run.UsageError{Err: err}
		}
	}
	if err != nil {
		return err
	}
	first, count := 0, len(g.set.Problems)
	if e.Flags.Changed("first") {
		if first = e.Flags.Int("first"); first >= count {
			return run.Usagef("--first is %d, %s has %d instances, counted from 0", first, g.set.Name, count)
		}
		count -= first
	}
	if e.Flags.Changed("count") {
		if n := e.Flags.Int("count"); n > count {
			return run.Usagef("--count is %d, %s has %d instances from number %d on", n, g.set.Name, count, first)
		}
		count = e.Flags.Int("count")
	}
	g.set.Cut(0, first+count) // costs are listed from the first instance on
	if path := e.Flags.String("reference"); path != "" {
		if err := g.set.LoadReference(path); err != nil {
			return err
		}
	}
	g.set.Cut(first, count)
	return nil
}

// customersOf returns the size of a public set or of drawn instances: the size in the flags, or
// else of training. Of a range it is the largest.
func customersOf(e *run.Evaluation) int {
	if e.Flags.Changed("customers") {
		return e.Flags.Int("customers")
	}
	return e.Settings.(*config.Config).Problem.NumCustomers()
}

// variantOf returns the variant to evaluate.
func (g *givenEval) variantOf(e *run.Evaluation) string {
	if g.variant != "" {
		return g.variant
	}
	return e.Flags.String("variant")
}

// Compared is a policy's result on given instances.
type Compared struct {
	Set                string   `json:"instances_from"`
	Epoch              int      `json:"epoch"`
	Decode             string   `json:"decode"`
	Budget             float64  `json:"time_limit_seconds,omitempty"`
	Routes             int      `json:"routes_per_instance,omitempty"` // if all instances have the same size
	Instances          int      `json:"instances"`
	Customers          int      `json:"customers"` // 0 if there are several sizes
	Capacity           int32    `json:"capacity"`  // 0 if there are several capacities
	Valid              bool     `json:"valid"`     // the validator has accepted every route that counts
	MeanCost           float64  `json:"mean_cost"`
	SECost             float64  `json:"se_cost"`
	Reference          *float64 `json:"reference_cost,omitempty"`
	MeanGap            *float64 `json:"mean_gap,omitempty"` // a fraction: the mean of the instances' gaps
	SEGap              *float64 `json:"se_gap,omitempty"`
	GapTo              string   `json:"gap_to,omitempty"`
	Published          *float64 `json:"published_cost,omitempty"` // HGS's mean on this public set, as papers state it
	ToPublic           *float64 `json:"published_gap,omitempty"`  // of the means, not paired
	Seconds            float64  `json:"seconds"`
	Each               float64  `json:"seconds_per_instance"`
	PerSecond          float64  `json:"instances_per_second"`
	Out                string   `json:"out,omitempty"`
	Note               string   `json:"note,omitempty"` // lists the data that does not come from the file's arrays
	*policy.Iterations          // of an active search
	// Whether it was interrupted. If so, these are the best routes so far, of the first instances.
	Interrupted bool `json:"interrupted,omitempty"`
	Of          int  `json:"instances_of,omitempty"`

	path, device string
	model        string // the model's name
	better       string // another decoder that finds better routes
	first        *vrp.Problem
	solution     vrp.Solution
}

// evaluate routes the instances of the set.
func (g *givenEval) evaluate(ctx context.Context, e *run.Evaluation, decode policy.Decode) (r *Compared, err error) {
	dev, err := e.Device()
	if err != nil {
		return nil, err
	}
	p, err := policy.New(dev, e.Checkpoint)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	o := policy.ManyOptions{Decode: decode, Seed: p.Config.Experiment.RandomSeed, Time: g.time, Progress: func(done int) { e.Progress(done, len(g.set.Problems)) }}
	if e.Seed != nil {
		o.Seed = *e.Seed
	}
	start := time.Now()
	routed, err := p.RouteMany(ctx, g.set.Problems, o)
	reached, of := policy.Reached(routed), len(g.set.Problems)
	if err != nil && reached == 0 {
		return nil, err
	}
	var cut error
	if err != nil { // it was interrupted
		cut, routed = &run.CutShort{Cause: err}, routed[:reached]
		g.set.Cut(0, reached)
	}
	r = &Compared{Set: g.set.Name, Epoch: p.Epoch, Decode: decode.String(), Budget: g.time.Seconds(), Instances: len(routed), Customers: g.set.Customers(), Capacity: g.set.Capacity(),
		Valid: true, Seconds: time.Since(start).Seconds(), Out: g.out, Note: g.set.Note, path: e.Path, model: p.Config.Recipe(), device: dev.Name(), first: g.set.Problems[0], solution: routed[0].Solution}
	if r.Customers > 0 {
		r.better = decode.DrawnFor(p.Config, r.Customers)
	}
	if cut != nil {
		r.Interrupted, r.Of = true, of
	}
	if r.Customers > 0 && g.time == 0 && decode.Beam == 0 && cut == nil {
		r.Routes = decode.Routes(r.Customers)
	}
	if decode.Active {
		r.Iterations = policy.IterationsOf(routed)
	}
	r.Each, r.PerSecond = r.Seconds/float64(r.Instances), float64(r.Instances)/r.Seconds
	r.compare(g.set, routed)
	if g.out != "" {
		if err := writeRouted(g.out, g.set, routed); err != nil {
			return nil, fmt.Errorf("%w; the mean cost is %g, and not all routes are written", err, r.MeanCost)
		}
	}
	return r, cut
}

// compare fills in the costs, and the gaps if the set has references.
func (r *Compared) compare(set *testset.Set, routed []policy.Routed) {
	costs := make([]float64, len(routed))
	for i := range routed {
		costs[i] = routed[i].Cost
	}
	r.MeanCost, r.SECost = stats.MeanSE(costs)
	if set.Reference != nil {
		reference, _ := stats.MeanSE(set.Reference)
		gap, se := stats.Gap(costs, set.Reference)
		r.Reference, r.MeanGap, r.SEGap, r.GapTo = &reference, &gap, &se, set.Method
	}
	if set.Published > 0 {
		gap := r.MeanCost/set.Published - 1
		r.Published, r.ToPublic = &set.Published, &gap
	}
}

// costsName is the name of the table of costs in an evaluation's folder.
const costsName = "costs.csv"

// writeRouted writes the costs of all instances as a table and the routes of each instance as a
// .sol file of CVRPLIB.
func writeRouted(dir string, set *testset.Set, routed []policy.Routed) error {
	for i, r := range routed {
		path := filepath.Join(dir, filepath.Base(set.Problems[i].Name)+".sol")
		if err := run.WriteAtomic(path, func(w io.Writer) error { return files.WriteSolution(w, nil, r.Solution, r.Cost) }); err != nil {
			return err
		}
	}
	return run.WriteAtomic(filepath.Join(dir, costsName), func(w io.Writer) error {
		out := csv.NewWriter(w)
		head := []string{"name", "customers", "routes", "cost"}
		if set.Reference != nil {
			head = append(head, "reference", "gap")
		}
		if err := out.Write(head); err != nil {
			return err
		}
		number := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
		for i, r := range routed {
			p := set.Problems[i]
			row := []string{p.Name, strconv.Itoa(p.N()), strconv.Itoa(len(r.Solution.Routes)), number(r.Cost)}
			if set.Reference != nil {
				row = append(row, number(set.Reference[i]), number(r.Cost/set.Reference[i]-1))
			}
			if err := out.Write(row); err != nil {
				return err
			}
		}
		out.Flush()
		return out.Error()
	})
}

// Object returns the result for JSON output.
func (r *Compared) Object() any { return r }

// Text writes the result for people.
func (r *Compared) Text(out io.Writer, bold func(string) string) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	size := report.Plural(int64(r.Customers), "customer")
	if r.Customers == 0 {
		size = "of several sizes"
	}
	fmt.Fprintf(w, "%s\n", bold(fmt.Sprintf("%s, %s, %s of %s, %s", r.path, r.Decode, instances(r.Instances), r.Set, size)))
	fmt.Fprintf(w, "mean cost\t%.6f%s\n", r.MeanCost, spread(r.Instances, r.SECost))
	if r.MeanGap != nil {
		fmt.Fprintf(w, "gap\t%s to %s, mean %.6f\n", gapOf(r.Instances, *r.MeanGap, *r.SEGap), r.GapTo, *r.Reference)
	}
	if r.Published != nil {
		fmt.Fprintf(w, "published\t%s %% to HGS's mean of %.3f on this set (of the means, not paired)\n", report.Signed(100**r.ToPublic, 3), *r.Published)
	}
	if r.Routes > 0 {
		fmt.Fprintf(w, "routes\t%d per instance, the best of each judged valid\n", r.Routes)
	}
	writeIterations(w, r.Iterations)
	fmt.Fprintf(w, "speed\t%.3f ms per instance (%.3f s), %s\n", 1000*r.Each, r.Seconds, r.device)
	if r.Interrupted {
		writeInterrupted(w, r.Instances, r.Of)
	}
	if r.Note != "" {
		fmt.Fprintf(w, "note\t%s\n", r.Note)
	}
	if r.Out != "" {
		fmt.Fprintf(w, "written\t%s\n", filepath.Join(r.Out, costsName))
	}
	writeBetterDecoder(w, r.better)
	return w.Flush()
}

// Pictures returns the routes of the first instance.
func (r *Compared) Pictures() []run.Drawing {
	return []run.Drawing{{Draw: func(w io.Writer, f draw.Format) error {
		return draw.Routes(w, f, r.first, r.solution, fmt.Sprintf("%s, %s", r.model, r.Decode))
	}}}
}
