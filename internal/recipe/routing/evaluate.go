package routing

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"haul/internal/draw"
	"haul/internal/policy"
	"haul/internal/report"
	"haul/internal/rng"
	"haul/internal/run"
	"haul/internal/stats"
	"haul/internal/vrp"
)

// Evaluated is a policy's result on test instances.
type Evaluated struct {
	Epoch              int     `json:"epoch"`
	Decode             string  `json:"decode"`
	Routes             int     `json:"routes_per_instance"`
	Instances          int     `json:"instances"`
	Customers          int     `json:"customers"`
	Capacity           int32   `json:"capacity"`
	Seed               uint64  `json:"seed"`
	Valid              bool    `json:"valid"` // the validator has accepted every route that counts
	MeanCPC            float64 `json:"mean_cpc"`
	SECPC              float64 `json:"se_cpc"`
	MeanCost           float64 `json:"mean_cost"`
	Gap                float64 `json:"gap"` // a fraction, paired
	GapSE              float64 `json:"gap_se"`
	GapTo              string  `json:"gap_to"`
	GapToCPC           float64 `json:"gap_to_cpc"`
	Seconds            float64 `json:"seconds"`
	PerSecond          float64 `json:"instances_per_second"`
	*policy.Iterations         // of an active search
	// Whether it was interrupted. If so, the result is over the first Instances of Of.
	Interrupted bool `json:"interrupted,omitempty"`
	Of          int  `json:"instances_of,omitempty"`

	path, device string
	model        string // the model's name
	better       string // another decoder that finds better routes
	example      *Example
}

func checkCount(f run.Flags) error {
	switch n := f.Int("count"); {
	case n < 1:
		return run.Usagef("--count is %d: at least 1 instance is needed", n)
	case n > maxCount:
		return run.Usagef("--count is %d: at most %d instances are judged at a time", n, maxCount)
	}
	return nil
}

// checkCustomers checks the size of drawn instances. Public sets have fixed sizes.
func checkCustomers(f run.Flags) error {
	if n := f.Int("customers"); f.Changed("customers") && (n < 1 || n > mostCustomers) {
		return run.Usagef("--customers is %d: 1 to %d can be drawn", n, mostCustomers)
	}
	return nil
}

// maxCount limits the number of instances, because all routes stay in memory until they are
// validated. It stops a mistyped number from using all memory.
const maxCount = 1_000_000

// mostCustomers limits the size of an instance, like problem.num_customers.
const mostCustomers = 100_000

// evaluate routes test instances with a checkpoint's policy and summarises the costs.
func evaluate(ctx context.Context, e *run.Evaluation) (_ run.Result, err error) {
	decode, err := policy.ParseDecode(e.Flags.String("decode"))
	if err != nil {
		return nil, &run.UsageError{Err: err}
	}
	given, err := givenSet(e)
	if err != nil {
		return nil, err
	}
	if given != nil && given.set == nil {
		return given.everyVariant(ctx, e, decode)
	}
	if given != nil {
		r, err := given.evaluate(ctx, e, decode)
		if r == nil {
			return nil, err
		}
		return r, err
	}
	count := e.Flags.Int("count")
	if err := checkCount(e.Flags); err != nil {
		return nil, err
	}
	if err := checkCustomers(e.Flags); err != nil {
		return nil, err
	}
	n := customersOf(e)
	if err := policy.FitsHost(policy.EvalOptions{Source: vrp.Source{N: n}, Count: count, KeepTours: e.Plot}); err != nil {
		return nil, err
	}
	dev, err := e.Device()
	if err != nil {
		return nil, err
	}
	p, err := policy.New(dev, e.Checkpoint)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	src := p.Source(rng.TestInstances)
	src.N = n
	if e.Plot && src.File != "" {
		return nil, run.Usagef("--plot draws vehicle routes, and not those of a problem file")
	}
	if e.Seed != nil {
		src.Seed = *e.Seed
	}
	refs, err := policy.Reference(ctx, src, count, e.Workers, e.Note)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	o := policy.EvalOptions{Source: src, Count: count, Decode: decode, Validate: true, KeepTours: e.Plot, Progress: func(done int) { e.Progress(done, count) }}
	routed, err := p.Evaluate(ctx, o)
	of := count
	var cut error
	if err != nil { // an interrupted evaluation reports the finished instances
		if routed == nil || len(routed.Lengths) == 0 {
			return nil, err
		}
		cut, count = &run.CutShort{Cause: err}, len(routed.Lengths)
		refs.Costs = refs.Costs[:count]
	}
	r := &Evaluated{Epoch: p.Epoch, Decode: decode.String(), Routes: decode.Routes(src.N), Instances: count, Customers: src.N, Capacity: src.Capacity, Seed: src.Seed,
		Valid: true, Seconds: time.Since(start).Seconds(), GapTo: refs.Method, path: e.Path, model: p.Config.Recipe(), device: dev.Name(), better: decode.DrawnFor(p.Config, src.N)}
	if r.Iterations = routed.Iterations; cut != nil {
		r.Interrupted, r.Of = true, of
	}
	r.PerSecond = float64(count) / r.Seconds
	mean, se := stats.MeanSE(routed.Lengths)
	r.MeanCost, r.MeanCPC, r.SECPC = mean, vrp.CPC(mean, src.N), vrp.CPC(se, src.N)
	reference, _ := stats.MeanSE(refs.Costs)
	r.Gap, r.GapSE = stats.Gap(routed.Lengths, refs.Costs)
	r.GapToCPC = vrp.CPC(reference, src.N)
	if e.Plot {
		if r.example, err = NewExample(context.WithoutCancel(ctx), src, routed.Tours[0]); err != nil {
			return nil, err
		}
	}
	return r, cut
}

