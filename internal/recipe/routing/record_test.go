package routing

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"haul/internal/config"
	"haul/internal/kernel"
	"haul/internal/plan"
	"haul/internal/policy"
	"haul/internal/rng"
	"haul/internal/run/runtest"
)

// recorded is the training step of some settings as data.
func recorded(t *testing.T, sets ...string) *kernel.Program {
	t.Helper()
	c := tiny(t, sets...)
	m, err := policy.NewNetwork(c)
	if err != nil {
		t.Fatal(err)
	}
	p, err := recordStep(openCPU(t, 1), m, c, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p.Program()
}

// setsOf are the weight sets that an op's inputs come from, however far back.
func setsOf(prog *kernel.Program, op kernel.Op) []int {
	writers := map[*kernel.Tensor][]kernel.Op{}
	for _, o := range prog.PerShard {
		o.Args(func(t *kernel.Tensor, a kernel.Access) {
			if a != kernel.Read {
				writers[t.Root()] = append(writers[t.Root()], o)
			}
		})
	}
	var sets []int
	seen := map[kernel.Op]bool{}
	var walk func(o kernel.Op)
	walk = func(o kernel.Op) {
		if seen[o] {
			return
		}
		seen[o] = true
		o.Args(func(t *kernel.Tensor, a kernel.Access) {
			switch {
			case a == kernel.Write:
			case t.Root().Space == kernel.Weight:
				sets = append(sets, t.Root().Set)
			default:
				for _, w := range writers[t.Root()] {
					walk(w)
				}
			}
		})
	}
	walk(op)
	slices.Sort(sets)
	return slices.Compact(sets)
}

// TestOptimizerGetsTheSettings: each setting of AdamW reaches the recorded op, none of them the
// default.
func TestOptimizerGetsTheSettings(t *testing.T) {
	prog := recorded(t, "training_advanced.adam_beta1=0.81", "training_advanced.adam_beta2=0.92", "training_advanced.adam_eps=0.003", "training_advanced.weight_decay=0.04",
		"training_advanced.gradient_clip_norm=0.5", "training_advanced.warmup_steps=6")
	got := runtest.Op[*kernel.AdamW](t, prog.Once)
	want := &kernel.AdamW{Beta1: 0.81, Beta2: 0.92, Eps: 0.003, Decay: 0.04, MaxNorm: 0.5, Warmup: 6}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(kernel.AdamW{}, "Layout")); diff != "" {
		t.Error(diff)
	}
	if r := runtest.Op[*kernel.Reduce](t, prog.Once); r.Every > 1 {
		t.Errorf("an update of %d parts", r.Every)
	}
}

// TestMuonHasBlocksOfTheWidth: a matrix of every layer is in blocks; the embedding, which has four
// columns, and vectors are not. A width without a divisor of use is refused.
func TestMuonHasBlocksOfTheWidth(t *testing.T) {
	for width, want := range map[string]int{"16": 16, "12": 12, "256": 128, "130": 65, "192": 96} {
		o := runtest.Op[*kernel.AdamW](t, recorded(t, "training_advanced.optimizer=muon", "model.num_layers=2", "model.hidden_dim="+width).Once)
		if o.Side != want {
			t.Errorf("width %s: blocks of %d rows, want %d", width, o.Side, want)
		}
		squares := 0
		for _, p := range o.Layout.Params {
			if len(p.Shape) == 2 && p.Shape[1] > 4 {
				squares += p.Len()
			}
		}
		if got := len(o.Blocks()) * want * want; got != squares || got == 0 {
			t.Errorf("width %s: blocks hold %d weights, matrices %d", width, got, squares)
		}
	}
	if o := runtest.Op[*kernel.AdamW](t, recorded(t).Once); o.Side != 0 {
		t.Errorf("blocks of %d rows unasked", o.Side)
	}
	// What the settings' rules let pass has blocks of a size that a device takes.
	for _, width := range []int{1, 15, 31, 127, 128, 131, 136, 254, 257, 262, 300, 331, 384, 514, 521, 640} {
		_, err := config.Load("tiny_1", []string{"training_advanced.optimizer=muon", "model.num_heads=1", fmt.Sprint("model.hidden_dim=", width)})
		if side := kernel.MuonSide(width); (err == nil) != (side >= min(16, width)) || side > kernel.MuonMost {
			t.Errorf("width %d has blocks of %d rows: %v", width, side, err)
		}
	}
}

