package plan_test

import (
	"slices"
	"testing"

	"haul/internal/kernel"
	"haul/internal/model"
	"haul/internal/plan"
	"haul/internal/rng"
)

// TestInstancesThatAreGiven have a row for each instance of the batch. Actions with Keep are
// readable after the step.
func TestInstancesThatAreGiven(t *testing.T) {
	m, err := model.NewGT(model.GTConfig{Width: 6, Heads: 2, Layers: 1, FeedMul: 2})
	if err != nil {
		t.Fatal(err)
	}
	dev, _ := onReference(t, m.Layout())
	p := plan.New("given", dev, 6, gtNodes, m.Layout())
	in := p.Given(roomy(p).Rules, gtNodes)
	for name, x := range map[string]*kernel.Tensor{"x": in.PosX, "y": in.PosY} {
		if want := []int{p.B(), gtNodes}; !slices.Equal(x.Shape, want) {
			t.Errorf("%s is %v, want %v", name, x.Shape, want)
		}
	}
	for _, keep := range []bool{true, false} {
		r := p.Rollout("policy", m.Encode(p, 0, roomy(p), true), plan.RolloutSpec{Choice: kernel.Sample, Starts: 1, MaxStep: 2 * gtNodes, Keep: keep}, rng.Actions)
		if (r.Actions.Space == kernel.Shard) == keep {
			t.Errorf("keep %v: actions are in space %v", keep, r.Actions.Space)
		}
	}
}
