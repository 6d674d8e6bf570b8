package serve_test

import (
	"context"
	"strings"
	"testing"

	"haul/cmd/haul/cli"
	"haul/cmd/haul/clitest/inprocess"
)

// A token that somebody chose has at least 16 characters.
func TestServeTokensHaveALength(t *testing.T) {
	for n, ok := range map[int]bool{1: false, 15: false, 16: true, 17: true} {
		ctx, stop := context.WithCancel(t.Context())
		stop() // one that is taken listens, and ends at once
		r := inprocess.RunIn(ctx, "serve", "--addr", "127.0.0.1:0", "--runs", t.TempDir(), "--token", strings.Repeat("x", n))
		if refused := r.Code == cli.ExitUsage && strings.Contains(r.Stderr, "at least 16"); refused == ok {
			t.Errorf("%d characters: exit %d, %s", n, r.Code, r.Stderr)
		}
	}
}
