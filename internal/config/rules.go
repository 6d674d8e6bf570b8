package config

import "fmt"

// conflict is a fault of a combination of keys, each valid by itself. keys lists the keys
// that a user could change to correct it, the most likely one first.
type conflict struct {
	keys []string
	text string
}

func clash(keys []string, format string, args ...any) conflict {
	return conflict{keys, fmt.Sprintf(format, args...)}
}

// at returns the position for the error: that of the key with the highest precedence, because the
// other keys may be defaults.
func (c conflict) at(l layer) origin {
	best := l[c.keys[0]].from
	for _, k := range c.keys[1:] {
		if o := l[k].from; o.precedence > best.precedence {
			best = o
		}
	}
	return best
}

// loadUnit is the unit of fractional demands, for instances with individual capacities. It equals
// kernel.LoadUnit, which this package cannot import; a test of the routing recipe compares the two.
const loadUnit = 1 << 20

// The sizes of Muon's square blocks: at most kernel.MuonMost. Smaller blocks than muonLeast have
// too few directions to balance, unless the model is narrower.
const muonMost, muonLeast = 128, 16

// inBlocks reports whether matrices as wide as the model can be divided into Muon's blocks.
func inBlocks(width int) bool {
	for side := min(width, muonMost); side >= min(width, muonLeast); side-- {
		if width%side == 0 {
			return true
		}
	}
	return false
}

// conflicts returns the faults of combinations of keys, if each value is valid by itself.
func (c *Config) conflicts() []conflict {
	p, t, m, a, b := c.Problem, c.Training, c.Model, c.Advanced, c.Baseline
	out := p.conflicts()
	if m.HiddenDim%m.NumHeads != 0 {
		out = append(out, clash([]string{"model.hidden_dim", "model.num_heads"},
			"model.hidden_dim %d is not divisible by model.num_heads %d", m.HiddenDim, m.NumHeads))
	}
	if a.Optimizer == OptimizerMuon && !inBlocks(m.HiddenDim) {
		out = append(out, clash([]string{"training_advanced.optimizer", "model.hidden_dim"},
			"training_advanced.optimizer muon needs blocks of %d to %d rows, and model.hidden_dim %d has no divisor in between: use another width, or adamw", muonLeast, muonMost, m.HiddenDim))
	}
	if a.TempMin > a.TempStart {
		out = append(out, clash([]string{"training_advanced.temp_min", "training_advanced.temp_start"},
			"training_advanced.temp_min %g is over training_advanced.temp_start %g", a.TempMin, a.TempStart))
	}
	if a.EntropyMin > a.EntropyCoef {
		out = append(out, clash([]string{"training_advanced.entropy_min", "training_advanced.entropy_coef"},
			"training_advanced.entropy_min %g is over training_advanced.entropy_coef %g, which it is reached from", a.EntropyMin, a.EntropyCoef))
	}
	if a.UseLRScheduling && a.SchedulerType != SchedulerConstant && a.MinLR > t.LearningRate {
		out = append(out, clash([]string{"training_advanced.min_lr", "training.learning_rate"},
			"training_advanced.min_lr %g is over training.learning_rate %g, which it is reached from", a.MinLR, t.LearningRate))
	}
	if p.Rules != "" && (b.Symmetries != 1 || t.UseGeometricMean) {
		out = append(out, clash([]string{"baseline.symmetries", "training.use_geometric_mean", "problem.rules"},
			"problem.rules may have costs below 0 and know east from west: it goes with neither baseline.symmetries 8 nor training.use_geometric_mean"))
	}
	least := c.Of(p.Customers[0]) // the settings for the smallest instances
	if b.Type == BaselinePOMO && least.Starts() > least.Problem.NumCustomers() {
		out = append(out, clash([]string{"baseline.starts", "problem.num_customers"},
			"baseline.starts %d is over problem.num_customers %d: each start is another customer", b.Starts, p.Customers[0]))
	}
	if b.Type == BaselinePOMO && least.Starts() < 2 {
		out = append(out, clash([]string{"baseline.starts", "baseline.type", "problem.num_customers"},
			"baseline.type pomo needs at least 2 starts to compare, got %d", least.Starts()))
	}
	if b.Type == BaselineEMA && p.Customers[0] < p.Customers[1] {
		out = append(out, clash([]string{"problem.num_customers", "baseline.type"},
			"baseline.type ema compares with the mean cost of all instances, and problem.num_customers %s mixes sizes: use rollout or pomo", p.Customers))
	}
	if b.Type != BaselinePOMO && b.Advantage != AdvantageDifference {
		out = append(out, clash([]string{"baseline.advantage", "baseline.type"},
			"baseline.advantage %s compares the starts of an instance: it needs baseline.type pomo, not %s", b.Advantage, b.Type))
	}
	if b.LeaderWeight > 0 && b.Advantage != AdvantagePreference {
		out = append(out, clash([]string{"baseline.leader_weight", "baseline.advantage"},
			"baseline.leader_weight %g weighs pairs of starts: it needs baseline.advantage preference, not %s", b.LeaderWeight, b.Advantage))
	}
	if c.Model.StartViews && b.Type != BaselinePOMO {
		out = append(out, clash([]string{"model.start_views", "baseline.type"},
			"model.start_views is how a route from every customer begins: it needs baseline.type pomo, not %s", b.Type))
	}
	if b.LeaderAlone && b.LeaderWeight == 0 {
		out = append(out, clash([]string{"baseline.leader_alone", "baseline.leader_weight"},
			"baseline.leader_alone needs a weight to give: set baseline.leader_weight, for example to 1000"))
	}
	if b.LeaderMargin > 0 && b.LeaderWeight == 0 {
		out = append(out, clash([]string{"baseline.leader_margin", "baseline.leader_weight"},
			"baseline.leader_margin measures the weight of a leader: set baseline.leader_weight, for example to 1000"))
	}
	switch {
	case b.Symmetries == 1:
	case b.Advantage != AdvantagePreference:
		out = append(out, clash([]string{"baseline.symmetries", "baseline.advantage"},
			"baseline.symmetries 8 compares routes by pairs: it needs baseline.advantage preference, not %s", b.Advantage))
	case t.BatchSize%8 != 0:
		out = append(out, clash([]string{"training.batch_size", "baseline.symmetries"},
			"training.batch_size %d is no multiple of 8: with baseline.symmetries 8 each instance is in a batch eight times", t.BatchSize))
	}
	// Instances are numbered by a 64-bit counter from the start of the run.
	if total := float64(t.NumEpochs) * float64(t.NumBatchesPerEpoch) * float64(t.BatchSize); total >= 1<<62 {
		out = append(out, clash([]string{"training.num_epochs", "training.num_batches_per_epoch", "training.batch_size"},
			"training asks for %.3g instances in all, more than can be numbered", total))
	}
	return out
}
