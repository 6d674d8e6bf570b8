package cpu

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// TestABarrierWakesWhoSleeps: the last to arrive comes when all others sleep, round after round,
// and nobody goes on before it has come.
func TestABarrierWakesWhoSleeps(t *testing.T) {
	const workers, rounds = 3, 20
	p := newPool(workers)
	defer p.close()
	var came atomic.Int32
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.run(func(worker int) {
			for round := range int32(rounds) {
				if worker == 0 {
					for p.spin.asleep.Load() < workers-1 {
						runtime.Gosched()
					}
					came.Add(1)
				}
				p.spin.wait()
				if got := came.Load(); got != round+1 {
					t.Errorf("worker %d is past barrier %d after %d arrivals", worker, round, got)
				}
				p.spin.wait() // until all have looked
			}
		})
	}()
	select {
	case <-done:
	case <-time.After(5 * time.Minute):
		t.Fatal("a worker sleeps on after its barrier was opened")
	}
	if n := p.spin.asleep.Load(); n != 0 {
		t.Errorf("%d workers count as asleep after the run", n)
	}
}
