package analysis

import (
	"cmp"
	"slices"
	"sort"
	"strings"

	"haul/internal/doctor/phrase"
	"haul/internal/doctor/trace"
)

// The modules form a tree: the network's modules, as Python's frames name them, and the program's
// annotations, each inside its caller. Modules of one class with one caller are one line, so that a
// network of forty equal layers stays readable; the longest module is named. The backward of an
// operator runs later on another thread and is assigned by autograd's numbers.

// ModuleTime sums the work inside the modules of one class at one position of the tree, or inside
// one annotation of the program.
type ModuleTime struct {
	Name       string  `json:"name"` // the class; the module's name if it is the only one
	Depth      int     `json:"depth"`
	Modules    int     `json:"modules,omitempty"` // of that class
	Count      float64 `json:"count"`             // calls per step
	CPUMS      float64 `json:"cpu_ms"`
	GPUMS      float64 `json:"gpu_ms"`                // of the operators that start inside
	BackwardMS float64 `json:"backward_ms,omitempty"` // the backward's part of GPUMS
	Longest    string  `json:"longest,omitempty"`     // the longest of several modules
	LongestMS  float64 `json:"longest_ms,omitempty"`
}

const (
	modulePrefix = "nn.Module: "
	shownModules = 24
	// moduleShare is the fraction of the longest line from which a line is shown.
	moduleShare = 0.01
)

// moduleNode is a line of the tree.
type moduleNode struct {
	parent, depth int
	class         string
	calls         int
	cpu, gpu      float64 // ns, including modules inside
	back          float64
	names         map[uint32]float64 // its modules, by time on the GPU or, without one, on the CPU
	kids          []int
}

type moduleKey struct {
	parent int
	class  string
}

// moduleTree holds the lines and an index of them.
type moduleTree struct {
	a     *Analysis
	nodes []moduleNode
	index map[moduleKey]int
}

// opened is a module that is running.
type opened struct {
	end  int64
	node int
	name uint32
}

// Modules returns the lines in tree order, longest first.
func (a *Analysis) Modules() []ModuleTime {
	t := &moduleTree{a: a, nodes: []moduleNode{{depth: -1}}, index: map[moduleKey]int{}}
	backward := a.backwardOf()
	for _, th := range a.Threads {
		t.walk(th, a.calledOn(th), backward)
	}
	out := []ModuleTime{}
	t.list(0, &out)
	return out
}

// moduleCall is one call of a module or an annotation.
type moduleCall struct {
	trace.Span
	name  uint32
	class string
}

// calledOn returns the calls of a thread inside the steps, in time order.
func (a *Analysis) calledOn(th *trace.Thread) []moduleCall {
	var out []moduleCall
	for i := range th.Frames.Len() {
		f := th.Frames.At(i)
		text := a.Names.List[f.Name].Text
		if !strings.HasPrefix(text, modulePrefix) {
			continue
		}
		if _, ok := trace.Within(a.CPUSteps, f.Start); ok {
			out = append(out, moduleCall{trace.Span{Start: f.Start, End: f.End()}, f.Name, classOf(strings.TrimPrefix(text, modulePrefix))})
		}
	}
	for _, r := range a.Ranges {
		if _, ok := trace.Within(a.CPUSteps, r.Start); ok && r.Thread == th {
			out = append(out, moduleCall{r.Span, r.Name, a.Names.List[r.Name].Text})
		}
	}
	slices.SortStableFunc(out, func(x, y moduleCall) int { return cmp.Or(cmp.Compare(x.Start, y.Start), cmp.Compare(y.End, x.End)) })
	return out
}

// classOf removes the number from a module's name: Linear_3 is a Linear.
func classOf(s string) string {
	if i := strings.LastIndexByte(s, '_'); i > 0 && isNumber(s[i+1:]) {
		return s[:i]
	}
	return s
}

// walk follows a thread's calls and adds each operator to the modules that are running.
func (t *moduleTree) walk(th *trace.Thread, calls []moduleCall, backward map[*trace.Op]float64) {
	if len(calls) == 0 {
		return
	}
	var stack []opened
	at := 0
	open := func(until int64) {
		for ; at < len(calls) && calls[at].Start <= until; at++ {
			c := &calls[at]
			for len(stack) > 0 && stack[len(stack)-1].end <= c.Start {
				stack = stack[:len(stack)-1]
			}
			n := t.node(stack, c)
			t.nodes[n].calls++
			t.nodes[n].cpu += float64(c.End - c.Start)
			if len(t.a.Devices) == 0 {
				t.nodes[n].names[c.name] += float64(c.End - c.Start)
			} else {
				t.nodes[n].names[c.name] += 0
			}
			stack = append(stack, opened{c.End, n, c.name})
		}
		for len(stack) > 0 && stack[len(stack)-1].end <= until {
			stack = stack[:len(stack)-1]
		}
	}
	t.a.eachOn(th, func(_ int, o *trace.Op) {
		open(o.Start)
		for i, s := range stack {
			if s.end <= o.Start || slices.ContainsFunc(stack[:i], func(x opened) bool { return x.node == s.node }) {
				continue
			}
			n := &t.nodes[s.node]
			n.gpu += float64(o.GPU) + backward[o]
			n.back += backward[o]
			if len(t.a.Devices) > 0 {
				n.names[s.name] += float64(o.GPU) + backward[o]
			}
		}
	})
	open(calls[len(calls)-1].Start)
}

