package cpu

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// pool keeps one goroutine per worker. A run forks once, by waking them, and joins once, at the
// last barrier; barriers in between spin first, because most phases are shorter than a wake-up.
type pool struct {
	n    int
	wake []chan func(worker int)
	spin barrier
}

func newPool(n int) *pool {
	p := &pool{n: n, wake: make([]chan func(int), n)}
	p.spin.n, p.spin.opened.L = int32(n), &p.spin.mutex
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

// barrier makes n goroutines wait for each other. The last to arrive opens the next round. Whoever
// waits spins first, since phases are short; after that it yields, and in the end it sleeps, so
// that cores which have other work too are not kept busy by waiting.
type barrier struct {
	n       int32
	arrived atomic.Int32
	round   atomic.Uint32
	asleep  atomic.Int32
	mutex   sync.Mutex
	opened  sync.Cond // on mutex: a round was opened
}

// How often a round is looked at before waiting yields and before it sleeps. A look takes a
// nanosecond or two and a yield on an idle core about a hundred: sleep comes after some 0.5 ms, and
// being woken takes a tenth of that.
const (
	looksBeforeYield = 2000
	looksBeforeSleep = looksBeforeYield + 5000
)

func (b *barrier) wait() {
	round := b.round.Load()
	if b.arrived.Add(1) == b.n {
		b.arrived.Store(0)
		b.round.Add(1)
		if b.asleep.Load() > 0 {
			b.mutex.Lock() // whoever is counted as asleep has looked at the round or waits
			b.opened.Broadcast()
			b.mutex.Unlock()
		}
		return
	}
	for i := 0; b.round.Load() == round; i++ {
		switch {
		case i > looksBeforeSleep:
			b.sleep(round)
		case i > looksBeforeYield:
			runtime.Gosched()
		}
	}
}

// sleep returns when the round is over. It counts itself before it looks, and who opens a round
// counts after it has opened it: one of the two sees the other.
func (b *barrier) sleep(round uint32) {
	b.mutex.Lock()
	b.asleep.Add(1)
	for b.round.Load() == round {
		b.opened.Wait()
	}
	b.asleep.Add(-1)
	b.mutex.Unlock()
}