// TestInstancesAreTheSettings: instances are drawn as problem.* configures, from the random stream
// of training instances.
func TestInstancesAreTheSettings(t *testing.T) {
	sets := []string{"problem.num_customers=7", "problem.vehicle_capacity=23", "problem.demand_range=[2, 8]", "problem.coord_range=55", "experiment.random_seed=99", "training.batch_size=31"}
	for distribution, grid := range map[string]int32{"grid": 55, "uniform": 0} {
		prog := recorded(t, append(sets, "problem.distribution="+distribution)...)
		got := runtest.Op[*kernel.Generate](t, prog.PerShard)
		want := &kernel.Generate{Instances: kernel.Instances{Rules: kernel.Rules{Capacity: 23}},
			Drawing: kernel.Drawing{Seed: 99, Purpose: rng.TrainInstances, Grid: grid, DemandMin: 2, DemandMax: 8, Symmetries: 1}}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(kernel.Instances{}, "PosX", "PosY", "Nodes", "Feature"), cmpopts.EquateComparable(kernel.RuleSet{})); diff != "" {
			t.Errorf("%s: %s", distribution, diff)
		}
		if got.PosX.Shape[1] != 8 || prog.Batch != 31 {
			t.Errorf("%d nodes in batches of %d", got.PosX.Shape[1], prog.Batch)
		}
	}
}

// TestCapacitiesAreTheSettings: training draws them, and both the instances and the vehicles count
// in the same unit; validation keeps to one.
func TestCapacitiesAreTheSettings(t *testing.T) {
	prog := recorded(t, "baseline.type=pomo", "problem.capacity_range=20,60")
	g, r := runtest.Op[*kernel.Generate](t, prog.PerShard), runtest.Op[*kernel.Rollout](t, prog.PerShard)
	if g.CapacityMin != 20 || g.CapacityMax != 60 || g.Capacity != kernel.LoadUnit || r.Capacity != kernel.LoadUnit {
		t.Errorf("capacities %d to %d of %d, vehicles of %d", g.CapacityMin, g.CapacityMax, g.Capacity, r.Capacity)
	}
}

// TestCapacitiesEndAtTheLoadUnit: the settings let capacities pass up to where the engine's unit of
// load can still tell sets of customers apart, N·q < kernel.LoadUnit.
func TestCapacitiesEndAtTheLoadUnit(t *testing.T) {
	const n = 1 << 10
	for high, ok := range map[int]bool{kernel.LoadUnit/n - 1: true, kernel.LoadUnit / n: false} {
		_, err := config.Load("tiny_1", []string{fmt.Sprint("problem.num_customers=", n), "problem.demand_range=[1, 9]",
			fmt.Sprint("problem.vehicle_capacity=", high), fmt.Sprintf("problem.capacity_range=[50, %d]", high)})
		if (err == nil) != ok {
			t.Errorf("capacities up to %d for %d customers: %v", high, n, err)
		}
	}
}

// TestAdvantagesAreTheSettings: the weight of each length is computed as the settings configure.
func TestAdvantagesAreTheSettings(t *testing.T) {
	for name, want := range map[string]kernel.Advantage{
		"difference": {}, "standard": {By: kernel.Standard}, "preference": {By: kernel.Preference, Alpha: 0.125},
	} {
		prog := recorded(t, "baseline.type=pomo", "baseline.advantage="+name, "baseline.preference_alpha=0.125")
		got := runtest.Op[*kernel.Advantage](t, prog.PerShard)
		if got.By != want.By || got.Alpha != want.Alpha || (got.LogProb != nil) != (name == "preference") {
			t.Errorf("%s is recorded as %+v", name, got)
		}
	}
}

// TestLeadersAreTheSettings: a leader that counts alone or by its margin, and eight symmetries,
// which the instances are drawn under and the routes are compared over, in shards of whole groups.
// None of them is there unasked.
func TestLeadersAreTheSettings(t *testing.T) {
	sets := []string{"baseline.type=pomo", "baseline.advantage=preference", "baseline.leader_weight=7", "training.batch_size=128"}
	for _, c := range []struct {
		more []string
		want kernel.Advantage
	}{
		{nil, kernel.Advantage{Leader: 7, Group: 1}},
		{[]string{"baseline.leader_alone=true"}, kernel.Advantage{Leader: 7, Alone: true, Group: 1}},
		{[]string{"baseline.leader_margin=0.5"}, kernel.Advantage{Leader: 7, Margin: 0.5, Group: 1}},
		{[]string{"baseline.symmetries=8"}, kernel.Advantage{Leader: 7, Group: 8}},
		{[]string{"baseline.symmetries=8", "baseline.leader_alone=true"}, kernel.Advantage{Leader: 7, Alone: true, Group: 8}},
	} {
		prog := recorded(t, append(c.more, sets...)...)
		got, drawn := runtest.Op[*kernel.Advantage](t, prog.PerShard), runtest.Op[*kernel.Generate](t, prog.PerShard)
		if got.Leader != c.want.Leader || got.Alone != c.want.Alone || got.Margin != c.want.Margin || got.Group != c.want.Group || drawn.Symmetries != c.want.Group {
			t.Errorf("%v: recorded as %+v, of instances under %d symmetries", c.more, got, drawn.Symmetries)
		}
		if prog.Shard%c.want.Group != 0 || prog.Batch != 128 || prog.Shards() < 2 {
			t.Errorf("%v: shards of %d of a batch of %d", c.more, prog.Shard, prog.Batch)
		}
	}
}

