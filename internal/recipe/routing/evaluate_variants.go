package routing

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"haul/internal/config"
	"haul/internal/policy"
	"haul/internal/run"
	"haul/internal/vrp/files"
	"haul/internal/vrp/testset"
)

// ByVariant is a policy's result on every variant that it has learned.
type ByVariant struct {
	Variants []*Compared `json:"variants"`
	Left     []string    `json:"not_learned,omitempty"` // variants of the test sets that it has not learned
	MeanCost float64     `json:"mean_cost"`             // of the variants' means
	MeanGap  *float64    `json:"mean_gap,omitempty"`
	// Whether it was interrupted. If so, the result is over the variants finished by then.
	Interrupted bool `json:"interrupted,omitempty"`

	names []string
}

// everyVariant routes RouteFinder's sets of all learned variants in sequence.
func (g *givenEval) everyVariant(ctx context.Context, e *run.Evaluation, decode policy.Decode) (run.Result, error) {
	src := policy.SourceOf(e.Settings.(*config.Config), 0)
	r, gap := &ByVariant{}, 0.0
	var cut error
	for _, name := range testset.Variants() {
		if !policy.Learned(src, name) {
			r.Left = append(r.Left, name)
			continue
		}
		one := &givenEval{time: g.time, variant: name}
		if g.out != "" {
			return nil, run.Usagef("--out is for one variant: name it with --variant")
		}
		if err := one.load(e, "", files.Options{}); err != nil {
			return nil, err
		}
		c, err := one.evaluate(ctx, e, decode)
		if err != nil && ctx.Err() != nil && len(r.Variants) > 0 {
			cut = &run.CutShort{Cause: ctx.Err()} // the table lists the variants before
			break
		}
		if err != nil {
			return nil, err
		}
		r.Variants, r.names = append(r.Variants, c), append(r.names, name)
		r.MeanCost += c.MeanCost
		if c.MeanGap != nil {
			gap += *c.MeanGap
		}
	}
	if len(r.Variants) == 0 {
		return nil, fmt.Errorf("%s has learned none of RouteFinder's variants", e.Path)
	}
	n := float64(len(r.Variants))
	r.MeanCost /= n
	if r.Variants[0].MeanGap != nil {
		gap /= n
		r.MeanGap = &gap
	}
	r.Interrupted = cut != nil
	return r, cut
}

// Object returns the result for JSON output.
func (r *ByVariant) Object() any { return r }

// Text writes one line per variant.
func (r *ByVariant) Text(out io.Writer, bold func(string) string) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "%s\tinstances\tmean cost\tgap %%\ts\t\n", "variant")
	for i, c := range r.Variants {
		fmt.Fprintf(w, "%s\t%d\t%.4f\t%s\t%.1f\t\n", r.names[i], c.Instances, c.MeanCost, percent(c.MeanGap), c.Seconds)
	}
	fmt.Fprintf(w, "mean of %d\t\t%.4f\t%s\t\t\n", len(r.Variants), r.MeanCost, percent(r.MeanGap))
	if err := w.Flush(); err != nil {
		return err
	}
	if r.Interrupted {
		if _, err := fmt.Fprintf(out, "interrupted: these %d variants were done\n", len(r.Variants)); err != nil {
			return err
		}
	}
	if len(r.Left) == 0 {
		return nil
	}
	_, err := fmt.Fprintf(out, "%d variants are left out: the policy has not learned them\n", len(r.Left))
	return err
}

func percent(gap *float64) string {
	if gap == nil {
		return "-"
	}
	return fmt.Sprintf("%.3f", 100**gap)
}

// Pictures returns none: there are too many variants.
func (r *ByVariant) Pictures() []run.Drawing { return nil }
