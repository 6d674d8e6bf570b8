package bench

import (
	"errors"
	"io"
	"strings"
	"testing"

	"haul/internal/run"

	"haul/cmd/haul/cli"
)

// TestWarmingIsBounded: twenty steps warm a machine, and of steps that take seconds two are enough.
func TestWarmingIsBounded(t *testing.T) {
	for _, c := range []struct {
		enough bool
		want   int
	}{{false, 20}, {true, 2}} {
		made := 0
		if err := warm(func() error { made++; return nil }, func() bool { return c.enough }); err != nil || made != c.want {
			t.Errorf("enough %v: %d steps, want %d; %v", c.enough, made, c.want, err)
		}
	}
	broken := errors.New("broken")
	if err := warm(func() error { return broken }, func() bool { return false }); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

// TestBenchStepIsReadable: a mean over rounds is no reason for seventeen digits.
func TestBenchStepIsReadable(t *testing.T) {
	var b strings.Builder
	r := &stepReport{Copies: 0.04019900497512438, Launches: 1, step: new(run.Step)}
	r.print(&b, &app{&cli.App{Stdout: io.Discard}})
	if !strings.Contains(b.String(), "1 launches, 0.0402 copies") {
		t.Errorf("%s", b.String())
	}
}
