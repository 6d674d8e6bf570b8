package run

import (
	"sync/atomic"

	"haul/internal/kernel"
)

// Phase is work of an op that runs once per step, which all workers share between two barriers.
//
// What a reader could break: which worker takes a chunk changes nothing, because chunks are fixed
// and every sum runs in a fixed order; and whether a phase runs is the same answer for all workers,
// or they would wait for each other at different barriers.
type Phase struct {
	Op   int // what its time is booked on; 0: the op that it is of
	Run  func(w *Worker, p *Phase)
	When func() bool // nil: in every step
	// whole ops that need no barrier of their own, by whoever has nothing left to do
	Beside []Task
	Err    error // of this step: set by one worker, read behind the next barrier
	next   atomic.Int32
	spare  atomic.Int32 // of beside
}

// Task is an op that one worker runs alone.
type Task struct {
	Op  int
	Run func()
}

// Take hands out the phase's chunks in order.
func (p *Phase) Take() int { return int(p.next.Add(1)) - 1 }

func (p *Phase) reset() {
	p.Err = nil
	p.next.Store(0)
	p.spare.Store(0)
}

// runOnce is a worker's part of all phases. A phase that failed ends the step behind the next
// barrier, where all workers know of it.
func (r *Runner) runOnce(w *Worker) {
	var before *Phase
	for _, p := range r.Phases {
		if p.When != nil && !p.When() {
			continue
		}
		r.meet(w)
		if r.left.Load() {
			return
		}
		if before != nil && before.Err != nil {
			return
		}
		before = p
		p.Run(w, p)
		w.clock.lap(p.Op, -1)
		for i := int(p.spare.Add(1)) - 1; i < len(p.Beside); i = int(p.spare.Add(1)) - 1 {
			p.Beside[i].Run()
			w.clock.lap(p.Beside[i].Op, -1)
		}
	}
}

// learns tells whether the program makes a gradient.
func (r *Runner) learns() bool { return len(r.Squares) > 0 }

// Whole says that the step ends an update: always, unless updates have parts.
func (r *Runner) Whole() bool { return r.Every == 1 || r.Progress.Part == uint64(r.Every)-1 }

// Piece is what of the update this process makes: chunks [from, to), all of them where it is alone.
type Piece struct {
	From, To int
	Grad     []float32     // everybody's sum; its first number is that of chunk `from`
	Peer     kernel.Sharer // nil: alone
	Adds     [][2]int      // gradients of processes to add up, into and from, in order
	Op       int           // what its communication is booked on
}

// Span is where chunk i lies in a buffer of the piece alone.
func (c *Piece) Span(i int) (at, end int) {
	at = (i - c.From) * Chunk
	return at, min(at+Chunk, len(c.Grad))
}
