package analysis

import (
	"cmp"
	"slices"
	"sort"
	"strings"

	"haul/internal/doctor/trace"
)

// Each interval in which a GPU is idle is assigned to one cause: what the critical path waited for.
// A gap ends when a piece of work starts. The path to that work leads backwards through the call
// that issued it and the activity of the calling thread since the gap began. For times in which
// that thread did nothing, the other launching threads are examined, then collectives on the host.
// The rest is Python.
//
// The pieces of a gap do not overlap and fill the gap. So the kinds add up to the idle time, and so
// do the causes that pieces are assigned to.

var idleWords = [IdleKinds]string{
	"in the data loader", "in waits for the GPU", "in driver allocations", "in copies being issued", "in kernels being launched",
	"in operators, on the way to a launch", "in Python between operators", "in Python, or in operators that launch nothing", "in collectives on the host",
	"ahead of the GPU, which passes from one kernel to the next", "ahead of the GPU, which shows no work though some was issued: something was not recorded",
	"ahead of this GPU, or waiting: another GPU of the program works meanwhile",
	"in first uses: context, libraries and kernels being loaded", "in torch.compile, compiling", "capturing a graph", "done: nothing more is issued",
}

// IdleWord returns a description of a kind of idle time. In recordings of Haul, which has no
// Python, threads without an op wait for each other or for a core.
func (a *Analysis) IdleWord(k IdleKind) string {
	if a.Own && (k == IdlePython || k == IdleBetween) {
		return "without an op to run: it waits for the others, or for a core"
	}
	if k == IdlePython && len(a.Devices) == 0 { // without launches, the operators are the work
		return "in Python, outside any operator"
	}
	return idleWords[k]
}

// IdleShare is a part of the idle GPU time, by the CPU's activity during it.
type IdleShare struct {
	What string  `json:"what"`
	Kind string  `json:"kind"`
	MS   float64 `json:"ms"`
}

var IdleIDs = [IdleKinds]string{"loader", "wait", "allocation", "copy", "launch", "operator", "python-between", "python", "communication",
	"queued", "unrecorded", "other-gpu", "cold-start", "compile", "capture", "end"}

const (
	// longShare is the fraction of a step from which an interval without launches counts as the
	// host's own work, if it is also longTimes the usual gap. Ordinary intervals between operators
	// are shorter.
	longShare = 0.01
	LongTimes = 20
	// launchTimes is the length of an ordinary gap at most, in launch calls.
	launchTimes = 10
	// hugeShare is the fraction of a step from which an operator without launches is the host's
	// work.
	hugeShare = 0.20
	// leadShare is the fraction of a recording that counts as its start.
	leadShare = 0.05
	// lateTimes is the delay of a launch in lengths of its call from which the GPU was not free.
	lateTimes = 20
	// pathThreads is the number of launching threads that are examined.
	pathThreads = 8
)

// busiest returns up to pathThreads threads with the largest values of `of`.
func busiest(threads []*trace.Thread, of func(*trace.Thread) int) []*trace.Thread {
	var out []*trace.Thread
	for _, th := range threads {
		if of(th) == 0 {
			continue
		}
		i, _ := slices.BinarySearchFunc(out, of(th), func(x *trace.Thread, n int) int { return cmp.Or(cmp.Compare(n, of(x)), -1) })
		if i < pathThreads {
			out = slices.Insert(out, i, th)
			out = out[:min(len(out), pathThreads)]
		}
	}
	return out
}

// walker holds the data for attributing gaps.
type walker struct {
	a       *Analysis
	threads []*trace.Thread
	host    []trace.Span // collectives on the host
	weight  float64      // one divided by the number of devices
	usual   int64        // the device's median gap
	launch  int64        // the median launch call
	pieces  []Piece      // of the current gap
	bare    bool         // no operators were recorded: time between two calls leads to a launch
	peers   []trace.Span // the other devices' work
	graph   bool         // the current gap is next to a graph's work
	hostOps []bool       // by name: whether operators compute on the CPU
}

func (w *walker) device(d *device) {
	lengths := make([]int64, 0, len(d.Gaps))
	for _, g := range d.Gaps {
		lengths = append(lengths, g.End-g.Start)
	}
	if len(lengths) == 0 {
		return
	}
	w.usual = Median(lengths)
	if w.launch > 0 { // a busy GPU has few gaps, and the median may be a long one
		w.usual = min(w.usual, launchTimes*w.launch)
	}
	a := w.a
	w.peers = nil
	for _, other := range a.Devices {
		if other != d {
			for _, i := range other.Works {
				g := a.GPU.At(int(i))
				w.peers = append(w.peers, trace.Span{Start: g.Start, End: g.End()})
			}
		}
	}
	w.peers = trace.Union(w.peers)
	at := 0
	for _, gap := range d.Gaps {
		for at < len(d.Works) && a.GPU.At(int(d.Works[at])).Start < gap.End {
			at++
		}
		var next, prev *trace.Work
		if at < len(d.Works) {
			next = a.GPU.At(int(d.Works[at]))
		}
		if at > 0 {
			prev = a.GPU.At(int(d.Works[at-1]))
		}
		w.gap(gap, prev, next)
	}
}

