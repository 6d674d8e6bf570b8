package kernel

// Stage is a part of a step; reports of a step's time group ops by it.
type Stage string

// The stages. An op may declare one that is not in this list.
const (
	StageGenerate  Stage = "generate"    // making instances and their features, or drawing sequences
	StageEncode    Stage = "encode"      // the trained network, forward
	StageDecode    Stage = "decode"      // what it decides, step by step
	StageBaseline  Stage = "baseline"    // whatever frozen weights compute, and subtracting a baseline
	StageLoss      Stage = "loss"        // the loss of labelled data, and where its gradient starts
	StageBackward  Stage = "backward"    // gradients
	StageExchange  Stage = "communicate" // gradients of other processes
	StageOptimizer Stage = "optimizer"   // what runs once: sums, clipping, update, metrics
)

// Staged is an op that says which stage it belongs to. One that does not is sorted by its data: see
// StageOf.
type Staged interface {
	Op
	Stage() Stage
}

// StageOf is the op's place where its data does not say otherwise: what it declares, else the
// network's forward pass.
func StageOf(op Op) Stage {
	if s, ok := op.(Staged); ok {
		return s.Stage()
	}
	return StageEncode
}

// Forward tells whether ops of the stage belong to a network's forward pass. Which network's, the
// trained one or a frozen one, or whether to a gradient, is decided by where an op's data comes
// from.
func (s Stage) Forward() bool { return s == StageEncode || s == StageDecode }