// Object returns the result for JSON output.
func (r *Evaluated) Object() any { return r }

// Text writes the result for people.
func (r *Evaluated) Text(out io.Writer, bold func(string) string) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s\n", bold(fmt.Sprintf("%s, %s, %s, %s, capacity %d", r.path, r.Decode, instances(r.Instances), report.Plural(int64(r.Customers), "customer"), r.Capacity)))
	fmt.Fprintf(w, "mean CPC\t%.6f%s\n", r.MeanCPC, spread(r.Instances, r.SECPC))
	fmt.Fprintf(w, "mean cost\t%.6f\n", r.MeanCost)
	fmt.Fprintf(w, "gap\t%s to %s, CPC %.6f\n", gapOf(r.Instances, r.Gap, r.GapSE), r.GapTo, r.GapToCPC)
	fmt.Fprintf(w, "routes\t%d per instance, the best of each judged valid\n", r.Routes)
	writeIterations(w, r.Iterations)
	fmt.Fprintf(w, "speed\t%.0f instances/s (%.3f s), %s\n", r.PerSecond, r.Seconds, r.device)
	if r.Interrupted {
		writeInterrupted(w, r.Instances, r.Of)
	}
	writeBetterDecoder(w, r.better)
	return w.Flush()
}

// writeIterations writes the number of iterations of an active search.
func writeIterations(w io.Writer, made *policy.Iterations) {
	if made != nil {
		fmt.Fprintf(w, "search\t%s iterations per instance\n", made)
	}
}

// writeInterrupted writes how many of the instances the result covers, if it was interrupted.
func writeInterrupted(w io.Writer, done, of int) {
	fmt.Fprintf(w, "interrupted\tthe best routes so far, of the first %d of %d instances\n", done, of)
}

// writeBetterDecoder recommends the decoder that the policy was trained for, unless it is in use.
func writeBetterDecoder(w io.Writer, decode string) {
	if decode != "" {
		fmt.Fprintf(w, "next\t--decode %s: this policy was trained for routes that are drawn, which are shorter\n", decode)
	}
}

// instances returns the number of instances as text, without separators of thousands, because the
// benchmarks quote the line.
func instances(n int) string {
	if n == 1 {
		return "1 instance"
	}
	return fmt.Sprintf("%d instances", n)
}

// spread returns the standard error of a mean as text, or "" for a single instance.
func spread(n int, se float64) string {
	if n < 2 {
		return ""
	}
	return fmt.Sprintf(" ± %.6f (standard error)", se)
}

// gapOf returns a mean gap as text, with its standard error if there are several instances.
func gapOf(n int, gap, se float64) string {
	if n < 2 {
		return report.Signed(100*gap, 3) + " %"
	}
	return fmt.Sprintf("%s ± %.3f %%", report.Signed(100*gap, 3), 100*se)
}

// Pictures returns the first instance, routed by the policy and by the reference.
func (r *Evaluated) Pictures() []run.Drawing {
	return []run.Drawing{{Draw: func(w io.Writer, f draw.Format) error {
		return r.example.draw(w, f, fmt.Sprintf("%s, %s", r.model, r.Decode), r.GapTo)
	}}}
}
