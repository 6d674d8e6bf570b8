// Package analysis computes the figures of a trace for package doctor and its rules. It connects
// calls with the operators that made them and with the GPU work that they started, determines the
// steps, and assigns the idle GPU time to causes. Only the rules judge the figures.
package analysis

import (
	"cmp"
	"maps"
	"slices"
	"sort"

	"haul/internal/doctor/trace"
)

// Linking joins three lists by two keys. A driver call belongs to the outermost operator that runs
// on its thread when it starts, and to the GPU work with the same correlation number. The facts
// about an operator's calls are written to its record here and do not change afterwards.

// Sizes that distinguish kinds of copies. A scalar of any type, complex ones included, has at most
// 16 bytes. Under 64 kB a copy's fixed cost (about 10 µs) outweighs its transfer on any bus; above
// 1 MB the transfer dominates, and page-locking pays.
const (
	singleBytes = 16
	smallBytes  = 64 << 10
	LargeBytes  = 1 << 20
)

// TinyKernel is the kernel duration below which issuing a kernel takes the CPU longer than running
// it takes the GPU: about 5 µs for the launch and as much again in PyTorch around it.
const TinyKernel = 10_000 // ns

// indexCalls lists the calls that start work by their correlation number.
func (a *Analysis) indexCalls() {
	for t, th := range a.Threads {
		for i := range th.Calls.Len() {
			c := th.Calls.At(i)
			if c.Kind == trace.CallLaunch {
				th.Launches++
			}
			if c.Correlation != 0 && (c.Kind == trace.CallLaunch || c.Kind == trace.CallCopy || c.Kind == trace.CallSet || c.Kind == trace.CallOther) {
				a.calls = append(a.calls, callRef{c.Correlation, int32(t), int32(i)})
			}
		}
	}
	slices.SortFunc(a.calls, func(x, y callRef) int {
		return cmp.Or(cmp.Compare(x.correlation, y.correlation), cmp.Compare(a.Threads[x.thread].Calls.At(int(x.call)).Start, a.Threads[y.thread].Calls.At(int(y.call)).Start))
	})
}

// indexGPU returns the positions of the GPU's work ordered by correlation number.
func (a *Analysis) indexGPU() []int32 {
	index := make([]int32, a.GPU.Len())
	for i := range index {
		index[i] = int32(i)
	}
	sort.SliceStable(index, func(i, j int) bool {
		return a.GPU.At(int(index[i])).Correlation < a.GPU.At(int(index[j])).Correlation
	})
	return index
}

// started returns the work that a call started: the first with its number that does not start
// before it, or nil. Numbers repeat in recordings that were merged.
func (a *Analysis) started(c *trace.Call, index []int32) *trace.Work {
	if c.Correlation == 0 {
		return nil
	}
	i := sort.Search(len(index), func(i int) bool {
		g := a.GPU.At(int(index[i]))
		return g.Correlation > c.Correlation || g.Correlation == c.Correlation && g.Start >= c.Start
	})
	if i >= len(index) {
		return nil
	}
	if g := a.GPU.At(int(index[i])); g.Correlation == c.Correlation {
		return g
	}
	return nil
}

func (a *Analysis) link(th *trace.Thread, index []int32) {
	at := 0
	for i := range th.Calls.Len() {
		c := th.Calls.At(i)
		step, ok := trace.Within(a.CPUSteps, c.Start)
		if !ok || c.Kind == trace.CallOther {
			continue
		}
		for at < th.Ops.Len() && th.Ops.At(at).End() <= c.Start {
			at++
		}
		var o *trace.Op
		if at < th.Ops.Len() && th.Ops.At(at).Start <= c.Start {
			o = th.Ops.At(at)
			c.InOp = true
		} else {
			a.Orphans[c.Kind] = append(a.Orphans[c.Kind], orphan{c.Start, float64(c.Dur)})
			o = new(trace.Op)
		}
		if c.Cold && c.Dur >= 0.3*o.Dur {
			o.Holds |= trace.HoldsCold
		}
		switch c.Kind {
		case trace.CallWait:
			o.Holds |= trace.HoldsWait
			a.Waits++
			a.Waited += float64(c.Dur)
		case trace.CallAlloc:
			o.Holds |= trace.HoldsAlloc
			a.Allocs++
			w := a.CPUSteps[step]
			a.AllocIn[10*step+int(min(9, 10*float64(c.Start-w.Start)/float64(w.End-w.Start)))]++
		case trace.CallLaunch:
			o.Holds |= trace.HoldsLaunch
			o.Launches = min(o.Launches, 1<<15) + 1
			a.Launched++
			switch g := a.started(c, index); {
			case g == nil:
				a.Lost++
			case g.Blocks >= 0 && g.Blocks < 1 && !g.Comm:
				o.Holds |= trace.HoldsUnderfilled
				o.GPU += g.Dur
			case !g.Comm:
				o.GPU += g.Dur
			}
		case trace.CallCopy:
			if g := a.started(c, index); g != nil {
				o.Holds |= a.copyKind(g)
			}
		}
	}
}

