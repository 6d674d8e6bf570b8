package doctor

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"sort"
)

// Linking joins three lists by two keys: a driver call belongs to the outermost operator that is
// open on its thread when it starts, and to the GPU work that carries its correlation number. What
// an operator holds is written into its record here and read-only after.

// holds says which calls were made inside an operator.
type holds uint16

const (
	holdsLaunch      holds = 1 << iota
	holdsWait              // a call that waits for the GPU
	holdsRead              // a single value copied to the host
	holdsSingle            // a single value copied to the device
	holdsSmall             // a small copy of data, either way
	holdsLargePaged        // a large copy from or to pageable memory
	holdsAlloc             // a driver allocation or release
	holdsUnderfilled       // a kernel with fewer blocks than the card has processors
	holdsCold              // a first use that takes much of it
)

// The sizes that tell the kinds of copies apart. A scalar of any type, complex ones included, takes
// at most 16 bytes. Under 64 kB a copy's fixed cost (about 10 µs) outweighs its bytes on any bus;
// past 1 MB the bytes do, and page-locking pays.
const (
	singleBytes = 16
	smallBytes  = 64 << 10
	largeBytes  = 1 << 20
)

// tinyKernel is the GPU time under which issuing a kernel takes the CPU longer than running it
// takes the card: about 5 µs for the launch and as much again in PyTorch around it.
const tinyKernel = 10_000 // ns

// orphan is a call made outside any operator.
type orphan struct {
	start int64
	ns    float64
}

// analysis is a trace with its links and its sums over the steps. Sums are totals; perStep divides.
type analysis struct {
	*Trace
	marked   bool     // the trace marks its steps
	ahead    bool     // the CPU ran ahead, and steps are the GPU's windows
	steps    []window // what the figures are measured in
	cpuSteps []window // what the CPU's calls and operators are counted in
	skipped  int      // cold steps left out
	coldest  float64  // how many times the middle step the longest of them took
	wall     int64
	devices  []*device
	main     *thread // the thread with most operators
	busy     float64 // ns, mean over the devices
	idle     [idleKinds]float64
	idleNS   float64
	gaps     []span // of the first device
	widest   []gap
	// the long pieces of idle time, for places in the code and the page
	held                      []piece
	inPython                  []pythonPiece
	loose                     []span // of looseLaunches
	inLoop, aside             []span // fetches of the training loop's own thread, and of others
	waits                     int
	waited                    float64
	allocs                    int
	allocIn                   map[int]int // allocations by tenth of the step
	kernels                   int
	tiny                      int     // kernels shorter than tinyKernel
	kernel                    float64 // of compute and communication
	commNS                    float64
	copies                    int
	copied                    float64 // GPU time of copies across the bus, in ns
	moved                     uint64
	forward                   []*op // operators with a sequence number, in its order
	orphans                   map[callKind][]orphan
	largeNS                   float64 // GPU time of large pageable copies
	large                     int
	largeMB                   float64
	long                      []heldCall
	comm                      commSums
	calls                     []callRef // by correlation number
	bus                       [5]busSum // by direction
	launched                  int       // launches inside the steps
	usualLaunch               float32   // the middle launch call, ns
	looseWaits, looseLaunches float64   // idle time in calls outside any operator
	lost                      int       // of those, the ones without GPU work in the recording
}