// TestBaselinesAreRecorded: who routes, how, with which weights, and what is subtracted, for every
// baseline.
func TestBaselinesAreRecorded(t *testing.T) {
	for _, c := range []struct {
		name    string
		sets    []string
		starts  int
		forced  bool
		viewed  bool
		mode    kernel.BaselineMode
		frozen  bool
		running bool
	}{
		{"rollout", nil, 1, false, false, kernel.Given, true, false},
		{"pomo", []string{"baseline.type=pomo"}, 5, true, false, kernel.SharedMean, false, false},
		{"pomo with three starts", []string{"baseline.type=pomo", "baseline.starts=3"}, 3, true, false, kernel.SharedMean, false, false},
		{"pomo with views", []string{"baseline.type=pomo", "model.start_views=true"}, 5, false, true, kernel.SharedMean, false, false},
		{"ema", []string{"baseline.type=ema", "baseline.ema_decay=0.625"}, 1, false, false, kernel.Running, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			prog := recorded(t, append(c.sets, "experiment.random_seed=5", "model.transformer_dropout=0.2")...)
			routes := runtest.Ops[*kernel.Rollout](prog.PerShard)
			policy := routes[len(routes)-1]
			if policy.Choice != kernel.Sample || policy.Forced != c.forced || policy.Viewed != c.viewed || policy.Length.Cols() != c.starts || policy.Purpose != rng.Actions || policy.Seed != 5 || policy.Actions.Shape[2] != 10 {
				t.Errorf("the policy routes by choice %d, forced %v, viewed %v, %d starts, at most %d steps", policy.Choice, policy.Forced, policy.Viewed, policy.Length.Cols(), policy.Actions.Shape[2])
			}
			if got := setsOf(prog, policy); !slices.Equal(got, []int{0}) {
				t.Errorf("the policy reads weight sets %v", got)
			}
			gradient := runtest.Op[*kernel.RolloutGrad](t, prog.PerShard)
			if gradient.Actions != policy.Actions || gradient.Forced != c.forced || gradient.Viewed != c.viewed || gradient.Bonus != plan.EntropyBonus {
				t.Error("the gradient is not of the policy's routes")
			}
			adv := runtest.Op[*kernel.Advantage](t, prog.PerShard)
			if adv.Mode != c.mode || adv.Length != policy.Length || gradient.Adv != adv.Adv {
				t.Errorf("the advantage is of mode %d", adv.Mode)
			}
			if len(routes) == 2 != c.frozen {
				t.Fatalf("%d rollouts", len(routes))
			}
			if c.frozen {
				frozen := routes[0]
				if frozen.Choice != kernel.Greedy || frozen.Forced || frozen.Length.Cols() != 1 || adv.Base != frozen.Length {
					t.Errorf("the frozen policy routes by choice %d, %d starts; its lengths are subtracted: %v", frozen.Choice, frozen.Length.Cols(), adv.Base == frozen.Length)
				}
				if got := setsOf(prog, frozen); !slices.Equal(got, []int{1}) {
					t.Errorf("the frozen policy reads weight sets %v, want its own", got)
				}
			}
			means := runtest.Ops[*kernel.RunningMean](prog.Once)
			if len(means) == 1 != c.running {
				t.Fatalf("%d running means", len(means))
			}
			if c.running && (means[0].Decay != 0.625 || means[0].X != policy.Length || means[0].Mean != adv.Mean) {
				t.Errorf("the running mean decays by %v", means[0].Decay)
			}
			drops := 0
			for _, op := range runtest.Ops[*kernel.Dropout](prog.PerShard) {
				if op.Rate != 0.2 {
					t.Errorf("dropout of %v", op.Rate)
				}
				if got := setsOf(prog, op); slices.Equal(got, []int{1}) {
					t.Error("the frozen policy drops out")
				}
				drops++
			}
			if drops == 0 {
				t.Error("nothing drops out")
			}
		})
	}
}

