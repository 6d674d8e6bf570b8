package policy

import (
	"slices"
	"strings"

	"haul/internal/config"
	"haul/internal/model"
	"haul/internal/rng"
)

// Grows supports a run that begins with the weights of a policy for simpler problems, for example
// of one depot instead of several. It returns the weights of `to` whose beginning along an axis is
// the weight of `from`, with that axis, and describes the inputs that the network of `from` lacks.
// axes is empty unless the features and the context of one rule set begin with those of the other.
func Grows(from, to *config.Config) (axes map[string]int, sees string) {
	old, new := rulesOf(SourceOf(from, rng.TrainInstances)), rulesOf(SourceOf(to, rng.TrainInstances))
	features, context := new.Features(), new.Context()
	if old == new || len(old.Context()) < 2 || !starts(features, old.Features()) || !starts(context, old.Context()) {
		return nil, ""
	}
	more := append(slices.Clone(features[len(old.Features()):]), context[len(old.Context()):]...)
	return model.GrownWeights(), "new to them are " + strings.Join(more, ", ") + ", which begin with weights of 0"
}

// starts reports whether all begins with first.
func starts(all, first []string) bool {
	return len(all) >= len(first) && slices.Equal(all[:len(first)], first)
}
