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

	Idle Stage = "idle" // workers with nothing to run
)

// forward and after are the stages in the order of a step; what else ops declare comes between the
// two, in the order of the program.
var (
	forward = []Stage{Generate, Encode, Decode, Baseline, Loss}
	after   = []Stage{Backward, Optimizer, Idle}
)

// ordered lists the stages of a program and those of the lists, each once.
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

// Stages sorts a program's ops, PerShard then Once, by what they declare and by where their data
// comes from, so that an op the ledger has never heard of finds its place:
//
//	the op's own   it declares a stage that is not of a network's way forward
//	backward       it touches a weight's gradient, or reads what a backward op or the loss wrote
//	baseline       it reads a frozen weight set, or what a baseline op wrote
//	the op's own   it declares a stage of the way forward
//	encode         everything else that runs a shard at a time
//	optimizer      everything that runs once and declares nothing
//
// The first line that fits decides.
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
