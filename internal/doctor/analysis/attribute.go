package analysis

import (
	"cmp"
	"slices"
	"sort"
	"strings"

	"haul/internal/doctor/trace"
)

// Every moment in which a GPU has nothing to do is given to one cause, the one that the critical
// path waited for. A gap ends when a piece of work starts; the path to that work runs backwards
// through the call that issued it, on the thread that made the call, and from there through
// whatever that thread was doing since the gap began. Where that thread did nothing the path has
// come from another one: the other launching threads are asked, then collectives on the host, and
// what is left is Python.
//
// The pieces of a gap never overlap and together are the gap, so the kinds sum to the idle time,
// and whatever is charged with pieces can be added up.

var idleWords = [IdleKinds]string{
	"in the data loader", "in waits for the GPU", "in driver allocations", "in copies being issued", "in kernels being launched",
	"in operators, on the way to a launch", "in Python between operators", "in Python, or in operators that launch nothing", "in collectives on the host",
	"ahead of the GPU, which passes from one kernel to the next", "ahead of the GPU, which shows no work though some was issued: something was not recorded",
	"ahead of this GPU, or waiting: another GPU of the program works meanwhile",
	"in first uses: context, libraries and kernels being loaded", "in torch.compile, compiling", "capturing a graph", "done: nothing more is issued",
}

// IdleWord says what a kind of idle time is. Haul has no Python: where its threads run no op they
// wait, for each other or for a core.
func (a *Analysis) IdleWord(k IdleKind) string {
	if a.Own && (k == IdlePython || k == IdleBetween) {
		return "without an op to run: it waits for the others, or for a core"
	}
	if k == IdlePython && len(a.Devices) == 0 { // where nothing is launched its operators are the work
		return "in Python, outside any operator"
	}
	return idleWords[k]
}

// IdleShare is part of the time in which the GPU had nothing to do, by what the CPU did meanwhile.
type IdleShare struct {
	What string  `json:"what"`
	Kind string  `json:"kind"`
	MS   float64 `json:"ms"`
}

var IdleIDs = [IdleKinds]string{"loader", "wait", "allocation", "copy", "launch", "operator", "python-between", "python", "communication",
	"queued", "unrecorded", "other-gpu", "cold-start", "compile", "capture", "end"}

const (
	// longShare is the part of a step from which a stretch without launches counts as the host's own
	// work, if it is also longTimes the usual gap: what lies between two ordinary operators is
	// neither.
	longShare = 0.01
	LongTimes = 20
	// launchTimes is how many launch calls an ordinary gap may take.
	launchTimes = 10
	// hugeShare is the part of a step from which an operator that launches nothing is the host's work.
	hugeShare = 0.20
	// leadShare is how much of a recording is its start.
	leadShare = 0.05
	// lateTimes is how many times its call a launch may take to reach the GPU.
	lateTimes = 20
	// pathThreads is how many launching threads are asked what they do.
	pathThreads = 8
)

// busiest are the threads with most of something, up to pathThreads.
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

// walker carries what the attribution of one gap needs.
type walker struct {
	a       *Analysis
	threads []*trace.Thread
	host    []trace.Span // collectives on the host
	weight  float64      // one over the devices
	usual   int64        // the middle gap of the device
	launch  int64        // the middle launch call
	pieces  []Piece      // of the gap at hand
	bare    bool         // no operators were recorded: between two calls is the way to a launch
	peers   []trace.Span // the other devices' work
	graph   bool         // the gap at hand lies beside a graph's work
	hostOps []bool       // by name: operators that compute on the CPU
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
	if w.launch > 0 { // a GPU that is seldom idle has few gaps, and the middle one may be the long one
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

// gap finds the pieces of one gap and books them.
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
			// without numbers too, kernels that follow faster than one can be launched are a graph's
			w.add(Piece{Span: g, Kind: idleQueued})
		case !ok:
			w.path(g, w.main())
		case prev != nil && prev.Correlation == next.Correlation && prev.Correlation != 0:
			w.queued(g) // a graph's kernels share their launch
		default:
			c := th.Calls.At(i)
			w.late(g, next, th, c)
		}
	}
	w.book(g)
}