// TestEpochsSetTheControlBlock: the device hears each epoch's rate, temperature and entropy bonus,
// by formula, and reports name the same.
func TestEpochsSetTheControlBlock(t *testing.T) {
	dev := runtest.Watch(openCPU(t, 1))
	c := tiny(t, "training.num_epochs=3", "training.learning_rate=0.008", "training_advanced.min_lr=0.002", "training_advanced.temp_start=3", "training_advanced.temp_min=1", "training_advanced.entropy_coef=0.05",
		"training_advanced.entropy_min=0.01", "inference.default_temperature=0.7")
	e, _ := whole(t, c, dev)
	rows := epochsOf(e)
	got := dev.Controls["train"]
	if len(got) != 3 {
		t.Fatalf("the block was set %d times in 3 epochs", len(got))
	}
	for i, want := range []struct{ lr, temperature, entropy float64 }{
		{0.008, 3, 0.05}, {0.002 + 0.006*(1+math.Cos(math.Pi/3))/2, 2, 0.03}, {0.002 + 0.006*(1+math.Cos(2*math.Pi/3))/2, 1, 0.01},
	} {
		near := func(what string, got float32, want float64) {
			if math.Abs(float64(got)-want) > 1e-6*want {
				t.Errorf("epoch %d: %s is %v, want %v", i+1, what, got, want)
			}
		}
		near("the rate", got[i].LearningRate, want.lr)
		near("the temperature", got[i].Temperature, want.temperature)
		near("the entropy bonus", got[i].Coefficients[plan.EntropyBonus], want.entropy)
		near("the reported rate", float32(rows[i].LR), want.lr)
		near("the reported temperature", float32(rows[i].Temperature), want.temperature)
		near("the reported entropy bonus", float32(rows[i].EntropyCoef), want.entropy)
	}
	// Validation and the baseline's test decode greedily, without a temperature. The sampled policy
	// has its temperature.
	last := dev.Controls["evaluate"]
	if v := last[len(last)-1]; v.Temperature != 0.7 {
		t.Errorf("the best policy is tested at temperature %v", v.Temperature)
	}
}

// TestEachPurposeHasItsOwnInstances: training, the baseline's test, validation and the final test
// draw from four streams.
func TestEachPurposeHasItsOwnInstances(t *testing.T) {
	dev := runtest.Watch(openCPU(t, 1))
	whole(t, tiny(t, "training.num_epochs=1", "training.validation_instances=7"), dev)
	var got []string
	for _, p := range dev.Programs {
		g := runtest.Op[*kernel.Generate](t, p.PerShard)
		got = append(got, fmt.Sprint(p.Name, " ", p.Batch, " of purpose ", g.Purpose))
	}
	want := []string{fmt.Sprint("train 12 of purpose ", rng.TrainInstances), fmt.Sprint("evaluate 24 of purpose ", rng.EvalInstances),
		fmt.Sprint("evaluate 7 of purpose ", rng.ValidInstances), fmt.Sprint("evaluate 7 of purpose ", rng.TestInstances)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	purposes := []rng.Purpose{rng.TrainInstances, rng.EvalInstances, rng.ValidInstances, rng.TestInstances}
	slices.Sort(purposes)
	if len(slices.Compact(purposes)) != 4 {
		t.Error("two purposes are one stream")
	}
}

// TestDecoderGetsTheSettings: every rollout and its gradient have the settings of distances and
// pairs, and comparisons that of leaders.
func TestDecoderGetsTheSettings(t *testing.T) {
	for _, sets := range [][]string{{"baseline.type=rollout"}, {"baseline.type=pomo", "baseline.advantage=preference", "baseline.preference_alpha=0.2", "baseline.leader_weight=7"}} {
		decoders := 0
		for _, op := range recorded(t, append(sets, "model.pointer_distance=0.3", "model.pointer_pairs=true")...).PerShard {
			var d *kernel.Decoder
			switch o := op.(type) {
			case *kernel.Rollout:
				d = &o.Decoder
			case *kernel.RolloutGrad:
				if d = &o.Decoder; o.DPair == nil || o.DPairContext == nil {
					t.Errorf("%v: pairs have no gradient", sets)
				}
			case *kernel.Advantage:
				if want := o.By == kernel.Preference; want != (o.Leader == 7) || want != (o.Alpha == 0.2) {
					t.Errorf("%v: starts are compared by %v, alpha %g, leader %g", sets, o.By, o.Alpha, o.Leader)
				}
				continue
			default:
				continue
			}
			if decoders++; d.Near != 0.3 || d.Pair == nil || d.PairContext == nil {
				t.Errorf("%v: %s takes %g of the distance and %v of pairs", sets, op.Kind(), d.Near, d.Pair)
			}
		}
		if decoders < 2 {
			t.Errorf("%v: %d rollouts and gradients", sets, decoders)
		}
	}
}
