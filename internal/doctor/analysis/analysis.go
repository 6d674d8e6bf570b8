package analysis

import (
	"sort"

	"haul/internal/doctor/trace"
)

// This file declares the data that the files of this package pass to each other and to the rules.
// Sums are totals over the steps; PerStep and Ms divide them.

// IdleKind is the cause of idle GPU time.
type IdleKind uint8

const (
	IdleLoader IdleKind = iota
	// The CPU waits for a GPU that has finished, or for work that was not recorded.
	IdleWait
	IdleAlloc      // an allocation by the driver
	IdleCopy       // a copy being issued
	IdleLaunch     // a kernel being launched
	IdleOp         // an operator before its launch
	IdleBetween    // Python between operators
	IdlePython     // Python, or work on the host, for a long time
	IdleComm       // a collective on the host
	idleQueued     // between work that had been issued already
	IdleUnrecorded // for a long time, though work was issued
	idlePeer       // for a long time, while another GPU of the program works
	IdleCold       // a first use: a context, libraries or kernels are loaded
	IdleCompile    // torch.compile compiles
	IdleCapture    // a graph is captured
	idleEnd        // after the last work of the recording
	IdleKinds
)

// Piece is an interval of idle time with its cause.
type Piece struct {
	trace.Span
	Kind   IdleKind
	Thread *trace.Thread
	Op     *trace.Op
	call   *trace.Call
}

// HeldCall is a wait or a copy that blocked the CPU for a large part of a step.
type HeldCall struct {
	Thread *trace.Thread
	Call   *trace.Call
	Op     *trace.Op
	Idle   float64
}

// OpAt returns the operator that runs on a thread at a time, or nil.
func OpAt(th *trace.Thread, at int64) *trace.Op {
	i := sort.Search(th.Ops.Len(), func(i int) bool { return th.Ops.At(i).Start > at }) - 1
	if i < 0 || th.Ops.At(i).End() <= at {
		return nil
	}
	return th.Ops.At(i)
}

// commSums sums a trace's communication.
type commSums struct {
	List           []trace.Collective // inside the steps, in time order
	Total, Exposed float64            // ns, mean over the devices
	Host           bool
	Families       map[string]*CommFamily
	Issued         []Place      // where the CPU issued them
	ExposedSpans   []trace.Span // of the first device, or on the host
	exposedOn      map[uint16][]trace.Span
}

type CommFamily struct {
	Kind, Group       string
	N                 int
	NS, Exposed       float64
	Bytes, Largest    uint64
	Members           int
	RateBytes, RateNS float64 // of collectives of known size
	spans             []onDevice
}

// onDevice is an interval on one of the devices.
type onDevice struct {
	device uint16
	trace.Span
}

// gap is an interval in which a GPU is idle.
type gap struct {
	trace.Span
	Step  int
	Doing string
	Where string
}

// pythonPiece is an interval of Python or of other work of the host.
type pythonPiece struct {
	Place
	Kind IdleKind
}

// orphan is a call outside any operator.
type orphan struct {
	start int64
	ns    float64
}

// Analysis is a trace with links between its events and sums over the steps. Sums are totals;
// PerStep divides them.
type Analysis struct {
	*trace.Trace
	Period
	Counted
	Idleness
	links
	Devices []*device
	Main    *trace.Thread // the thread with most operators
	Busy    float64       // ns, mean over the devices
	Comm    commSums
	pace    map[string]float64 // by operator; nil until first used
	spikes  []float64          // by step; nil until first used
}

// Period holds the steps. Entry i of both lists is the same step.
type Period struct {
	Marked   bool           // the trace marks its steps
	By       string         // the marks that delimit steps, if Marked is false
	Ahead    bool           // the CPU runs ahead, and Steps are the GPU's windows
	Steps    []trace.Window // windows for GPU figures
	CPUSteps []trace.Window // windows for the CPU's calls and operators
	Skipped  int            // number of warm-up steps left out
	Coldest  float64        // duration of the longest of them divided by the median step
	Wall     int64
	Before   trace.Span // of a single step: the part left out before its first GPU work
	After    trace.Span // and the part after its last GPU work
	Lead     float64    // ns of first uses in Before
}

// Counted holds totals over the steps.
type Counted struct {
	Waits       int
	Waited      float64
	Allocs      int
	AllocIn     map[int]int // number of allocations by tenth of the step
	Kernels     int
	Tiny        int     // number of kernels shorter than TinyKernel
	Kernel      float64 // ns of compute and communication
	Copies      int
	Copied      float64 // GPU time of copies across the bus, in ns
	Moved       uint64
	Large       int // number of large pageable copies
	LargeNS     float64
	LargeMB     float64
	bus         [5]busSum // by direction
	Launched    int       // number of launches inside the steps
	Lost        int       // number of these without GPU work in the recording
	UsualLaunch float32   // the median launch call, ns
}

