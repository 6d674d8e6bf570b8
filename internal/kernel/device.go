package kernel

import (
	"errors"
	"slices"
	"time"
)

// Control is the block that a host may change between steps, for schedules that change by epoch.
// It is one upload of 64 bytes.
type Control struct {
	LearningRate float32
	Temperature  float32
	// by the names that the program's ops read; one that is not set is 0
	Coefficients map[string]float32
}

// MaxCoefficients is how many coefficients a program may read.
const MaxCoefficients = 14

// State is what a training run carries from step to step beside weights and moments. It lives
// with the device and is read and written only for checkpoints.
type State struct {
	Step      uint64             // optimizer steps done
	Instances uint64             // instances drawn: the global index of the next one
	Beta1T    float64            // β1^Step, 1 at step 0
	Beta2T    float64            // β2^Step, likewise
	Part      uint64             // parts of the update under way that are done, where Reduce.Every > 1
	Scalars   map[string]float64 `json:",omitempty"` // the program's Scalar tensors by name; one that is not set is 0
}

// MaxScalars is how many Scalar tensors a program may have.
const MaxScalars = 8

// Normal is the state with β^t made 1 where no step has been taken, so that the zero State is a
// start.
func (s State) Normal() State {
	if s.Step == 0 {
		s.Beta1T, s.Beta2T = 1, 1
	}
	return s
}

// Metrics are sums over the steps since the last read, in float64, in a fixed order. Steps,
// GradNorm and BadStep are the engine's own; the rest is what the program's Tally ops add up.
type Metrics struct {
	Steps    int64   // runs of the program
	GradNorm float64 // Σ over updates of the gradient norm before clipping
	// BadStep is 1 + the first step whose gradient norm was not finite, 0 when none was. It stays for
	// the runner's life: that step and every later one leave weights, moments, Step and β^t alone.
	BadStep int64
	Sums    Sums
}

// Sum is one of the program's sums by name; 0 where it has none of that name.
func (m *Metrics) Sum(name string) float64 { return m.Sums.Of(name) }

// Plus adds the sums of two stretches of a run. BadStep is the later one's.
func (m Metrics) Plus(n Metrics) Metrics {
	m.Steps, m.GradNorm, m.BadStep = m.Steps+n.Steps, m.GradNorm+n.GradNorm, n.BadStep
	m.Sums.add(&n.Sums)
	return m
}

// Store is a device's copy of one weight set, with gradients and moments where it is trained.
type Store interface {
	ReadWeights(dst []float32) error
	WriteWeights(src []float32) error
	ReadMoments(m, v []float32) error
	WriteMoments(m, v []float32) error
	CopyWeights(from Store) error // from a store of the same device and layout
	// Close gives the memory back, after every runner that uses it was closed. Closing twice is
	// harmless.
	Close() error
}

// Sizer is a device that tells what it will take before it takes it.
type Sizer interface {
	// StoreMemory is the bytes of a weight set.
	StoreMemory(l *Layout, train bool) int64
	// Arenas is how many shards' activations are kept at once.
	Arenas() int
	// Kept is how many shards' rows of Batch tensors are kept at once.
	Kept(p *Program) int
}

// WholeBatch is the ShardSize of a device that runs a step as one shard.
const WholeBatch = 1 << 30

// Device is a place where programs run.
type Device interface {
	Name() string
	// ShardSize is how many instances of that many nodes the device likes in a shard.
	ShardSize(nodes int) int
	NewStore(l *Layout, train bool) (Store, error)
	// Compile places the program's memory and prepares its replay. sets[0] is trained when
	// the program has an optimizer.
	Compile(p *Program, sets []Store) (Runner, error)
	Counters() *Counters
	Close() error
}

// Runner replays one compiled program. It is not safe for concurrent use.
type Runner interface {
	// Run replays one step and advances State: Instances by Program.Batch, the rest by the ops that
	// run once per step. Row r of the step is the instance of global index Instances + r.
	Run() error
	// SetControl sets the block; a runner starts with Temperature 1 and the rest 0. A coefficient that
	// no op reads is an error.
	SetControl(Control) error
	State() (State, error)
	// SetState puts the runner where State left one. A scalar that the program does not have is an
	// error.
	SetState(State) error
	// TakeMetrics reads the sums and clears them, BadStep excepted.
	TakeMetrics() (Metrics, error)
	// ReadBatch and WriteBatch move whole Batch tensors, Program.Batch rows of Len/Shape[0] elements,
	// or whole Data tensors; []float32 or []int32 by the tensor's type.
	ReadBatch(t *Tensor, dst any) error
	WriteBatch(t *Tensor, src any) error
	// GatherMoments makes the store's moments whole where processes share the update: during steps a
	// device may keep up those of its Share.Piece alone. All processes call it, before moments are
	// read for a checkpoint.
	GatherMoments() error
	// ReadGrad reads the summed gradient of the last step, before clipping (tests and diagnosis). The
	// program must have a Reduce. When processes share the update, a process holds only its own piece
	// (Share.Piece) of the gradient.
	ReadGrad(dst []float32) error
	// FirstBad replays the step of BadStep, or else the last one, op by op and names the first op and
	// tensor with a result that is not finite: "linear, result layers.0.gate"; "" when all are.
	FirstBad() (string, error)
	Memory() int64 // bytes the runner holds
	Close() error
}

