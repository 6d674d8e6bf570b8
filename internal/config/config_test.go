package config

import (
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"

	"haul/configs"
)

// tester is the common interface of *testing.T and *rapid.T.
type tester interface {
	Helper()
	Fatalf(string, ...any)
}

func mustParse(t tester, yaml string, sets ...string) *Config {
	t.Helper()
	c, err := Parse("f.yaml", []byte(yaml), sets)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return c
}

// A recipe's table of keys, its struct and its defaults have the same keys in the same order.
func TestSchemaStructAndDefaultsAgree(t *testing.T) {
	for _, tc := range []struct {
		recipe   *recipe
		settings any
		defaults string
	}{
		{gtRecipe, &Config{}, "default.yaml"},
		{gatRecipe, gatRecipe.empty(""), "gat_default.yaml"},
		{adRecipe, &AD{}, "ad_default.yaml"},
		{ppoRecipe, &PPO{}, "ppo_default.yaml"},
	} {
		t.Run(tc.recipe.name, func(t *testing.T) {
			var fields, types []string
			visit(reflect.ValueOf(tc.settings).Elem(), "", func(key string, f reflect.Value) {
				fields = append(fields, key)
				types = append(types, f.Type().String())
			})
			entries := slices.Clone(tc.recipe.keys.entries)
			entries = slices.DeleteFunc(entries, func(e Entry) bool { return e.kind == kindFile })
			if diff := cmp.Diff(keysOf(entries), keysInFile(t, tc.defaults)); diff != "" {
				t.Errorf("the table (-) against %s (+):\n%s", tc.defaults, diff)
			}
			for _, e := range entries {
				if e.Effect == "" || !strings.HasSuffix(e.About, ".") {
					t.Errorf("%s: effect %q, about %q", e.Key, e.Effect, e.About)
				}
			}
			entries = slices.DeleteFunc(entries, func(e Entry) bool { return e.Effect == NoEffect })
			if diff := cmp.Diff(keysOf(entries), fields); diff != "" {
				t.Fatalf("the table's keys with an effect (-) against the struct (+):\n%s", diff)
			}
			fits := map[kind][]string{kindInt: {"int", "uint64"}, kindFloat: {"float64"}, kindBool: {"bool"}, kindText: {"string"}, kindPair: {"[2]int"}, kindSizes: {"config.Sizes"}}
			for i, e := range entries {
				if !slices.Contains(fits[e.kind], types[i]) {
					t.Errorf("%s is a %s in the table and a %s in the struct", e.Key, e.kind, types[i])
				}
			}
		})
	}
}

func keysOf(entries []Entry) []string {
	var keys []string
	for _, e := range entries {
		keys = append(keys, e.Key)
	}
	return keys
}

// Before, two dozen keys without an effect were in the settings that a run keeps, and a resumed run
// was refused if one of them changed.
func TestKeysWithoutEffectAreReadAndForgotten(t *testing.T) {
	for _, r := range recipes {
		standard, err := ParseAny(r.name, "f.yaml", nil)
		if err != nil {
			t.Fatal(err)
		}
		text, err := standard.YAML()
		if err != nil {
			t.Fatal(err)
		}
		written, err := r.keys.readLayer("f.yaml", text, precedenceFile)
		if err != nil {
			t.Fatal(err)
		}
		unused := 0
		for _, e := range r.keys.entries {
			if _, ok := written[e.Key]; ok != (e.Effect != NoEffect && e.kind != kindFile) {
				t.Errorf("%s (%s): written is %v", e.Key, e.Effect, ok)
			}
			if e.Effect == NoEffect {
				unused++
			}
		}
		if unused == 0 {
			t.Errorf("%s has no key without effect to try", r.name)
		}
	}
	changed := mustParse(t, "working_dir_path: elsewhere\ngpu: {device: \"cuda:7\", num_workers: 3}\ninference: {max_steps_multiplier: 9}\n")
	if diff := cmp.Diff(mustParse(t, ""), changed); diff != "" {
		t.Errorf("keys without effect have one:\n%s", diff)
	}
	for yaml, want := range map[string]string{"gpu: {num_workers: many}": "whole number", "gpu: {num_wokers: 1}": "did you mean gpu.num_workers"} {
		if _, err := Parse("f.yaml", []byte(yaml), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want a word on %q: a key without effect is checked all the same", yaml, err, want)
		}
	}
}

