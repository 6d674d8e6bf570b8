package routing

import (
	"strings"
	"testing"

	"haul/internal/config"
	"haul/internal/run"
	"haul/internal/run/runtest"
)

// TestRanksAreOneProcess: several ranks give the same bits as one process, with a frozen policy as
// the baseline and with a running mean of all ranks' costs.
func TestRanksAreOneProcess(t *testing.T) {
	for name, sets := range map[string][]string{
		"rollout": {"model.transformer_dropout=0.1", "training.batch_size=240"},
		"ema":     {"baseline.type=ema", "training.batch_size=360", "training.num_epochs=2"},
		"bf16":    {"training.batch_size=240", "training.num_epochs=2"},
		"leaders": append([]string{"training.batch_size=128", "training.num_epochs=2"}, leaders...),
		"muon":    {"training.batch_size=240", "training.num_epochs=2", "training_advanced.optimizer=muon"},
		"sizes":   {"problem.num_customers=[21, 22]", "training.batch_size=64", "training.validation_instances=4", "training.num_epochs=2"},
		"views":   append([]string{"training.batch_size=240", "training.num_epochs=2"}, views...),
	} {
		t.Run(name, func(t *testing.T) {
			open := openCPU
			if name == "bf16" {
				open = openBF16
			}
			runtest.RanksAreOneProcess(t, runtest.Case{Recipe: Recipe{}, Settings: tiny(t, sets...), Device: open,
				Open: func(testing.TB, config.Settings) run.Task { return task{} }})
		})
	}
}

// TestRanksThatCannotShare are refused in one line.
func TestRanksThatCannotShare(t *testing.T) {
	for _, c := range []struct {
		sets []string
		n    int
		want string
	}{
		{[]string{"training.batch_size=90"}, 2, "training.batch_size: a batch of 90 in shards of 30 does not cut into 2 equal parts: use a multiple of 60, or fewer ranks"},
		{[]string{"training.batch_size=20"}, 2, "training.batch_size: a batch of 20 in shards of 20 does not cut into 2 equal parts: use a multiple of 60, or fewer ranks"},
		{append([]string{"training.batch_size=96"}, leaders...), 2, "training.batch_size: a batch of 96 in shards of 32 does not cut into 2 equal parts: use a multiple of 64, or fewer ranks"},
		{[]string{"training.batch_size=120"}, 3, "a batch of 120 in shards of 30 does not cut into 3 equal parts: use a number of ranks that is a power of two"},
		{[]string{"training.batch_size=480"}, 16, "16 processes share a step whose gradient is summed in 8 lanes: at most 8 can"},
		{[]string{"training.batch_size=180"}, 3, "3 processes cannot share the 8 lanes that the gradient is summed in: use a power of two"},
	} {
		err := runtest.Ranks(t.Context(), t, c.n, runtest.OpenDir(t, runtest.Folder(t), false), false, &runtest.Heard{}, func(int) run.Options { return options(tiny(t, c.sets...), openCPU(t, 1)) })
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%d ranks with %v: %v", c.n, c.sets, err)
		}
	}
}

// TestRanksMustAgree: a rank with other settings is named before anything is computed.
func TestRanksMustAgree(t *testing.T) {
	err := runtest.Ranks(t.Context(), t, 2, runtest.OpenDir(t, runtest.Folder(t), false), false, &runtest.Heard{}, func(rank int) run.Options {
		c := tiny(t, "training.batch_size=240")
		if rank == 1 {
			c = tiny(t, "training.batch_size=240", "training.learning_rate=0.02")
		}
		return options(c, openCPU(t, 1))
	})
	if err == nil || !strings.Contains(err.Error(), `rank 1 differs from rank 0: it was started with "learning_rate: 0.02", rank 0 with "learning_rate: 0.01"`) {
		t.Error(err)
	}
}
