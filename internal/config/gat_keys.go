package config

import (
	"fmt"
	"slices"
	"strings"
)

// GAT is the section model_gat: the encoder of GAT+RL.
type GAT struct {
	HiddenDim     int     `yaml:"gat_hidden_dim"`
	EdgeDim       int     `yaml:"gat_edge_dim"`
	Layers        int     `yaml:"gat_layers"`
	Dropout       float64 `yaml:"gat_dropout"`
	NegativeSlope float64 `yaml:"gat_negative_slope"`
}

// GATTraining is the section gat_training. GAT+RL reads its keys in place of some keys of training
// and training_advanced.
type GATTraining struct {
	LearningRate           float64 `yaml:"learning_rate"`
	TempStart              float64 `yaml:"temp_start"`
	TempMin                float64 `yaml:"temp_min"`
	TempAdaptationRate     float64 `yaml:"temp_adaptation_rate"`
	EntropyCoef            float64 `yaml:"entropy_coef"`
	EntropyMin             float64 `yaml:"entropy_min"`
	GradientClipNorm       float64 `yaml:"gradient_clip_norm"`
	EarlyStoppingPatience  int     `yaml:"early_stopping_patience"`
	UseAdaptiveTemperature bool    `yaml:"use_adaptive_temperature"`
}

// gatInstead maps keys to the keys that GAT+RL reads in their place. copyOwnKeys copies the value
// of each, so that other code reads only the keys on the left.
var gatInstead = map[string]string{
	"model.hidden_dim":                           "model_gat.gat_hidden_dim",
	"model.num_layers":                           "model_gat.gat_layers",
	"model.transformer_dropout":                  "model_gat.gat_dropout",
	"training.learning_rate":                     "gat_training.learning_rate",
	"training_advanced.temp_start":               "gat_training.temp_start",
	"training_advanced.temp_min":                 "gat_training.temp_min",
	"training_advanced.temp_adaptation_rate":     "gat_training.temp_adaptation_rate",
	"training_advanced.entropy_coef":             "gat_training.entropy_coef",
	"training_advanced.entropy_min":              "gat_training.entropy_min",
	"training_advanced.gradient_clip_norm":       "gat_training.gradient_clip_norm",
	"training_advanced.early_stopping_patience":  "gat_training.early_stopping_patience",
	"training_advanced.use_adaptive_temperature": "gat_training.use_adaptive_temperature",
}

// copyOwnKeys copies the values of GAT+RL's own keys to the keys that they replace.
func (c *Config) copyOwnKeys() {
	if c.Network == nil {
		return
	}
	g, t, a := c.GAT, c.GATTraining, &c.Advanced
	c.Model.HiddenDim, c.Model.NumLayers, c.Model.TransformerDropout = g.HiddenDim, g.Layers, g.Dropout
	c.Training.LearningRate = t.LearningRate
	a.TempStart, a.TempMin, a.TempAdaptationRate, a.UseAdaptiveTemperature = t.TempStart, t.TempMin, t.TempAdaptationRate, t.UseAdaptiveTemperature
	a.EntropyCoef, a.EntropyMin = t.EntropyCoef, t.EntropyMin
	a.GradientClipNorm, a.EarlyStoppingPatience = t.GradientClipNorm, t.EarlyStoppingPatience
}

// gatKeys is the schema of GAT+RL: that of GT+RL, with GAT+RL's keys in effect and without the keys
// that they replace.
var gatKeys = newSchema(gatEntries()...)

func gatEntries() []Entry {
	out := []Entry{text("network", Honoured, "Marks a file as settings of GAT+RL; without this key, use --model GAT+RL.", RecipeGAT)}
	own := map[string]string{
		"model_gat.gat_edge_dim":       "E, the width of an edge's features: a node's embedding is mapped to E numbers, each times the distance to the other node, and these to one term of a score per head.",
		"model_gat.gat_negative_slope": "The slope of the leaky rectifier below 0, which scores pass before the softmax.",
	}
	for here, gat := range gatInstead {
		own[gat] = gtKeys.entry(here).About
	}
	for _, e := range gtKeys.entries {
		if about, ok := own[e.Key]; ok {
			e.Effect, e.About = Honoured, about
			for here, gat := range gatInstead {
				if gat == e.Key {
					e.bounds = gtKeys.entry(here).bounds
				}
			}
		} else if gat, ok := gatInstead[e.Key]; ok {
			e.Effect, e.About = Differently, fmt.Sprintf("GAT+RL takes %s.", gat)
		}
		switch e.Key {
		case "model_gat.gat_edge_dim":
			e.bounds = upTo(1, mostWidth)
		case "model_gat.gat_negative_slope":
			e.bounds = between(0, 1)
		case "model.feedforward_multiplier":
			e.About = "Width of the gated layer after the attention, as a multiple of gat_hidden_dim."
		}
		out = append(out, e)
	}
	return slices.Clip(out)
}

// gatWords replaces keys in the text of a fault by the keys that GAT+RL reads.
func gatWords(c conflict) conflict {
	var pairs []string
	for here, gat := range gatInstead {
		pairs = append(pairs, here+" ", gat+" ")
	}
	c.text = strings.NewReplacer(pairs...).Replace(c.text)
	keys := slices.Clone(c.keys)
	for i, k := range keys {
		if gat, ok := gatInstead[k]; ok {
			keys[i] = gat
		}
	}
	c.keys = keys
	return c
}
