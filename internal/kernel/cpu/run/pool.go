package run

import (
	"runtime"
	"sync/atomic"
)

// pool keeps one goroutine a worker. A run forks once, by waking them, and joins once, at the last
// barrier; barriers in between spin, because the phases they part are shorter than a wake-up.
type pool struct {
	n    int
	wake []chan func(worker int)
	spin barrier
}

func newPool(n int) *pool {
	p := &pool{n: n, wake: make([]chan func(int), n)}
	p.spin.n = int32(n)
	for i := 1; i < n; i++ {
		p.wake[i] = make(chan func(int), 1)
		go func() {
			for f := range p.wake[i] {
				f(i)
				p.spin.wait()
			}
		}()
	}
	return p
}

// run calls f on every worker, the caller being worker 0, and returns when all are done.
func (p *pool) run(f func(worker int)) {
	for i := 1; i < p.n; i++ {
		p.wake[i] <- f
	}
	f(0)
	p.spin.wait()
}

func (p *pool) close() {
	for i := 1; i < p.n; i++ {
		close(p.wake[i])
	}
}

// barrier makes n goroutines wait for each other. The last to arrive opens the next round.
type barrier struct {
	n       int32
	arrived atomic.Int32
	round   atomic.Uint32
}

func (b *barrier) wait() {
	round := b.round.Load()
	if b.arrived.Add(1) == b.n {
		b.arrived.Store(0)
		b.round.Add(1)
		return
	}
	for i := 0; b.round.Load() == round; i++ {
		if i > 2000 {
			runtime.Gosched()
		}
	}
}
