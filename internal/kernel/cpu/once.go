package cpu

import (
	"fmt"
	"sync/atomic"

	"haul/internal/kernel"
)

// phase is work of an op that runs once per step, which all workers share between two barriers.
//
// What a reader could break: which worker takes a chunk changes nothing, because chunks are fixed
// and every sum runs in a fixed order; and whether a phase runs is the same answer for all workers,
// or they would wait for each other at different barriers.
type phase struct {
	op   int // what its time is booked on; 0: the op that it is of
	run  func(w *worker, p *phase)
	when func() bool // nil: in every step
	// whole ops that need no barrier of their own, by whoever has nothing left to do
	beside []task
	err    error // of this step: set by one worker, read behind the next barrier
	next   atomic.Int32
	spare  atomic.Int32 // of beside
}

// task is an op that one worker runs alone.
type task struct {
	op  int
	run func()
}

// take hands out the phase's chunks in order.
func (p *phase) take() int { return int(p.next.Add(1)) - 1 }

func (p *phase) reset() {
	p.err = nil
	p.next.Store(0)
	p.spare.Store(0)
}

// bindOnce makes phases of the ops that run once. One that is Flat, or asks other processes, has
// phases to itself, in order; any other reads only what the shards left and runs beside the first
// phase.
func (b *binder) bindOnce() error {
	r := b.r
	var beside []task
	for i, op := range r.prog.Once {
		at := len(r.prog.PerShard) + i
		var phases []*phase
		var run func()
		var err error
		switch o := op.(type) {
		case *kernel.Reduce:
			phases, err = b.reduce(o)
		case *kernel.Exchange:
			phases, err = b.exchange(o)
			r.piece.op = at
		case *kernel.AdamW:
			phases = b.adamw(o)
		case *kernel.Tally:
			run = b.tally(o)
		case *kernel.RunningMean:
			phases, run = b.runningMean(o)
		default:
			err = fmt.Errorf("the CPU has no op %s that runs once", op.Kind())
		}
		if err != nil {
			return err
		}
		for _, p := range phases {
			if p.op == 0 {
				p.op = at
			}
		}
		r.phases = append(r.phases, phases...)
		if run != nil {
			beside = append(beside, task{at, run})
		}
	}
	if len(beside) > 0 && (len(r.phases) == 0 || r.phases[0].when != nil) { // they run in every step
		r.phases = append([]*phase{{op: beside[0].op, run: func(*worker, *phase) {}}}, r.phases...)
	}
	if len(beside) > 0 {
		r.phases[0].beside = beside
	}
	return nil
}

// runOnce is a worker's part of all phases. A phase that failed ends the step behind the next
// barrier, where all workers know of it.
func (r *runner) runOnce(w *worker) {
	var before *phase
	for _, p := range r.phases {
		if p.when != nil && !p.when() {
			continue
		}
		r.meet(w)
		if r.left.Load() {
			return
		}
		if before != nil && before.err != nil {
			return
		}
		before = p
		p.run(w, p)
		w.clock.lap(p.op, -1)
		for i := int(p.spare.Add(1)) - 1; i < len(p.beside); i = int(p.spare.Add(1)) - 1 {
			p.beside[i].run()
			w.clock.lap(p.beside[i].op, -1)
		}
	}
}