// byGraph tells work that the launch of a graph issued.
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

// late splits a gap at the call that ended it: what came before is the CPU's, what came after is
// the way to the GPU, and a long way means that the work stood behind something that was not
// recorded.
func (w *walker) late(g trace.Span, next *trace.Work, th *trace.Thread, c *trace.Call) {
	issued := min(c.End(), g.End)
	switch {
	case c.End() <= g.Start:
		w.queued(g)
		return
	case c.Kind == trace.CallCopy && c.Start < g.End && next.Start-c.Start > 50*int64(next.Dur) && w.isLong(g.End-max(g.Start, c.Start)):
		issued = max(g.Start, min(c.Start, g.End)) // the copy itself stood in line
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
		// a copy that blocks
		w.add(Piece{Span: rest, Kind: IdleWait, Thread: th, call: c, Op: OpAt(th, c.Start)})
	case rest.End-rest.Start > lateTimes*int64(c.Dur) && w.isLong(rest.End-rest.Start) || issued < min(c.End(), g.End):
		w.add(Piece{Span: rest, Kind: IdleUnrecorded, Thread: th, call: c})
	default:
		w.add(Piece{Span: rest, Kind: IdleLaunch, Thread: th, call: c, Op: OpAt(th, c.Start)})
	}
}

// leads tells a stretch at the very start of a recording without steps: what stands in line there
// stands behind work from before the recording.
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

// isLong tells a stretch that stands out, both in its step and among the gaps.
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

// path splits a stretch by what the thread did, and where it did nothing, by what others did.
func (w *walker) path(g trace.Span, th *trace.Thread) {
	w.cut(g, w.a.Captured, IdleCapture, func(g trace.Span) {
		w.cut(g, w.a.InLoop, IdleLoader, func(g trace.Span) {
			w.cut(g, w.a.Compiling, IdleCompile, func(g trace.Span) { w.ask(g, th, 0) })
		})
	})
}

// ask asks one thread after the other, the given one first.
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

// cut gives what lies in a list of spans to a kind and the rest to a function.
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

// walk cuts a stretch into the thread's calls and operators; free is told what lies outside both.
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
		if next <= at { // a call that starts here and is empty
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
			} else { // an operator that starts here and is empty
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

// book gives the pieces of a gap to their kinds and operators. A long stretch of Python is the
// host's own work, and so is an operator that computes on the CPU; a short stretch of Python is on
// the way to its operator, and inside the framework's own loops (the optimizer's over its
// parameters) it is the way to a launch. A GPU that has its work, or whose CPU waits, while another
// one works takes turns with it.
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

// isHostWork tells a stretch in which an operator computes on the CPU: it makes no call for a large
// part of the step, as one of autograd's functions written in Python may between its launches, or
// it makes none at all and is of a name that usually takes its time for it.
func (w *walker) isHostWork(p *Piece) bool {
	o := p.Op
	if o == nil || w.a.isFirstUse(o) {
		return false
	}
	ns, calls := p.End-p.Start, o.Launches > 0 || o.Holds != 0
	// beside what its launches and operators take
	few := ns >= LongTimes*w.launch*int64(1+int(o.Launches)+int(o.Nested))
	return w.isHuge(ns) && (!calls || few && w.launch > 0) || !calls && w.hostOps[o.Name]
}

// findHostOps lists the operators that launch nothing and usually take so long that they, and each
// operator inside them, could have launched twenty times. A view, which launches nothing either,
// takes about as long as one launch, and what autograd's engine evaluates is no operator but the
// way to some. Other runtimes launch from threads that their operators do not show.
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

// isFirstUse tells an operator that holds a first use: everything it does on the way counts with
// it.
func (a *Analysis) isFirstUse(o *trace.Op) bool { return o.Holds&trace.HoldsCold != 0 }

// IdleList is the idle time by kind, largest first.
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
