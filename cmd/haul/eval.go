package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"haul/internal/draw"
	"haul/internal/env/cvrp"
	"haul/internal/report"
	"haul/internal/rng"
	"haul/internal/train"
)

type evalFlags struct {
	policyFlags
	deviceFlags
	inContextFlags
	model string
	count int
	seed  uint64
	plot  string
	json  bool
}

type evalReport struct {
	Checkpoint string  `json:"checkpoint"`
	Epoch      int     `json:"epoch"`
	Device     string  `json:"device"`
	Decode     string  `json:"decode"`
	Routes     int     `json:"routes_per_instance"`
	Instances  int     `json:"instances"`
	Customers  int     `json:"customers"`
	Capacity   int32   `json:"capacity"`
	Seed       uint64  `json:"seed"`
	Valid      bool    `json:"valid"` // the validator has judged every route that counts
	MeanCPC    float64 `json:"mean_cpc"`
	SECPC      float64 `json:"se_cpc"`
	MeanCost   float64 `json:"mean_cost"`
	Gap        float64 `json:"gap"` // a fraction, paired
	GapSE      float64 `json:"gap_se"`
	GapTo      string  `json:"gap_to"`
	GapToCPC   float64 `json:"gap_to_cpc"`
	Seconds    float64 `json:"seconds"`
	PerSecond  float64 `json:"instances_per_second"`
	Plot       string  `json:"plot,omitempty"`
}

func (a *app) newEval() *cobra.Command {
	var f evalFlags
	cmd := &cobra.Command{
		Use:   "eval",
		Short: "Judge a trained policy or agent against the optimum",
		Long: `The checkpoint says which model it holds; --model only makes sure.

` + train.ModelName + `: route test instances with a trained policy and report cost per customer (CPC) and the gap, each route against its own
instance's optimum, or against savings past 12 customers. The validator judges every route that counts.

The instances are of the kind the policy was trained on, from a stream that neither trained it nor picked it;
--seed draws others. References are solved once and cached.

` + train.ADName + `: put agents on goals that were held out (--goals), many at once, and let them live for some episodes. Nothing is learned
but in their contexts: a key-value cache, pruned to the latest region whenever an agent ends one. The return of each episode stands
beside that of the source learner and the optimum. --plot draws that curve, and next to it, as NAME-episodes, a first and a last walk.`,
		Example: `  haul eval --checkpoint runs/quick-001
  haul eval --checkpoint runs/quick-001/best.safetensors --decode pomo8 --plot routes.svg --json
  haul eval --model AD --checkpoint runs/ad_dr_compressed-001 --episodes 50 --plot in_context.svg`,
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.eval(cmd, &f) },
	}
	f.policyFlags.register(cmd)
	cmd.Flags().Lookup("checkpoint").Usage = "a .safetensors file, or a run folder: of a policy its best, of an agent its last"
	cmd.Flags().Lookup("decode").Usage = train.ModelName + ": " + cmd.Flags().Lookup("decode").Usage
	f.deviceFlags.register(cmd)
	f.inContextFlags.register(cmd)
	cmd.Flags().StringVar(&f.model, "model", "", "what the checkpoint must hold: "+train.ModelName+" or "+train.ADName)
	cmd.Flags().IntVar(&f.count, "count", 10000, train.ModelName+": number of instances")
	cmd.Flags().Uint64Var(&f.seed, "seed", 0, "seed of the instances, or of the agents' actions (default: the training run's)")
	cmd.Flags().StringVar(&f.plot, "plot", "", "draw as .svg or .png: the first instance by policy and reference, or returns in context")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON object")
	return cmd
}

func (a *app) eval(cmd *cobra.Command, f *evalFlags) error {
	switch {
	case f.checkpoint == "":
		return usagef("--checkpoint is missing: name a run folder or a .safetensors file")
	case f.count < 1:
		return usagef("--count is %d: at least 1 instance is needed", f.count)
	case f.model != "" && f.model != train.ModelName && f.model != train.ADName:
		return usagef("unknown model %q: known are %s and %s", f.model, train.ModelName, train.ADName)
	}
	var format draw.Format
	if f.plot != "" {
		var err error
		if format, err = draw.FormatOf(f.plot); err != nil {
			return asUsage(err)
		}
	}
	if err := f.inContextFlags.validate(cmd); err != nil {
		return err
	}
	decode, err := train.ParseDecode(f.decode)
	if err != nil {
		return asUsage(err)
	}
	model, err := train.ModelOf(agentFile(f.checkpoint))
	if err != nil {
		return err
	}
	if f.model != "" && f.model != model {
		return usagef("%s holds a model of %s, not of %s", f.checkpoint, model, f.model)
	}
	if model == train.ADName {
		return a.evalAgent(cmd, f, format)
	}
	if err := f.inContextFlags.unused(cmd); err != nil {
		return err
	}
	return a.evalPolicy(cmd, f, decode, format)
}

