package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestGATTakesItsOwnKeys: each network reads its own keys of a file that has both.
func TestGATTakesItsOwnKeys(t *testing.T) {
	const both = "model: {hidden_dim: 96, num_layers: 5, transformer_dropout: 0.1}\nmodel_gat: {gat_hidden_dim: 64, gat_layers: 2, gat_dropout: 0.3, gat_edge_dim: 7, gat_negative_slope: 0.1}\n" +
		"training: {learning_rate: 0.5}\ngat_training: {learning_rate: 0.25, temp_start: 3, temp_min: 0.5, temp_adaptation_rate: 0.2, entropy_coef: 0.4, entropy_min: 0.3, " +
		"gradient_clip_norm: 7, early_stopping_patience: 3, use_adaptive_temperature: true}\n" +
		"training_advanced: {temp_start: 2, temp_min: 1, temp_adaptation_rate: 0.1, entropy_coef: 0.2, entropy_min: 0.1, gradient_clip_norm: 1, early_stopping_patience: 9, use_adaptive_temperature: false}\n"
	for recipe, want := range map[string]Config{
		RecipeGT: {Model: Model{HiddenDim: 96, NumLayers: 5, TransformerDropout: 0.1}, Training: Training{LearningRate: 0.5},
			Advanced: Advanced{TempStart: 2, TempMin: 1, TempAdaptationRate: 0.1, EntropyCoef: 0.2, EntropyMin: 0.1, GradientClipNorm: 1, EarlyStoppingPatience: 9}},
		RecipeGAT: {Model: Model{HiddenDim: 64, NumLayers: 2, TransformerDropout: 0.3}, Training: Training{LearningRate: 0.25},
			Advanced: Advanced{TempStart: 3, TempMin: 0.5, TempAdaptationRate: 0.2, EntropyCoef: 0.4, EntropyMin: 0.3, GradientClipNorm: 7, EarlyStoppingPatience: 3, UseAdaptiveTemperature: true}},
	} {
		s, err := ParseAny(recipe, "f.yaml", []byte(both))
		if err != nil {
			t.Fatal(err)
		}
		c := s.(*Config)
		a := c.Advanced
		got := Config{Model: Model{HiddenDim: c.Model.HiddenDim, NumLayers: c.Model.NumLayers, TransformerDropout: c.Model.TransformerDropout}, Training: Training{LearningRate: c.Training.LearningRate},
			Advanced: Advanced{TempStart: a.TempStart, TempMin: a.TempMin, TempAdaptationRate: a.TempAdaptationRate, EntropyCoef: a.EntropyCoef, EntropyMin: a.EntropyMin,
				GradientClipNorm: a.GradientClipNorm, EarlyStoppingPatience: a.EarlyStoppingPatience, UseAdaptiveTemperature: a.UseAdaptiveTemperature}}
		if diff := cmp.Diff(want, got); diff != "" || c.Recipe() != recipe {
			t.Errorf("%s, recipe %s: %s", recipe, c.Recipe(), diff)
		}
		if gat := recipe == RecipeGAT; gat != (c.GAT != nil) || gat && (c.GAT.EdgeDim != 7 || c.GAT.NegativeSlope != 0.1) {
			t.Errorf("%s: %+v", recipe, c.GAT)
		}
		// the written settings parse to equal settings without the original file
		text, err := c.YAML()
		if err != nil {
			t.Fatal(err)
		}
		if of, err := RecipeOf("f.yaml", text); err != nil || of != recipe {
			t.Errorf("settings of %s are told for %s's, %v", recipe, of, err)
		}
		again, err := LoadAny(recipe, "", nil)
		if err != nil || again.Recipe() != recipe {
			t.Errorf("%v, %v", again, err)
		}
		if back, err := ParseAny(recipe, "f.yaml", text); err != nil || !cmp.Equal(back, s) {
			t.Errorf("%s: %v", err, cmp.Diff(s, back))
		}
	}
}

// TestGATNamesItsOwnKeys: errors name the keys that a user of GAT+RL can change.
func TestGATNamesItsOwnKeys(t *testing.T) {
	for set, want := range map[string]string{
		"training.learning_rate=1":               "GAT+RL takes gat_training.learning_rate in place of training.learning_rate: set that",
		"model.hidden_dim=64":                    "GAT+RL takes model_gat.gat_hidden_dim in place of model.hidden_dim: set that",
		"model_gat.gat_hidden_dim=30":            "model_gat.gat_hidden_dim 30 is not divisible by model.num_heads 4",
		"gat_training.temp_min=4":                "gat_training.temp_min 4 is over gat_training.temp_start 2.5",
		"gat_training.temp_min=1e4":              "at most 1000",
		"model_gat.gat_negative_slope=-0.1":      "at least 0 and at most 1",
		"model_gat.gat_negative_slope=1.5":       "at least 0 and at most 1",
		"model_gat.gat_edge_dim=0":               "at least 1",
		"model_gat.gat_edge_dim=16385":           "at most 16384",
		"model_gat.gat_dropout=1":                "below 1",
		"gat_training.learning_rate=0":           "more than 0",
		"gat_training.early_stopping_patience=0": "at least 1",
	} {
		if _, err := ParseSet(RecipeGAT, "f.yaml", nil, []string{set}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("--set %s: %v, want %q", set, err, want)
		}
	}
	for _, set := range []string{"model_gat.gat_negative_slope=0", "model_gat.gat_negative_slope=1", "model_gat.gat_edge_dim=1", "model_gat.gat_edge_dim=16384", "model_gat.gat_layers=1", "model_gat.gat_dropout=0"} {
		if _, err := ParseSet(RecipeGAT, "f.yaml", nil, []string{set}); err != nil {
			t.Errorf("--set %s: %v", set, err)
		}
	}
	if _, err := ParseSet(RecipeGT, "f.yaml", []byte("network: GAT+RL"), nil); err == nil || !strings.Contains(err.Error(), "network") {
		t.Errorf("settings of GAT+RL were read as GT+RL's: %v", err)
	}
}