// Before, the texts said that the cosine reaches min_lr at the last step, and that a bound on
// routes is read from its key, which nothing reads.
func TestExplanationsOfSchedulerAndStepsAreTrue(t *testing.T) {
	for key, want := range map[string]string{"training_advanced.scheduler_type": "by epoch", "inference.max_steps_multiplier": "within 2N steps"} {
		es, err := Explain(RecipeGT, key)
		if err != nil || len(es) != 1 || !strings.Contains(es[0].About, want) {
			t.Errorf("%s: %+v, %v: want a word on %q", key, es, err, want)
		}
	}
	if e := gtKeys.entry("inference.max_steps_multiplier"); e.Effect != NoEffect {
		t.Errorf("max_steps_multiplier is said to be %s", e.Effect)
	}
}

// keysInFile returns the keys of a shipped file in its order, with sections joined by dots. The
// keys of the file itself precede those of its include.
func keysInFile(t *testing.T, name string) []string {
	t.Helper()
	data, err := configs.FS.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	var keys []string
	var walk func(n *yaml.Node, prefix string)
	walk = func(n *yaml.Node, prefix string) {
		for i := 0; i < len(n.Content); i += 2 {
			if key := prefix + n.Content[i].Value; n.Content[i+1].Kind == yaml.MappingNode {
				walk(n.Content[i+1], key+".")
			} else {
				keys = append(keys, key)
			}
		}
	}
	walk(doc.Content[0], "")
	if at := slices.Index(keys, includeKey); at >= 0 {
		var named struct{ Include string }
		if err := doc.Decode(&named); err != nil {
			t.Fatal(err)
		}
		below := keysInFile(t, named.Include)
		keys = slices.DeleteFunc(slices.Delete(keys, at, at+1), func(key string) bool { return slices.Contains(below, key) })
		keys = append(keys, below...)
	}
	return keys
}