// ErrMemory is what errors are, by errors.Is, of whatever found too little memory.
var ErrMemory = errors.New("too little memory")

// ErrStopped is how a Run ends that was abandoned.
var ErrStopped = errors.New("the step was abandoned")

// Stopper is a runner whose steps may take longer than somebody wants to wait.
type Stopper interface {
	// Stop, from any goroutine, abandons the update under way: its Run returns ErrStopped, and
	// weights, moments, State and metrics are those from before the update's first part. Every later
	// Run ends likewise.
	Stop()
}

// Slab is host memory for what one step is fed: a slice for each tensor, whole, as WriteBatch takes
// it. Page-locked where a device reads it itself.
type Slab struct {
	Ints [][]int32
	ID   int // the runner's, from 0
}

// Feeder is a runner whose inputs come from the host while it runs. All of its methods belong to
// the goroutine that drives the device.
type Feeder interface {
	// NewSlabs reserves n slabs for these Batch tensors, all integers. They are the runner's and go
	// with it.
	NewSlabs(ts []*Tensor, n int) ([]*Slab, error)
	// Feed queues a copy of the slab, which may pass beside the step under way, and then one step that
	// reads it.
	Feed(s *Slab) error
	// Taken waits until the device has read the slab, which may then be filled again.
	Taken(s *Slab) error
}

// Ask is host memory for steps that the host waits for: what they are told and what they answer.
// Page-locked where a device copies by itself.
type Ask struct {
	In  [][]int32 // a slice for each tensor, whole, as WriteBatch takes it
	Out []float32
	ID  int // the runner's, from 0
}

// Asker is a runner whose steps depend on what the host made of the last: to be told, to run and to
// answer are one request and one wait.
type Asker interface {
	// NewAsk reserves memory for these Batch tensors. It is the runner's and goes with it.
	NewAsk(in []*Tensor, out *Tensor) (*Ask, error)
	// Asking calls do where steps need no change of threads. step copies In, runs one step and waits
	// for Out. Until do returns nothing else may be asked of the device.
	Asking(a *Ask, do func(step func() error) error) error
}

// Timer is a runner whose device works apart from the host and tells for how long.
type Timer interface {
	// StepTime is what the device took for a step not long ago; false before it knows one. It may wait
	// for that step.
	StepTime() (time.Duration, bool, error)
}

// Teller is a runner that can say which paths its program takes.
type Teller interface {
	Paths() []string
}

// Counters count what a device was asked to do since it was opened. Only the goroutine that drives
// the device writes them.
type Counters struct {
	Steps       int64 // Run calls
	Launches    int64 // kernel or graph launches; on a CPU, forks
	Waits       int64 // times the host waited for the device
	CopiesIn    int64 // host to device
	CopiesOut   int64 // device to host
	BytesIn     int64
	BytesOut    int64
	Allocations int64 // device allocations

	copies []Copies // by what they carried, in order of first use
}

// Copies are the copies across the bus that carried one kind of data one way.
type Copies struct {
	Tag   string `json:"tag"`
	Out   bool   `json:"out"` // device to host
	Count int64  `json:"count"`
	Bytes int64  `json:"bytes"`
}

// Copied counts one copy.
func (c *Counters) Copied(tag string, out bool, bytes int) {
	if out {
		c.CopiesOut++
		c.BytesOut += int64(bytes)
	} else {
		c.CopiesIn++
		c.BytesIn += int64(bytes)
	}
	for i := range c.copies {
		if k := &c.copies[i]; k.Tag == tag && k.Out == out {
			k.Count++
			k.Bytes += int64(bytes)
			return
		}
	}
	c.copies = append(c.copies, Copies{tag, out, 1, int64(bytes)})
}

// Tagged lists the copies since the device was opened by what they carried.
func (c *Counters) Tagged() []Copies { return slices.Clone(c.copies) }