// gap finds the pieces of one gap and assigns them to causes.
func (w *walker) gap(g trace.Span, prev, next *trace.Work) {
	a := w.a
	w.pieces = w.pieces[:0]
	w.graph = w.byGraph(prev) || w.byGraph(next)
	switch {
	case next == nil:
		w.path(g, w.main())
		for i := range w.pieces {
			if p := &w.pieces[i]; p.Kind == IdleBetween && p.End == g.End && !a.Marked {
				p.Kind = idleEnd
			}
		}
	default:
		th, i, ok := a.callOf(next)
		switch {
		case !ok && prev != nil && prev.Correlation == next.Correlation && (next.Correlation != 0 || g.End-g.Start < w.launch):
			// without numbers, kernels that follow faster than launches can are a graph's
			w.add(Piece{Span: g, Kind: idleQueued})
		case !ok:
			w.path(g, w.main())
		case prev != nil && prev.Correlation == next.Correlation && prev.Correlation != 0:
			w.queued(g) // a graph's kernels have the same launch
		default:
			c := th.Calls.At(i)
			w.late(g, next, th, c)
		}
	}
	w.book(g)
}

// byGraph reports whether the launch of a graph issued the work.
func (w *walker) byGraph(g *trace.Work) bool {
	if g == nil {
		return false
	}
	th, i, ok := w.a.callOf(g)
	return ok && strings.Contains(w.a.Names.List[th.Calls.At(i).Name].Text, "GraphLaunch")
}

func (w *walker) main() *trace.Thread {
	if len(w.threads) == 0 {
		return nil
	}
	return w.threads[0]
}

// late divides a gap at the call that ended it. The time before the call is the CPU's, the time
// after it the delay until the GPU starts. A long delay means that the work was queued after
// something that was not recorded.
func (w *walker) late(g trace.Span, next *trace.Work, th *trace.Thread, c *trace.Call) {
	issued := min(c.End(), g.End)
	switch {
	case c.End() <= g.Start:
		w.queued(g)
		return
	case c.Kind == trace.CallCopy && c.Start < g.End && next.Start-c.Start > 50*int64(next.Dur) && w.isLong(g.End-max(g.Start, c.Start)):
		issued = max(g.Start, min(c.Start, g.End)) // the copy itself was queued
	}
	if issued > g.Start {
		w.path(trace.Span{Start: g.Start, End: issued}, th)
	}
	if issued >= g.End {
		return
	}
	rest := trace.Span{Start: issued, End: g.End}
	switch {
	case issued < min(c.End(), g.End) && !w.leads(rest):
		// A copy that blocks.
		w.add(Piece{Span: rest, Kind: IdleWait, Thread: th, call: c, Op: OpAt(th, c.Start)})
	case rest.End-rest.Start > lateTimes*int64(c.Dur) && w.isLong(rest.End-rest.Start) || issued < min(c.End(), g.End):
		w.add(Piece{Span: rest, Kind: IdleUnrecorded, Thread: th, call: c})
	default:
		w.add(Piece{Span: rest, Kind: IdleLaunch, Thread: th, call: c, Op: OpAt(th, c.Start)})
	}
}

// leads reports whether an interval is at the very start of a recording without steps. Work in it
// is queued after work from before the recording.
func (w *walker) leads(g trace.Span) bool {
	first := w.a.Steps[0]
	return !w.a.Marked && float64(g.Start-first.Start) < leadShare*float64(first.End-first.Start)
}

func (w *walker) queued(g trace.Span) {
	kind := idleQueued
	if w.isLong(g.End - g.Start) {
		kind = IdleUnrecorded
	}
	w.add(Piece{Span: g, Kind: kind})
}

// isLong reports whether an interval is long compared with its step and with the gaps.
func (w *walker) isLong(ns int64) bool {
	step := float64(w.a.Wall) / float64(len(w.a.Steps))
	return float64(ns) >= longShare*step && ns >= LongTimes*w.usual
}

func (w *walker) isHuge(ns int64) bool {
	return float64(ns) >= hugeShare*float64(w.a.Wall)/float64(len(w.a.Steps))
}

func (w *walker) add(p Piece) {
	if p.End > p.Start {
		w.pieces = append(w.pieces, p)
	}
}

