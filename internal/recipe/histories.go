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

// The learning histories that the learners of package ppo write and recipe AD trains on. `haul
// data` uses this package to make them: no other package imports the recipes.
type (
	HistoryOptions  = ppo.HistoryOptions
	HistoryProgress = ppo.HistoryProgress
	HistorySpeed    = ppo.HistorySpeed
	HistorySummary  = ppo.HistorySummary
)

// HistoryFile is the default path of a file of histories.
const HistoryFile = agent.HistoryFile

// MakeHistories trains one learner per goal and writes the learners' steps to a file.
func MakeHistories(ctx context.Context, o HistoryOptions) (HistorySpeed, error) {
	return ppo.MakeHistories(ctx, o)
}

// SummarizeHistories summarises a file of histories.
func SummarizeHistories(h *history.Rooms) HistorySummary { return ppo.SummarizeHistories(h) }

// TrainCommand returns the command line that trains an agent on a file of histories, or "" if no
// shipped settings fit them.
func TrainCommand(h history.History, path string) string { return agent.Command(h, path) }

// SameStart returns nil if an agent's checkpoint comes from a run on these histories whose initial
// weights were those of checkpoint from (nil: a random initialisation). Otherwise the error gives
// the difference.
func SameStart(checkpoint, histories string, from *run.Checkpoint) error {
	return agent.SameStart(checkpoint, histories, from)
}

// Learners with a recurrent network for tasks of XLand-MiniGrid.
type (
	Recurrent     = recurrent.Settings
	RecurrentPool = recurrent.Pool
)

// The same learners in external environments, which another program runs.
type (
	LiveLearner = recurrent.Live
	Shown       = recurrent.Shown
	StepResult  = recurrent.StepResult
)

// DefaultLiveLearner returns settings that learn in many kinds of environments.
func DefaultLiveLearner() Recurrent { return recurrent.LiveDefault() }

// CheckLiveLearner returns an error if no learner can run with these settings and spaces.
func CheckLiveLearner(s Recurrent, shown Shown) error { return recurrent.CheckLive(&s, &shown) }

// NewLiveLearner compiles a learner for external environments. act applies the actions to the
// environments and returns the result of the step.
func NewLiveLearner(dev kernel.Device, s Recurrent, shown Shown, seed uint64, act func(ctx context.Context, actions []uint8) (*StepResult, error)) (*LiveLearner, error) {
	return recurrent.NewLive(dev, s, shown, seed, act)
}

// DefaultRecurrent returns settings that learn most tasks without rules.
func DefaultRecurrent() Recurrent { return recurrent.Default() }

// NewRecurrentPool compiles one learner per device.
func NewRecurrentPool(w xland.World, s Recurrent, seed uint64, devices []kernel.Device, cores int, onSteps func(transitions int64)) (*RecurrentPool, error) {
	return recurrent.NewPool(w, s, seed, devices, cores, onSteps)
}