// device is one GPU's share of the trace.
type device struct {
	id       uint16
	works    []int32 // positions in gpu, in time order
	busy     int64
	kernels  int
	gaps     []span
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

func (a *analysis) perStep(x float64) float64 { return x / float64(max(1, len(a.steps))) }

// ms is a total in nanoseconds as milliseconds per step.
func (a *analysis) ms(ns float64) float64 { return a.perStep(ns) / 1e6 }

func analyse(t *Trace) (*analysis, error) {
	a := &analysis{Trace: t, marked: len(t.steps) > 0, orphans: map[callKind][]orphan{}, allocIn: map[int]int{}}
	a.cpuSteps = t.steps
	if !a.marked {
		w, ok := t.extent()
		if !ok {
			return nil, errors.New("the trace holds no operators, driver calls or GPU work: there is nothing to measure")
		}
		a.cpuSteps = []window{w}
	}
	a.steps = a.cpuSteps
	a.indexCalls()
	a.markCold()
	a.setPeriod()
	a.skipped = a.leaveColdStepsOut()
	for _, s := range a.steps {
		a.wall += s.end - s.start
	}
	a.main = a.mainThread()
	a.splitFetches()
	byCorrelation := a.indexGPU()
	for _, th := range t.threads {
		a.link(th, byCorrelation)
	}
	a.measureGPU()
	a.measureComm()
	a.attribute()
	a.findWidest()
	return a, nil
}

// indexCalls lists the calls that start work by their correlation number.
func (a *analysis) indexCalls() {
	for t, th := range a.threads {
		for i := range th.calls.len() {
			c := th.calls.at(i)
			if c.kind == callLaunch {
				th.launches++
			}
			if c.correlation != 0 && (c.kind == callLaunch || c.kind == callCopy || c.kind == callSet || c.kind == callOther) {
				a.calls = append(a.calls, callRef{c.correlation, int32(t), int32(i)})
			}
		}
	}
	slices.SortFunc(a.calls, func(x, y callRef) int {
		return cmp.Or(cmp.Compare(x.correlation, y.correlation), cmp.Compare(a.threads[x.thread].calls.at(int(x.call)).start, a.threads[y.thread].calls.at(int(y.call)).start))
	})
}

// callOf finds the call that issued a piece of work: the last one with its number that does not
// start after it. Numbers repeat where recordings were joined.
func (a *analysis) callOf(g *work) (*thread, int, bool) {
	if g.correlation == 0 {
		return nil, 0, false
	}
	i := sort.Search(len(a.calls), func(i int) bool {
		r := a.calls[i]
		return r.correlation > g.correlation || r.correlation == g.correlation && a.threads[r.thread].calls.at(int(r.call)).start > g.start
	})
	if i == 0 || a.calls[i-1].correlation != g.correlation {
		return nil, 0, false
	}
	r := a.calls[i-1]
	return a.threads[r.thread], int(r.call), true
}

// indexGPU returns the positions of the GPU's work ordered by correlation number.
func (a *analysis) indexGPU() []int32 {
	index := make([]int32, a.gpu.len())
	for i := range index {
		index[i] = int32(i)
	}
	sort.SliceStable(index, func(i, j int) bool {
		return a.gpu.at(int(index[i])).correlation < a.gpu.at(int(index[j])).correlation
	})
	return index
}

// started finds what a call set going: the first work with its number that does not start before
// it. Numbers repeat where recordings were joined.
func (a *analysis) started(c *call, index []int32) *work {
	if c.correlation == 0 {
		return nil
	}
	i := sort.Search(len(index), func(i int) bool {
		g := a.gpu.at(int(index[i]))
		return g.correlation > c.correlation || g.correlation == c.correlation && g.start >= c.start
	})
	if i >= len(index) {
		return nil
	}
	if g := a.gpu.at(int(index[i])); g.correlation == c.correlation {
		return g
	}
	return nil
}

func (a *analysis) link(th *thread, index []int32) {
	at := 0
	for i := range th.calls.len() {
		c := th.calls.at(i)
		step, ok := within(a.cpuSteps, c.start)
		if !ok || c.kind == callOther {
			continue
		}
		for at < th.ops.len() && th.ops.at(at).end() <= c.start {
			at++
		}
		var o *op
		if at < th.ops.len() && th.ops.at(at).start <= c.start {
			o = th.ops.at(at)
			c.inOp = true
		} else {
			a.orphans[c.kind] = append(a.orphans[c.kind], orphan{c.start, float64(c.dur)})
			o = new(op)
		}
		if c.cold && c.dur >= 0.3*o.dur {
			o.holds |= holdsCold
		}
		switch c.kind {
		case callWait:
			o.holds |= holdsWait
			a.waits++
			a.waited += float64(c.dur)
		case callAlloc:
			o.holds |= holdsAlloc
			a.allocs++
			w := a.cpuSteps[step]
			a.allocIn[10*step+int(min(9, 10*float64(c.start-w.start)/float64(w.end-w.start)))]++
		case callLaunch:
			o.holds |= holdsLaunch
			o.launches = min(o.launches, 1<<15) + 1
			a.launched++
			switch g := a.started(c, index); {
			case g == nil:
				a.lost++
			case g.blocks >= 0 && g.blocks < 1 && !g.comm:
				o.holds |= holdsUnderfilled
			}
		case callCopy:
			if g := a.started(c, index); g != nil {
				o.holds |= a.copyKind(g)
			}
		}
	}
}

// copyKind sorts a copy by direction and size.
func (a *analysis) copyKind(g *work) holds {
	switch {
	case g.direction == inside:
		return 0
	case g.bytes <= singleBytes && g.direction.toHost():
		return holdsRead
	case g.bytes <= singleBytes:
		return holdsSingle
	case g.bytes < smallBytes:
		return holdsSmall
	case g.bytes >= largeBytes && g.direction.pageable():
		a.large++
		a.largeNS += float64(g.dur)
		a.largeMB += float64(g.bytes) / (1 << 20)
		return holdsLargePaged
	}
	return 0
}

// issuedAt is where the CPU issued a piece of work: the call and the operator around it.
func (a *analysis) issuedAt(g *work) []place {
	th, i, ok := a.callOf(g)
	if !ok {
		return nil
	}
	c := th.calls.at(i)
	if o := opAt(th, c.start); o != nil {
		return []place{{span{o.start, o.end()}, th}}
	}
	return []place{{span{c.start, c.end()}, th}}
}

// smallDevice is the share of the busiest device's work under which a device is no part of the run:
// a copy between cards leaves such traces.
const smallDevice = 0.05

// measureGPU sums the GPU's work inside the steps. Busy time is the union of all streams of a
// device.
func (a *analysis) measureGPU() {
	spans := map[uint16][]span{}
	works := map[uint16][]int32{}
	kernels := map[uint16]int{}
	step := 0
	for i := range a.gpu.len() {
		g := a.gpu.at(i)
		for step < len(a.steps) && a.steps[step].end <= g.start {
			step++
		}
		works[g.device] = append(works[g.device], int32(i))
		busy := spans[g.device]
		for s := step; s < len(a.steps) && a.steps[s].start < g.end(); s++ {
			cut := span{max(g.start, a.steps[s].start), min(g.end(), a.steps[s].end)}
			if n := len(busy); n > 0 && cut.start <= busy[n-1].end && cut.start >= busy[n-1].start {
				busy[n-1].end = max(busy[n-1].end, cut.end)
			} else {
				busy = append(busy, cut)
			}
		}
		spans[g.device] = busy
		if step == len(a.steps) || g.start < a.steps[step].start {
			continue
		}
		switch {
		case g.kind == catKernel:
			a.kernels++
			kernels[g.device]++
			a.kernel += float64(g.dur)
			if g.comm {
				a.commNS += float64(g.dur)
			}
			if g.dur < tinyKernel {
				a.tiny++
			}
		case g.kind == catCopy:
			b := &a.bus[g.direction]
			b.n, b.ns, b.bytes = b.n+1, b.ns+float64(g.dur), b.bytes+float64(g.bytes)
			if g.direction != inside {
				a.copies++
				a.copied += float64(g.dur)
				a.moved += uint64(g.bytes)
			}
		}
	}
	whole := make([]span, len(a.steps))
	for i, s := range a.steps {
		whole[i] = span(s)
	}
	most := int64(0)
	for _, id := range slices.Sorted(maps.Keys(works)) {
		d := &device{id: id, works: works[id], kernels: kernels[id]}
		list := union(spans[id])
		d.busy = total(list)
		d.gaps, _ = without(whole, list)
		most = max(most, d.busy)
		a.devices = append(a.devices, d)
	}
	a.devices = slices.DeleteFunc(a.devices, func(d *device) bool { return float64(d.busy) < smallDevice*float64(most) })
	for _, d := range a.devices {
		a.busy += float64(d.busy) / float64(len(a.devices))
		a.idleNS += float64(a.wall-d.busy) / float64(len(a.devices))
	}
	if len(a.devices) > 0 {
		a.gaps = a.devices[0].gaps
	}
}

// eachOp visits the operators that start inside a step, in time order on each thread.
func (a *analysis) eachOp(visit func(th *thread, i, step int, o *op)) {
	for _, th := range a.threads {
		step := 0
		for i := range th.ops.len() {
			o := th.ops.at(i)
			for step < len(a.cpuSteps) && a.cpuSteps[step].end <= o.start {
				step++
			}
			if step < len(a.cpuSteps) && a.cpuSteps[step].start <= o.start {
				visit(th, i, step, o)
			}
		}
	}
}