// copyKind classifies a copy by direction and size.
func (a *Analysis) copyKind(g *trace.Work) trace.Holds {
	switch {
	case g.Direction == trace.Inside:
		return 0
	case g.Bytes <= singleBytes && g.Direction.ToHost():
		return trace.HoldsRead
	case g.Bytes <= singleBytes:
		return trace.HoldsSingle
	case g.Bytes < smallBytes:
		return trace.HoldsSmall
	case g.Bytes >= LargeBytes && g.Direction.Pageable():
		a.Large++
		a.LargeNS += float64(g.Dur)
		a.LargeMB += float64(g.Bytes) / (1 << 20)
		return trace.HoldsLargePaged
	}
	return 0
}

// smallDevice is the share of the busiest device's work under which a device is not part of the
// run: a copy between GPUs leaves such traces.
const smallDevice = 0.05

// measureGPU sums the GPU's work inside the steps. Busy time is the union over a device's streams.
func (a *Analysis) measureGPU() {
	spans := map[uint16][]trace.Span{}
	works := map[uint16][]int32{}
	kernels := map[uint16]int{}
	step := 0
	for i := range a.GPU.Len() {
		g := a.GPU.At(i)
		for step < len(a.Steps) && a.Steps[step].End <= g.Start {
			step++
		}
		works[g.Device] = append(works[g.Device], int32(i))
		busy := spans[g.Device]
		for s := step; s < len(a.Steps) && a.Steps[s].Start < g.End(); s++ {
			cut := trace.Span{Start: max(g.Start, a.Steps[s].Start), End: min(g.End(), a.Steps[s].End)}
			if n := len(busy); n > 0 && cut.Start <= busy[n-1].End && cut.Start >= busy[n-1].Start {
				busy[n-1].End = max(busy[n-1].End, cut.End)
			} else {
				busy = append(busy, cut)
			}
		}
		spans[g.Device] = busy
		if step == len(a.Steps) || g.Start < a.Steps[step].Start {
			continue
		}
		switch {
		case g.Kind == trace.CatKernel:
			a.Kernels++
			kernels[g.Device]++
			a.Kernel += float64(g.Dur)
			if g.Dur < TinyKernel {
				a.Tiny++
			}
		case g.Kind == trace.CatCopy:
			b := &a.bus[g.Direction]
			b.n, b.ns, b.bytes = b.n+1, b.ns+float64(g.Dur), b.bytes+float64(g.Bytes)
			if g.Direction != trace.Inside {
				a.Copies++
				a.Copied += float64(g.Dur)
				a.Moved += uint64(g.Bytes)
			}
		}
	}
	whole := make([]trace.Span, len(a.Steps))
	for i, s := range a.Steps {
		whole[i] = trace.Span(s)
	}
	most := int64(0)
	for _, id := range slices.Sorted(maps.Keys(works)) {
		d := &device{ID: id, Works: works[id], kernels: kernels[id]}
		list := trace.Union(spans[id])
		d.busy = trace.Total(list)
		d.Gaps, _ = trace.Without(whole, list)
		most = max(most, d.busy)
		a.Devices = append(a.Devices, d)
	}
	a.Devices = slices.DeleteFunc(a.Devices, func(d *device) bool { return float64(d.busy) < smallDevice*float64(most) })
	for _, d := range a.Devices {
		a.Busy += float64(d.busy) / float64(len(a.Devices))
		a.IdleNS += float64(a.Wall-d.busy) / float64(len(a.Devices))
	}
	if len(a.Devices) > 0 {
		a.Gaps = a.Devices[0].Gaps
	}
}

// OperatorsPerStep returns the number of operators per step, including those inside others.
func (a *Analysis) OperatorsPerStep() float64 {
	n := 0
	a.EachOp(func(_ *trace.Thread, _, _ int, o *trace.Op) { n += 1 + int(o.Nested) })
	return a.PerStep(float64(n))
}