// Idleness holds the time in which the GPU was idle, and its causes.
type Idleness struct {
	Idle       [IdleKinds]float64
	Taken      [IdleKinds]float64 // part of Idle that findings explain besides operators, in jobs without a GPU
	Recurring  float64            // part of IdlePython without a GPU, ns: pauses at the same positions of every step
	IdleNS     float64
	Gaps       []trace.Span // of the first device
	Widest     []gap
	Held       []Piece // the long intervals, for places in the code and for the page
	InPython   []pythonPiece
	Long       []HeldCall
	Loose      []trace.Span // of LooseLaunches
	LooseWaits float64      // in waits outside any operator
	// In launches outside any operator.
	LooseLaunches float64
	InGraphs      struct { // around launches of graphs, after work that was not recorded
		NS   float64
		Gaps int
	}
}

// links are indices that connect events.
type links struct {
	InLoop, aside []trace.Span // fetches on the training loop's thread, and on others
	Orphans       map[trace.CallKind][]orphan
	forward       []*trace.Op // operators with a sequence number, in its order
	calls         []callRef   // by correlation number
	byCorrelation []int32     // indices of the GPU's work, by correlation number
}

// device holds one GPU's part of the trace.
type device struct {
	ID       uint16
	Works    []int32 // indices in gpu, in time order
	busy     int64
	kernels  int
	Gaps     []trace.Span
	exposed  int64
	commBusy int64
}

// busSum sums the copies of one direction.
type busSum struct {
	n     int
	ns    float64
	bytes float64
}

// callRef refers to a call by its correlation number.
type callRef struct {
	correlation uint32
	thread      int32
	call        int32
}

func (a *Analysis) PerStep(x float64) float64 { return x / float64(max(1, len(a.Steps))) }

// Ms converts a total in nanoseconds to milliseconds per step.
func (a *Analysis) Ms(ns float64) float64 { return a.PerStep(ns) / 1e6 }

// callOf returns the call that issued a piece of work: the last one with its number that starts no
// later. Numbers repeat in recordings that were merged.
func (a *Analysis) callOf(g *trace.Work) (*trace.Thread, int, bool) {
	if g.Correlation == 0 {
		return nil, 0, false
	}
	i := sort.Search(len(a.calls), func(i int) bool {
		r := a.calls[i]
		return r.correlation > g.Correlation || r.correlation == g.Correlation && a.Threads[r.thread].Calls.At(int(r.call)).Start > g.Start
	})
	if i == 0 || a.calls[i-1].correlation != g.Correlation {
		return nil, 0, false
	}
	r := a.calls[i-1]
	return a.Threads[r.thread], int(r.call), true
}

// IssuedAt returns where the CPU issued a piece of work: the call and its operator.
func (a *Analysis) IssuedAt(g *trace.Work) []Place {
	th, i, ok := a.callOf(g)
	if !ok {
		return nil
	}
	c := th.Calls.At(i)
	if o := OpAt(th, c.Start); o != nil {
		return []Place{{trace.Span{Start: o.Start, End: o.End()}, th}}
	}
	return []Place{{trace.Span{Start: c.Start, End: c.End()}, th}}
}

// EachOp calls visit with the operators that start inside a step, in time order on each thread.
func (a *Analysis) EachOp(visit func(th *trace.Thread, i, step int, o *trace.Op)) {
	for _, th := range a.Threads {
		step := 0
		for i := range th.Ops.Len() {
			o := th.Ops.At(i)
			for step < len(a.CPUSteps) && a.CPUSteps[step].End <= o.Start {
				step++
			}
			if step < len(a.CPUSteps) && a.CPUSteps[step].Start <= o.Start {
				visit(th, i, step, o)
			}
		}
	}
}

// Share returns a duration in ms divided by the step's.
func (a *Analysis) Share(ms float64) float64 { return ms / a.Ms(float64(a.Wall)) }

// Place is an interval on a thread. A nil thread stands for the thread with most frames.
type Place struct {
	trace.Span
	Thread *trace.Thread
}

func SpansOf(list []trace.Span) []Place {
	out := make([]Place, len(list))
	for i, s := range list {
		out[i] = Place{Span: s}
	}
	return out
}
