package doctor

import (
	"errors"
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
	marked  bool // the trace marks its steps
	wall    int64
	busy    int64
	gaps    []span
	widest  []gap
	waits   int
	waited  float64
	allocs  int
	kernels int
	tiny    int // kernels shorter than tinyKernel
	kernel  float64
	copies  int
	copied  float64 // GPU time of copies across the bus, in ns
	moved   uint64
	idle    []idleShare
	forward []*op // operators with a sequence number, in its order
	orphans map[callKind][]orphan
	largeNS float64 // GPU time of large pageable copies
	large   int
	largeMB float64
}

func (a *analysis) perStep(x float64) float64 { return x / float64(len(a.steps)) }

// ms is a total in nanoseconds as milliseconds a step.
func (a *analysis) ms(ns float64) float64 { return a.perStep(ns) / 1e6 }

func analyse(t *Trace) (*analysis, error) {
	a := &analysis{Trace: t, marked: len(t.steps) > 0, orphans: map[callKind][]orphan{}}
	if !a.marked {
		w, ok := t.extent()
		if !ok {
			return nil, errors.New("the trace holds no operators, driver calls or GPU work: there is nothing to measure")
		}
		t.steps = []window{w}
	}
	for _, s := range a.steps {
		a.wall += s.end - s.start
	}
	byCorrelation := a.indexGPU()
	for _, th := range t.threads {
		a.link(th, byCorrelation)
	}
	a.measureGPU()
	a.explainGaps()
	return a, nil
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

// started finds what a call set going: the first work with its number that does not start before it.
// Numbers repeat where recordings were joined.
func (a *analysis) started(c *call, index []int32) *work {
	if c.correlation == 0 {
		return nil
	}
	i := sort.Search(len(index), func(i int) bool {
		g := a.gpu.at(int(index[i]))
		return g.correlation > c.correlation || g.correlation == c.correlation && g.start >= c.start
	})
	if i == len(index) {
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
		if _, ok := within(a.steps, c.start); !ok {
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
		switch c.kind {
		case callWait:
			o.holds |= holdsWait
			a.waits++
			a.waited += float64(c.dur)
		case callAlloc:
			o.holds |= holdsAlloc
			a.allocs++
		case callLaunch:
			o.holds |= holdsLaunch
			o.launches = min(o.launches, 1<<15) + 1
			if g := a.started(c, index); g != nil && g.blocks >= 0 && g.blocks < 1 {
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

// measureGPU sums the GPU's work inside the steps. Busy time is the union of all streams.
func (a *analysis) measureGPU() {
	var busy []span
	step := 0
	for i := range a.gpu.len() {
		g := a.gpu.at(i)
		for step < len(a.steps) && a.steps[step].end <= g.start {
			step++
		}
		for s := step; s < len(a.steps) && a.steps[s].start < g.end(); s++ {
			cut := span{max(g.start, a.steps[s].start), min(g.end(), a.steps[s].end)}
			if n := len(busy); n > 0 && cut.start <= busy[n-1].end && cut.start >= busy[n-1].start {
				busy[n-1].end = max(busy[n-1].end, cut.end)
			} else {
				busy = append(busy, cut)
			}
		}
		if step == len(a.steps) || g.start < a.steps[step].start {
			continue
		}
		switch {
		case g.kind == catKernel:
			a.kernels++
			a.kernel += float64(g.dur)
			if g.dur < tinyKernel {
				a.tiny++
			}
		case g.kind == catCopy && g.direction != inside:
			a.copies++
			a.copied += float64(g.dur)
			a.moved += uint64(g.bytes)
		}
	}
	busy = union(busy)
	a.busy = total(busy)
	whole := make([]span, len(a.steps))
	for i, s := range a.steps {
		whole[i] = span(s)
	}
	a.gaps, _ = without(whole, busy)
}

// eachOp visits the operators that start inside a step, in time order on each thread.
func (a *analysis) eachOp(visit func(th *thread, i, step int, o *op)) {
	for _, th := range a.threads {
		step := 0
		for i := range th.ops.len() {
			o := th.ops.at(i)
			for step < len(a.steps) && a.steps[step].end <= o.start {
				step++
			}
			if step < len(a.steps) && a.steps[step].start <= o.start {
				visit(th, i, step, o)
			}
		}
	}
}