// node returns the line of a call inside the running modules. A recursive call of the same class
// uses the line of the outer one.
func (t *moduleTree) node(stack []opened, c *moduleCall) int {
	parent := 0
	if len(stack) > 0 {
		parent = stack[len(stack)-1].node
		if t.nodes[parent].class == c.class && stack[len(stack)-1].name == c.name {
			parent = t.nodes[parent].parent
		}
	}
	k := moduleKey{parent, c.class}
	n, ok := t.index[k]
	if !ok {
		n = len(t.nodes)
		t.index[k] = n
		t.nodes = append(t.nodes, moduleNode{parent: parent, depth: t.nodes[parent].depth + 1, class: c.class, names: map[uint32]float64{}})
		t.nodes[parent].kids = append(t.nodes[parent].kids, n)
	}
	return n
}

// weight returns the value that lines are sorted by.
func (t *moduleTree) weight(n int) float64 {
	if len(t.a.Devices) > 0 {
		return t.nodes[n].gpu
	}
	return t.nodes[n].cpu
}

// list appends the lines below root that are long enough. If there are too many, it leaves out the
// deepest first.
func (t *moduleTree) list(root int, out *[]ModuleTime) {
	top := 0.0
	for _, k := range t.nodes[root].kids {
		top = max(top, t.weight(k))
	}
	shown := map[int]bool{}
	level := t.nodes[root].kids
	for len(level) > 0 && len(shown) < shownModules {
		var next []int
		t.order(level)
		for _, n := range level {
			if len(shown) < shownModules && (t.weight(n) >= moduleShare*top) {
				shown[n] = true
				next = append(next, t.nodes[n].kids...)
			}
		}
		level = next
	}
	t.lines(root, shown, out)
}

func (t *moduleTree) order(list []int) {
	slices.SortFunc(list, func(x, y int) int {
		return cmp.Or(cmp.Compare(t.weight(y), t.weight(x)), cmp.Compare(t.nodes[y].cpu, t.nodes[x].cpu), strings.Compare(t.nodes[x].class, t.nodes[y].class))
	})
}

func (t *moduleTree) lines(n int, shown map[int]bool, out *[]ModuleTime) {
	kids := slices.Clone(t.nodes[n].kids)
	t.order(kids)
	for _, k := range kids {
		if !shown[k] {
			continue
		}
		x, a := &t.nodes[k], t.a
		m := ModuleTime{Name: phrase.Printable(x.class), Depth: x.depth, Modules: len(x.names), Count: a.PerStep(float64(x.calls)),
			CPUMS: a.Ms(x.cpu), GPUMS: a.Ms(x.gpu), BackwardMS: a.Ms(x.back)}
		best, most := uint32(0), -1.0
		for name, ns := range x.names {
			if ns > most || ns == most && a.Names.List[name].Text < a.Names.List[best].Text {
				best, most = name, ns
			}
		}
		text := phrase.Printable(strings.TrimPrefix(a.Names.List[best].Text, modulePrefix))
		if len(x.names) == 1 {
			m.Name, m.Modules = text, 0
		} else {
			m.Longest, m.LongestMS = text, a.Ms(most)
		}
		*out = append(*out, m)
		t.lines(k, shown, out)
	}
}

// backwardOf returns the GPU time of the backward of each operator. A backward node has the number
// of the operator that made it, or of a node that the operator made later.
func (a *Analysis) backwardOf() map[*trace.Op]float64 {
	var walked bool
	for _, th := range a.Threads {
		a.eachOn(th, func(_ int, o *trace.Op) {
			walked = walked || isNumber32(o.Sequence) && trace.IsBackward(a.Names.List[o.Name].Text)
		})
	}
	if !walked {
		return nil
	}
	var made []*trace.Op // of the thread with most nodes, because each thread counts separately
	for _, th := range a.Threads {
		var list []*trace.Op
		a.eachOn(th, func(_ int, o *trace.Op) {
			if isNumber32(o.Sequence) && !trace.IsBackward(a.Names.List[o.Name].Text) {
				list = append(list, o)
			}
		})
		if len(list) > len(made) {
			made = list
		}
	}
	slices.SortStableFunc(made, func(x, y *trace.Op) int { return cmp.Compare(x.Sequence, y.Sequence) })
	out := map[*trace.Op]float64{}
	for _, th := range a.Threads {
		a.eachOn(th, func(_ int, o *trace.Op) {
			if !isNumber32(o.Sequence) || o.GPU == 0 || !trace.IsBackward(a.Names.List[o.Name].Text) {
				return
			}
			// the last operator with a number up to this one
			i := sort.Search(len(made), func(i int) bool { return made[i].Sequence > o.Sequence }) - 1
			if i >= 0 && o.Sequence-made[i].Sequence < maxNodes {
				out[made[i]] += float64(o.GPU)
			}
		})
	}
	return out
}
