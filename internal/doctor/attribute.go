package doctor

import (
	"cmp"
	"slices"
	"sort"
	"strings"
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

// idleKind is what a GPU without work waited for.
type idleKind uint8

const (
	idleLoader idleKind = iota
	// the CPU waits for a GPU that has finished, or for work that was not recorded
	idleWait
	idleAlloc      // driver allocations
	idleCopy       // a copy being issued
	idleLaunch     // a kernel being launched
	idleOp         // an operator on its way to a launch
	idleBetween    // Python between operators
	idlePython     // Python, or work on the host, for long
	idleComm       // a collective on the host
	idleQueued     // between pieces of work that were issued already
	idleUnrecorded // for long, though work was issued
	idlePeer       // for long, while another GPU of the program works
	idleCold       // a first use: context, libraries, kernels being loaded
	idleCompile    // torch.compile at work
	idleCapture    // a graph being captured
	idleEnd        // behind the last work of the recording
	idleKinds
)

var idleWords = [idleKinds]string{
	"in the data loader", "in waits for the GPU", "in driver allocations", "in copies being issued", "in kernels being launched",
	"in operators, on the way to a launch", "in Python between operators", "in Python, or in operators that launch nothing", "in collectives on the host",
	"ahead: the work is queued, between kernels", "ahead: the work is queued, behind something that was not recorded",
	"ahead, or waits too: another GPU works meanwhile",
	"in first uses: context, libraries and kernels being loaded", "in torch.compile, compiling", "capturing a graph", "done: nothing more is issued",
}

// idleWord says what a kind of idle time is. Haul has no Python: where its threads run no op they
// wait, for each other or for a core.
func (a *analysis) idleWord(k idleKind) string {
	if a.own && (k == idlePython || k == idleBetween) {
		return "without an op to run: it waits for the others, or for a core"
	}
	if k == idlePython && len(a.devices) == 0 { // where nothing is launched its operators are the work
		return "in Python, outside any operator"
	}
	return idleWords[k]
}

// idleShare is part of the time in which the GPU had nothing to do, by what the CPU did meanwhile.
type idleShare struct {
	What string  `json:"what"`
	Kind string  `json:"kind"`
	MS   float64 `json:"ms"`
}

var idleIDs = [idleKinds]string{"loader", "wait", "allocation", "copy", "launch", "operator", "python-between", "python", "communication",
	"queued", "unrecorded", "other-gpu", "cold-start", "compile", "capture", "end"}

// piece is a stretch of idle time with its cause.
type piece struct {
	span
	kind   idleKind
	thread *thread
	op     *op
	call   *call
}

// heldCall is a wait or a copy that held the CPU for a large part of a step.
type heldCall struct {
	thread *thread
	call   *call
	op     *op
	idle   float64
}

const (
	// longShare is the part of a step from which a stretch without launches counts as the host's own
	// work, if it is also longTimes the usual gap: what lies between two ordinary operators is
	// neither.
	longShare = 0.01
	longTimes = 20
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

// attribute splits the idle time of every device.
func (a *analysis) attribute() {
	if len(a.devices) == 0 {
		a.attributeHost()
		return
	}
	w := &walker{a: a, weight: 1 / float64(len(a.devices))}
	w.threads = busiest(a.threads, func(th *thread) int { return th.launches })
	// other runtimes launch from threads of their own and work in others, or tell no calls
	if a.format != "" || len(w.threads) == 0 {
		w.threads = append(w.threads, busiest(a.threads, func(th *thread) int { return th.ops.len() })...)
	}
	w.host = a.hostCollectives()
	w.bare = a.main == nil
	w.launch = int64(a.usualLaunch)
	w.findHostOps()
	for _, d := range a.devices {
		w.device(d)
	}
	slices.SortStableFunc(a.held, func(x, y piece) int { return cmp.Compare(x.start, y.start) })
	slices.SortStableFunc(a.long, func(x, y heldCall) int { return cmp.Compare(y.idle, x.idle) })
}

// busiest are the threads with most of something, up to pathThreads.
func busiest(threads []*thread, of func(*thread) int) []*thread {
	var out []*thread
	for _, th := range threads {
		if of(th) == 0 {
			continue
		}
		i, _ := slices.BinarySearchFunc(out, of(th), func(x *thread, n int) int { return cmp.Or(cmp.Compare(n, of(x)), -1) })
		if i < pathThreads {
			out = slices.Insert(out, i, th)
			out = out[:min(len(out), pathThreads)]
		}
	}
	return out
}

// walker carries what the attribution of one gap needs.
type walker struct {
	a       *analysis
	threads []*thread
	host    []span  // collectives on the host
	weight  float64 // one over the devices
	usual   int64   // the middle gap of the device
	launch  int64   // the middle launch call
	pieces  []piece // of the gap at hand
	bare    bool    // no operators were recorded: between two calls is the way to a launch
	peers   []span  // the other devices' work
	hostOps []bool  // by name: operators that compute on the CPU
}

func (w *walker) device(d *device) {
	lengths := make([]int64, 0, len(d.gaps))
	for _, g := range d.gaps {
		lengths = append(lengths, g.end-g.start)
	}
	if len(lengths) == 0 {
		return
	}
	w.usual = median(lengths)
	if w.launch > 0 { // a GPU that is seldom idle has few gaps, and the middle one may be the long one
		w.usual = min(w.usual, launchTimes*w.launch)
	}
	a := w.a
	w.peers = nil
	for _, other := range a.devices {
		if other != d {
			for _, i := range other.works {
				g := a.gpu.at(int(i))
				w.peers = append(w.peers, span{g.start, g.end()})
			}
		}
	}
	w.peers = union(w.peers)
	at := 0
	for _, gap := range d.gaps {
		for at < len(d.works) && a.gpu.at(int(d.works[at])).start < gap.end {
			at++
		}
		var next, prev *work
		if at < len(d.works) {
			next = a.gpu.at(int(d.works[at]))
		}
		if at > 0 {
			prev = a.gpu.at(int(d.works[at-1]))
		}
		w.gap(gap, prev, next)
	}
}

// gap finds the pieces of one gap and books them.
func (w *walker) gap(g span, prev, next *work) {
	a := w.a
	w.pieces = w.pieces[:0]
	switch {
	case next == nil:
		w.path(g, w.main())
		for i := range w.pieces {
			if p := &w.pieces[i]; p.kind == idleBetween && p.end == g.end && !a.marked {
				p.kind = idleEnd
			}
		}
	default:
		th, i, ok := a.callOf(next)
		switch {
		case !ok && prev != nil && prev.correlation == next.correlation && (next.correlation != 0 || g.end-g.start < w.launch):
			// without numbers too, kernels that follow faster than one can be launched are a graph's
			w.add(piece{span: g, kind: idleQueued})
		case !ok:
			w.path(g, w.main())
		case prev != nil && prev.correlation == next.correlation && prev.correlation != 0:
			w.queued(g) // a graph's kernels share their launch
		default:
			c := th.calls.at(i)
			w.late(g, next, th, c)
		}
	}
	w.book(g)
}

func (w *walker) main() *thread {
	if len(w.threads) == 0 {
		return nil
	}
	return w.threads[0]
}

// late splits a gap at the call that ended it: what came before is the CPU's, what came after is
// the way to the GPU, and a long way means that the work stood behind something that was not
// recorded.
func (w *walker) late(g span, next *work, th *thread, c *call) {
	issued := min(c.end(), g.end)
	switch {
	case c.end() <= g.start:
		w.queued(g)
		return
	case c.kind == callCopy && c.start < g.end && next.start-c.start > 50*int64(next.dur) && w.isLong(g.end-max(g.start, c.start)):
		issued = max(g.start, min(c.start, g.end)) // the copy itself stood in line
	}
	if issued > g.start {
		w.path(span{g.start, issued}, th)
	}
	if issued >= g.end {
		return
	}
	rest := span{issued, g.end}
	switch {
	case issued < min(c.end(), g.end) && !w.leads(rest):
		// a copy that blocks
		w.add(piece{span: rest, kind: idleWait, thread: th, call: c, op: opAt(th, c.start)})
	case rest.end-rest.start > lateTimes*int64(c.dur) && w.isLong(rest.end-rest.start) || issued < min(c.end(), g.end):
		w.add(piece{span: rest, kind: idleUnrecorded, thread: th, call: c})
	default:
		w.add(piece{span: rest, kind: idleLaunch, thread: th, call: c, op: opAt(th, c.start)})
	}
}

// leads tells a stretch at the very start of a recording without steps: what stands in line there
// stands behind work from before the recording.
func (w *walker) leads(g span) bool {
	first := w.a.steps[0]
	return !w.a.marked && float64(g.start-first.start) < leadShare*float64(first.end-first.start)
}

func (w *walker) queued(g span) {
	kind := idleQueued
	if w.isLong(g.end - g.start) {
		kind = idleUnrecorded
	}
	w.add(piece{span: g, kind: kind})
}

// isLong tells a stretch that stands out, both in its step and among the gaps.
func (w *walker) isLong(ns int64) bool {
	step := float64(w.a.wall) / float64(len(w.a.steps))
	return float64(ns) >= longShare*step && ns >= longTimes*w.usual
}

func (w *walker) isHuge(ns int64) bool {
	return float64(ns) >= hugeShare*float64(w.a.wall)/float64(len(w.a.steps))
}

func (w *walker) add(p piece) {
	if p.end > p.start {
		w.pieces = append(w.pieces, p)
	}
}

// path splits a stretch by what the thread did, and where it did nothing, by what others did.
func (w *walker) path(g span, th *thread) {
	w.cut(g, w.a.captured, idleCapture, func(g span) {
		w.cut(g, w.a.inLoop, idleLoader, func(g span) {
			w.cut(g, w.a.compiling, idleCompile, func(g span) { w.ask(g, th, 0) })
		})
	})
}

// ask asks one thread after the other, the given one first.
func (w *walker) ask(g span, th *thread, from int) {
	if th != nil {
		walk(th, g, w.add, func(free span) { w.askOthers(free, th, from) })
		return
	}
	w.askOthers(g, nil, from)
}

func (w *walker) askOthers(g span, first *thread, from int) {
	for i := from; i < len(w.threads); i++ {
		if th := w.threads[i]; th != first {
			walk(th, g, w.add, func(free span) { w.askOthers(free, first, i+1) })
			return
		}
	}
	w.cut(g, w.a.aside, idleLoader, func(g span) {
		w.cut(g, w.host, idleComm, func(g span) {
			w.cut(g, w.a.blocked, idleWait, func(g span) { w.add(piece{span: g, kind: idleBetween, thread: first}) })
		})
	})
}

// cut gives what lies in a list of spans to a kind and the rest to a function.
func (w *walker) cut(g span, list []span, kind idleKind, rest func(span)) {
	i := sort.Search(len(list), func(i int) bool { return list[i].end > g.start })
	at := g.start
	for ; i < len(list) && list[i].start < g.end; i++ {
		s := span{max(list[i].start, g.start), min(list[i].end, g.end)}
		if s.start > at {
			rest(span{at, s.start})
		}
		w.add(piece{span: s, kind: kind})
		at = s.end
	}
	if at < g.end {
		rest(span{at, g.end})
	}
}

// walk cuts a stretch into the thread's calls and operators; free is told what lies outside both.
func walk(th *thread, g span, add func(piece), free func(span)) {
	oi := sort.Search(th.ops.len(), func(i int) bool { return th.ops.at(i).start > g.start }) - 1
	ci := sort.Search(th.calls.len(), func(i int) bool { return th.calls.at(i).start > g.start }) - 1
	for at := g.start; at < g.end; {
		for oi+1 < th.ops.len() && (oi < 0 || th.ops.at(oi).end() <= at) && th.ops.at(oi+1).start <= at {
			oi++
		}
		for ci+1 < th.calls.len() && (ci < 0 || th.calls.at(ci).end() <= at) && th.calls.at(ci+1).start <= at {
			ci++
		}
		next := g.end
		if ci+1 < th.calls.len() {
			next = min(next, max(at, th.calls.at(ci+1).start))
		}
		var o *op
		if oi >= 0 && th.ops.at(oi).end() > at {
			o = th.ops.at(oi)
		}
		if ci >= 0 {
			if c := th.calls.at(ci); c.end() > at {
				end := min(c.end(), g.end)
				add(piece{span: span{at, end}, kind: c.idleKind(), thread: th, op: o, call: c})
				at = end
				continue
			}
		}
		if next <= at { // a call that starts here and is empty
			ci++
			continue
		}
		if o != nil {
			end := min(o.end(), next)
			add(piece{span: span{at, end}, kind: idleOp, thread: th, op: o})
			at = end
			continue
		}
		if oi+1 < th.ops.len() {
			if s := th.ops.at(oi + 1).start; s > at {
				next = min(next, s)
			} else { // an operator that starts here and is empty
				oi++
				continue
			}
		}
		free(span{at, next})
		at = next
	}
}

func (c *call) idleKind() idleKind {
	switch {
	case c.cold:
		return idleCold
	case c.kind == callWait:
		return idleWait
	case c.kind == callAlloc:
		return idleAlloc
	case c.kind == callCopy:
		return idleCopy
	case c.kind == callLaunch, c.kind == callSet:
		return idleLaunch
	}
	return idleOp
}

// opAt is the operator that is open on a thread at a moment.
func opAt(th *thread, at int64) *op {
	i := sort.Search(th.ops.len(), func(i int) bool { return th.ops.at(i).start > at }) - 1
	if i < 0 || th.ops.at(i).end() <= at {
		return nil
	}
	return th.ops.at(i)
}

// book gives the pieces of a gap to their kinds and operators. A long stretch of Python is the
// host's own work, and so is an operator that computes on the CPU; a short stretch of Python is on
// the way to its operator, and inside the framework's own loops (the optimizer's over its
// parameters) it is the way to a launch. A GPU that has its work, or whose CPU waits, while another
// one works takes turns with it.
func (w *walker) book(g span) {
	a := w.a
	long := w.isLong(g.end - g.start)
	slices.SortFunc(w.pieces, func(x, y piece) int { return cmp.Compare(x.start, y.start) })
	for i := range w.pieces {
		p := &w.pieces[i]
		ns := float64(p.end-p.start) * w.weight
		switch {
		case p.kind == idleBetween && long && w.isLong(p.end-p.start), p.kind == idleOp && w.isHostWork(p):
			p.kind = idlePython
		case p.kind == idleWait && w.leads(p.span) && w.isLong(p.end-p.start):
			p.kind = idleUnrecorded
		case p.kind == idleOp && p.op != nil && a.isFirstUse(p.op):
			p.kind = idleCold
		}
		if (p.kind == idleWait || p.kind == idleUnrecorded) && w.isLong(p.end-p.start) && covered(w.peers, p.span) > (p.end-p.start)/2 {
			p.kind = idlePeer
		}
		if p.kind == idleBetween && (w.bare || covered(a.regions, p.span) > (p.end-p.start)/2) {
			p.kind = idleOp
		}
		a.idle[p.kind] += ns
		switch p.kind {
		case idleOp, idleLaunch, idleCopy, idleWait:
			switch {
			case p.op != nil:
				p.op.idle += float32(ns)
			case p.kind == idleWait:
				a.looseWaits += ns
			case p.kind == idleLaunch, p.kind == idleOp:
				a.looseLaunches += ns
				if len(a.loose) < maxPython {
					a.loose = append(a.loose, p.span)
				}
			}
			if (p.kind == idleWait || p.kind == idleCopy) && p.call != nil && w.isLong(p.end-p.start) {
				a.long = append(a.long, heldCall{p.thread, p.call, p.op, ns})
			}
		case idleBetween:
			if i+1 < len(w.pieces) && w.pieces[i+1].op != nil {
				w.pieces[i+1].op.lead += float32(ns)
			}
		}
		a.hold(p)
	}
}

// isHostWork tells a stretch in which an operator computes on the CPU: it makes no call for a large
// part of the step, as one of autograd's functions written in Python may between its launches, or
// it makes none at all and is of a name that usually takes its time for it.
func (w *walker) isHostWork(p *piece) bool {
	o := p.op
	if o == nil || w.a.isFirstUse(o) {
		return false
	}
	ns, calls := p.end-p.start, o.launches > 0 || o.holds != 0
	// beside what its launches and operators take
	few := ns >= longTimes*w.launch*int64(1+int(o.launches)+int(o.nested))
	return w.isHuge(ns) && (!calls || few && w.launch > 0) || !calls && w.hostOps[o.name]
}

// findHostOps lists the operators that launch nothing and usually take so long that they, and each
// operator inside them, could have launched twenty times. A view, which launches nothing either,
// takes about as long as one launch, and what autograd's engine evaluates is no operator but the
// way to some. Other runtimes launch from threads that their operators do not show.
func (w *walker) findHostOps() {
	w.hostOps = make([]bool, len(w.a.names.list))
	if w.a.format != "" || w.launch == 0 {
		return
	}
	type sum struct {
		ns float64
		n  int
	}
	by := make([]sum, len(w.a.names.list))
	w.a.eachOp(func(_ *thread, _, _ int, o *op) {
		if o.launches == 0 && o.holds == 0 {
			s := &by[o.name]
			s.ns, s.n = s.ns+float64(o.dur), s.n+1+int(o.nested)
		}
	})
	for name, s := range by {
		w.hostOps[name] = s.n > 0 && !strings.HasPrefix(w.a.names.list[name].text, backwardPrefix) &&
			s.ns >= float64(longTimes*w.launch)*float64(s.n)
	}
}

// isFirstUse tells an operator that holds a first use: everything it does on the way counts with
// it.
func (a *analysis) isFirstUse(o *op) bool { return o.holds&holdsCold != 0 }

// idleList is the idle time by kind, largest first.
func (a *analysis) idleList() []idleShare {
	out := []idleShare{}
	for k, ns := range a.idle {
		if ns > 0 {
			out = append(out, idleShare{a.idleWord(idleKind(k)), idleIDs[k], a.ms(ns)})
		}
	}
	slices.SortStableFunc(out, func(x, y idleShare) int { return cmp.Compare(y.MS, x.MS) })
	return out
}
