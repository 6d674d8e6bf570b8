package recipe

import (
	"context"

	"haul/internal/kernel"
	"haul/internal/recipe/agent"
	"haul/internal/recipe/ppo"
	"haul/internal/recipe/recurrent"
	"haul/internal/run"
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

// TrainCommand is the command line that trains an agent on a file of histories; "" where no shipped
// settings serve.
func TrainCommand(h history.History, path string) string { return agent.Command(h, path) }

// SameStart says why an agent's checkpoint cannot stand for a run on these histories that begins
// with the weights of from; nil: with its own.
func SameStart(checkpoint, histories string, from *run.Checkpoint) error {
	return agent.SameStart(checkpoint, histories, from)
}

// Learners with a recurrent network, for tasks of XLand-MiniGrid.
type (
	Recurrent     = recurrent.Settings
	RecurrentPool = recurrent.Pool
)

// The same learners in environments that another program runs.
type (
	LiveLearner = recurrent.Live
	Shown       = recurrent.Shown
	Told        = recurrent.Told
)

// DefaultLiveLearner learns tasks of many kinds of environments.
func DefaultLiveLearner() Recurrent { return recurrent.LiveDefault() }

// CheckLiveLearner refuses what no learner can follow.
func CheckLiveLearner(s Recurrent, shown Shown) error { return recurrent.CheckLive(&s, &shown) }

// NewLiveLearner compiles a learner; act says what its actions lead to.
func NewLiveLearner(dev kernel.Device, s Recurrent, shown Shown, seed uint64, act func(ctx context.Context, actions []uint8) (*Told, error)) (*LiveLearner, error) {
	return recurrent.NewLive(dev, s, shown, seed, act)
}

// DefaultRecurrent learns most tasks without rules.
func DefaultRecurrent() Recurrent { return recurrent.Default() }

// NewRecurrentPool compiles a learner for each device.
func NewRecurrentPool(w xland.World, s Recurrent, seed uint64, devices []kernel.Device, cores int, told func(transitions int64)) (*RecurrentPool, error) {
	return recurrent.NewPool(w, s, seed, devices, cores, told)
}
