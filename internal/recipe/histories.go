package recipe

import (
	"context"

	"haul/internal/kernel"
	"haul/internal/recipe/agent"
	"haul/internal/recipe/ppo"
	"haul/internal/recipe/recurrent"
	"haul/internal/world/history"
	"haul/internal/world/xland"
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

// Learners with a recurrent network, for tasks of XLand-MiniGrid.
type (
	Recurrent     = recurrent.Settings
	RecurrentPool = recurrent.Pool
)

// DefaultRecurrent learns most tasks without rules.
func DefaultRecurrent() Recurrent { return recurrent.Default() }

// NewRecurrentPool compiles a learner for each device.
func NewRecurrentPool(w xland.World, s Recurrent, seed uint64, devices []kernel.Device, cores int, told func(transitions int64)) (*RecurrentPool, error) {
	return recurrent.NewPool(w, s, seed, devices, cores, told)
}
