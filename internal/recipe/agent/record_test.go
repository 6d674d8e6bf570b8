package agent

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"haul/internal/kernel"
	"haul/internal/model"
	"haul/internal/rng"
	"haul/internal/run/runtest"
	"haul/internal/world/grid"
)

// TestStepIsRecordedFromTheSettings: each setting of the optimizer, the loss, the rows and dropout
// reaches the recorded ops, none of them the default.
func TestStepIsRecordedFromTheSettings(t *testing.T) {
	h := writeHistory(t, tinyHistory)
	c := tinyAD(t, "beta1=0.81", "beta2=0.92", "adam_eps=0.003", "weight_decay=0.04", "gradient_clip_norm=0.5", "num_warmup_steps=5", "train_timesteps=40", "lr=0.02", "min_lr=0.005",
		"label_smoothing=0.125", "gradient_accumulation_steps=4", "tf_dropout=0.2", "tf_attn_dropout=0.3", "train_batch_size=7", "seed=17", "tf_n_head=4", "tf_n_kv_head=2", "region_ahead=3", "compress_min=4", "compress_interval=8", "train_n_stream=3", "train_source_timesteps=96")
	d, err := newDataset(h, c)
	if err != nil {
		t.Fatal(err)
	}
	m, err := newModel(c, d.space)
	if err != nil {
		t.Fatal(err)
	}
	step, err := recordStep(openReference(), m, c, d, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	prog := step.plan.Program()
	// The optimizer sees the sum of four parts, the settings mean their average: clipping and eps are
	// four times as large.
	adam := &kernel.AdamW{Beta1: 0.81, Beta2: 0.92, Eps: 0.012, Decay: 0.04, MaxNorm: 2, Warmup: 5, Total: 40, Floor: 0.25}
	if diff := cmp.Diff(adam, runtest.Op[*kernel.AdamW](t, prog.Once), cmpopts.IgnoreFields(kernel.AdamW{}, "Layout"), cmpopts.EquateApprox(1e-6, 0)); diff != "" {
		t.Error(diff)
	}
	if r := runtest.Op[*kernel.Reduce](t, prog.Once); r.Every != 4 {
		t.Errorf("an update of %d parts", r.Every)
	}
	if l := runtest.Op[*kernel.CrossEntropy](t, prog.PerShard); l.Smoothing != 0.125 || !slices.Equal(l.Columns, []int{grid.NumActions, model.TokenTypes}) || l.DLogits == nil || l.Weight != 1/float32(7*20) {
		t.Errorf("the loss is %+v", l)
	}
	rows := runtest.Op[*kernel.Regions](t, prog.PerShard)
	want := model.Transitions(kernel.RegionSpec{Streams: 21, Steps: 96, Horizon: 4, Tokens: 20, Compressed: true, Shortest: 4, Longest: 8, Ahead: 3, Seed: 17, Purpose: rng.Regions}, 2)
	if diff := cmp.Diff(want, rows.RegionSpec); diff != "" {
		t.Error(diff)
	}
	if s := runtest.Op[*kernel.Spread](t, prog.PerShard); s.Heads != 4 || s.KVHeads != 2 {
		t.Errorf("%d heads share keys and values of %d", s.Heads, s.KVHeads)
	}
	outputs, weights := 0, 0
	for _, op := range prog.PerShard {
		switch o := op.(type) {
		case *kernel.Linear:
			if o.Drop.Rate > 0 {
				outputs++
				if o.Drop.Rate != 0.2 || o.Drop.Seed != 17 {
					t.Errorf("an output drops out by %+v", o.Drop)
				}
			}
		case *kernel.CausalAttention:
			weights++
			if o.Drop.Rate != 0.3 || o.Drop.Seed != 17 {
				t.Errorf("attention drops out by %+v", o.Drop)
			}
		}
	}
	if outputs == 0 || weights == 0 || prog.Batch != 7 {
		t.Errorf("%d outputs and %d attentions, batches of %d", outputs, weights, prog.Batch)
	}
	judged, _ := recordTest(openReference(), m, c, 20, nil)
	test := judged.plan.Program()
	if l := runtest.Op[*kernel.CrossEntropy](t, test.PerShard); l.Smoothing != 0.125 || l.DLogits != nil || test.Batch != 6 {
		t.Errorf("the test's loss is %+v in batches of %d", l, test.Batch)
	}
	for _, op := range test.PerShard {
		if o, ok := op.(*kernel.Linear); ok && o.Drop.Rate > 0 {
			t.Error("the test drops out")
		}
	}
	if d.testSpec.Purpose != rng.TestRegions || d.testSpec.Streams != 6 {
		t.Errorf("the test's rows come from %d streams by purpose %d", d.testSpec.Streams, d.testSpec.Purpose)
	}
	if got := control(c); got.LearningRate != 0.02 || got.Temperature != 1 {
		t.Errorf("the control block is %+v", got)
	}
	// What is reported is the rate that the device's schedule has.
	for i, want := range map[int]float64{1: 0.004, 5: 0.02, 40: 0.005, 20: 0.005 + 0.015*(1+math.Cos(math.Pi*15/35))/2} {
		if got := learningRate(c, i); math.Abs(got-want) > 1e-12 {
			t.Errorf("the rate of iteration %d is %v, want %v", i, got, want)
		}
	}
}

// TestRunHearsTheRate: a run sets its control block before the first update.
func TestRunHearsTheRate(t *testing.T) {
	dev := runtest.Watch(openReference())
	e, _ := trained(t, tinyAD(t, "eval_temperature=0.5"), dev, writeHistory(t, tinyHistory), DataDevice)
	if got := dev.Controls["train"]; len(got) != 1 || got[0].LearningRate != 0.01 {
		t.Errorf("the block was set to %+v", got)
	}
	if got := summaryOf(e).Evaluation.Temperature; got != 0.5 {
		t.Errorf("agents were used at temperature %v", got)
	}
}

// TestFiguresAreThoseOfTheAgents: means, standard errors and shares, recomputed from each agent's
// returns. One agent has each goal, so that agents and goals are the same sample.
func TestFiguresAreThoseOfTheAgents(t *testing.T) {
	h := writeHistory(t, tinyHistory)
	goals := []int{1, 3, 5, 8}
	rules := contextRules{observed: 2, width: 5, capacity: 8, keep: 2}
	var at []grid.Goal
	for _, g := range goals {
		at = append(at, h.Goals[g])
	}
	c := newEvalBatch(h.Room, tasks(at...), 1, 12, &rules, nil)
	for i := range c.returns {
		c.returns[i] = float64(i * i % 7 * (1 + i/12))
	}
	out := c.results(h, goals, 1)
	se := func(v []float64) (mean, se float64) {
		for _, x := range v {
			mean += x / float64(len(v))
		}
		for _, x := range v {
			se += (x - mean) * (x - mean)
		}
		return mean, math.Sqrt(se / float64(len(v)-1) / float64(len(v)))
	}
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-12 {
			t.Errorf("%s is %v, want %v", what, got, want)
		}
	}
	var ends []float64
	optimal := 0.0
	for i, g := range goals {
		sum := 0.0
		for _, v := range c.returns[i*12+2:][:10] {
			sum += float64(v) / 10
		}
		ends = append(ends, sum)
		optimal += h.Room.Optimal(h.Goals[g]) / 4
		near("a goal's last", out.Goals[i].Last, sum)
		near("a goal's share", out.Goals[i].Share, sum/h.Room.Optimal(h.Goals[g]))
	}
	mean, off := se(ends)
	if off == 0 {
		t.Fatal("all agents earn the same: nothing could be seen")
	}
	near("last", out.Last, mean)
	near("last_se", out.LastSE, off)
	near("optimal", out.Optimal, optimal)
	near("share_of_optimum", out.Share, mean/optimal)
	var beyond []float64 // of each goal, what the common share does not explain
	for i, g := range goals {
		beyond = append(beyond, ends[i]-mean/optimal*h.Room.Optimal(h.Goals[g]))
	}
	_, spread := se(beyond)
	near("share_of_optimum_se", out.ShareSE, spread/optimal)
	for e := range 12 {
		mean, off := se([]float64{float64(c.returns[e]), float64(c.returns[12+e]), float64(c.returns[24+e]), float64(c.returns[36+e])})
		near("return", out.Return[e], mean)
		near("return_se", out.SE[e], off)
	}
	near("first", out.First, out.Return[0])
}
