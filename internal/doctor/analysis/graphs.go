package analysis

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"sort"
	"strings"

	"haul/internal/doctor/phrase"
	"haul/internal/doctor/trace"
)

// The kernels of a replayed graph have a common launch and no operator. Only the capture shows who
// issued them, in the same recording or in another one. A capture's launches start no work. Their
// order is the order of the replay's kernels if the graph has one stream. If the runtime names a
// launch's kernel, as ROCm does, the two lists are aligned by names. Otherwise they count as the
// same graph only if their lengths are equal, copies are at the same positions, and equal operators
// ran equal kernels.

// GraphReplay summarises the replays of one CUDA graph. Its operators and modules come from the
// graph's capture.
type GraphReplay struct {
	Replays   float64      `json:"replays"`           // per step
	Kernels   int          `json:"kernels"`           // pieces of work per replay
	MS        float64      `json:"ms"`                // of all replays, per step
	Joined    float64      `json:"joined_share"`      // fraction of its time whose operator is known
	Capture   string       `json:"capture,omitempty"` // the file, if it is another one
	Why       string       `json:"why,omitempty"`     // the reason why nothing is joined
	Operators []OpRate     `json:"operators"`
	Modules   []ModuleTime `json:"modules"`
}

const (
	// alike is the fraction of a replay's kernels that must match a capture's launches by name.
	alike = 0.9
	// lookAhead is the number of launches or kernels that may be missing in a row.
	lookAhead = 16
)

// CapturedGraphs returns the graphs whose capture is in the recording.
func (a *Analysis) CapturedGraphs() []trace.Capture {
	var out []trace.Capture
	for _, s := range a.Trace.Captured {
		var c trace.Capture
		for _, th := range a.Threads {
			c.Launches = append(c.Launches, a.capturedOn(th, s)...)
		}
		// A backward is captured on another thread than the forward and the optimizer.
		slices.SortStableFunc(c.Launches, func(x, y trace.CapturedLaunch) int { return cmp.Compare(x.At, y.At) })
		if len(c.Launches) > 0 {
			out = append(out, c)
		}
	}
	return out
}

// capturedOn returns the launches of one thread inside a capture, in order.
func (a *Analysis) capturedOn(th *trace.Thread, s trace.Span) []trace.CapturedLaunch {
	var out []trace.CapturedLaunch
	frames, stack := 0, []int{} // stack holds the indices of the enclosing modules
	first := sort.Search(th.Calls.Len(), func(i int) bool { return th.Calls.At(i).Start >= s.Start })
	for i := first; i < th.Calls.Len() && th.Calls.At(i).Start < s.End; i++ {
		c := th.Calls.At(i)
		if c.Kind != trace.CallLaunch && c.Kind != trace.CallCopy && c.Kind != trace.CallSet || a.started(c, a.byCorrelation) != nil {
			continue
		}
		l := trace.CapturedLaunch{At: c.Start, Kind: c.Kind}
		if o := OpAt(th, c.Start); o != nil {
			l.Op = a.Names.List[o.Name].Text
			if o.Form != 0 {
				l.Shapes = shapesOf(&a.Forms[o.Form])
			}
		}
		k := sort.Search(a.Aimed.Len(), func(k int) bool { return a.Aimed.At(k).Correlation >= c.Correlation })
		if k < a.Aimed.Len() && a.Aimed.At(k).Correlation == c.Correlation && c.Correlation != 0 {
			l.Kernel = a.Names.List[a.Aimed.At(k).Kernel].Text
		}
		for ; frames < th.Frames.Len() && th.Frames.At(frames).Start <= c.Start; frames++ {
			if strings.HasPrefix(a.Names.List[th.Frames.At(frames).Name].Text, modulePrefix) {
				stack = append(stack, frames)
			}
		}
		stack = slices.DeleteFunc(stack, func(f int) bool { return th.Frames.At(f).End() <= c.Start })
		for _, f := range stack {
			l.Modules = append(l.Modules, strings.TrimPrefix(a.Names.List[th.Frames.At(f).Name].Text, modulePrefix))
		}
		out = append(out, l)
	}
	return out
}

