package ppo

import (
	"slices"
	"testing"

	"haul/internal/world/grid"
)

// Each rollout and each stream uses separate random numbers: a policy that does not change must not
// act the same way twice.
func TestRolloutsDrawAnew(t *testing.T) {
	c := smallData(t, "source_lr=1e-09")
	l := openLearner(t, c)
	steps := live(t, l, grid.Goal(grid.At(1, 3)))
	each := len(steps) / c.NStream
	if each < 2*c.NSteps {
		t.Skipf("a history of %d steps has no two rollouts of %d", each, c.NSteps)
	}
	actions := func(stream, from, n int) (out []uint8) {
		for _, s := range steps[stream*each+from:][:n] {
			out = append(out, s.Action())
		}
		return out
	}
	same := 0
	for s := range c.NStream {
		if slices.Equal(actions(s, 0, c.NSteps), actions(s, c.NSteps, c.NSteps)) {
			same++
		}
	}
	if same == c.NStream {
		t.Errorf("all %d streams act in their second rollout as in their first", same)
	}
	if c.NStream > 1 && slices.Equal(actions(0, 0, each), actions(1, 0, each)) {
		t.Error("two streams act alike")
	}
}
