package recipe

import (
	"context"

	"haul/internal/recipe/agent"
	"haul/internal/recipe/ppo"
	"haul/internal/world/history"
)

// The learning histories that PPO's learners write and AD reads: `haul data` makes them. They
// are reached through this package, because only its list imports recipes.
type (
	HistoryOptions  = ppo.HistoryOptions
	HistoryProgress = ppo.HistoryProgress
	HistorySpeed    = ppo.HistorySpeed
	HistorySummary  = ppo.HistorySummary
)

// HistoryFile is where histories are looked for when no file is named.
const HistoryFile = agent.HistoryFile

// MakeHistories trains a learner on every goal and writes what they lived through.
func MakeHistories(ctx context.Context, o HistoryOptions) (HistorySpeed, error) {
	return ppo.MakeHistories(ctx, o)
}

// SummarizeHistories is what a file of histories shows.
func SummarizeHistories(h *history.Rooms) HistorySummary { return ppo.SummarizeHistories(h) }
