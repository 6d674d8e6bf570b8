package routing

import (
	"testing"

	"haul/internal/config"
)

// A candidate is tested from the last epoch of the warmup on, not one later.
func TestTheWarmupEndsOnTime(t *testing.T) {
	u := &config.BaselineUpdate{Enabled: true, Frequency: 1, WarmupEpochs: 3}
	for epoch, want := range map[int]bool{2: false, 3: true, 4: true} {
		if due(u, epoch) != want {
			t.Errorf("after epoch %d with a warmup of 3: %v", epoch, !want)
		}
	}
}
