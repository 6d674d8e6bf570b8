package ledger

import "haul/internal/kernel"

// Stage is a part of a training step.
type Stage string

// The stages, in the order of a step.
const (
	Generate  Stage = "generate"  // making instances and their features, or drawing sequences
	Encode    Stage = "encode"    // the policy's network, forward
	Decode    Stage = "decode"    // the policy's routes
	Baseline  Stage = "baseline"  // whatever a frozen policy computes, and subtracting the baseline
	Loss      Stage = "loss"      // the loss of labelled data, and where its gradient starts
	Backward  Stage = "backward"  // gradients
	Optimizer Stage = "optimizer" // what runs once: sums, clipping, update, metrics
	Idle      Stage = "idle"      // workers with nothing to run
)

var stages = []Stage{Generate, Encode, Decode, Baseline, Loss, Backward, Optimizer, Idle}

// Stages sorts a program's ops, PerShard then Once, by where their data comes from and not by their names, so that an op the
// ledger has never heard of finds its place:
//
//	loss       it compares with labels
//	backward   it touches a weight's gradient, or reads what a backward op or the loss wrote
//	baseline   it reads a frozen weight set, or what a baseline op wrote, or it subtracts the baseline
//	generate   it makes instances or draws sequences
//	decode     it makes routes
//	encode     everything else that runs a shard at a time
//	optimizer  everything that runs once
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
	for range p.Once {
		out = append(out, Optimizer)
	}
	return out
}

func stageOf(op kernel.Op, writer map[*kernel.Tensor]Stage) Stage {
	var backward, baseline bool
	op.Args(func(t *kernel.Tensor, a kernel.Access) {
		from := writer[t.Root()]
		backward = backward || t.Root().Space == kernel.Grad || a != kernel.Write && (from == Backward || from == Loss)
		baseline = baseline || t.Root().Space == kernel.Weight && t.Root().Set > 0 || a != kernel.Write && from == Baseline
	})
	switch op.(type) {
	case *kernel.Advantage:
		return Baseline
	case *kernel.Generate, *kernel.Feature, *kernel.Regions:
		return Generate
	case *kernel.CrossEntropy, *kernel.PPO:
		return Loss
	}
	switch {
	case backward:
		return Backward
	case baseline:
		return Baseline
	}
	if _, ok := op.(*kernel.Rollout); ok {
		return Decode
	}
	return Encode
}
