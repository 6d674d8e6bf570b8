package cli

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"haul/internal/cu"
)

// TestNoDriverHasARemedy: every verb that asks for a GPU where there is no driver says what to do.
func TestNoDriverHasARemedy(t *testing.T) {
	for err, want := range map[error]bool{fmt.Errorf("device cuda:0: %w: no such file", cu.ErrNoDriver): true, fmt.Errorf("device cuda:0: 1 GPU is there"): false} {
		var said strings.Builder
		a := &App{Stderr: &said}
		if code := a.Exit(context.Background(), err); code != ExitFailed || strings.HasSuffix(said.String(), "use --device cpu\n") != want {
			t.Errorf("%v: exit %d, %q", err, code, said.String())
		}
	}
}
