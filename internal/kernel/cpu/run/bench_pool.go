package run

import (
	"runtime"
	"time"
)

// benchSlice is how long one side runs before the other takes over.
const benchSlice = time.Millisecond

// A BenchPool is the benchmark's worker pool: one goroutine per worker, each on a thread of its
// own, that start a slice together.
type BenchPool struct {
	work []chan slice
	done chan outcome
}

type slice struct {
	run func(w, n int) (flop float64)
	n   int
}

type outcome struct {
	flop float64
	took time.Duration
}

func NewBenchPool(workers int) *BenchPool {
	c := &BenchPool{done: make(chan outcome, workers)}
	for w := range workers {
		work := make(chan slice)
		c.work = append(c.work, work)
		go func() {
			runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
			for s := range work {
				start := time.Now()
				flop := s.run(w, s.n)
				c.done <- outcome{flop, time.Since(start)}
			}
		}()
	}
	return c
}

func (c *BenchPool) Close() {
	for _, work := range c.work {
		close(work)
	}
}

// slice runs n repeats on every worker; it lasts as long as the slowest.
func (c *BenchPool) slice(run func(w, n int) float64, n int) (flop float64, took time.Duration) {
	for _, work := range c.work {
		work <- slice{run, n}
	}
	for range c.work {
		o := <-c.done
		flop, took = flop+o.flop, max(took, o.took)
	}
	return flop, took
}

func (c *BenchPool) Rate(run func(w, n int) float64, n int) float64 {
	flop, took := c.slice(run, n)
	return flop / took.Seconds()
}

// Fill finds how many repeats make a slice.
func (c *BenchPool) Fill(run func(w, n int) float64) int {
	n := 1
	for _, took := c.slice(run, n); took < benchSlice; _, took = c.slice(run, n) {
		n *= 2
	}
	return n
}
