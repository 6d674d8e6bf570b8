package config

import (
	"slices"
	"strings"
	"testing"
)

// TestUnusedSettingsAreNamed: every setting that changes nothing is reported with the reason, and
// no other setting is.
func TestUnusedSettingsAreNamed(t *testing.T) {
	for _, c := range []struct {
		recipe, file string
		sets         []string
		want         []string
	}{
		{RecipeAD, "ad_dr", []string{"lr=0.01", "n_transit=60"}, nil},
		{RecipeAD, "ad_dr", []string{"tf_n_inner=7", "lr=0.01"}, []string{"--set tf_n_inner=7 has no effect: The feed-forward layers"}},
		{RecipeAD, "ad_dr", []string{"dynamics=true", "flash_attn=false"}, []string{"--set dynamics=true has no effect: The agent learns actions", "--set flash_attn=false has no effect"}},
		{RecipeAD, "ad_dr", []string{"compress_interval=40", "compress_min=20", "region_ahead=3"},
			[]string{"--set compress_interval=40 has no effect: use_compressed_context is false", "--set compress_min=20 has", "--set region_ahead=3 has"}},
		{RecipeAD, "ad_dr_small", []string{"compress_interval=40", "compress_min=20", "region_ahead=3", "eval_tune=true"}, nil},
		{RecipeAD, "ad_dr", []string{"iql_beta=2", "iql_discount=0.5", "iql_expectile=0.5", "iql_weight=2"}, []string{"--set iql_beta=2 has no effect: method is imitate", "", "", ""}},
		{RecipeAD, "ad_dr_rewards", []string{"iql_beta=2"}, nil},
		{RecipeAD, "ad_dr", []string{"eval_tune=true", "average_interval=3"}, []string{"--set eval_tune=true has no effect: validation_goals is 0", "--set average_interval=3 has no effect: average_decay is 0"}},
		{RecipeAD, "ad_dr", []string{"average_decay=0.9", "average_interval=3"}, nil},
		{RecipePPO, "darkroom", []string{"max_reward=3", "gamma=0.8"}, []string{"--set max_reward=3 has no effect: Returns are compared"}},
		{RecipeGT, "quick", []string{"training_advanced.compile.enabled=true", "training.learning_rate=0.01"}, []string{"--set training_advanced.compile.enabled=true has no effect"}},
		{RecipeGT, "quick", nil, nil},
	} {
		s, err := LoadAny(c.recipe, c.file, c.sets)
		if err != nil {
			t.Fatal(err)
		}
		got := Unused(s, c.sets, nil)
		if len(got) != len(c.want) {
			t.Errorf("%s %v: %q", c.file, c.sets, got)
			continue
		}
		for i, want := range c.want {
			if !strings.HasPrefix(got[i], want) || strings.Contains(got[i], "\n") {
				t.Errorf("%s %v: %q, want %q", c.file, c.sets, got[i], want)
			}
		}
	}
}

// TestReplacedSettingsAreNamed: of two settings of one key the first has no effect, and a setting
// has none if a flag sets the key.
func TestReplacedSettingsAreNamed(t *testing.T) {
	sets := []string{"lr=0.5", "seed=9", "lr=0.1", "iql_beta=2"}
	s, err := LoadAny(RecipeAD, "ad_any", sets)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"--set lr=0.5 has no effect: lr is set again behind it", "--set seed=9 has no effect: --seed is given too", "--set iql_beta=2 has no effect: method is imitate"}
	if got := Unused(s, sets, map[string]string{"seed": "seed"}); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
