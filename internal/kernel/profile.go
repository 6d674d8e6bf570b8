package kernel

import "time"

// Idle is the op of a span without work: a worker waited for the others or, on a GPU, for a
// launch.
const Idle = -1

// Span is one piece of one worker's time in a step. Op counts PerShard ops, then Once ops, then
// Idle.
type Span struct {
	Op     int
	Worker int // core, or 0 on a GPU
	Shard  int // -1 in ops that run once
	Start  time.Duration
	End    time.Duration // both since the step began
}

// Profile is one instrumented step. Spans of a worker follow each other without gaps.
type Profile struct {
	Program *Program
	Workers int
	Wall    time.Duration // of the instrumented step
	Plain   time.Duration // median of the same step without instruments
	Spans   []Span
	Halved  bool // Compact tensors were held in two bytes an element
}

// Profiler is a runner that can time its ops.
type Profiler interface {
	// Profile runs plain steps for the median, then one instrumented step. State advances as by Run.
	Profile(plain int) (*Profile, error)
}
