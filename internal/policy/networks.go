package policy

import (
	"fmt"
	"slices"
	"strings"

	"haul/internal/config"
	"haul/internal/model"
	"haul/internal/rng"
)

// networks lists the types of routing networks by the name of the model. A new encoder needs a file
// in internal/model, its settings, and a line here.
var networks = []struct {
	name string
	make func(c *config.Config) (*model.Network, error)
}{
	{config.RecipeGT, func(c *config.Config) (*model.Network, error) {
		m := &c.Model
		return model.NewGT(model.GTConfig{Width: m.HiddenDim, Heads: m.NumHeads, Layers: m.NumLayers, FeedMul: m.FeedforwardMultiplier, Near: float32(m.PointerDistance),
			Pairs: m.PointerPairs, Views: m.StartViews, Rules: rulesOf(SourceOf(c, rng.TrainInstances)), Dropout: float32(m.TransformerDropout), DropoutKey: c.Experiment.RandomSeed})
	}},
	{config.RecipeGAT, func(c *config.Config) (*model.Network, error) {
		m, g := &c.Model, c.GAT
		return model.NewGAT(model.GATConfig{Width: g.HiddenDim, Heads: m.NumHeads, Layers: g.Layers, Edge: g.EdgeDim, FeedMul: m.FeedforwardMultiplier, Leak: float32(g.NegativeSlope),
			Near: float32(m.PointerDistance), Pairs: m.PointerPairs, Views: m.StartViews, Rules: rulesOf(SourceOf(c, rng.TrainInstances)), Dropout: float32(g.Dropout), DropoutKey: c.Experiment.RandomSeed})
	}},
}

// NewNetwork returns the network that the settings describe.
func NewNetwork(c *config.Config) (*model.Network, error) {
	if err := CheckRules(c); err != nil {
		return nil, err
	}
	for _, n := range networks {
		if n.name == c.Recipe() {
			return n.make(c)
		}
	}
	return nil, fmt.Errorf("no routing network is called %s; there are %s", c.Recipe(), strings.Join(Models(), ", "))
}

// Models returns the names of the models whose checkpoints hold a policy.
func Models() (out []string) {
	for _, n := range networks {
		out = append(out, n.name)
	}
	return out
}

// Is reports whether checkpoints of the named model hold a policy.
func Is(name string) bool { return slices.Contains(Models(), name) }
