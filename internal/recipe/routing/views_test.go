package routing

import (
	"testing"

	"haul/internal/kernel"
	"haul/internal/run/runtest"
)

// views train starts that are viewed.
var views = []string{"baseline.type=pomo", "model.start_views=true"}

// TestValidationIsViewed: validation is of the policy that is trained.
func TestValidationIsViewed(t *testing.T) {
	dev := runtest.Watch(openCPU(t, 1))
	whole(t, tiny(t, append(views, "training.num_epochs=1", "training.validation_decode=pomo")...), dev)
	validated := 0
	for _, prog := range dev.Programs {
		for _, o := range runtest.Ops[*kernel.Rollout](prog.PerShard) {
			if o.Length.Cols() > 1 && (o.Forced || !o.Viewed) {
				t.Errorf("%s of a run with views: forced %v, viewed %v", prog.Name, o.Forced, o.Viewed)
			}
			if prog.Name == "evaluate" && o.Viewed {
				validated++
			}
		}
	}
	if validated == 0 {
		t.Error("no validation was viewed")
	}
}