// path divides an interval by the thread's activity and, if it has none, by other threads'
// activity.
func (w *walker) path(g trace.Span, th *trace.Thread) {
	w.cut(g, w.a.Captured, IdleCapture, func(g trace.Span) {
		w.cut(g, w.a.InLoop, IdleLoader, func(g trace.Span) {
			w.cut(g, w.a.Compiling, IdleCompile, func(g trace.Span) { w.ask(g, th, 0) })
		})
	})
}

// ask examines the threads in sequence, th first.
func (w *walker) ask(g trace.Span, th *trace.Thread, from int) {
	if th != nil {
		walk(th, g, w.add, func(free trace.Span) { w.askOthers(free, th, from) })
		return
	}
	w.askOthers(g, nil, from)
}

func (w *walker) askOthers(g trace.Span, first *trace.Thread, from int) {
	for i := from; i < len(w.threads); i++ {
		if th := w.threads[i]; th != first {
			walk(th, g, w.add, func(free trace.Span) { w.askOthers(free, first, i+1) })
			return
		}
	}
	w.cut(g, w.a.aside, IdleLoader, func(g trace.Span) {
		w.cut(g, w.host, IdleComm, func(g trace.Span) {
			w.cut(g, w.a.Blocked, IdleWait, func(g trace.Span) { w.add(Piece{Span: g, Kind: IdleBetween, Thread: first}) })
		})
	})
}

// cut assigns the parts of g inside list to kind and calls rest with the others.
func (w *walker) cut(g trace.Span, list []trace.Span, kind IdleKind, rest func(trace.Span)) {
	i := sort.Search(len(list), func(i int) bool { return list[i].End > g.Start })
	at := g.Start
	for ; i < len(list) && list[i].Start < g.End; i++ {
		s := trace.Span{Start: max(list[i].Start, g.Start), End: min(list[i].End, g.End)}
		if s.Start > at {
			rest(trace.Span{Start: at, End: s.Start})
		}
		w.add(Piece{Span: s, Kind: kind})
		at = s.End
	}
	if at < g.End {
		rest(trace.Span{Start: at, End: g.End})
	}
}

// walk divides an interval by the thread's calls and operators. It calls free with the rest.
func walk(th *trace.Thread, g trace.Span, add func(Piece), free func(trace.Span)) {
	oi := sort.Search(th.Ops.Len(), func(i int) bool { return th.Ops.At(i).Start > g.Start }) - 1
	ci := sort.Search(th.Calls.Len(), func(i int) bool { return th.Calls.At(i).Start > g.Start }) - 1
	for at := g.Start; at < g.End; {
		for oi+1 < th.Ops.Len() && (oi < 0 || th.Ops.At(oi).End() <= at) && th.Ops.At(oi+1).Start <= at {
			oi++
		}
		for ci+1 < th.Calls.Len() && (ci < 0 || th.Calls.At(ci).End() <= at) && th.Calls.At(ci+1).Start <= at {
			ci++
		}
		next := g.End
		if ci+1 < th.Calls.Len() {
			next = min(next, max(at, th.Calls.At(ci+1).Start))
		}
		var o *trace.Op
		if oi >= 0 && th.Ops.At(oi).End() > at {
			o = th.Ops.At(oi)
		}
		if ci >= 0 {
			if c := th.Calls.At(ci); c.End() > at {
				end := min(c.End(), g.End)
				add(Piece{Span: trace.Span{Start: at, End: end}, Kind: idleKind(c), Thread: th, Op: o, call: c})
				at = end
				continue
			}
		}
		if next <= at { // an empty call that starts here
			ci++
			continue
		}
		if o != nil {
			end := min(o.End(), next)
			add(Piece{Span: trace.Span{Start: at, End: end}, Kind: IdleOp, Thread: th, Op: o})
			at = end
			continue
		}
		if oi+1 < th.Ops.Len() {
			if s := th.Ops.At(oi + 1).Start; s > at {
				next = min(next, s)
			} else { // an empty operator that starts here
				oi++
				continue
			}
		}
		free(trace.Span{Start: at, End: next})
		at = next
	}
}

func idleKind(c *trace.Call) IdleKind {
	switch {
	case c.Cold:
		return IdleCold
	case c.Kind == trace.CallWait:
		return IdleWait
	case c.Kind == trace.CallAlloc:
		return IdleAlloc
	case c.Kind == trace.CallCopy:
		return IdleCopy
	case c.Kind == trace.CallLaunch, c.Kind == trace.CallSet:
		return IdleLaunch
	}
	return IdleOp
}

