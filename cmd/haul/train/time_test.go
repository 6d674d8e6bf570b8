package train

import (
	"context"
	"errors"
	"testing"
	"time"

	"haul/internal/run"
)

// --time counts from when the run began, and its end has a name.
func TestTheTimeOfARunCountsFromItsBeginning(t *testing.T) {
	f := &trainFlags{time: time.Hour}
	began := time.Now().Add(-59 * time.Minute)
	ctx, stop := f.limited(t.Context(), began)
	defer stop()
	if end, ok := ctx.Deadline(); !ok || !end.Equal(began.Add(time.Hour)) {
		t.Errorf("a run of an hour that began at %v ends at %v", began, end)
	}
	ctx, stop = f.limited(t.Context(), began.Add(-2*time.Minute))
	defer stop()
	if !errors.Is(context.Cause(ctx), run.ErrTimeUp) {
		t.Errorf("a run whose time is up ends with %v", context.Cause(ctx))
	}
	if ctx, stop := (&trainFlags{}).limited(t.Context(), began); ctx.Done() != t.Context().Done() {
		stop()
		t.Error("a run without a time has an end")
	}
}
