package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"haul/internal/comm"
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
		r := haulIn(ctx, "train", "--config", "tiny_1", "--device", "cpu", "--out", filepath.Join(t.TempDir(), "run"),
			"--ranks", "2", "--rank", fmt.Sprint(rank), "--rendezvous", at)
		if r.code != exitInterrupted || !strings.Contains(r.stderr, "interrupted") {
			t.Errorf("rank %d: exit %d: %s", rank, r.code, r.stderr)
		}
		// From the order to the end there is nothing to do, so that load hardly counts.
		if took := time.Since(time.Unix(0, stopped.Load())); took > 50*time.Second {
			t.Errorf("rank %d ended %v after it was told to", rank, took)
		}
	}
}

// Who waits says for whom: a single rank, whose NCCL takes its time to open, waits for nobody.
func TestOnlyRanksWithOthersWait(t *testing.T) {
	two := comm.Place{Launcher: comm.Hand, Rank: 1, Size: 2, Address: "host:29500"}
	if got := waits(two); !strings.Contains(got, "rank 1 of 2 waits for the others at host:29500") {
		t.Errorf("two by hand: %q", got)
	}
	for _, p := range []comm.Place{{Launcher: comm.Hand, Size: 1}, {Launcher: "mpirun", Size: 2, Rank: 1}} {
		if got := waits(p); got != "" {
			t.Errorf("%+v: %q", p, got)
		}
	}
}

// Of ranks that a launcher started on one machine one tells of what all of them have; a rank that
// somebody started by hand has nobody to tell it.
func TestRanksByHandTellTheirErrors(t *testing.T) {
	bad := errors.New("cannot reach rank 0")
	for launcher, quiet := range map[string]bool{comm.Hand: false, "mpirun": true} {
		err := oncePerMachine(comm.Place{Launcher: launcher, Rank: 1, Size: 2, LocalRank: 1, LocalSize: 2}, bad)
		if errors.As(err, new(silent)) != quiet || !errors.Is(err, bad) {
			t.Errorf("%s: %v", launcher, err)
		}
	}
}
