package config

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func mustParseAD(t tester, yaml string, sets ...string) *AD {
	t.Helper()
	c, err := ParseAD("f.yaml", []byte(yaml), sets)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return c
}

// The original program's files load unchanged, with an include in the same folder. The shipped
// files have the same network, context and data; the length of training, learning rates and the
// choice of the best checkpoint differ.
func TestOriginalAgentLoadsUnchanged(t *testing.T) {
	plain := mustParseAD(t, "")
	plain.Name = "ad_dr"

	compressed := mustParseAD(t, "")
	compressed.Name = "ad_dr_compressed"
	compressed.UseCompressedContext, compressed.CompressInterval, compressed.NTransit = true, 80, 328
	compressed.NEmbd, compressed.NLayer, compressed.NHead = 128, 6, 8
	compressed.TrainBatchSize, compressed.TrainTimesteps, compressed.NumWorkers = 1024, 100_000, 16
	compressed.MixedPrecision = PrecisionFP16

	for _, want := range []*AD{plain, compressed} {
		got, err := LoadAD("testdata/original_agent/"+want.Name+".yaml", nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("original %s:\n%s", want.Name, diff)
		}
		shipped, err := LoadAD(want.Name, nil)
		if err != nil {
			t.Fatal(err)
		}
		shipped.CompressMin, shipped.RegionAhead, shipped.Labels = want.CompressMin, want.RegionAhead, want.Labels
		shipped.LR, shipped.NumWarmupSteps, shipped.TrainTimesteps = want.LR, want.NumWarmupSteps, want.TrainTimesteps
		shipped.Dropout, shipped.AttnDropout = want.Dropout, want.AttnDropout
		shipped.EvalInterval, shipped.GenInterval, shipped.CkptInterval = want.EvalInterval, want.GenInterval, want.CkptInterval
		shipped.ValidationGoals, shipped.EvalTune, shipped.EvalAgents = want.ValidationGoals, want.EvalTune, want.EvalAgents
		if diff := cmp.Diff(want, shipped); diff != "" {
			t.Errorf("shipped %s:\n%s", want.Name, diff)
		}
	}
	if c, err := LoadAD("", nil); err != nil || c.Name != DefaultAD {
		t.Errorf("no name loads %+v, %v", c, err)
	}
}

func TestAgentSizes(t *testing.T) {
	for _, tc := range []struct {
		yaml                          string
		feedForward, tokens, shortest int
	}{
		{"tf_n_embd: 128\ntf_n_inner: 99\nn_transit: 100", 512, 100, 20},
		{"tf_dim_feedforward: 300", 300, 80, 20},
		{"use_compressed_context: true\ncompress_interval: 80\ncompress_min: 20\nn_transit: 164", 256, 164, 20},
		{"use_compressed_context: true\ncompress_interval: 40\nn_transit: 328", 256, 84, 40},
	} {
		c := mustParseAD(t, tc.yaml)
		if c.FeedForward() != tc.feedForward || c.Tokens() != tc.tokens || c.ShortestRegion() != tc.shortest {
			t.Errorf("%q: feed-forward %d, tokens %d, shortest region %d", tc.yaml, c.FeedForward(), c.Tokens(), c.ShortestRegion())
		}
	}
}

