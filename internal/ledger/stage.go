package ledger

import (
	"slices"

	"haul/internal/kernel"
)

// Stage is a part of a step.
type Stage = kernel.Stage

// The stages, in the order of a step.
const (
	Generate  = kernel.StageGenerate
	Encode    = kernel.StageEncode
	Decode    = kernel.StageDecode
	Baseline  = kernel.StageBaseline
	Loss      = kernel.StageLoss
	Backward  = kernel.StageBackward
	Optimizer = kernel.StageOptimizer

	Communicate = kernel.StageExchange

	Idle Stage = "idle" // workers without work
)

// forward and after hold the stages in the order of a step. Other stages that ops declare come
// between the two, in the order of the program.
var (
	forward = []Stage{Generate, Encode, Decode, Baseline, Loss}
	after   = []Stage{Backward, Optimizer, Idle}
)

// ordered returns the stages of both lists and those in `of`, each once.
func ordered(of []Stage) []Stage {
	out := slices.Clone(forward)
	for _, s := range of {
		if !slices.Contains(out, s) && !slices.Contains(after, s) && s != Communicate {
			out = append(out, s)
		}
	}
	if slices.Contains(of, Communicate) { // between the gradient and its use
		return append(out, Backward, Communicate, Optimizer, Idle)
	}
	return append(out, after...)
}

// Stages returns the stages of a program's ops, PerShard then Once. It uses what an op declares and
// where its data come from, so that ops unknown to this package have a stage:
//
//	the op's own   it declares a stage that is not of the forward pass
//	backward       it accesses a weight's gradient, or reads the result of a backward op or the loss
//	baseline       it reads a frozen weight set, or the result of a baseline op
//	the op's own   it declares a stage of the forward pass
//	encode         all other ops that run per shard
//	optimizer      all other ops that run once per step
//
// The first line that applies decides.
func Stages(p *kernel.Program) []Stage {
	out := make([]Stage, 0, len(p.PerShard)+len(p.Once))
	writer := map[*kernel.Tensor]Stage{}
	for _, op := range p.PerShard {
		s := stageOf(op, writer)
		op.Args(func(t *kernel.Tensor, a kernel.Access) {
			if a != kernel.Read {
				writer[t.Root()] = s
			}
		})
		out = append(out, s)
	}
	for _, op := range p.Once {
		s := Optimizer
		if declared, ok := op.(kernel.Staged); ok {
			s = declared.Stage()
		}
		out = append(out, s)
	}
	return out
}

func stageOf(op kernel.Op, writer map[*kernel.Tensor]Stage) Stage {
	declared := kernel.StageOf(op)
	if !declared.Forward() {
		return declared
	}
	var backward, baseline bool
	op.Args(func(t *kernel.Tensor, a kernel.Access) {
		from := writer[t.Root()]
		backward = backward || t.Root().Space == kernel.Grad || a != kernel.Write && (from == Backward || from == Loss)
		baseline = baseline || t.Root().Space == kernel.Weight && t.Root().Set > 0 || a != kernel.Write && from == Baseline
	})
	switch {
	case backward:
		return Backward
	case baseline:
		return Baseline
	}
	return declared
}