// book assigns the pieces of a gap to kinds and operators. A long interval of Python is the host's
// own work, like an operator that computes on the CPU. A short interval of Python leads to the next
// operator. Inside the framework's loops, such as the optimizer's over its parameters, it leads to
// a launch. If a GPU has work queued, or its CPU waits, while another GPU works, the two GPUs
// alternate.
func (w *walker) book(g trace.Span) {
	a := w.a
	long := w.isLong(g.End - g.Start)
	slices.SortFunc(w.pieces, func(x, y Piece) int { return cmp.Compare(x.Start, y.Start) })
	for i := range w.pieces {
		p := &w.pieces[i]
		ns := float64(p.End-p.Start) * w.weight
		switch {
		case p.Kind == IdleBetween && long && w.isLong(p.End-p.Start), p.Kind == IdleOp && w.isHostWork(p):
			p.Kind = IdlePython
		case p.Kind == IdleWait && w.leads(p.Span) && w.isLong(p.End-p.Start):
			p.Kind = IdleUnrecorded
		case p.Kind == IdleOp && p.Op != nil && a.isFirstUse(p.Op):
			p.Kind = IdleCold
		}
		if (p.Kind == IdleWait || p.Kind == IdleUnrecorded) && w.isLong(p.End-p.Start) && trace.Covered(w.peers, p.Span) > (p.End-p.Start)/2 {
			p.Kind = idlePeer
		}
		if p.Kind == IdleBetween && (w.bare || trace.Covered(a.Regions, p.Span) > (p.End-p.Start)/2) {
			p.Kind = IdleOp
		}
		a.Idle[p.Kind] += ns
		if p.Kind == IdleUnrecorded && w.graph {
			a.InGraphs.NS += ns
			a.InGraphs.Gaps++
		}
		switch p.Kind {
		case IdleOp, IdleLaunch, IdleCopy, IdleWait:
			switch {
			case p.Op != nil:
				p.Op.Idle += float32(ns)
			case p.Kind == IdleWait:
				a.LooseWaits += ns
			case p.Kind == IdleLaunch, p.Kind == IdleOp:
				a.LooseLaunches += ns
				if len(a.Loose) < maxPython {
					a.Loose = append(a.Loose, p.Span)
				}
			}
			if (p.Kind == IdleWait || p.Kind == IdleCopy) && p.call != nil && w.isLong(p.End-p.Start) {
				a.Long = append(a.Long, HeldCall{p.Thread, p.call, p.Op, ns})
			}
		case IdleBetween:
			if i+1 < len(w.pieces) && w.pieces[i+1].Op != nil {
				w.pieces[i+1].Op.Lead += float32(ns)
			}
		}
		a.hold(p)
	}
}

// isHostWork reports whether an operator computes on the CPU during a piece. Either it makes no
// call for a large part of the step, like an autograd function in Python between its launches, or
// it makes no call at all and operators of its name usually take that long.
func (w *walker) isHostWork(p *Piece) bool {
	o := p.Op
	if o == nil || w.a.isFirstUse(o) {
		return false
	}
	ns, calls := p.End-p.Start, o.Launches > 0 || o.Holds != 0
	// apart from the time for its launches and inner operators
	few := ns >= LongTimes*w.launch*int64(1+int(o.Launches)+int(o.Nested))
	return w.isHuge(ns) && (!calls || few && w.launch > 0) || !calls && w.hostOps[o.Name]
}

// findHostOps finds the operators without launches that usually take as long as twenty launches,
// per operator inside them. A view, which launches nothing either, takes about one launch.
// Operators of autograd's engine are excluded, since they only lead to others. Other runtimes
// launch from threads that operators do not show.
func (w *walker) findHostOps() {
	w.hostOps = make([]bool, len(w.a.Names.List))
	if w.a.Format != "" || w.launch == 0 {
		return
	}
	type sum struct {
		ns float64
		n  int
	}
	by := make([]sum, len(w.a.Names.List))
	w.a.EachOp(func(_ *trace.Thread, _, _ int, o *trace.Op) {
		if o.Launches == 0 && o.Holds == 0 {
			s := &by[o.Name]
			s.ns, s.n = s.ns+float64(o.Dur), s.n+1+int(o.Nested)
		}
	})
	for name, s := range by {
		w.hostOps[name] = s.n > 0 && !strings.HasPrefix(w.a.Names.List[name].Text, trace.BackwardPrefix) &&
			s.ns >= float64(LongTimes*w.launch)*float64(s.n)
	}
}

// isFirstUse reports whether an operator contains a first use. All its time then counts as first
// use.
func (a *Analysis) isFirstUse(o *trace.Op) bool { return o.Holds&trace.HoldsCold != 0 }

// IdleList returns the idle time by kind, largest first.
func (a *Analysis) IdleList() []IdleShare {
	out := []IdleShare{}
	for k, ns := range a.Idle {
		if ns > 0 {
			out = append(out, IdleShare{a.IdleWord(IdleKind(k)), IdleIDs[k], a.Ms(ns)})
		}
	}
	slices.SortStableFunc(out, func(x, y IdleShare) int { return cmp.Compare(y.MS, x.MS) })
	return out
}
