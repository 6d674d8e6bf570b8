package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"haul/internal/run"
)

// A token that somebody chose has at least 16 characters.
func TestServeTokensHaveALength(t *testing.T) {
	for n, ok := range map[int]bool{1: false, 15: false, 16: true, 17: true} {
		ctx, stop := context.WithCancel(t.Context())
		stop() // one that is taken listens, and ends at once
		r := haulIn(ctx, "serve", "--addr", "127.0.0.1:0", "--runs", t.TempDir(), "--token", strings.Repeat("x", n))
		if refused := r.code == exitUsage && strings.Contains(r.stderr, "at least 16"); refused == ok {
			t.Errorf("%d characters: exit %d, %s", n, r.code, r.stderr)
		}
	}
}

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
