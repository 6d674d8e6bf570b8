package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"haul/internal/limits/limitstest"
)

func TestWaysToWriteValues(t *testing.T) {
	for _, tc := range []struct {
		yaml string
		got  func(*Config) any
		want any
	}{
		{"training: {learning_rate: 1e-4}", func(c *Config) any { return c.Training.LearningRate }, 1e-4},
		{"training: {learning_rate: 1.0e-8}\ntraining_advanced: {min_lr: 0}", func(c *Config) any { return c.Training.LearningRate }, 1e-8},
		{"training: {learning_rate: .5}", func(c *Config) any { return c.Training.LearningRate }, 0.5},
		{"training: {learning_rate: 1}", func(c *Config) any { return c.Training.LearningRate }, 1.0},
		{"training: {batch_size: 1_000}", func(c *Config) any { return c.Training.BatchSize }, 1000},
		{"training: {batch_size: 1e3}", func(c *Config) any { return c.Training.BatchSize }, 1000},
		{"training: {batch_size: 128.0}", func(c *Config) any { return c.Training.BatchSize }, 128},
		{"training: {use_geometric_mean: True}", func(c *Config) any { return c.Training.UseGeometricMean }, true},
		{"training: {use_geometric_mean: yes}", func(c *Config) any { return c.Training.UseGeometricMean }, true},
		{"baseline: {update: {enabled: off}}", func(c *Config) any { return c.Baseline.Update.Enabled }, false},
		{"problem: {demand_range: [2, 9]}", func(c *Config) any { return c.Problem.DemandRange }, [2]int{2, 9}},
		{"problem:\n  demand_range:\n  - 2\n  - 2\n", func(c *Config) any { return c.Problem.DemandRange }, [2]int{2, 2}},
		{"problem: {num_customers: 30}", func(c *Config) any { return c.Problem.Customers }, Sizes{30, 30}},
		{"problem: {num_customers: [50, 200]}", func(c *Config) any { return c.Problem.Customers }, Sizes{50, 200}},
		{"problem: {num_customers: [7, 7]}", func(c *Config) any { return c.Problem.Customers }, Sizes{7, 7}},
		{"problem: {num_customers: [9, 8]}", nil, "f.yaml:1: problem.num_customers must be written [low, high], got [9, 8]"},
		{"problem: {num_customers: [1, 2, 3]}", nil, "f.yaml:1: problem.num_customers must be a whole number, or two, written [low, high], got a list of 3"},
		{"problem: {num_customers: [0, 3]}", nil, "f.yaml:1: problem.num_customers must hold two whole numbers, each at least 1 and at most 100000, got [0, 3]"},
		{"problem: {num_customers: [5, 100001]}", nil, "f.yaml:1: problem.num_customers must hold two whole numbers, each at least 1 and at most 100000, got [5, 100001]"},
		{"problem: {num_customers: 0}", nil, "f.yaml:1: problem.num_customers must be at least 1, got 0"},
		{"problem: {num_customers: {a: 1}}", nil, "f.yaml:1: problem.num_customers must be a whole number, or two, written [low, high], got a section"},
		{"problem: {num_customers: [5, 9]}\nbaseline: {type: ema}", nil, "f.yaml:1: baseline.type ema compares with the mean cost of all instances, and problem.num_customers [5, 9] mixes sizes: use rollout or pomo"},
		{"problem: {num_customers: [5, 5]}\nbaseline: {type: ema}", func(c *Config) any { return c.Problem.NumCustomers() }, 5},
		{"problem: {num_customers: [5, 9]}\nbaseline: {type: pomo, starts: 5}", func(c *Config) any { return c.Starts() }, 5},
		{"problem: {num_customers: [5, 9]}\nbaseline: {type: pomo, starts: 6}", nil, "f.yaml:2: baseline.starts 6 is over problem.num_customers 5: each start is another customer"},
		{"problem: {num_customers: [1, 9]}\nbaseline: {type: pomo}", nil, "f.yaml:2: baseline.type pomo needs at least 2 starts to compare, got 1"},
		{"experiment: {random_seed: 9223372036854775807}", func(c *Config) any { return c.Experiment.RandomSeed }, uint64(1<<63 - 1)},
		{"training:\n  batch_size:\t3\n", func(c *Config) any { return c.Training.BatchSize }, 3},
		{"training.batch_size: 3", func(c *Config) any { return c.Training.BatchSize }, 3},
		{"\ufefftraining: {batch_size: 3}", func(c *Config) any { return c.Training.BatchSize }, 3},
		// Anchors and merge keys: own keys win, then earlier sources.
		{"training_advanced: &t {temp_start: 3}\ngat_training: {<<: *t, temp_min: 1}", func(c *Config) any { return c.Advanced.TempStart }, 3.0},
		{"gat_training: &t {temp_start: 3}\ntraining_advanced: {<<: *t, temp_min: 1}", func(c *Config) any { return c.Advanced.TempStart }, 3.0},
		{"gat_training: &t {temp_start: 3}\ntraining_advanced: {<<: *t, temp_start: 2}", func(c *Config) any { return c.Advanced.TempStart }, 2.0},
		{"training_advanced: &a {temp_start: 3}\ngat_training: &b {temp_start: 2}\n<<: [*a, *b]", nil, "f.yaml:1: unknown key temp_start; did you mean training_advanced.temp_start?"},
		{"training: {batch_size: &n 7, num_epochs: *n}", func(c *Config) any { return c.Training.NumEpochs }, 7},
		// Empty files: all defaults.
		{"", func(c *Config) any { return c.Training.BatchSize }, 512},
		{"# only words\n", func(c *Config) any { return c.Training.BatchSize }, 512},
		{"---\n", func(c *Config) any { return c.Training.BatchSize }, 512},
		{"training:\n", func(c *Config) any { return c.Training.BatchSize }, 512},
	} {
		c, err := Parse("f.yaml", []byte(tc.yaml), nil)
		if tc.got == nil {
			if err == nil || err.Error() != tc.want {
				t.Errorf("%q: %v, want %s", tc.yaml, err, tc.want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", tc.yaml, err)
			continue
		}
		if diff := cmp.Diff(tc.want, tc.got(c)); diff != "" {
			t.Errorf("%q: %s", tc.yaml, diff)
		}
	}
}

func TestBadFiles(t *testing.T) {
	for _, tc := range []struct{ yaml, want string }{
		// Keys.
		{"problem:\n  num_customers: 5\ntraining:\n  batchsize: 3\n", "f.yaml:4: unknown key training.batchsize; did you mean training.batch_size?"},
		{"trainin:\n  batch_size: 3\n", "f.yaml:1: unknown key trainin; did you mean training?"},
		{"batch_size: 3\n", "f.yaml:1: unknown key batch_size; did you mean training.batch_size?"},
		{"baseline: {update: {pvalue: 0.1}}", "f.yaml:1: unknown key baseline.update.pvalue; did you mean baseline.update.p_value?"},
		{"xyzzy: 1\n", "f.yaml:1: unknown key xyzzy; `haul config explain` lists the known ones"},
		{"\"a\\nb\": 3\n", `f.yaml:1: unknown key a\nb; ` + "`haul config explain` lists the known ones"},
		{"training: {batch_size: 3, batch_size: 4}", "f.yaml:1: batch_size is set twice; first on line 1"},
		{"training: {}\nmodel: {}\ntraining: {}\n", "f.yaml:3: training is set twice; first on line 1"},
		{"training: {batch_size: 3}\ntraining.batch_size: 4\n", "f.yaml:2: training.batch_size is set twice; first on line 1"},
		{"? [a, b]\n: 3\n", "f.yaml:1: a key must be a plain word"},
		// Shapes.
		{"training: 3\n", "f.yaml:1: training is a section with keys such as training.num_batches_per_epoch, got 3"},
		{"training: [1, 2]\n", "f.yaml:1: training is a section with keys such as training.num_batches_per_epoch, got [1, 2]"},
		{"training:\n  batch_size: {a: 1}\n", "f.yaml:2: training.batch_size must be a whole number, got a section"},
		{"training:\n  batch_size: [1]\n", "f.yaml:2: training.batch_size must be a whole number, got a list of 1"},
		{"- 1\n- 2\n", "f.yaml:1: the file must hold keys and values, got [1, 2]"},
		{"hello", "f.yaml:1: the file must hold keys and values, got hello"},
		{"training: {}\n---\nmodel: {}\n", "f.yaml:2: a second YAML document; a settings file holds one"},
		// Types.
		{"training:\n  batch_size:\n", "f.yaml:2: training.batch_size has no value"},
		{"training: {batch_size: many}", "f.yaml:1: training.batch_size must be a whole number, got many"},
		{"training: {batch_size: 1.5}", "f.yaml:1: training.batch_size must be a whole number, got 1.5"},
		{"training: {batch_size: '3'}", `f.yaml:1: training.batch_size must be a whole number, got "3"`},
		{"training: {batch_size: true}", "f.yaml:1: training.batch_size must be a whole number, got true"},
		{"training: {batch_size: !foo 3}", "f.yaml:1: training.batch_size has the tag !foo; write the plain value"},
		{"training: {batch_size: 9e30}", "f.yaml:1: training.batch_size must be a whole number, got 9e30"},
		{"experiment: {random_seed: 9223372036854775808}", "f.yaml:1: experiment.random_seed must be a whole number of at most 63 bits, got 9223372036854775808"},
		{"training: {learning_rate: .nan}", "f.yaml:1: training.learning_rate must be a number, got .nan"},
		{"training: {learning_rate: .inf}", "f.yaml:1: training.learning_rate must be a number, got .inf"},
		{"training: {learning_rate: 1e999}", "f.yaml:1: training.learning_rate must be a finite number, got 1e999"},
		{"gpu: {enabled: 1}", "f.yaml:1: gpu.enabled must be true or false, got 1"},
		// Ranges.
		{"training:\n  batch_size: 0\n", "f.yaml:2: training.batch_size must be at least 1, got 0"},
		{"training:\n  batch_size: 2000000000\n", "f.yaml:2: training.batch_size must be at most 1048576, got 2000000000"},
		{"training: {learning_rate: 0}", "f.yaml:1: training.learning_rate must be more than 0, got 0"},
		{"training: {learning_rate: 1e-999}", "f.yaml:1: training.learning_rate must be more than 0, got 1e-999"},
		{"training_advanced: {adam_beta1: 1}", "f.yaml:1: training_advanced.adam_beta1 must be at least 0 and below 1, got 1"},
		{"baseline: {update: {p_value: 1.0}}", "f.yaml:1: baseline.update.p_value must be more than 0 and below 1, got 1.0"},
		{"model: {transformer_dropout: -0.1}", "f.yaml:1: model.transformer_dropout must be at least 0 and below 1, got -0.1"},
		{"model: {pointer_pairs: 0.5}", "f.yaml:1: model.pointer_pairs must be true or false, got 0.5"},
		{"model: {pointer_distance: -0.1}", "f.yaml:1: model.pointer_distance must be at least 0, got -0.1"},
		{"baseline: {symmetries: 4}", "f.yaml:1: baseline.symmetries must be 1 or 8, got 4"},
		{"baseline: {symmetries: 0}", "f.yaml:1: baseline.symmetries must be 1 or 8, got 0"},
		{"baseline: {symmetries: 9}", "f.yaml:1: baseline.symmetries must be 1 or 8, got 9"},
		{"model: {input_dim: 4}", "f.yaml:1: model.input_dim must be 3, got 4"},
		{"inference: {max_steps_multiplier: 1}", "f.yaml:1: inference.max_steps_multiplier must be at least 2 and at most 1000, got 1"},
		{"baseline: {type: critic}", "f.yaml:1: baseline.type must be one of rollout, pomo, ema, got critic"},
		{"training_advanced: {optimizer: sgd}", "f.yaml:1: training_advanced.optimizer must be one of adamw, muon, got sgd"},
		{"training_advanced: {scheduler_type: step}", "f.yaml:1: training_advanced.scheduler_type must be one of cosine, linear, constant, got step"},
		{"problem: {distribution: normal}", "f.yaml:1: problem.distribution must be one of grid, uniform, got normal"},
		{"problem: {demand_range: [9, 1]}", "f.yaml:1: problem.demand_range must be written [low, high], got [9, 1]"},
		{"problem: {demand_range: [0, 1]}", "f.yaml:1: problem.demand_range must hold two whole numbers, each at least 1, got [0, 1]"},
		{"problem: {demand_range: 5}", "f.yaml:1: problem.demand_range must be two whole numbers, written [low, high], got 5"},
		{"problem: {demand_range: [1, 2, 3]}", "f.yaml:1: problem.demand_range must be two whole numbers, written [low, high], got a list of 3"},
		{"problem: {demand_range: [1, [2]]}", "f.yaml:1: problem.demand_range must be two whole numbers, written [low, high], got a nested list"},
		// Between keys.
		{"model:\n  num_layers: 2\n  hidden_dim: 130\n", "f.yaml:3: model.hidden_dim 130 is not divisible by model.num_heads 4"},
		{"model: {hidden_dim: 262, num_heads: 2}\ntraining_advanced:\n  optimizer: muon\n", "f.yaml:3: training_advanced.optimizer muon needs blocks of 16 to 128 rows, and model.hidden_dim 262 has no divisor in between: use another width, or adamw"},
		{"model:\n  num_heads: 3\n", "f.yaml:2: model.hidden_dim 256 is not divisible by model.num_heads 3"},
		{"problem: {vehicle_capacity: 9}", "f.yaml:1: problem.demand_range reaches 10, over problem.vehicle_capacity 9: no vehicle could serve that customer"},
		{"training_advanced: {temp_start: 0.1}", "f.yaml:1: training_advanced.temp_min 0.15 is over training_advanced.temp_start 0.1"},
		{"training_advanced: {entropy_coef: 0}", "f.yaml:1: training_advanced.entropy_min 0.002 is over training_advanced.entropy_coef 0, which it is reached from"},
		{"training: {learning_rate: 1e-7}", "f.yaml:1: training_advanced.min_lr 1e-06 is over training.learning_rate 1e-07, which it is reached from"},
		{"baseline: {type: pomo, starts: 21}", "f.yaml:1: baseline.starts 21 is over problem.num_customers 20: each start is another customer"},
		{"baseline:\n  type: pomo\n  starts: 1\n", "f.yaml:3: baseline.type pomo needs at least 2 starts to compare, got 1"},
		{"baseline:\n  type: pomo\n  leader_weight: 10\n", "f.yaml:3: baseline.leader_weight 10 weighs pairs of starts: it needs baseline.advantage preference, not difference"},
		{"model:\n  start_views: true\n", "f.yaml:2: model.start_views is how a route from every customer begins: it needs baseline.type pomo, not rollout"},
		{"model: {start_views: true}\nbaseline:\n  type: ema\n", "f.yaml:1: model.start_views is how a route from every customer begins: it needs baseline.type pomo, not ema"},
		{"baseline:\n  leader_alone: true\n", "f.yaml:2: baseline.leader_alone needs a weight to give: set baseline.leader_weight, for example to 1000"},
		{"baseline:\n  leader_margin: 0.01\n", "f.yaml:2: baseline.leader_margin measures the weight of a leader: set baseline.leader_weight, for example to 1000"},
		{"baseline: {type: pomo, leader_alone: true, leader_weight: 9}", "f.yaml:1: baseline.leader_weight 9 weighs pairs of starts: it needs baseline.advantage preference, not difference"},
		{"baseline:\n  symmetries: 8\n", "f.yaml:2: baseline.symmetries 8 compares routes by pairs: it needs baseline.advantage preference, not difference"},
		{"baseline:\n  type: pomo\n  symmetries: 8\n  advantage: standard\n", "f.yaml:3: baseline.symmetries 8 compares routes by pairs: it needs baseline.advantage preference, not standard"},
		{"training:\n  batch_size: 100\nbaseline: {type: pomo, advantage: preference, symmetries: 8}", "f.yaml:2: training.batch_size 100 is no multiple of 8: with baseline.symmetries 8 each instance is in a batch eight times"},
		{"training: {num_epochs: 1e9, num_batches_per_epoch: 1e9, batch_size: 1e6}", "f.yaml:1: training asks for 1e+24 instances in all, more than can be numbered"},
		// YAML itself.
		{"training:\n\tbatch_size: 3\n", "f.yaml:2: a tab in the indentation; YAML allows only spaces there"},
		{"training: {batch_size: 3\n", "f.yaml:1: not valid YAML: did not find expected ',' or '}'"},
		{"a: b: c\n", "f.yaml:1: not valid YAML: mapping values are not allowed in this context"},
		{"training: *nothing\n", "f.yaml:1: not valid YAML: unknown anchor 'nothing' referenced"},
		{"training: {}\n---\n{", "f.yaml:3: not valid YAML: did not find expected node content"},
		// Aliases that loop or multiply.
		{"training: &a {training: *a}\n", "f.yaml:1: unknown key training.training; did you mean training?"},
		{"training: &a {<<: *a}\n", "f.yaml:1: merge keys (<<) that repeat themselves"},
		{"training: {<<: 3}\n", "f.yaml:1: a merge key (<<) takes a section or a list of sections"},
	} {
		_, err := Parse("f.yaml", []byte(tc.yaml), nil)
		if err == nil || err.Error() != tc.want {
			t.Errorf("%q\n got %v\nwant %s", tc.yaml, err, tc.want)
		}
	}
}

// A chain of merges, each of which repeats the previous one ten times, is refused long before it is
// expanded.
func TestMultiplyingMergesAreRefused(t *testing.T) {
	var b strings.Builder
	b.WriteString("training:\n  <<:\n  - &a0 {batch_size: 3}\n")
	for i := 1; i <= 20; i++ {
		fmt.Fprintf(&b, "  - &a%d {<<: [%s]}\n", i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
	}
	_, err := Parse("f.yaml", []byte(b.String()), nil)
	if err == nil || !strings.HasSuffix(err.Error(), ": merge keys (<<) that repeat themselves") {
		t.Error(err)
	}
}

func TestSets(t *testing.T) {
	c := mustParse(t, "training: {batch_size: 3}\nbaseline: {type: ema}\n",
		"training.batch_size=64", "training.batch_size = 32", "problem.demand_range=1,9",
		"logging.format=%(message)s = x", "gpu.device=cuda:1", "training.learning_rate=1e-3")
	want := mustParse(t, "")
	want.Training.BatchSize, want.Training.LearningRate = 32, 1e-3
	want.Problem.DemandRange = [2]int{1, 9}
	want.Baseline.Type = BaselineEMA
	if diff := cmp.Diff(want, c); diff != "" {
		t.Error(diff)
	}
	if c := mustParse(t, "", "problem.demand_range=[2, 5]"); c.Problem.DemandRange != [2]int{2, 5} {
		t.Errorf("demand_range %v", c.Problem.DemandRange)
	}
	for arg, want := range map[string]string{
		"training.batch_size=0":         "--set training.batch_size=0: must be at least 1",
		"training.batch_size=":          "--set training.batch_size=: has no value",
		"training.batch_size":           "--set training.batch_size: write key=value",
		"":                              "--set: write key=value",
		"training=3":                    "--set training=3: training is a section with keys such as training.num_batches_per_epoch",
		"training.batchsize=3":          "--set training.batchsize=3: unknown key training.batchsize; did you mean training.batch_size?",
		"=3":                            "--set =3: write key=value",
		"model.hidden_dim=130":          "--set model.hidden_dim=130: model.hidden_dim 130 is not divisible by model.num_heads 4",
		"problem.demand_range=9,1":      "--set problem.demand_range=9,1: must be written [low, high]",
		"problem.demand_range=1":        "--set problem.demand_range=1: must be two whole numbers, written [low, high]",
		"baseline.type=none":            "--set baseline.type=none: must be one of rollout, pomo, ema",
		"gpu.device=\xff":               `--set gpu.device=\xff: must be text in UTF-8`,
		"training_advanced.adam_eps=-0": "--set training_advanced.adam_eps=-0: must be more than 0",
	} {
		if _, err := Parse("f.yaml", nil, []string{arg}); err == nil || err.Error() != want {
			t.Errorf("%q\n got %v\nwant %s", arg, err, want)
		}
	}
}

// For any bytes, each recipe's parser returns settings that can be written and parsed again, or a
// one-line error, and every file has a recipe.
func FuzzParse(f *testing.F) {
	f.Add([]byte("training: {batch_size: 3}"), "training.batch_size=4")
	f.Add([]byte("training: &a {<<: [*a, *a]}"), "problem.demand_range=[1,2]")
	f.Add([]byte("a: 'x\n\tb: \"\\x00\"\n"), "logging.format=\x00")
	f.Add([]byte("\xff\xfe\x00"), "=")
	f.Add([]byte("include: ad_base.yaml\nmodel: AD\ntf_n_head: 2\n"), "lr=1e-3")
	f.Add([]byte("include: f.yaml\n"), "include=f.yaml")
	f.Add([]byte("include: \"\\x00/\xff\"\nenv: darkroom\n"), "n_stream=0")
	f.Fuzz(func(t *testing.T, data []byte, set string) {
		limitstest.Reading(t, limitstest.Unpacked(data)+limitstest.Unpacked([]byte(set)), func() {
			sets := []string{set}
			if c, err := Parse("f.yaml", data, sets); oneLiner(t, err) {
				checkRoundTrip(t, c)
			}
			if c, err := ParseAD("f.yaml", data, sets); oneLiner(t, err) {
				checkRoundTrip(t, c)
			}
			if c, err := ParsePPO("f.yaml", data, sets); oneLiner(t, err) {
				checkRoundTrip(t, c)
			}
			_, err := (&file{name: "f.yaml", text: data}).recipe()
			oneLiner(t, err)
		}, data, set)
	})
}

// oneLiner reports whether err is nil. It fails the test if the error has several lines.
func oneLiner(t tester, err error) bool {
	t.Helper()
	if err != nil && strings.ContainsAny(err.Error(), "\n\r") {
		t.Fatalf("more than one line: %q", err)
	}
	return err == nil
}

// TestLadder: both ends, rising, about the same ratio between neighbours.
func TestLadder(t *testing.T) {
	for _, c := range []struct {
		sizes Sizes
		want  []int
	}{
		{Size(20), []int{20}},
		{Sizes{4, 5}, []int{4, 5}},
		{Sizes{4, 8}, []int{4, 5, 6, 7, 8}},
		{Sizes{4, 9}, []int{4, 5, 6, 7, 9}},
		{Sizes{1, 6}, []int{1, 2, 3, 4, 6}},
		{Sizes{50, 200}, []int{50, 71, 100, 141, 200}},
		{Sizes{1, 100000}, []int{1, 18, 316, 5623, 100000}},
	} {
		p := Problem{Customers: c.sizes}
		if diff := cmp.Diff(c.want, p.Ladder()); diff != "" {
			t.Errorf("%s: %s", c.sizes, diff)
		}
	}
	for low := 1; low < 40; low++ {
		for high := low; high < 60; high++ {
			got := (&Problem{Customers: Sizes{low, high}}).Ladder()
			if got[0] != low || got[len(got)-1] != high || !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) {
				t.Fatalf("[%d, %d]: %v", low, high, got)
			}
		}
	}
}

// TestARangeIsWrittenAndSet: written settings parse to equal settings, and --set accepts a range
// with and without brackets.
func TestARangeIsWrittenAndSet(t *testing.T) {
	for set, want := range map[string]Sizes{"[5, 9]": {5, 9}, "5,9": {5, 9}, "[6,6]": {6, 6}, "12": {12, 12}} {
		c := mustParse(t, "", "problem.num_customers="+set)
		text, err := c.YAML()
		if err != nil {
			t.Fatal(err)
		}
		if back := mustParse(t, string(text)); c.Problem.Customers != want || back.Problem.Customers != want {
			t.Errorf("%s is %v, and %v when it was written", set, c.Problem.Customers, back.Problem.Customers)
		}
	}
	if _, err := Parse("f.yaml", nil, []string{"problem.num_customers=5,x"}); err == nil || !strings.Contains(err.Error(), "two whole numbers") {
		t.Error(err)
	}
}
