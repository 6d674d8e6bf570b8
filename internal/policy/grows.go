package policy

import (
	"slices"
	"strings"

	"haul/internal/config"
	"haul/internal/model"
	"haul/internal/rng"
)

// Grows names the weights of `from` that are the first part of the weights of `to`, with the
// axis, and what the network of `from` does not see. There are such weights if the features and
// the context of one rule set begin with those of the other: for example from a policy of one
// depot to one of several.
func Grows(from, to *config.Config) (axes map[string]int, sees string) {
	old, new := rulesOf(SourceOf(from, rng.TrainInstances)), rulesOf(SourceOf(to, rng.TrainInstances))
	features, context := new.Features(), new.Context()
	if old == new || len(old.Context()) < 2 || !starts(features, old.Features()) || !starts(context, old.Context()) {
		return nil, ""
	}
	more := append(slices.Clone(features[len(old.Features()):]), context[len(old.Context()):]...)
	return model.GrownWeights(), "new to them are " + strings.Join(more, ", ") + ", which begin with weights of 0"
}

// starts: all begins with first.
func starts(all, first []string) bool {
	return len(all) >= len(first) && slices.Equal(all[:len(first)], first)
}