func (a *app) evalPolicy(cmd *cobra.Command, f *evalFlags, decode train.Decode, format draw.Format) error {
	policy, dev, err := a.openPolicy(&f.policyFlags, &f.deviceFlags)
	if err != nil {
		return err
	}
	defer dev.Close()
	src := policy.Source(rng.TestInstances)
	if cmd.Flags().Changed("seed") {
		src.Seed = f.seed
	}
	r := evalReport{Checkpoint: f.file(), Epoch: policy.Epoch, Device: dev.Name(), Decode: decode.String(), Routes: decode.Routes(src.N),
		Instances: f.count, Customers: src.N, Capacity: src.Capacity, Seed: src.Seed, Plot: f.plot}
	e, err := a.judge(cmd.Context(), policy, src, decode, f, &r)
	if err != nil {
		return err
	}
	if f.plot != "" {
		x, err := train.NewExample(cmd.Context(), src, e.Tours[0])
		if err != nil {
			return err
		}
		err = writeFile(f.plot, func(w io.Writer) error {
			return report.DrawExample(w, format, fmt.Sprintf("%s, %s", train.ModelName, decode), r.GapTo, &x)
		})
		if err != nil {
			return err
		}
	}
	if f.json {
		return a.emit(r)
	}
	return a.table(func(w io.Writer) { r.print(w, a) })
}

// judge routes the instances and fills in how well.
func (a *app) judge(ctx context.Context, p *train.Policy, src cvrp.Source, d train.Decode, f *evalFlags, r *evalReport) (*train.Evaluation, error) {
	refs, err := train.Reference(ctx, src, f.count, f.workers, a.remark)
	if err != nil {
		return nil, err
	}
	bar := a.newBar(f.count, d.String())
	defer bar.end()
	start := time.Now()
	e, err := p.Evaluate(ctx, train.EvalOptions{Source: src, Count: f.count, Decode: d, Judge: true, KeepTours: f.plot != "", Progress: bar.set})
	if err != nil {
		return nil, err
	}
	r.Seconds = time.Since(start).Seconds()
	r.Valid, r.PerSecond = true, float64(f.count)/r.Seconds
	mean, se := train.MeanSE(e.Lengths)
	r.MeanCost, r.MeanCPC, r.SECPC = mean, cvrp.CPC(mean, src.N), cvrp.CPC(se, src.N)
	reference, _ := train.MeanSE(refs.Costs)
	r.Gap, r.GapSE = train.Gap(e.Lengths, refs.Costs)
	r.GapTo, r.GapToCPC = refs.Method, cvrp.CPC(reference, src.N)
	return e, nil
}

// remark is a word on long work for whoever watches; a pipe does not.
func (a *app) remark(text string) {
	if isTerminal(a.stderr) {
		fmt.Fprintln(a.stderr, text)
	}
}

func (r *evalReport) print(w io.Writer, a *app) {
	fmt.Fprintf(w, "%s\n", a.bold(fmt.Sprintf("%s, %s, %d instances, %d customers, capacity %d", r.Checkpoint, r.Decode, r.Instances, r.Customers, r.Capacity)))
	fmt.Fprintf(w, "mean CPC\t%.6f ± %.6f (standard error)\n", r.MeanCPC, r.SECPC)
	fmt.Fprintf(w, "mean cost\t%.6f\n", r.MeanCost)
	fmt.Fprintf(w, "gap\t%+.3f ± %.3f %% to %s, CPC %.6f\n", 100*r.Gap, 100*r.GapSE, r.GapTo, r.GapToCPC)
	fmt.Fprintf(w, "routes\t%d an instance, the best of each judged valid\n", r.Routes)
	fmt.Fprintf(w, "speed\t%.0f instances/s (%.3f s), %s\n", r.PerSecond, r.Seconds, r.Device)
	if r.Plot != "" {
		fmt.Fprintf(w, "drawn\t%s\n", r.Plot)
	}
}
