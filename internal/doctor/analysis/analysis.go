package analysis

import (
	"sort"

	"haul/internal/doctor/trace"
)

// What the files of this package pass to each other and to the rules. Sums are totals over the
// steps; PerStep and Ms divide them. The parts of an Analysis are declared before anything fills
// them: this file uses no later file of the package.

// IdleKind is what a GPU without work waited for.
type IdleKind uint8

const (
	IdleLoader IdleKind = iota
	// the CPU waits for a GPU that has finished, or for work that was not recorded
	IdleWait
	IdleAlloc      // driver allocations
	IdleCopy       // a copy being issued
	IdleLaunch     // a kernel being launched
	IdleOp         // an operator on its way to a launch
	IdleBetween    // Python between operators
	IdlePython     // Python, or work on the host, for long
	IdleComm       // a collective on the host
	idleQueued     // between pieces of work that were issued already
	IdleUnrecorded // for long, though work was issued
	idlePeer       // for long, while another GPU of the program works
	IdleCold       // a first use: context, libraries, kernels being loaded
	IdleCompile    // torch.compile at work
	IdleCapture    // a graph being captured
	idleEnd        // behind the last work of the recording
	IdleKinds
)

// Piece is a stretch of idle time with its cause.
type Piece struct {
	trace.Span
	Kind   IdleKind
	Thread *trace.Thread
	Op     *trace.Op
	call   *trace.Call
}

// HeldCall is a wait or a copy that held the CPU for a large part of a step.
type HeldCall struct {
	Thread *trace.Thread
	Call   *trace.Call
	Op     *trace.Op
	Idle   float64
}

// OpAt is the operator that is open on a thread at a moment.
func OpAt(th *trace.Thread, at int64) *trace.Op {
	i := sort.Search(th.Ops.Len(), func(i int) bool { return th.Ops.At(i).Start > at }) - 1
	if i < 0 || th.Ops.At(i).End() <= at {
		return nil
	}
	return th.Ops.At(i)
}

// commSums is a trace's communication.
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
	RateBytes, RateNS float64 // of those whose size is known
	spans             []onDevice
}

// onDevice is a stretch on one of the devices.
type onDevice struct {
	device uint16
	trace.Span
}

// gap is one stretch of idle GPU.
type gap struct {
	trace.Span
	Step  int
	Doing string
	Where string
}

// pythonPiece is a stretch of Python, or of the host's own work.
type pythonPiece struct {
	Place
	Kind IdleKind
}

// orphan is a call made outside any operator.
type orphan struct {
	start int64
	ns    float64
}

// Analysis is a trace with its links and its sums over the steps. Sums are totals; perStep divides.
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
	pace    map[string]float64 // by operator, once it was asked for
	spikes  []float64          // by step, likewise
}

// Period is the steps. Entry i of both lists is the same step.
type Period struct {
	Marked   bool           // the trace marks its steps
	By       string         // what else delimits them, where it does not
	Ahead    bool           // the CPU ran ahead, and steps are the GPU's windows
	Steps    []trace.Window // what the figures are measured in
	CPUSteps []trace.Window // what the CPU's calls and operators are counted in
	Skipped  int            // cold steps left out
	Coldest  float64        // how many times the middle step the longest of them took
	Wall     int64
	Before   trace.Span // of a single step, what is left out before its first GPU work
	After    trace.Span // and after its last
	Lead     float64    // ns of first uses in Before
}

// Counted is what the steps hold, in all.
type Counted struct {
	Waits       int
	Waited      float64
	Allocs      int
	AllocIn     map[int]int // allocations by tenth of the step
	Kernels     int
	Tiny        int     // kernels shorter than tinyKernel
	Kernel      float64 // ns of compute and communication
	Copies      int
	Copied      float64 // GPU time of copies across the bus, in ns
	Moved       uint64
	Large       int // large pageable copies
	LargeNS     float64
	LargeMB     float64
	bus         [5]busSum // by direction
	Launched    int       // launches inside the steps
	Lost        int       // of those, the ones without GPU work in the recording
	UsualLaunch float32   // the middle launch call, ns
}

// Idleness is the time in which the GPU had nothing to do, and what it waited for.
type Idleness struct {
	Idle       [IdleKinds]float64
	Taken      [IdleKinds]float64 // of Idle without a GPU, what a finding holds beside its operators
	Recurring  float64            // of IdlePython without a GPU, ns: what every step has at the same places
	IdleNS     float64
	Gaps       []trace.Span // of the first device
	Widest     []gap
	Held       []Piece // the long pieces, for places in the code and the page
	InPython   []pythonPiece
	Long       []HeldCall
	Loose      []trace.Span // of LooseLaunches
	LooseWaits float64      // in waits outside any operator
	// in launches outside any operator
	LooseLaunches float64
	InGraphs      struct { // beside launches of graphs, behind work that was not recorded
		NS   float64
		Gaps int
	}
}

// links are the indices by which events find each other.
type links struct {
	InLoop, aside []trace.Span // fetches of the training loop's own thread, and of others
	Orphans       map[trace.CallKind][]orphan
	forward       []*trace.Op // operators with a sequence number, in its order
	calls         []callRef   // by correlation number
	byCorrelation []int32     // positions of the GPU's work, by correlation number
}

// device is one GPU's share of the trace.
type device struct {
	ID       uint16
	Works    []int32 // positions in gpu, in time order
	busy     int64
	kernels  int
	Gaps     []trace.Span
	exposed  int64
	commBusy int64
}

// busSum is what the copies of one direction come to.
type busSum struct {
	n     int
	ns    float64
	bytes float64
}

// callRef finds a call by its correlation number.
type callRef struct {
	correlation uint32
	thread      int32
	call        int32
}

func (a *Analysis) PerStep(x float64) float64 { return x / float64(max(1, len(a.Steps))) }

// Ms is a total in nanoseconds as milliseconds per step.
func (a *Analysis) Ms(ns float64) float64 { return a.PerStep(ns) / 1e6 }

// callOf finds the call that issued a piece of work: the last one with its number that does not
// start after it. Numbers repeat where recordings were joined.
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

// IssuedAt is where the CPU issued a piece of work: the call and the operator around it.
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

// EachOp visits the operators that start inside a step, in time order on each thread.
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

// Share of the step.
func (a *Analysis) Share(ms float64) float64 { return ms / a.Ms(float64(a.Wall)) }

// Place is a stretch of time on a thread; nil is the thread that has most frames.
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
