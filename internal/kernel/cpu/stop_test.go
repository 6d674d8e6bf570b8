package cpu_test

import (
	"errors"
	"slices"
	"testing"

	"haul/internal/kernel"
	"haul/internal/kernel/cpu"
	"haul/internal/model"
	"haul/internal/plan"
)

// TestAnAbandonedUpdateNeverHappened: whoever stops in any part of an update and goes on from there
// later ends with the same bits and sums as one who never stopped.
func TestAnAbandonedUpdateNeverHappened(t *testing.T) {
	const every, parts = 2, 3
	cfg := model.ADConfig{Width: 16, Heads: 2, Layers: 1, Feed: 32, Positions: 20, Observed: model.Sizes(9, 9), Actions: 5, Rewards: 2, Dropout: 0.1, DropoutKey: 1}
	dev := open(t, cpu.Options{Workers: 2})
	weights := func(s kernel.Store) []float32 {
		out := make([]float32, len(model.Initial(layoutOf(t, cfg), 1)))
		check(t, s.ReadWeights(out))
		return out
	}
	whole, want := agentRun(t, dev, cfg, 16, 20, every)
	for range 2 * every {
		check(t, whole.Run())
	}
	all, err := whole.TakeMetrics()
	check(t, err)
	for done := range parts {
		stopped, store := agentRun(t, dev, cfg, 16, 20, every)
		for range done {
			check(t, stopped.Run())
		}
		stopped.(kernel.Stopper).Stop()
		if err := stopped.Run(); !errors.Is(err, kernel.ErrStopped) {
			t.Fatalf("after %d parts: %v", done, err)
		}
		state, err := stopped.State()
		check(t, err)
		if updates := done / every; state.Part != 0 || state.Step != uint64(updates) || state.Instances != uint64(updates*every*16) {
			t.Errorf("after %d parts: it stands at %+v", done, state)
		}
		first, err := stopped.TakeMetrics()
		check(t, err)
		again, other := agentRun(t, dev, cfg, 16, 20, every)
		check(t, other.WriteWeights(weights(store)))
		m, v := make([]float32, len(weights(store))), make([]float32, len(weights(store)))
		check(t, store.ReadMoments(m, v))
		check(t, other.WriteMoments(m, v))
		check(t, again.SetState(state))
		for range 2*every - done/every*every {
			check(t, again.Run())
		}
		rest, err := again.TakeMetrics()
		check(t, err)
		if !slices.Equal(weights(other), weights(want)) {
			t.Errorf("stopped after %d parts, it ends with other weights", done)
		}
		if got := first.Plus(rest); got.Steps != all.Steps || plan.HeadOf(got, model.HeadAction).Labels != plan.HeadOf(all, model.HeadAction).Labels || plan.HeadOf(got, model.HeadAction).Hits != plan.HeadOf(all, model.HeadAction).Hits {
			t.Errorf("stopped after %d parts, it sums up %+v, want %+v", done, got, all)
		}
	}
}

func layoutOf(t *testing.T, cfg model.ADConfig) *kernel.Layout {
	t.Helper()
	m, err := model.NewAD(cfg)
	check(t, err)
	return m.Layout()
}
