package cli_test

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"haul/cmd/haul/cli"
	"haul/cmd/haul/clitest/inprocess"
)

// TestRanksThatWaitCanBeStopped: a rank that waits for others who do not come ends when it is told
// to, not after a minute, and says that it was interrupted, not that somebody was late.
func TestRanksThatWaitCanBeStopped(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := ln.Addr().String()
	ln.Close()
	for rank := range 2 {
		ctx, stop := context.WithCancel(t.Context())
		var stopped atomic.Int64
		time.AfterFunc(200*time.Millisecond, func() { stopped.Store(time.Now().UnixNano()); stop() })
		r := inprocess.RunIn(ctx, "train", "--config", "tiny_1", "--device", "cpu", "--out", filepath.Join(t.TempDir(), "run"),
			"--ranks", "2", "--rank", fmt.Sprint(rank), "--rendezvous", at)
		if r.Code != cli.ExitInterrupted || !strings.Contains(r.Stderr, "interrupted") {
			t.Errorf("rank %d: exit %d: %s", rank, r.Code, r.Stderr)
		}
		// From the order to the end there is nothing to do, so that load hardly counts.
		if took := time.Since(time.Unix(0, stopped.Load())); took > 50*time.Second {
			t.Errorf("rank %d ended %v after it was told to", rank, took)
		}
	}
}
