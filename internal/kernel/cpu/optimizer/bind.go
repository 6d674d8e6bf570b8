// Package optimizer binds the ops that run once per step: sums of gradients, AdamW, Muon, metrics.
package optimizer

import (
	"fmt"

	"haul/internal/kernel"
	"haul/internal/kernel/cpu/run"
)

// Bind makes phases of the ops that run once. One that is Flat, or asks other processes, has
// phases to itself, in order; any other reads only what the shards left and runs beside the first
// phase.
func Bind(b *run.Binder) error {
	r := b.Runner
	var beside []run.Task
	for i, op := range r.Program.Once {
		at := len(r.Program.PerShard) + i
		var phases []*run.Phase
		var alone func()
		var err error
		switch o := op.(type) {
		case *kernel.Reduce:
			phases, err = reduce(b, o)
		case *kernel.Exchange:
			phases, err = exchange(b, o)
			r.Piece.Op = at
		case *kernel.AdamW:
			phases = adamw(b, o)
		case *kernel.Tally:
			alone = tally(b, o)
		case *kernel.RunningMean:
			phases, alone = runningMean(b, o)
		default:
			err = fmt.Errorf("the CPU has no op %s that runs once", op.Kind())
		}
		if err != nil {
			return err
		}
		for _, p := range phases {
			if p.Op == 0 {
				p.Op = at
			}
		}
		r.Phases = append(r.Phases, phases...)
		if alone != nil {
			beside = append(beside, run.Task{Op: at, Run: alone})
		}
	}
	if len(beside) > 0 && (len(r.Phases) == 0 || r.Phases[0].When != nil) { // they run in every step
		r.Phases = append([]*run.Phase{{Op: beside[0].Op, Run: func(*run.Worker, *run.Phase) {}}}, r.Phases...)
	}
	if len(beside) > 0 {
		r.Phases[0].Beside = beside
	}
	return nil
}