// replays returns the graphs that are replayed inside the steps, longest first.
func (a *Analysis) replays() []GraphReplay {
	byGraph := map[uint64]*replayed{}
	var order []uint64
	for k, ref := range a.calls {
		c := a.Threads[ref.thread].Calls.At(int(ref.call))
		if c.Kind != trace.CallLaunch || !strings.Contains(a.Names.List[c.Name].Text, "GraphLaunch") {
			continue
		}
		if _, ok := trace.Within(a.CPUSteps, c.Start); !ok {
			continue
		}
		until := int64(math.MaxInt64) // numbers repeat in recordings that were merged
		if k+1 < len(a.calls) && a.calls[k+1].correlation == ref.correlation {
			until = a.Threads[a.calls[k+1].thread].Calls.At(int(a.calls[k+1].call)).Start
		}
		works := a.worksOf(c, until)
		if len(works) == 0 {
			continue
		}
		id := uint64(len(works)) // a graph is identified by its kernels, in order
		for _, g := range works {
			id = id*1099511628211 ^ uint64(g.Name)
		}
		if byGraph[id] == nil {
			byGraph[id] = &replayed{}
			order = append(order, id)
		}
		byGraph[id].runs = append(byGraph[id].runs, works)
	}
	captures := append(slices.Clone(a.Captures), a.CapturedGraphs()...)
	var out []GraphReplay
	for _, id := range order {
		out = append(out, a.joined(byGraph[id], captures))
	}
	slices.SortStableFunc(out, func(x, y GraphReplay) int { return cmp.Compare(y.MS, x.MS) })
	return out
}

// replayed holds the replays of one graph.
type replayed struct{ runs [][]*trace.Work }

// worksOf returns the work that a call started before a time, in time order.
func (a *Analysis) worksOf(c *trace.Call, until int64) []*trace.Work {
	i := sort.Search(len(a.byCorrelation), func(i int) bool {
		g := a.GPU.At(int(a.byCorrelation[i]))
		return g.Correlation > c.Correlation || g.Correlation == c.Correlation && g.Start >= c.Start
	})
	var out []*trace.Work
	for ; i < len(a.byCorrelation); i++ {
		g := a.GPU.At(int(a.byCorrelation[i]))
		if g.Correlation != c.Correlation || g.Start >= until {
			break
		}
		out = append(out, g)
	}
	return out
}

// joined assigns a graph's work to the operators of the capture that fits best.
func (a *Analysis) joined(r *replayed, captures []trace.Capture) GraphReplay {
	works := r.runs[0]
	g := GraphReplay{Replays: a.PerStep(float64(len(r.runs))), Kernels: len(works), Operators: []OpRate{}, Modules: []ModuleTime{}}
	var total float64
	for _, run := range r.runs {
		for _, w := range run {
			total += float64(w.Dur)
		}
	}
	g.MS = a.Ms(total)
	var best []int
	var from *trace.Capture
	most := 0
	for i := range captures {
		to := a.align(works, captures[i].Launches)
		n := 0
		for _, k := range to {
			if k >= 0 {
				n++
			}
		}
		if n > most {
			best, from, most = to, &captures[i], n
		}
	}
	switch {
	case len(captures) == 0:
		g.Why = "its capture is not recorded: record it too, and give it with --capture"
		return g
	case from == nil:
		g.Why = "none of the captures that are recorded launched these kernels"
		return g
	}
	g.Capture = from.File
	a.share(&g, r, from.Launches, best)
	if total > 0 {
		g.Joined /= total
	}
	return g
}