// Haul's defaults equal the original program's, except for new keys and dropout.
func TestDefaultsAreTheOriginalPrograms(t *testing.T) {
	data, err := os.ReadFile("testdata/original_default.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got := mustParse(t, string(data))
	want := mustParse(t, "")
	want.Model.TransformerDropout = 0.1
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	original, err := gtKeys.readLayer("original", data, precedenceFile)
	if err != nil {
		t.Fatal(err)
	}
	var own []string
	for _, e := range gtKeys.entries {
		// keys of problem rules have their own tests and are not in the original
		if _, ok := original[e.Key]; !ok && !strings.HasPrefix(e.Key, "problem.") {
			own = append(own, e.Key)
		}
	}
	if diff := cmp.Diff([]string{"include", "training.gradient_parts", "training.validation_instances", "training.validation_decode", "model.pointer_distance", "model.pointer_pairs", "model.start_views", "training_advanced.optimizer", "training_advanced.decay_share", "training_advanced.warmup_steps", "training_advanced.average_decay", "baseline.ema_decay", "baseline.starts", "baseline.advantage", "baseline.preference_alpha", "baseline.leader_weight", "baseline.leader_alone", "baseline.leader_margin", "baseline.symmetries"}, own); diff != "" {
		t.Errorf("keys the original lacks:\n%s", diff)
	}
}

func TestOriginalTinyLoadsUnchanged(t *testing.T) {
	got, err := Load("testdata/original_tiny_1.yaml", nil)
	if err != nil {
		t.Fatal(err)
	}
	want := mustParse(t, "")
	want.Name = "original_tiny_1"
	want.Problem.Customers = Size(10)
	want.Training.NumBatchesPerEpoch, want.Training.BatchSize, want.Training.NumEpochs = 25, 128, 10
	want.Model.HiddenDim, want.Model.NumLayers = 128, 3
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestShippedFiles(t *testing.T) {
	for _, name := range []string{"default", "large", "medium", "pomo100", "quick", "small", "tiny_1"} {
		c, err := Load(name, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if c.Name != name || c.Model.TransformerDropout != 0 {
			t.Errorf("%s: name %q, dropout %g", name, c.Name, c.Model.TransformerDropout)
		}
		if !slices.Contains(Names(RecipeGT), name) {
			t.Errorf("Names(RecipeGT) lacks %s", name)
		}
	}
	quick, err := Load("", nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := quick.Training.NumEpochs * quick.Training.NumBatchesPerEpoch * quick.Training.BatchSize; quick.Name != "quick" || n != 102_400 {
		t.Errorf("no name loads %s with %d instances, want quick with 102400", quick.Name, n)
	}
	if quick.Starts() != 10 {
		t.Errorf("quick has %d starts, want one for each customer", quick.Starts())
	}
}

func TestLoadFindsFilesAndShippedNames(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "tiny_1.yaml")
	if err := os.WriteFile(path, []byte("training: {batch_size: 7}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name  string
		batch int
	}{
		{path, 7},
		{"tiny_1", 128},
		{"no/such/folder/tiny_1.yaml", 128},
	} {
		c, err := Load(tc.name, nil)
		if err != nil || c.Training.BatchSize != tc.batch || c.Name != "tiny_1" {
			t.Errorf("Load(%q) = %+v, %v; want batch %d", tc.name, c, err, tc.batch)
		}
	}
	big := filepath.Join(dir, "big.yaml")
	if err := os.WriteFile(big, make([]byte, maxFile+1), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"quik":             "config quik: no such file or shipped name; did you mean quick?",
		"x/unheard_of.yml": "config x/unheard_of.yml: no such file or shipped name; shipped: " + strings.Join(Names(RecipeGT), ", "),
		dir:                "config " + dir + ": is a directory",
		big:                "config " + big + ": over 1048576 bytes; not a settings file",
	} {
		if _, err := Load(name, nil); err == nil || err.Error() != want {
			t.Errorf("Load(%q): %v\nwant %s", name, err, want)
		}
	}
}

func TestRoundTrip(t *testing.T) {
	for _, name := range Names("") {
		c, err := LoadAny("", name, nil)
		if err != nil {
			t.Fatal(err)
		}
		checkRoundTrip(t, c)
	}
	rapid.Check(t, func(t *rapid.T) {
		c := mustParse(t, "",
			"training.learning_rate="+formatFloat(rapid.Float64Range(1e-6, 1e6).Draw(t, "lr")),
			"training_advanced.min_lr="+formatFloat(rapid.Float64Range(0, 1e-6).Draw(t, "min_lr")))
		c.Baseline.Type = rapid.SampledFrom([]string{BaselineRollout, BaselineEMA}).Draw(t, "baseline")
		c.Experiment.RandomSeed = rapid.Uint64Range(0, math.MaxInt64).Draw(t, "seed")
		checkRoundTrip(t, c)
	})
}

func checkRoundTrip(t tester, c Settings) {
	t.Helper()
	text, err := c.YAML()
	if err != nil {
		t.Fatalf("%v", err)
	}
	back, err := ParseAny(c.Recipe(), c.Title()+".yaml", text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if diff := cmp.Diff(c, back); diff != "" {
		t.Fatalf("%s", diff)
	}
}

// YAML 1.1 parsers read a number with an exponent and without a point as text.
func TestYAMLNumbersHaveAPoint(t *testing.T) {
	text, err := mustParse(t, "").YAML()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"min_lr: 1.0e-06\n", "gradient_clip_norm: 2.0\n", "demand_range: [1, 10]\n", "learning_rate: 0.0001\n"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestExplain(t *testing.T) {
	one, err := Explain(RecipeGT, "training.batch_size")
	if err != nil || len(one) != 1 || one[0].Default != "512" || one[0].Type != "whole number" || one[0].Allowed != "at least 1 and at most 1048576" {
		t.Errorf("training.batch_size: %+v, %v", one, err)
	}
	gpu, err := Explain(RecipeGT, "gpu")
	if err != nil || len(gpu) != 9 {
		t.Errorf("gpu has %d entries, want 9: %v", len(gpu), err)
	}
	for _, all := range []string{"", "all"} {
		if es, err := Explain(RecipeGT, all); err != nil || len(es) != len(gtKeys.entries) {
			t.Errorf("Explain(%q) has %d entries: %v", all, len(es), err)
		}
	}
	for key, want := range map[string]string{
		"traning":             "unknown key traning; did you mean training?",
		"batchsize":           "unknown key batchsize; did you mean training.batch_size?",
		"gpu.pinmemory":       "unknown key gpu.pinmemory; did you mean gpu.pin_memory?",
		"something.different": "unknown key something.different; `haul config explain` lists the known ones",
	} {
		if _, err := Explain(RecipeGT, key); err == nil || err.Error() != want {
			t.Errorf("Explain(%q): %v, want %s", key, err, want)
		}
	}
}