func TestBadAgents(t *testing.T) {
	for _, tc := range []struct{ yaml, want string }{
		{"model: AD\nn_transits: 3\n", "f.yaml:2: unknown key n_transits; did you mean n_transit?"},
		{"model: DQN", "f.yaml:1: model must be AD, got DQN"},
		{"train_n_stream: -1", "f.yaml:1: train_n_stream must be at least 0, got -1"},
		{"mixed_precision: fp8", "f.yaml:1: mixed_precision must be one of no, fp16, bf16, got fp8"},
		{"tf_dropout: 1", "f.yaml:1: tf_dropout must be at least 0 and below 1, got 1"},
		{"eval_temperature: 0", "f.yaml:1: eval_temperature must be at least 0.001 and at most 1000, got 0"},
		{"model: {hidden_dim: 3}", "f.yaml:1: model must be text, got a section"},
		// Between keys.
		{"tf_n_embd: 130\n", "f.yaml:1: tf_n_embd 130 is not divisible by tf_n_head 4"},
		{"tf_n_head: 8\ntf_n_kv_head: 3\n", "f.yaml:1: tf_n_head 8 is not divisible by tf_n_kv_head 3"},
		{"tf_n_kv_head: 8\n", "f.yaml:1: tf_n_head 4 is not divisible by tf_n_kv_head 8"},
		{"tf_n_kv_head: -1\n", "f.yaml:1: tf_n_kv_head must be at least 0, got -1"},
		{"n_transit: 163\nuse_compressed_context: true\ncompress_interval: 80\n",
			"f.yaml:3: two regions of compress_interval 80 need 164 positions, over n_transit 163, the position table"},
		{"include: ad_dr_compressed.yaml\nn_transit: 100\n",
			"f.yaml:2: two regions of compress_interval 80 need 164 positions, over n_transit 100, the position table"},
		{"use_compressed_context: true\ncompress_min: 21\n", "f.yaml:2: compress_min 21 is over compress_interval 20, the longest region"},
		{"use_compressed_context: true\ntrain_source_timesteps: 39\n",
			"f.yaml:2: two regions of compress_interval 20 are over train_source_timesteps 39: no stream holds them"},
		{"train_source_timesteps: 79\n", "f.yaml:1: n_transit 80 is over train_source_timesteps 79: no stream holds such a context"},
		{"train_timesteps: 999\n", "f.yaml:1: num_warmup_steps 1000 is over train_timesteps 999: the run would end before its warm-up"},
		{"min_lr: 1\n", "f.yaml:1: min_lr 1 is over lr 0.0003, which it is reached from"},
		{"train_timesteps: 1e9\ntrain_batch_size: 1e6\ngradient_accumulation_steps: 5000", "f.yaml:1: training asks for 5e+18 samples in all, more than can be numbered"},
	} {
		if _, err := ParseAD("f.yaml", []byte(tc.yaml), nil); err == nil || err.Error() != tc.want {
			t.Errorf("%q\n got %v\nwant %s", tc.yaml, err, tc.want)
		}
	}
	// Settings of regions have no effect if the context is not compressed.
	mustParseAD(t, "compress_interval: 9999\ncompress_min: 10000\n")
	if c := mustParseAD(t, "mixed_precision: no"); c.MixedPrecision != PrecisionFull {
		t.Errorf("mixed_precision: no is %q", c.MixedPrecision)
	}
	for set, want := range map[string]string{
		"n_transit=0":    "--set n_transit=0: must be at least 1 and at most 65536",
		"include=x.yaml": "--set include=x.yaml: include belongs in a settings file; --config names that",
		"lrr=3":          "--set lrr=3: unknown key lrr; did you mean lr?",
	} {
		if _, err := ParseAD("f.yaml", nil, []string{set}); err == nil || err.Error() != want {
			t.Errorf("%q\n got %v\nwant %s", set, err, want)
		}
	}
}

// Contexts of valid settings always fit into the position table.
func TestAgentsThatLoadFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := mustParseAD(t, "train_source_timesteps: 100000\n",
			"n_transit="+show(int64(rapid.IntRange(204, 1<<16).Draw(t, "table"))),
			"use_compressed_context="+show(rapid.Bool().Draw(t, "compressed")),
			"compress_interval="+show(int64(rapid.IntRange(20, 100).Draw(t, "interval"))),
			"compress_min="+show(int64(rapid.IntRange(0, 20).Draw(t, "min"))),
			"seed="+show(rapid.Int64Range(0, math.MaxInt64).Draw(t, "seed")),
			"lr="+formatFloat(rapid.Float64Range(1e-9, 1).Draw(t, "lr")))
		if c.Tokens() > c.NTransit || c.ShortestRegion() > c.CompressInterval {
			t.Fatalf("%+v", c)
		}
		checkRoundTrip(t, c)
	})
}