// share sums a graph's work by operator and by module.
func (a *Analysis) share(g *GraphReplay, r *replayed, launches []trace.CapturedLaunch, to []int) {
	ops, modules := map[[2]string]*OpRate{}, map[string]*ModuleTime{}
	for _, run := range r.runs {
		for i, w := range run {
			if to[i] < 0 {
				continue
			}
			l := &launches[to[i]]
			g.Joined += float64(w.Dur)
			key := [2]string{l.Op, l.Shapes}
			if ops[key] == nil {
				name := "outside any operator"
				if l.Op != "" {
					name = trace.ShortName(l.Op)
				}
				ops[key] = &OpRate{Name: name, Shapes: l.Shapes}
			}
			ops[key].MS += a.Ms(float64(w.Dur))
			ops[key].Count++
			for k, m := range l.Modules {
				if slices.Contains(l.Modules[:k], m) { // a module inside another of the same name
					continue
				}
				if modules[m] == nil {
					modules[m] = &ModuleTime{Name: phrase.Printable(m)}
				}
				modules[m].GPUMS += a.Ms(float64(w.Dur))
				modules[m].Count++
			}
		}
	}
	// Pointers are sorted instead of structs, since each sorted struct type adds a sort to the
	// binary.
	byTime := slices.SortedFunc(maps.Values(ops), func(x, y *OpRate) int {
		return cmp.Or(cmp.Compare(y.MS, x.MS), cmp.Compare(x.Name, y.Name), cmp.Compare(x.Shapes, y.Shapes))
	})
	for _, o := range byTime[:min(len(byTime), shownRates)] {
		o.Count = a.PerStep(o.Count)
		g.Operators = append(g.Operators, *o)
	}
	within := slices.SortedFunc(maps.Values(modules), func(x, y *ModuleTime) int {
		return cmp.Or(cmp.Compare(y.GPUMS, x.GPUMS), cmp.Compare(x.Name, y.Name))
	})
	for _, m := range within[:min(len(within), shownModules)] {
		m.Count = a.PerStep(m.Count)
		g.Modules = append(g.Modules, *m)
	}
}

// align returns the launch of each piece of work, or -1 for a piece without one. It returns nil if
// the work and the launches are not of the same graph.
func (a *Analysis) align(works []*trace.Work, launches []trace.CapturedLaunch) []int {
	if !slices.ContainsFunc(launches, func(l trace.CapturedLaunch) bool { return l.Kernel != "" }) {
		return a.alignByOrder(works, launches)
	}
	to := make([]int, len(works))
	matched, l := 0, 0
	for i := 0; i < len(works); i++ {
		to[i] = -1
		name := a.Names.List[works[i].Name].Text
		for ahead := range lookAhead {
			if l+ahead < len(launches) && launches[l+ahead].Kernel == name {
				to[i], l = l+ahead, l+ahead+1
				matched++
				break
			}
		}
	}
	if float64(matched) < alike*float64(max(len(works), len(launches))) {
		return nil
	}
	return to
}

// alignByOrder joins lists of equal length and equal kinds of work, in which equal operators with
// equal shapes run equal kernels. Without shapes, only the kernels' families must be equal. A node
// of the backward never has shapes and may be anything.
func (a *Analysis) alignByOrder(works []*trace.Work, launches []trace.CapturedLaunch) []int {
	if len(works) != len(launches) {
		return nil
	}
	type key struct {
		op, shapes string
		nth        int // launch of its operator
	}
	kernels := map[key]map[uint32]int{}
	kinds := 0
	nth, repeated, same := 0, 0, 0
	to := make([]int, len(works))
	for i := range works {
		to[i] = i
		if (works[i].Kind == trace.CatKernel) == (launches[i].Kind == trace.CallLaunch) {
			kinds++
		}
		if nth++; i == 0 || launches[i].Op != launches[i-1].Op || launches[i].Shapes != launches[i-1].Shapes {
			nth = 0
		}
		if trace.IsBackward(launches[i].Op) {
			continue
		}
		ran := works[i].Name
		if launches[i].Shapes == "" {
			ran = uint32(a.Names.List[ran].Family)
		}
		k := key{launches[i].Op, launches[i].Shapes, nth}
		if kernels[k] == nil {
			kernels[k] = map[uint32]int{}
		}
		kernels[k][ran]++
	}
	for _, names := range kernels {
		n, most := 0, 0
		for _, times := range names {
			n, most = n+times, max(most, times)
		}
		if n > 1 {
			repeated, same = repeated+n, same+most
		}
	}
	if float64(same) < alike*float64(repeated) || float64(kinds) < alike*float64(len(works)) {
		return nil
	}
	return to
}
