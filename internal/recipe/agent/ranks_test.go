package agent

import (
	"testing"

	"haul/internal/config"
	"haul/internal/run"
	"haul/internal/run/runtest"
)

// TestRanksAreOneProcess: rows drawn on the device and made on the host by each rank's own loader,
// updates of several parts, heads that share keys, a test whose rows divide and agents that do not.
func TestRanksAreOneProcess(t *testing.T) {
	h := writeHistory(t, tinyHistory)
	for data, kv := range map[string]string{DataDevice: "1", DataHost: "0"} {
		t.Run(data, func(t *testing.T) {
			s := tinyAD(t, "train_batch_size=72", "test_batch_size=72", "gradient_accumulation_steps=2", "eval_agents=3", "eval_episodes=3", "gen_interval=6", "tf_n_kv_head="+kv)
			runtest.RanksAreOneProcess(t, runtest.Case{Recipe: Recipe{}, Settings: s, Device: openCPU,
				Open: func(testing.TB, config.Settings) run.Task { return &Task{History: h, Data: data} }})
		})
	}
}
